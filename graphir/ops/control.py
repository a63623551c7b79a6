"""The ops that give a tuple of values: control flow, and calls of other libraries.

A graph among the attributes is closed: values from outside are operands of the op and inputs of the
graph. graphir.control has the functions that build these ops from Python functions. The op `call`
stands for a step that only another library computes. The op `part` takes one value out of a tuple.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from graphir.dtypes import DType
from graphir.errors import Fix, GraphError, OperandInfo, PromotionError, ShapeError, cast_first
from graphir.ops import attributes as at
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.dims import Shape, Size
from graphir.ops.op import (
    CONTROL,
    Attr,
    Attributes,
    BodyGraph,
    Inference,
    Op,
    Resolved,
    Signature,
    Types,
)
from graphir.ops.types import TensorType, TupleType
from graphir.promotion.rules import PromotionRules

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


class Results(NamedTuple):
    """The answer of a control op's rule: its results, and the dtypes that its parts must have.

    `operands` are the dtypes of the operands, and `outputs` those of the outputs of each graph
    among the attributes, in order.
    """

    types: tuple[TensorType, ...]
    operands: tuple[DType, ...]
    outputs: tuple[tuple[DType, ...], ...]


Rule: TypeAlias = Callable[[PromotionRules, Op, Types, Attributes], Results]


@dataclass(frozen=True, eq=False, slots=True)
class ControlOp(Op):
    """An op with graphs among its attributes; `rule` derives its types."""

    rule: Rule | None = None

    def infer(self, rules: PromotionRules, types: Types, attributes: Attributes) -> Inference:
        """Return the result's type, the operands' and outputs' dtypes, and canonical attributes."""
        attrs = self.normalized(attributes, types)
        assert self.rule is not None
        results = self.rule(rules, self, types, attrs)
        return Inference(TupleType(results.types), results.operands, attrs, results.outputs)


@dataclass(frozen=True, eq=False, slots=True)
class PartOp(Op):
    """The op that takes one array out of a tuple."""

    def infer(self, rules: PromotionRules, types: Types, attributes: Attributes) -> Inference:
        """Return the type of the part; a tuple has no dtype that a cast could change."""
        attrs = self.normalized(attributes, types)
        if not isinstance(types[0], TupleType):
            raise GraphError("it takes the result of control flow", got=str(types[0]), op=self.name)
        index: int = attrs["index"]
        return Inference(types[0].parts[index], (), attrs)


# -- graphs among attributes


def bodies(attrs: Mapping[str, Any]) -> Iterator[BodyGraph]:
    """Yield the graphs among attributes, in order."""
    for value in attrs.values():
        if isinstance(value, BodyGraph):
            yield value
        elif isinstance(value, tuple):
            for item in cast("tuple[Any, ...]", value):
                if isinstance(item, BodyGraph):
                    yield item


def with_bodies(attrs: Mapping[str, Any], new: Iterable[Any]) -> AttributeRecord:
    """Return the attributes with other graphs in place of those that `bodies` yields."""
    graphs = iter(new)

    def replaced(value: Any) -> Any:
        if isinstance(value, BodyGraph):
            return next(graphs)
        return tuple(map(replaced, cast("Any", value))) if isinstance(value, tuple) else value

    return AttributeRecord.of({name: replaced(value) for name, value in attrs.items()})


def _graph(value: Any, types: Types = ()) -> BodyGraph:
    """A graph with outputs, whose inputs have the types of operands."""
    if not isinstance(value, BodyGraph) or not value.outputs:
        raise GraphError("a graph with outputs is needed", got=f"{value!r}")
    return value


def _graphs(value: Any, types: Types = ()) -> tuple[BodyGraph, ...]:
    """At least one graph, all with the same types of inputs."""
    graphs = tuple(_graph(graph) for graph in at.several(value))
    if not graphs:
        raise GraphError("at least one graph is needed", got="none")
    return graphs


def _index(value: Any, types: Types) -> int:
    """The position of a part, counted from 0."""
    index, count = at.natural(value), len(types[0].parts)
    if index >= count:
        raise GraphError(f"the tuple has {count} parts", got=f"index {index}")
    return index


def _of(symbols: Iterable[Symbol]) -> tuple[TensorType, ...]:
    return tuple(symbol.type for symbol in symbols)


# -- type rules


def _entering(rules: PromotionRules, op: Op, types: Types, graph: BodyGraph) -> tuple[DType, ...]:
    """Return the dtypes of a graph's inputs, to which the operands convert."""
    if len(types) != len(graph.inputs):
        raise GraphError(
            f"its graph takes {len(graph.inputs)} operands", got=str(len(types)), op=op.name
        )
    for type_, symbol in zip(types, graph.inputs, strict=True):
        _matches(rules, op, type_, symbol.type, "an operand")
    return tuple(symbol.dtype for symbol in graph.inputs)


def _matches(
    rules: PromotionRules, op: Op, type_: TensorType, target: TensorType, role: str
) -> None:
    """Raise an error unless a value of one type may enter or leave a graph as another type.

    The shapes must be equal. The dtype must be equal, or promote to the target beside it.
    """
    if type_.shape != target.shape:
        raise ShapeError(f"{role} must be {target}", got=str(type_), op=op.name)
    if type_.dtype is not target.dtype and rules.common((type_, target)) is not target.dtype:
        raise PromotionError(
            f"{role} must be {target}", got=str(type_), fix=cast_first(target.dtype), op=op.name
        )


def _cond(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Results:
    """The branches' results meet one by one, as the operands of `where` do."""
    index, graphs = types[0], attrs["branches"]
    if index.rank or not (index.dtype is DType.bool or index.dtype.is_integer):
        raise PromotionError(
            "it chooses by a 0-d bool or integer", got=str(index), fix="write x != 0", op=op.name
        )
    dtypes = _entering(rules, op, types[1:], graphs[0])
    if any(_of(graph.inputs) != _of(graphs[0].inputs) for graph in graphs):
        raise GraphError("its branches must take the same types", op=op.name)
    if len({len(graph.outputs) for graph in graphs}) > 1:
        counts = " and ".join(str(len(graph.outputs)) for graph in graphs)
        raise GraphError("its branches must have as many results", got=counts, op=op.name)
    results: list[TensorType] = []
    for symbols in zip(*(graph.outputs for graph in graphs), strict=True):
        if len({symbol.shape for symbol in symbols}) > 1:
            raise ShapeError(
                "its branches must have results of one shape",
                got=" and ".join(str(symbol.type) for symbol in symbols),
                op=op.name,
                operands=tuple(OperandInfo("", symbol.type, symbol.location) for symbol in symbols),
            )
        common = rules.common(_of(symbols)) if len({*_of(symbols)}) > 1 else symbols[0].dtype
        results.append(symbols[0].type.cast(common))
    outputs = tuple(type_.dtype for type_ in results)
    return Results(tuple(results), (index.dtype, *dtypes), (outputs,) * len(graphs))


def _carried(
    rules: PromotionRules, op: Op, carries: Sequence[Symbol], outputs: Sequence[Symbol]
) -> None:
    """Raise an error unless the values that a body gives can enter it again.

    A value of a weak dtype may convert to the carry's dtype. Any other change of a dtype is refused
    in both directions: a program that runs the body again would compute in another dtype.
    """
    for i, (carry, output) in enumerate(zip(carries, outputs, strict=True)):
        if output.type is carry.type:
            continue
        weak = output.dtype.weak or carry.dtype.weak
        promotes = output.shape == carry.shape and rules.common((carry.type, output.type))
        if not weak or promotes is not carry.dtype:
            same_shape = output.shape == carry.shape
            error = PromotionError if same_shape else ShapeError
            cause = _change(output, carry.type, same_shape)
            name = (cause.args[0] if cause.op is part else cause).op.name
            operands = ", ".join(str(arg.type) for arg in cause.args)
            call = f"{name} of {operands}" if operands else name
            raise error(
                f"the body must keep the type of carry {i}, {carry.type}",
                reason=f"{call} ({cause.location}) makes it {cause.type}",
                got=str(output.type),
                fix=Fix("return x{cast}", carry.dtype) if same_shape else (),
                op=op.name,
                operands=(OperandInfo("result", output.type, output.location),),
            )


def _change(output: Symbol, carry: TensorType, same_shape: bool) -> Symbol:
    """Return the first op on the way to an output that gives its dtype, or else its shape."""
    symbol = output
    while True:
        find = _leaving if symbol.op is part else _unchanged
        sources = find(symbol, same_shape)
        for source in sources:
            is_inner = source.op is part or source.op.kind not in ("creation", "control")
            if is_inner and (
                source.dtype is output.dtype if same_shape else source.shape != carry.shape
            ):
                symbol = source
                break
        else:
            return symbol


def _unchanged(symbol: Symbol, same_shape: bool) -> Sequence[Symbol]:
    """Return the operands from which a symbol may have its dtype or shape: none if it converts."""
    if same_shape:
        dtypes = symbol.graph.infer(symbol.op, symbol.args, symbol.attrs).operands
        for arg, dtype in zip(symbol.args, dtypes, strict=True):
            if dtype is symbol.dtype and arg.dtype is not dtype and not arg.dtype.weak:
                return ()
    return symbol.args


def _leaving(symbol: Symbol, same_shape: bool) -> Sequence[Symbol]:
    """Return the values that may give a part of control flow its type, there or in a graph."""
    control, place = symbol.args[0], symbol.attrs["index"]
    carries: int = control.attrs.get("carries", 0)
    count = len(control.type.parts) if control.op is while_loop else carries
    if place < count:
        return control.args[place : place + 1]
    if control.op is scan and not same_shape:
        return control.args[count : count + control.attrs["scanned"]]
    leaving: list[Symbol] = [graph.outputs[place] for graph in bodies(control.attrs)]
    return leaving


def _while(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Results:
    """The results have the types of the carries, the first operands."""
    condition, body = attrs["condition"], attrs["body"]
    dtypes = _entering(rules, op, types, body)
    if _of(condition.inputs) != _of(body.inputs):
        raise GraphError("its condition and its body must take the same types", op=op.name)
    verdicts = _of(condition.outputs)
    if len(verdicts) != 1 or verdicts[0] is not TensorType(DType.bool):
        got = ", ".join(map(str, verdicts))
        raise PromotionError("its condition must give a 0-d bool", got=got, op=op.name)
    carries = body.inputs[: len(body.outputs)]
    if len(body.outputs) > len(body.inputs):
        raise GraphError("its body has more results than operands", op=op.name)
    _carried(rules, op, carries, body.outputs)
    results = _of(carries)
    return Results(results, dtypes, ((DType.bool,), tuple(type_.dtype for type_ in results)))


def _scan(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Results:
    """The results have the types of the carries, then those of the rows, stacked."""
    body, carries, scanned = attrs["body"], attrs["carries"], attrs["scanned"]
    length = _length(op, types[carries : carries + scanned], attrs["length"])
    rows = [TensorType(x.dtype, x.shape[1:]) for x in types[carries : carries + scanned]]
    entering = (*types[:carries], *rows, *types[carries + scanned :])
    if len(types) < carries + scanned or len(body.outputs) < carries:
        raise GraphError(
            f"it has {carries} carries and scans {scanned} operands",
            got=f"{len(types)} operands and {len(body.outputs)} results of the body",
            op=op.name,
        )
    dtypes = _entering(rules, op, entering, body)
    _carried(rules, op, body.inputs[:carries], body.outputs[:carries])
    stacked = [TensorType(y.dtype, (length, *y.shape)) for y in body.outputs[carries:]]
    results = (*_of(body.inputs[:carries]), *stacked)
    return Results(results, dtypes, (tuple(type_.dtype for type_ in results),))


def _length(op: Op, scanned: Types, length: Size | None) -> Size:
    sizes = [x.shape[0] for x in scanned if x.rank]
    if len(sizes) < len(scanned):
        raise ShapeError("what it scans must have an axis", op=op.name)
    sizes += [] if length is None else [length]
    if not sizes:
        raise GraphError("nothing to scan and no length", fix="pass length=", op=op.name)
    if any(size != sizes[0] for size in sizes):
        got = ", ".join(map(str, sizes))
        raise ShapeError("all that it scans must have the same length", got=got, op=op.name)
    return sizes[0]


def no_dtype(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    """None: the op infers its type itself."""
    raise GraphError("its result is a tuple, which has no dtype", op=op.name)


def no_dims(op: Op, types: Types, attrs: Attributes) -> Shape:
    """Those of the outputs of its graphs."""
    raise GraphError("its result is a tuple, which has no shape", op=op.name)


_TYPED = Signature(
    "control", no_dtype, (), doc="Operands and results have the dtypes of its graphs."
)


class Callee:
    """What a `call` calls: the name of a function of another library, and the function, if known.

    The function takes arrays and opaque values, and returns a tuple of them. A callee that was read
    from text has no function. Callees are equal only if they are the same object.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Sequence[Any]] | None = None) -> None:
        self.name, self.function = name, function

    @property
    def engine(self) -> str:
        """The name of what computes the function, where the function tells one; else ""."""
        return getattr(self.function, "engine", "")

    def __reduce__(self) -> tuple[type[Callee], tuple[str]]:
        return Callee, (self.name,)

    def __str__(self) -> str:
        return json.dumps(self.name)


def _callee(value: Any, types: Types = ()) -> Callee:
    """The function of another library, a Callee."""
    return value if isinstance(value, Callee) else Callee(_string(value))


def _string(value: Any, types: Types = ()) -> str:
    """Text."""
    if not isinstance(value, str):
        raise GraphError("text is needed", got=repr(value))
    return value


def _call(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Results:
    """The results have the types that the caller states."""
    return Results(attrs["types"].parts, (), ())


def _control(name: str, rule: Rule, doc: str, *attrs: Attr) -> ControlOp:
    return ControlOp(
        *(name, ("operands",), _TYPED, no_dims, doc, attrs, "control"), variadic=True, rule=rule
    )


cond = _control(
    "cond",
    _cond,
    "What one of the branches gives: branches[index], the index clamped; of a bool, 0 or 1.",
    Attr("branches", _graphs),
)
while_loop = _control(
    "while_loop",
    _while,
    "The carries, replaced by what the body gives as long as the condition holds.",
    Attr("condition", _graph),
    Attr("body", _graph),
)
scan = _control(
    "scan",
    _scan,
    "The carries after the body has run on each row of the scanned operands, and its other results "
    "stacked.",
    Attr("body", _graph),
    Attr("carries", at.natural),
    Attr("scanned", at.natural),
    Attr("length", at.optional_size, None),
    Attr("reverse", at.flag, False),
)
call = _control(
    "call",
    _call,
    "What a function of another library gives, which only that library computes.",
    Attr("callee", _callee),
    Attr("types", at.result_types),
    Attr("parameters", _string, ""),
)
part = PartOp(
    *("part", ("x",), _TYPED, no_dims, "One array of a tuple."), (Attr("index", _index),), "control"
)


def parts(results: Symbol) -> list[Symbol]:
    """Return all parts of the tuple that an op of control flow, or a call, gives."""
    return [part(results, i) for i in range(len(results.type.parts))]


CONTROL.update({op.name: op for op in (cond, while_loop, scan, call, part)})

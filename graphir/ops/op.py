"""The Op record, which holds every fact about an op, and the call that adds the op to a graph."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import Parameter
from itertools import product
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from graphir.dtypes import DType
from graphir.errors import GraphError, GraphirError
from graphir.import_names import declared_names, load_declared
from graphir.location import is_internal, user_location
from graphir.ops import movement_decompositions  # noqa: F401  # pyright: ignore[reportUnusedImport] -- registers
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.decompositions import DECOMPOSITIONS, Decomposition
from graphir.ops.dims import Shape
from graphir.ops.types import TensorType
from graphir.promotion.registry import rules
from graphir.promotion.rules import PromotionRules

if TYPE_CHECKING:
    from graphir.ir.graph import Graph
    from graphir.ir.symbol import Symbol


Attributes: TypeAlias = Mapping[str, Any]
Types: TypeAlias = Sequence[TensorType]
Kind: TypeAlias = Literal[
    "elementwise", "reduction", "contraction", "rowwise", "movement", "creation", "cast", "control"
]
REQUIRED: Any = object()
CURRENT: ContextVar[tuple[Graph, ...]] = ContextVar("graphs of the with blocks", default=())


class Attr(NamedTuple):
    """An attribute of an op: its name, the normalization of its value, and its default."""

    name: str
    normalize: Callable[[Any, Types], Any]
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """Whether a call must pass the attribute."""
        return self.default is REQUIRED


class Resolved(NamedTuple):
    """The answer of a signature: the dtype that each operand must have, and the result's dtype."""

    operands: tuple[DType, ...]
    result: DType


class Signature(NamedTuple):
    """The dtype rule of an op.

    `resolve(rules, op, types, attrs)` returns a Resolved. `promoted` are the positions of the
    operands that promote together; None means all. A literal at such a position takes its dtype
    from the other promoted operands. A literal at another position has the dtype `other`. `doc`
    states the rule in a sentence.
    """

    name: str
    resolve: Callable[[PromotionRules, Op, Types, Attributes], Resolved]
    promoted: tuple[int, ...] | None = None
    other: DType = DType.int64
    doc: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation: name, operands, dtype rule, shape rule, attributes, doc.

    A call with symbols, arrays and literals adds a symbol to their graph: `add(x, 1)`, `sum(x,
    axis=0)`, `concat([x, y], axis=1)`. Attributes may follow the operands by position.
    `commutative` holds only if swapped operands give equal bits. `kind` is the memory access
    pattern. Movement ops (and constants) compute nothing, so they keep any dtype. `decomposition`
    defines a composite op in terms of others; it defaults to the function of the op's name in
    decompositions.py. An op without a decomposition is a primitive. `kernel` is the computation on
    NumPy arrays of an op from outside of the project (see graphir.semantics.kernels). Without a
    kernel the op computes its decomposition.

    `numpy` are NumPy's names of the op besides its own, separated by spaces: functions (`isnan`)
    and methods of ufuncs (`add.reduce`). The Array API's name is among them, because NumPy 2 has
    the standard's names. `cheap` holds for one ufunc of about one instruction, whose result
    does not depend on the memory layout of its operands.
    """

    name: str
    operands: tuple[str, ...]
    signature: Signature
    shape: Callable[[Op, Types, Attributes], Shape]
    doc: str
    attrs: tuple[Attr, ...] = ()
    kind: Kind = "elementwise"
    commutative: bool = False
    variadic: bool = False
    kernel: Callable[..., Any] | None = None
    decomposition: Decomposition | None = None
    numpy: str = ""
    cheap: bool = False

    def __post_init__(self) -> None:
        if self.decomposition is None:
            object.__setattr__(self, "decomposition", DECOMPOSITIONS.get(self.name))
        elif not isinstance(self.decomposition, Decomposition):  # pyright: ignore
            raise GraphError(
                f"the decomposition of op {self.name!r} is no Decomposition",
                got=repr(self.decomposition),
                fix="use decomposition=Decomposition(function)",
            )

    @property
    def computes(self) -> bool:
        """Whether the op computes values, rather than moves, converts or creates them."""
        return self.kind in ("elementwise", "reduction", "contraction", "rowwise")

    def operand(self, position: int) -> str:
        """Return an operand's name: lhs, rhs, x, condition, ..., or `x[2]` for a variadic op."""
        return f"{self.operands[0]}[{position}]" if self.variadic else self.operands[position]

    def attributes_of(self, names: Container[str]) -> tuple[Attr, ...]:
        """Return the attributes of a symbol: the op's own, and the optional ones among `names`."""
        optional = [attr for attr in OPTIONAL.get(self.name, ()) if attr.name in names]
        return (*self.attrs, *optional) if optional else self.attrs

    def normalized(self, attrs: Attributes, types: Types) -> AttributeRecord:
        """Return all attributes in order and in canonical form.

        Raise GraphError for a wrong attribute.
        """
        of_symbol = self.attributes_of(attrs) if attrs else self.attrs
        names = {attr.name for attr in of_symbol}
        for name in attrs:
            if name not in names:
                takes = ", ".join(attr.name for attr in self.attrs) or "none"
                raise GraphError(
                    f"no attribute is named {name!r}", op=self.name, fix=f"it takes {takes}"
                )
        full: dict[str, Any] = {}
        for attr in of_symbol:
            value = attrs.get(attr.name, attr.default)
            if value is REQUIRED:
                raise GraphError(f"the attribute {attr.name!r} is missing", op=self.name)
            full[attr.name] = attr.normalize(value, types)
        return AttributeRecord.of(full)

    def infer(self, rules: PromotionRules, types: Types, attributes: Attributes) -> Inference:
        """Return the result's type, the operands' required dtypes, and canonical attributes."""
        if self.variadic and not types:
            raise GraphError("an operand is missing", op=self.name, fix="pass at least one operand")
        attrs = self.normalized(attributes, types)
        rules.admit(self.name, attrs)
        resolution = self.signature.resolve(rules, self, types, attrs)
        shape = self.shape(self, types, attrs)
        return Inference(TensorType(resolution.result, shape), resolution.operands, attrs)

    def bind(
        self, values: tuple[Any, ...], keywords: Attributes
    ) -> tuple[tuple[Any, ...], Attributes]:
        """Split a call's arguments into operands and attributes."""
        attrs = dict(keywords)
        if self.variadic:
            if not values or not isinstance(values[0], (list, tuple)) or not values[0]:
                raise GraphError(
                    "the first argument is a list of at least one operand", op=self.name
                )
            operands, rest = tuple(cast("Sequence[Any]", values[0])), values[1:]
        else:
            count = len(self.operands)
            missing = self.operands[len(values) :]
            operands = values[:count] + tuple(attrs.pop(name) for name in missing if name in attrs)
            rest = values[count:]
            if len(operands) != count:
                raise GraphError(
                    f"the op has {count} operands ({', '.join(self.operands)})",
                    op=self.name,
                    got=f"{len(operands)} operands",
                )
        if len(rest) > len(self.attrs):
            raise GraphError(f"{self.name} takes fewer arguments", got=str(len(values)))
        for attr, value in zip(self.attrs, rest, strict=False):
            if attr.name in attrs:
                raise GraphError(f"two values for the attribute {attr.name!r}", op=self.name)
            attrs[attr.name] = value
        return operands, attrs

    def __call__(self, *values: Any, **keywords: Any) -> Symbol:
        """Add the op to the graph of its operands and return the new symbol."""
        try:
            operands, attrs = self.bind(values, keywords)
            graph = _graph_of(self, operands)
        except GraphirError as error:
            raise error.at(user_location(), self.name) from None
        result = graph.apply(self, operands, attrs)
        for operand in operands:
            if isinstance(operand, GraphValue):
                return operand.beside(result)
        return result

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return find, (self.name,)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


# -- The help and the call signature of an op, from its record
#
# `help(ops.add)` prints the help; `inspect.signature(ops.add)` returns the signature.


class OfInstance:
    """Descriptor: an attribute that a function computes for an instance.

    The class has its own value.
    """

    def __init__(self, function: Callable[[Any], Any], of_class: Any) -> None:
        self.function, self.of_class = function, of_class

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.of_class if instance is None else self.function(instance)


def call_signature(op: Op) -> inspect.Signature:
    """Return the parameters of a call of an op: its operands, then its attributes.

    A variadic op takes a list of operands as a single parameter.
    """
    either = Parameter.POSITIONAL_OR_KEYWORD
    operands = [Parameter(name, either) for name in op.operands]
    attributes = [
        Parameter(attr.name, either, default=Parameter.empty if attr.required else attr.default)
        for attr in op.attrs
    ]
    # Python allows no required positional parameter after an optional one, so a required attribute
    # after an optional one is keyword-only.
    parameters, optional = list[Parameter](), False
    for each in (*operands, *attributes):
        optional = optional or each.default is not Parameter.empty
        late = optional and each.default is Parameter.empty
        parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY) if late else each)
    parameters.sort(key=lambda parameter: parameter.kind)
    return inspect.Signature(parameters)


def op_help(op: Op) -> str:
    """Return the help of an op: its sentence, call, operands, attributes, rules, example."""
    call = f"{op.name}{call_signature(op)}"
    return "\n".join([op.doc, "", call, "", *_lines(op), *_example_lines(op)])


def _lines(op: Op) -> Iterator[str]:
    if op.variadic:
        yield f"{op.operands[0]}: a list of symbols, arrays or Python numbers."
    elif op.operands:
        plural = "symbols, arrays or" if len(op.operands) > 1 else "a symbol, an array or a"
        number = "Python numbers" if len(op.operands) > 1 else "Python number"
        yield f"{', '.join(op.operands)}: {plural} {number}."
    for attr in op.attrs:
        default = "" if attr.required else f" Default: {attr.default!r}."
        yield f"{attr.name}: {_sentence(attr.normalize)}{default}"
    yield f"Dtype: {op.signature.doc or op.signature.name}"
    yield f"Shape: {_sentence(op.shape)}"
    yield "Raises PromotionError for dtypes that the graph's rules do not mix here, ShapeError for"
    yield "shapes that do not fit, GraphError for a wrong attribute or an operand of another graph."


_EXAMPLE_DTYPES = (("int16", "float32"), ("float32",) * 2, ("int32",) * 2, ("bool",) * 2)
"""The dtypes of the first operand and of the others that examples try, in this order."""

_EXAMPLE_SHAPES = (3, 4), (1, 4), (4,)

_EXAMPLE_PLACES = {"condition": "bool", "mask": "bool", "indices": "int64"}
"""The dtypes of operands of these names in examples."""

_EXAMPLE_VALUES = {
    "to": "float64",
    "axis": 0,
    "dims": (1, 0),
    "shift": 1,
    "padding": (1, 0),
    "repeats": 2,
    "shape": (3, 4),
    "start": (0, 0),
    "stop": (2, 4),
    "step": (1, 2),
    "index": (0, 1),
}
"""The values of required attributes in examples."""


def _example_lines(op: Op) -> Iterator[str]:
    """Yield a session of Python with a call that the default rules accept; nothing if none is."""
    names = ("x", "y") if op.variadic else op.operands
    required = [attr.name for attr in op.attrs if attr.required]
    if not names or not {*required} <= {*_EXAMPLE_VALUES}:
        return
    attrs = {name: _EXAMPLE_VALUES[name] for name in required}
    for (first, others), shape in product(_EXAMPLE_DTYPES, _EXAMPLE_SHAPES):
        usual = dict.fromkeys(names, others) | {names[0]: first}
        dtypes = [_EXAMPLE_PLACES.get(name, dtype) for name, dtype in usual.items()]
        with suppress(GraphirError):
            result = op.infer(rules(), [TensorType(DType(x), shape) for x in dtypes], attrs).type
            operands = f"[{', '.join(names)}]" if op.variadic else ", ".join(names)
            call = ", ".join([operands, *(f"{name}={value!r}" for name, value in attrs.items())])
            yield from ("", '>>> g = Graph("g")')
            yield from (
                f'>>> {x} = g.input("{dtype}", {shape})'
                for x, dtype in zip(names, dtypes, strict=True)
            )
            yield from (f">>> print(ops.{op.name}({call}).type)", str(result))
            return


def _sentence(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring on one line."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


# These descriptors compute the attributes for each op, so that `help(ops.add)` and
# `inspect.signature(ops.add)` describe the op. The class Op keeps attributes of its own.
setattr(Op, "__doc__", OfInstance(op_help, Op.__doc__))  # noqa: B010
setattr(Op, "__signature__", OfInstance(call_signature, None))  # noqa: B010


@dataclass(frozen=True, eq=False, slots=True)
class Inference:
    """The inference of an op: the result's type, the operands' dtypes, canonical attributes.

    `outputs` are the dtypes that the outputs of each graph among the attributes must have.
    """

    type: TensorType
    operands: tuple[DType, ...]
    attrs: AttributeRecord
    outputs: tuple[tuple[DType, ...], ...] = ()


def tracing_graph() -> Graph | None:
    """Return the graph of the innermost trace of a function on this thread, or None."""
    graphs = (graph for graph in reversed(CURRENT.get()) if not graph.is_body)
    return next((graph for graph in graphs if graph.trace_state.is_tracing), None)


Error = TypeVar("Error", bound=GraphirError)


def keep_refusal(refusal: Error, caller: FrameType) -> Error:
    """Return an error that no library would raise; a trace keeps it if its function may catch it.

    `caller` is the frame that gets the error. `trace_into` raises the error again at the end.
    """
    graph = None if is_internal(caller) else tracing_graph()
    if graph is not None and graph.trace_state.refusal is None:
        # A copy without the traceback, which would hold the trace.
        graph.trace_state.refusal = refusal.having()
    return refusal


class GraphValue:
    """Base class of symbols and of values that wrap a symbol, with the interface that ops need."""

    __slots__ = ("graph",)
    graph: Graph

    def read(self) -> Symbol:
        """Return the symbol of the value."""
        raise NotImplementedError

    def beside(self, symbol: Symbol) -> Any:
        """Return the result of an op called on this value: `symbol` itself, or a wrapper of it."""
        return symbol


class BodyGraph:
    """Base class of graphs, with the interface that ops with graphs among their attributes need."""

    inputs: list[Symbol]
    outputs: tuple[Symbol, ...]


CATALOGUE: dict[str, Op] = {}
"""All ops on tensors by name; catalogue.py fills the dict."""

CONTROL: dict[str, Op] = {}
"""The ops of control flow by name; control.py fills the dict."""

OPTIONAL: dict[str, tuple[Attr, ...]] = {}
"""By op name: the attributes that a symbol may lack; catalogue.py fills the dict."""


def find(name: str) -> Op:
    """Return the op of that name, registered or declared by a distribution (graphir.import_names).

    The function raises GraphError with the nearest names if no op has the name.
    """
    op = find_or_none(name)
    if op is not None:
        return op
    near = difflib.get_close_matches(name, [*CATALOGUE, *declared_names("graphir.ops")], n=3)
    hint = f"; near it are {', '.join(near)}" if near else ""
    raise GraphError(f"no op is named {name!r}{hint}")


def find_or_none(name: str) -> Op | None:
    """Return the op of that name, registered or declared by a distribution, or None."""
    op = CATALOGUE.get(name) or CONTROL.get(name)
    declared = load_declared("graphir.ops", name) if op is None else None
    return op if declared is None else register(declared)


def register(op: Op) -> Op:
    """Add an op from outside of the project to the catalogue, so that texts may contain it.

    The function raises GraphError if the name is taken or is no identifier, and if the op has
    neither a kernel nor a decomposition.
    """
    if not isinstance(op, Op):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError("register() takes an Op", got=repr(op))
    if not op.name.isidentifier() or op.name.startswith("_"):
        raise GraphError("an op's name is an identifier without _ before it", got=repr(op.name))
    if op.kernel is None and op.decomposition is None:
        raise GraphError(
            f"op {op.name!r} has neither a kernel nor a decomposition",
            fix="give it Op(..., kernel=function), or decomposition=Decomposition(function)",
        )
    if op.name in CONTROL or CATALOGUE.setdefault(op.name, op) is not op:
        raise GraphError(f"an op named {op.name!r} exists already", fix="take another name")
    return op


def _graph_of(op: Op, operands: Sequence[Any]) -> Graph:
    for operand in operands:
        if isinstance(operand, GraphValue):
            return operand.graph
    if not CURRENT.get():
        raise GraphError(
            f"no operand of {op.name} is a symbol, so that its graph is not known",
            fix="call it on a symbol, or inside `with g:`",
        )
    return CURRENT.get()[-1]

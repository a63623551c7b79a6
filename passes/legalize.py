"""The dtypes that a machine computes in: weak types are committed, then others are emulated."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphir.conversions import convert
from graphir.decorators import uncollected
from graphir.dtypes import by_dtype
from graphir.ir.op_builder import infer
from graphir.location import LEGALIZE
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.attributes import constant, with_dtypes
from graphir.ops.control import with_bodies
from graphir.passes.rewriter import (
    Casts,
    Rewriter,
    bodies_of,
    entering_bodies,
    origins_of,
    require_explicit,
)
from graphir.public import DType, Graph, Origin, Symbol, TensorType, ops
from graphir.semantics.evaluation import computes_narrowly, machine, machine_of


@uncollected
def weak_types(graph: Graph) -> Graph:
    """Give every weak symbol its rule set's default dtype (python: int64, float64, complex128).

    A cast of a literal converts the literal from its 64-bit value, so that it rounds once. Returns
    the graph itself if no symbol is weak. Raises GraphError unless the graph is explicit.
    """
    require_explicit(graph, "weak_types")
    if not _has_weak(graph):
        return graph
    concrete = graph.concrete_dtype
    types: dict[TensorType, TensorType] = {}
    attributes: dict[AttributeRecord, AttributeRecord] = {}
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        type_ = types.get(symbol.type)
        if type_ is None:
            type_ = types[symbol.type] = symbol.type.with_dtypes(concrete)
        of = symbol.args[0] if symbol.op is ops.cast else symbol
        if of.op is ops.constant and of.weak:
            value = constant(convert(of.attrs["value"], of.dtype, type_.dtype, graph.tf32))
            attrs = {"dtype": type_.dtype, "value": value, "literal": None}
            source = symbol.source if of is symbol else origins_of(symbol)
            rewriter.values.append(rewriter.new.append(ops.constant, (), attrs, type_, source))
            continue
        record = attributes.get(symbol.attrs)
        if record is None:
            committed = with_bodies(symbol.attrs, map(weak_types, bodies_of(symbol)))
            record = AttributeRecord.of(with_dtypes(committed, concrete))
            attributes[symbol.attrs] = record
        rewriter.copy(symbol, record, type_)
    new = rewriter.finish()
    if new.out_types is not None:
        new.promise(type_.cast(concrete(type_.dtype)) for type_ in new.out_types)
    return new


def _has_weak(graph: Graph) -> bool:
    """Whether a symbol of a graph, or of a graph of its control flow, is weak."""
    if not graph.has_bodies:
        return any(symbol.type.dtype.weak for symbol in graph.symbols)
    return any(
        any(getattr(part, "dtype", DType.bool).weak for part in symbol.type.parts)
        or any(map(_has_weak, bodies_of(symbol)))
        for symbol in graph.symbols
    )


@entering_bodies
def without_loops(graph: Graph) -> Graph:
    """Return the graph with its ops alone, without what NumPy's own loops decide.

    What computes the result gives the last bits of its own functions, for attributes `loop`, and
    leaves equal float16 values of unstable sorts in their order. Returns the graph itself if no
    symbol has either.
    """
    if not any(_is_of_numpy(symbol) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        attrs: dict[str, Any] | None = None
        if _is_of_numpy(symbol):
            attrs = {name: value for name, value in symbol.attrs.items() if name != "loop"}
            if symbol.op in _SORTS:
                attrs["stable"] = True
        rewriter.copy(symbol, attrs)
    return rewriter.finish()


_SORTS = (ops.sort, ops.argsort)


def _is_of_numpy(symbol: Symbol) -> bool:
    is_unstable = symbol.op in _SORTS and not symbol.attrs["stable"]
    return "loop" in symbol.attrs or (is_unstable and symbol.args[0].dtype is DType.float16)


@uncollected
@entering_bodies
def legalize(graph: Graph) -> Graph:
    """Restrict arithmetic to bool, intN, uintN, float32, float64, complex64 and complex128.

    The pass rewrites an op on any other dtype: casts widen the operands exactly, the op computes in
    the wide dtype, and a cast rounds the result once. The origins mark these casts as legalization.
    Sums and products along an axis accumulate in the wide dtype. index and address compute as
    uint64. Data movement keeps its dtypes, and so does what computes in them as NumPy does: loops
    of NumPy, unstable sorts of float16, and sums at indices, each of which is rounded. Returns the
    graph itself if every op is legal. Raises GraphError unless the graph is explicit.

    A float32 result that is rounded to the narrow dtype is correctly rounded in the normal range
    (see `semantics.evaluation.machine`). A product or quotient below 2**-126, where float32,
    tensor_float32 and bfloat16 are all subnormal, is rounded twice: its error exceeds half an ulp
    by at most 2**-150; an ulp is 2**-136 in tensor_float32 and 2**-133 in bfloat16.
    """
    require_explicit(graph, "legalize")
    if all(_legal(symbol) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    casts = Casts(rewriter.new)
    plans: dict[Any, _Plan] = {}
    for symbol, kind in zip(graph.symbols, graph.kinds(graph.symbols), strict=True):
        if _legal(symbol):
            rewriter.copy(symbol)
            continue
        plan = plans.get(kind)
        if plan is None:
            plan = plans[kind] = _plan(graph, symbol)
        rewriter.replace(_legalize(rewriter, casts, symbol, plan))
    casts.finish()
    return rewriter.finish()


def _legal(symbol: Symbol) -> bool:
    if not symbol.op.computes:
        return True
    if computes_narrowly(symbol.op, symbol.attrs, [arg.type.dtype for arg in symbol.args]):
        return True
    for arg in symbol.args:
        if not _LEGAL[arg.type.dtype.code]:
            return False
    return _LEGAL[symbol.type.dtype.code]


_LEGAL = by_dtype(lambda dtype: machine(dtype) is dtype)


class _Plan(NamedTuple):
    """The legalization of all symbols of one kind: casts of operands, and the op in wide dtypes."""

    casts: tuple[tuple[int, str, DType, DType], ...]
    attrs: dict[str, Any]
    type: TensorType


def _plan(graph: Graph, symbol: Symbol) -> _Plan:
    op = symbol.op
    types: list[Any] = list(graph.builder.types_of(symbol.args))
    casts: list[tuple[int, str, DType, DType]] = []
    for i, arg in enumerate(symbol.args):
        if not _LEGAL[arg.dtype.code]:
            wide = machine_of(op, arg.dtype, graph.functions)
            casts.append((i, op.operand(i), arg.dtype, wide))
            types[i] = arg.type.cast(wide)
    inference = infer(graph.rules, op, types, with_dtypes(symbol.attrs, machine))
    return _Plan(tuple(casts), inference.attrs, inference.type)


def _legalize(rewriter: Rewriter, casts: Casts, symbol: Symbol, plan: _Plan) -> Symbol:
    op, values = symbol.op, rewriter.values
    args = [values[arg.index] for arg in symbol.args]
    for position, operand, source, wide in plan.casts:
        origin = Origin(operand, op.name, symbol.location, LEGALIZE, source, wide)
        args[position] = casts.insert(args[position], wide, origin)
    value = rewriter.new.append(op, tuple(args), plan.attrs, plan.type, symbol.source)
    if plan.type is symbol.type:
        return value
    source, target = plan.type.dtype, symbol.dtype
    origin = Origin("result", op.name, symbol.location, LEGALIZE, source, target)
    return casts.insert(value, target, origin)

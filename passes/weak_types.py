"""Commit weak types: each weak dtype (that of a Python scalar) becomes its rule set's default."""

from __future__ import annotations

from graphir.conversions import convert
from graphir.decorators import uncollected
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.attributes import constant, with_dtypes
from graphir.ops.control import with_bodies
from graphir.passes.rewriter import Rewriter, bodies_of, origins_of, require_explicit
from graphir.public import DType, Graph, TensorType, ops


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

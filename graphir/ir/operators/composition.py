"""Composition: calls of one op that a rule set replaces by several ops, as its library does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphir import ops
from graphir.ir.operands import symbols_of
from graphir.ir.symbol import Symbol
from graphir.ops.op import Op

if TYPE_CHECKING:
    from graphir.ir.graph import Graph


def compose(graph: Graph, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Symbol:
    """Add an op that is in the rule set's `composes`, or the ops that the library runs instead.

    A power whose exponent the rules turn into a number of factors becomes a product. An op along
    the axis of a 0-d operand runs on a row of one element.
    """
    if op is ops.pow:
        base, exponent = operands
        type_ = base.type if isinstance(base, Symbol) else None
        exponent, factors = graph.rules.exponent_of(type_, exponent)
        if factors is not None:
            return _product(graph, base, factors)
        operands = base, exponent
    args = symbols_of(graph, op, operands)
    if _is_scalar_row(op, args, attrs):
        return _scalar_row(graph, op, args, attrs)
    return graph.emit(op, args, attrs)


def _product(graph: Graph, base: Symbol, factors: int) -> Symbol:
    """Add the product of `factors` copies of the base, by repeated squaring."""
    if factors == 0:
        return graph.full(1, base.shape, base.dtype)
    product = base
    for bit in f"{factors:b}"[1:]:
        product = graph.emit(ops.multiply, (product, product), {})
        if bit == "1":
            product = graph.emit(ops.multiply, (product, base), {})
    return product


_ROWS = {"softmax", "logsoftmax", "sort", "argsort", "cumulative_sum", "cumulative_prod"}


def _is_scalar_row(op: Op, args: Sequence[Symbol], attrs: Mapping[str, Any]) -> bool:
    """Answer whether an op runs along an axis of a 0-d operand.

    The rules that compose such ops treat a 0-d operand as a row of one element.
    """
    if len(args) != 1 or args[0].rank:
        return False
    if op.name in _ROWS:
        return True
    return attrs.get("axis") in (0, -1, (0,), (-1,), [0], [-1])


def _scalar_row(graph: Graph, op: Op, args: tuple[Symbol, ...], attrs: Mapping[str, Any]) -> Symbol:
    """Add an op on a 0-d operand that is first unsqueezed to one axis; squeeze the result."""
    row = graph.emit(ops.unsqueeze, args, {"axis": 0})
    result = graph.emit(op, (row,), attrs)
    return result if result.shape == () else graph.emit(ops.squeeze, (result,), {"axis": 0})

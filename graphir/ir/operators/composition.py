"""Composition: calls that become several ops, as in a rule set's library, and one-sided clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.ir.literals import is_literal
from graphir.ir.op_builder import infer
from graphir.ir.operands import resolve_literal, symbols_of
from graphir.ir.symbol import Symbol
from graphir.location import Origin
from graphir.ops.op import Op
from graphir.ops.types import TensorType
from graphir.promotion.operands import Number, Operand, Place
from graphir.promotion.rules import PromotionRules

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


# -- clip with optional bounds, in terms of the ops clip, maximum and minimum


def clip(x: Symbol, low: Any, high: Any) -> Symbol:
    """Limit x to two bounds. None stands for a missing bound.

    With one bound the result has the dtype that the op clip would give with this bound on both
    sides. Raises the errors of the op clip.
    """
    if low is None and high is None:
        x.graph.infer(ops.clip, (x, x, x), {})
        return ops.positive(x)
    if low is not None and high is not None:
        return ops.clip(x, low, high)
    graph, rules = x.graph, x.graph.rules
    op, at, bound = (ops.maximum, 1, low) if high is None else (ops.minimum, 2, high)
    bound = rules.entering(bound) if isinstance(bound, np.generic) else bound
    if is_literal(bound):
        if graph.ask(_is_unbounded, bound, rules, x.type, at):
            return ops.positive(x)
        dtype = graph.ask(_dtype_beside, bound, rules, x.type, at)
    else:
        bound = symbols_of(graph, op, (x, bound))[1]
        dtype = graph.infer(ops.clip, (x, bound, bound), {}).type.dtype
    result = op(x, bound)
    if result.dtype is dtype:
        return result
    origin = Origin("result", op.name, result.location, rules.name, result.dtype, dtype)
    return graph.append(ops.cast, (result,), {"to": dtype}, result.type.cast(dtype), (origin,))


def _is_unbounded(bound: Any, rules: PromotionRules, x: TensorType, at: int) -> bool:
    """Answer whether the rules omit a literal bound because it clips no value of x."""
    number = Number(bound)
    return rules.omits_bound(bound, Place((x, number, number), at, ops.clip.name))


def _dtype_beside(bound: Any, rules: PromotionRules, x: TensorType, at: int) -> DType:
    """Return the dtype of clip(x) by a literal bound; PromotionError where the rules refuse it."""
    number, dtype = resolve_literal(rules, ops.clip, (x, bound, bound), at)
    operand: Any = Operand(dtype, 0, number)
    return infer(rules, ops.clip, (x, operand, operand), {}).type.dtype

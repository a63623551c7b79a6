"""clip with optional bounds, in terms of the ops clip, maximum and minimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.ir.literals import is_literal
from graphir.ir.op_builder import infer
from graphir.ir.operands import resolve_literal, symbols_of
from graphir.ir.symbol import Symbol
from graphir.location import Origin
from graphir.ops.types import TensorType
from graphir.promotion.operands import Number, Operand, Place
from graphir.promotion.rules import PromotionRules


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

"""The fix of a loss row: the line to type so that the step keeps its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from graphir import DType, ops
from passes.analysis.suggestions import UncastOp, rewritten

if TYPE_CHECKING:
    from passes.analysis.casts.losses import LossRow


def loss_fix(row: LossRow) -> str:
    """Return the expression of a step with its operands cast to a dtype that holds its result.

    That is float64 for floats, and for integers the smallest dtype of at least twice the bits that
    holds the worst result. Returns "" in a function of a library, which no line of the program can
    change, and for a step in a dtype that no wider one holds.
    """
    dtype = wider(row)
    if dtype is None or row.location.compound or row.kind == "invalid":
        return ""
    symbol = row.symbol
    positions = symbol.op.signature.promoted or range(len(symbol.args))
    values = row.uses.operands(symbol)
    uncast = UncastOp(symbol.graph.rules, symbol.op, values)
    casts = {i: dtype for i in positions if values[i].op is not ops.constant or values[i].shape}
    return rewritten(uncast, row.location, casts or dict.fromkeys(positions, dtype))


def wider(row: LossRow) -> DType | None:
    """Return the dtype in which a step would keep its values; None if there is none."""
    source, worst = row.source, row.measured and row.measured.worst
    if source.is_complex:
        return None if source is DType.complex128 else DType.complex128
    if not source.is_integer:
        return None if source is DType.float64 else DType.float64
    exact = worst[0].real if worst else math.inf
    holding = [x for x in _INTEGERS if x.bits >= 2 * source.bits and x.min <= exact <= x.max]
    return next(iter(holding), DType.float64)


_INTEGERS = (DType.int16, DType.int32, DType.int64)

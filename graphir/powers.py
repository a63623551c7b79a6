"""The operator `**` with a scalar exponent, for which NumPy takes a root or a reciprocal.

NumPy computes `x ** 0.5` as sqrt(x) and `x ** -1` as 1 / x, whose bits differ from those of a power
in some 5 % of elements. Of arrays of floats it does so for every scalar exponent of that value (in
2.0 the operator, since 2.3 the loops of np.power); of complex numbers for Python's -1, 2 and 0.5
alone. The kernel of pow squares floats itself; float16 has the same bits either way. Sources:
fast_scalar_power in numpy/_core/src/multiarray/number.c of 2.4; numpy/_core/src/umath/loops.c.src.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import ops
from graphir.op import Op
from graphir.promotion.library import LibraryRules
from graphir.promotion.rules import PromotionRules
from graphir.types import TensorType


def shortcut(rules: PromotionRules, base: TensorType, exponent: Any) -> Op | None:
    """sqrt, reciprocal or square where the library's `**` is that; None where it is a power.

    Only of a base that already has the dtype of the result.
    """
    if not _is_real(exponent):
        return None
    if not (isinstance(rules, LibraryRules) and rules.roots) or base.dtype.weak:
        return None
    if base.dtype.is_complex:
        return _OF_COMPLEX.get((type(exponent), exponent))
    if not base.dtype.is_float:
        return None
    op = ops.sqrt if exponent == 0.5 else ops.reciprocal if exponent == -1 else None
    return op if op and rules.answer(base, exponent) is base.dtype else None


def _is_real(exponent: Any) -> bool:
    return type(exponent) in (int, float) or isinstance(exponent, (np.floating, np.integer))


_OF_COMPLEX: dict[Any, Op] = {
    (int, -1): ops.reciprocal,
    (int, 2): ops.square,
    (float, 0.5): ops.sqrt,
}

"""The families of ops that share a dtype rule."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from graphir.dtypes import DType
from graphir.promotion.operands import Place

Family: TypeAlias = Literal[
    "arithmetic",
    "division",
    "floating",
    "average",
    "accumulation",
    "ordering",
    "bitwise",
    "shift",
    "truth",
    "inspection",
    "movement",
]
"""The families of ops.

Each family is a method of PromotionRules that returns the dtype of its ops.
"""


class FamilyRules:
    """Dtype decisions of a library about single ops; the defaults here change nothing."""

    def accumulator(self, dtype: DType, op: str) -> DType:
        """Return the accumulator of a sum whose caller names `dtype`: by default `dtype` itself."""
        return dtype

    def clip_dtype(self, first: DType, join: DType) -> DType:
        """Return the dtype of clip from its first operand's dtype and the join of all operands."""
        return join

    def omits_bound(self, value: Any, place: Place) -> bool:
        """Whether clip drops the bound `value`, which no value of the first operand exceeds."""
        return False

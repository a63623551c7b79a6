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
"""The methods of PromotionRules that name the dtype in which an op happens."""


class FamilyRules:
    """What a library does besides for single ops; by default nothing."""

    def accumulator(self, dtype: DType, op: str) -> DType:
        """The dtype in which a sum accumulates whose caller names one: that."""
        return dtype

    def clip_dtype(self, first: DType, join: DType) -> DType:
        """The dtype of clip, of which the first operand has one dtype and all meet in another."""
        return join

    def omits_bound(self, value: Any, place: Place) -> bool:
        """Whether clip leaves out a bound, since no value of the first operand is beyond it."""
        return False

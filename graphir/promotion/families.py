"""The families of ops that share a dtype rule."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from graphir.dtypes import DType
from graphir.promotion.operands import Place

Family: TypeAlias = Literal[
    "arithmetic",
    "divided",
    "floating",
    "averaged",
    "accumulated",
    "ordered",
    "bitwise",
    "shifted",
    "truth",
    "tested",
    "moved",
]
"""The methods of PromotionRules that name the dtype in which an op happens."""


class FamilyRules:
    """What a library does besides for single ops; by default nothing."""

    def accumulator(self, dtype: DType, op: str) -> DType:
        """The dtype in which a sum accumulates whose caller names one: that."""
        return dtype

    def clipped(self, first: DType, met: DType) -> DType:
        """The dtype of clip, of which the first operand has one dtype and all meet in another."""
        return met

    def unbounded(self, value: Any, place: Place) -> bool:
        """Whether clip leaves out a bound, since no value of the first operand is beyond it."""
        return False

"""The rules of a graph in which nothing is implicit any more."""

from __future__ import annotations

from graphir.dtypes import DType
from graphir.promotion.rules import PromotionRules


class Explicit(PromotionRules):
    """Every operand already has exactly the dtype that its signature demands; mixing raises."""

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Refused: nothing joins any more."""
        raise self.refusal(dtypes, "every operand must already have the dtype of the op")

    def divided(self, dtype: DType) -> DType:
        """A float or complex divides as it is."""
        return self.floating(dtype, "divide")


EXPLICIT = Explicit("explicit", "What a graph has after implicit_cast: no conversion is implied.")

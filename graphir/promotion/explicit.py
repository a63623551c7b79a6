"""The rules of a graph in which nothing is implicit any more."""

from __future__ import annotations

from collections.abc import Sequence

from graphir.dtypes import DType
from graphir.promotion.library import by_op
from graphir.promotion.operands import Typed
from graphir.promotion.rules import PromotionRules


class Explicit(PromotionRules):
    """Every operand already has exactly the dtype that its signature demands; mixing raises."""

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Refused: nothing joins any more."""
        raise self.refusal(dtypes, "every operand must already have the dtype of the op")

    implicit = False
    exceptions = by_op({"reciprocal": {dtype: dtype for dtype in DType if dtype.is_integer}})
    bool_arithmetic = PromotionRules.bool_arithmetic | {"abs", "floor", "ceil", "trunc", "sign"}

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """One dtype; or int64 and uint64, which compare exactly though neither holds the other."""
        dtypes = tuple([operand.dtype for operand in operands])
        return dtypes if {*dtypes} == _EXACT else super().comparison_dtypes(operands, op)

    def division(self, dtype: DType, op: str) -> DType:
        """A float or complex divides as it is."""
        return self.floating(dtype, op)

    def ordering(self, dtype: DType, op: str) -> DType:
        """Any; complex numbers by their real parts, then by their imaginary parts."""
        return dtype


_EXACT = {DType.int64, DType.uint64}

EXPLICIT = Explicit("explicit", "What a graph has after implicit_cast: no conversion is implied.")

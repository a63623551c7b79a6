"""The rule set "explicit", for graphs in which every conversion is a cast."""

from __future__ import annotations

from collections.abc import Sequence

from graphir.dtypes import DType
from graphir.promotion.library import by_op
from graphir.promotion.operands import Typed
from graphir.promotion.rules import PromotionRules


class Explicit(PromotionRules):
    """The rule set of a graph after `implicit_cast`: operands of different dtypes raise.

    Every operand already has the dtype that the op's signature demands.
    """

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Raise PromotionError: different dtypes never join."""
        raise self.refusal(dtypes, "every operand must already have the dtype of the op")

    implicit = False
    exceptions = by_op({"reciprocal": {dtype: dtype for dtype in DType if dtype.is_integer}})
    bool_arithmetic = PromotionRules.bool_arithmetic | {"abs", "floor", "ceil", "trunc", "sign"}

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Return the operands' one dtype, or their own dtypes for a pair of int64 and uint64.

        No integer dtype holds both int64 and uint64, yet the comparison kernel compares them
        exactly.
        """
        dtypes = tuple([operand.dtype for operand in operands])
        return dtypes if {*dtypes} == _EXACT else super().comparison_dtypes(operands, op)

    def division(self, dtype: DType, op: str) -> DType:
        """Return a float or complex dtype unchanged; refuse integers and bool."""
        return self.floating(dtype, op)

    def ordering(self, dtype: DType, op: str) -> DType:
        """Return any dtype unchanged. Complex numbers sort by real part, then by imaginary part."""
        return dtype


_EXACT = {DType.int64, DType.uint64}

EXPLICIT = Explicit("explicit", "What a graph has after implicit_cast: no conversion is implied.")

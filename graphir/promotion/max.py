"""The rules of MAX: the published lattice, and today's, which refuses what is not exact."""

from __future__ import annotations

from typing import Any

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.lattice import Lattice
from graphir.promotion.operands import ALONE, Place
from graphir.promotion.rules import PromotionRules

_UNCHECKED = frozenset(d for d in DType if d.narrow and d.is_float) | {DType.bool}

MAX_LATTICE = Lattice(
    "max",
    {
        DType.bool: [DType.int8, DType.uint8],
        DType.int8: [DType.int16],
        DType.int16: [DType.int32],
        DType.int32: [DType.int64],
        DType.int64: [DType.float16],
        DType.uint8: [DType.uint16, DType.int16],
        DType.uint16: [DType.uint32, DType.int32],
        DType.uint32: [DType.uint64, DType.int64],
        DType.uint64: [DType.float16],
        DType.index: [DType.uint64],
        DType.address: [DType.uint64],
        DType.float16: [DType.bfloat16],
        DType.bfloat16: [DType.float32],
        DType.float32: [DType.tensor_float32],
        DType.tensor_float32: [DType.float64],
    },
)
"""MAX 24.1, Mojo API reference, max.graph.type_promotion."""

_NARROW_TODAY = (
    DType.float4_e2m1fn,
    DType.float6_e2m3fn,
    DType.float6_e3m2fn,
    DType.float8_e8m0fnu,
    DType.float8_e4m3fn,
    DType.float8_e4m3fnuz,
    DType.float8_e5m2,
    DType.float8_e5m2fnuz,
)

# The wider kind and the wider width win, each for itself: uint8 with int8 asks for int8.
MAX_TODAY_LATTICE = Lattice(
    "max_strict",
    {
        DType.bool: [DType.uint8, *_NARROW_TODAY],
        DType.uint8: [DType.int8, DType.uint16],
        DType.uint16: [DType.int16, DType.uint32],
        DType.uint32: [DType.int32, DType.uint64],
        DType.uint64: [DType.int64],
        DType.int8: [DType.int16],
        DType.int16: [DType.int32, DType.float16],
        DType.int32: [DType.int64, DType.float32],
        DType.int64: [DType.float64],
        **{narrow: [DType.float16] for narrow in _NARROW_TODAY},
        DType.float16: [DType.bfloat16],
        DType.bfloat16: [DType.float32],
        DType.float32: [DType.float64],
    },
)
"""Measured from MAX 26.7: `add` on all pairs (tests/golden/max_today.json)."""


class Strict(PromotionRules):
    """The join, allowed only where it holds every operand exactly; checked once all have joined.

    Bool and the 4- to 8-bit floats are never refused: MAX 26.7 widens float8_e8m0fnu to float16
    too, which does not hold it.
    """

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """The join of all, if it holds each of them."""
        result = super().join(dtypes)
        for dtype in dtypes:
            if dtype not in _UNCHECKED and (lost := dtype.witness(result)) is not None:
                why = f"they would meet in {result}, which does not hold {lost} of {dtype}"
                raise self.refusal(dtypes, why)
        return result

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """As "max", but no literal becomes a dtype narrower than a byte."""
        dtype = super().literal(value, place)
        if dtype.bits < 8 and dtype.narrow:
            raise PromotionError(
                f"a literal cannot become {dtype}, which is narrower than a byte, under "
                f"{self.name!r}; write it in a wider dtype and cast"
            )
        return dtype

    def fits(self, value: Any, dtype: DType) -> bool:
        """Ints by exact range, floats into any float unchecked; both as measured from MAX 26.7."""
        if isinstance(value, float) and not dtype.is_complex:
            return dtype.is_float
        if isinstance(value, int) and not isinstance(value, bool) and dtype in _INT_LIMITS:
            low, high = _INT_LIMITS[dtype]
            return low <= value <= high
        return isinstance(value, bool) or super().fits(value, dtype)


# Measured at 1, -1, 200, 70000, 2**24+1 and 2**63; between those the limits are the formats' own
# greatest values (float8_e5m2: 2**17, since 70000 is taken).
_INT_LIMITS = {
    DType.float8_e8m0fnu: (1, 2**127),
    DType.float8_e4m3fn: (-448, 448),
    DType.float8_e4m3fnuz: (-240, 240),
    DType.float8_e5m2: (-(2**17), 2**17),
    DType.float8_e5m2fnuz: (-57344, 57344),
}

MAX = PromotionRules(
    "max",
    "MAX's published lattice: total over 16 dtypes, every result the join.",
    MAX_LATTICE,
    "MAX 24.1 Mojo API reference, max.graph.type_promotion",
)
MAX_STRICT = Strict(
    "max_strict",
    "Today's MAX: the wider kind and width, refused unless exact.",
    MAX_TODAY_LATTICE,
    "measured from MAX 26.7",
)

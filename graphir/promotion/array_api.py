"""The rules of the Python array API standard, which leaves disputed conversions undefined.

Sources: data-apis.org/array-api 2025.12, "Type Promotion Rules" and the data types that each
function names; array-api-strict 2.6.1, against which every op is measured
(tests/peers/test_peer_array_api.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphir.dtype_lattices.order import NoUpperBound
from graphir.dtype_lattices.published import lattice_of_text
from graphir.dtypes import DType
from graphir.errors import REAL_PARTS, Fix, PromotionError, cast_first
from graphir.promotion.library import LibraryRules
from graphir.promotion.operands import ALONE, Place, Typed
from graphir.promotion.rules import IN_PLACE, Family
from graphir.promotion.scalars import fits, number_text

ARRAY_API_LATTICE = lattice_of_text(
    "array_api",
    "bool; i8 < i16 < i32 < i64; u8 < u16, i16; u16 < u32, i32; u32 < u64, i64; f32 < f64, c64;"
    "f64 < c128; c64 < c128; i* < i8, u8, f32; f* < f32; c* < c64",
)
"""Three islands: bool; integers; floats with complex numbers.

Only a Python int joins two islands.
"""

_INTS = (
    *(DType.int64, DType.int32, DType.int16, DType.int8),
    *(DType.uint64, DType.uint32, DType.uint16, DType.uint8),
)
_REAL_FLOATS = (DType.float64, DType.float32)
_FLOATS = (*_REAL_FLOATS, DType.complex128, DType.complex64)

_NUMBERS = (*_INTS, *_FLOATS)
_REAL = (*_INTS, *_REAL_FLOATS)

_CATEGORIES = {
    "add subtract multiply pow matmul tensordot outer": _NUMBERS,
    "negative positive abs sign square round conj real is_nan is_inf is_finite": _NUMBERS,
    "sum prod cumulative_sum cumulative_prod": _NUMBERS,
    "floor_divide remainder fmod maximum minimum clip floor ceil trunc relu": _REAL,
    "less less_equal greater greater_equal": _REAL,
    "max min sort argsort argmax argmin searchsorted": _REAL,
    "divide reciprocal sqrt rsqrt exp expm1 log log1p log2 log10 mean": _FLOATS,
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh": _FLOATS,
    "atan2 hypot logaddexp copysign nextafter signbit var std": _REAL_FLOATS,
    "as_complex erf sigmoid silu gelu softmax logsoftmax layer_norm": _REAL_FLOATS,
    "imag": _FLOATS[2:],
    "logical_and logical_or logical_xor logical_not": (DType.bool,),
    "bitwise_and bitwise_or bitwise_xor bitwise_invert": (*_INTS, DType.bool),
    "left_shift right_shift": _INTS,
}
_TAKES = {op: dtypes for ops, dtypes in _CATEGORIES.items() for op in ops.split()}
"""The dtypes that each op accepts. An op that is absent here accepts every dtype.

An op that the standard lacks (relu, rsqrt, as_complex, erf to layer_norm) stands with similar
functions of the standard.
"""

_ARRAYS_ONLY = {"concat", "stack", "matmul", "tensordot", "outer"}
_NOT_DEFINED = "the standard does not define this"


class ArrayApi(LibraryRules):
    """The array API standard, read strictly: every conversion that it leaves undefined raises.

    The standard defines neither `/` of integers nor arithmetic of bools. Sums of integers have 64
    bits. clip keeps the dtype of its first operand. A Python scalar takes the dtype of the array
    beside it if the scalar's kind is the array's kind or a lower kind; bool takes no part in that
    order. A complex scalar beside a float array gives a complex result.
    """

    library = "The array API standard"
    roots = True  # as in array-api-strict, whose arrays wrap NumPy's
    in_place = IN_PLACE | {"matmul"}
    instead = "numpy"

    cell = LibraryRules.cell

    def supported(self, dtype: DType) -> DType:
        """Return `dtype` if the standard has it; raise PromotionError otherwise."""
        if dtype.code in self._dtype_codes:
            return dtype
        raise self.lacking(dtype, _NOT_DEFINED)

    def entering(self, scalar: Any) -> Any:
        """Raise PromotionError: the standard mixes arrays with Python scalars alone."""
        raise PromotionError(
            f"{scalar!r} is neither an array nor a Python scalar",
            reason=_NOT_DEFINED,
            fix=(f"write {scalar.item()!r}", "g.constant(...)"),
        )

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the join of arrays and the Python scalars beside them.

        Refuse scalars without an array.
        """
        dtype = super().common(operands)
        if all(operand.dtype.weak for operand in operands):
            dtypes = [operand.dtype for operand in operands]
            raise self.refusal(dtypes, f"no array is among the operands, and {_NOT_DEFINED}")
        return dtype

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Return the join; raise PromotionError if the dtypes have no upper bound."""
        try:
            return super().join(dtypes)
        except NoUpperBound:
            raise self.refusal(dtypes, _NOT_DEFINED) from None

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join of the operands.

        The bounds of clip must have the kind of its first operand.
        """
        join = self.common(operands)
        if op != "clip":
            return join
        first = operands[0].dtype
        for bound in (operand.dtype for operand in operands[1:]):
            same = (bound.is_integer, bound.is_float) == (first.is_integer, first.is_float)
            if not same and bound is not DType.weak_int:
                raise self.refusal([first, bound], f"clip by another kind: {_NOT_DEFINED}")
        return join

    def clip_dtype(self, first: DType, join: DType) -> DType:
        """Return the dtype of the first operand."""
        return first

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Return the join for every operand, if the function accepts the join."""
        return (self.family_dtype("movement", self.meeting(operands, op), op),) * len(operands)

    def family_dtype(self, family: Family, dtype: DType, op: str) -> DType:
        """Return the dtype in which an op computes, if the op accepts the operands' dtype."""
        return super().family_dtype(family, self.source_dtype(dtype, op), op)

    def source_dtype(self, dtype: DType, op: str) -> DType:
        """Return an operand's dtype if the op accepts it; raise PromotionError otherwise."""
        category = _TAKES.get(op)
        if category and dtype not in category:
            raise self._undefined_error(dtype, op, category[0])
        return dtype

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return int64, the standard's default, for signed integers, uint64 for unsigned ones."""
        wide = {"int": DType.int64, "uint": DType.uint64}
        return wide.get(dtype.family, dtype)

    def truth(self, dtype: DType, op: str) -> DType:
        """Return bool. any and all accept every dtype, and every nonzero value is true."""
        if dtype is not DType.bool and op not in ("any", "all"):
            raise self._undefined_error(dtype, op, DType.bool)
        return DType.bool

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return the weak dtype of a Python scalar; an int must fit the integer dtype beside it."""
        if place.op in _ARRAYS_ONLY or (place.op and not place.partners):
            raise PromotionError(
                f"it takes no Python scalar such as {number_text(value)}",
                reason=f"{_NOT_DEFINED} under {self.name!r}",
                fix=Fix("write {scalar}", value=number_text(value)),
                op=place.op,
            )
        if isinstance(value, int) and not isinstance(value, bool) and place.partners:
            clips = place.op == "clip"  # the bounds must fit the dtype of x
            partner = self.common(place.operands[:1] if clips else place.partners)
            if partner.is_integer and not fits(value, partner):
                error = self.misfit(value, partner)
                raise error.having(reason=f"{error.reason}; {_NOT_DEFINED}", op=place.op)
            if partner is DType.uint64:
                return partner
        return super().literal(value, place)

    def _undefined_error(self, dtype: DType, op: str, target: DType) -> PromotionError:
        part = dtype.is_complex and target is not DType.bool
        return PromotionError(
            f"it takes no {self.name_of(dtype)}",
            reason=f"{_NOT_DEFINED} under {self.name!r}",
            fix=REAL_PARTS if part else cast_first(target),
            op=op,
        )

    def name_of(self, dtype: DType) -> str:
        """Return a dtype's name for error messages; a weak dtype reads as a Python scalar."""
        return f"a Python {dtype.name.removeprefix('weak_')}" if dtype.weak else str(dtype)


ARRAY_API = ArrayApi(
    "array_api",
    "The Python array API standard: what it leaves undefined is refused.",
    ARRAY_API_LATTICE,
    "Python array API standard 2025.12; array-api-strict 2.6.1",
)

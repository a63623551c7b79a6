"""The rules of NumPy 2 (NEP 50).

Sources: NEP 50; numpy/_core/src/multiarray: common_dtype.c (all operands at once), dtypemeta.c (the
table of pairs), abstractdtypes.c (literals); the loops of numpy/_core/code_generators/
generate_umath.py; numpy/_core/_methods.py (mean, var). Every cell and every op is measured, on
NumPy 2.0.0, 2.4.6 and 2.5.5; test_peer_numpy.py names what the first and the last do else.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion.in_place import IN_PLACE
from graphir.promotion.library import COMPLEX, SIGNED, UNSIGNED, Facts, LibraryRules, by_op
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.scalars import WEAK, float_of, number_text, rounded

REALS = (DType.float16, DType.float32, DType.float64)
DTYPES = (DType.bool, *SIGNED, *UNSIGNED, *REALS, *COMPLEX)
FLOATS = {
    **dict.fromkeys((*SIGNED, *UNSIGNED), DType.float64),
    **dict.fromkeys((DType.bool, DType.int8, DType.uint8), DType.float16),
    **dict.fromkeys((DType.int16, DType.uint16), DType.float32),
}
"""The first float loop to which bool and integers cast safely."""

FACTS: Facts = {
    "negative positive sign subtract relu": {DType.bool: None},
    "square reciprocal conj pow floor_divide remainder": {DType.bool: DType.int8},
    "left_shift right_shift": {DType.bool: DType.int8},
    "round": {DType.bool: DType.float16},
    "reciprocal": {dtype: dtype for dtype in (*SIGNED, *UNSIGNED)},
}
"""Ops without a loop for bool take the first to which it casts, or none; 1 / int is an int."""

WIDE = {
    **dict.fromkeys((DType.bool, *SIGNED), DType.int64),
    **dict.fromkeys(UNSIGNED, DType.uint64),
}
"""The dtypes of 64 bits in which bools and integers accumulate."""

BINARY_FLOATS = frozenset({"atan2", "hypot", "logaddexp", "copysign", "nextafter"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
OF_ARRAYS = frozenset({"matmul", "tensordot", "outer", "searchsorted", "concat", "stack"})
"""The functions that make arrays of what they are given, so that literals are int64, float64 ..."""

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_ANY_INT = BINARY_FLOATS | LOGICAL | {"divide"}


class Numpy(LibraryRules):
    """NumPy 2: operands of any number join at once, and literals are weak.

    Integers beside an inexact dtype each ask for a float of twice their width, so `join` is no fold
    of pairs. An int literal must fit the integer dtype it takes; `where` refuses it too, as NumPy
    does since 2.5 (numpy/numpy#30803). `/` and functions of floats take any, and comparisons are
    exact. An int beyond 64 bits becomes a float where NumPy makes it one, and in a comparison with
    integers an infinity, which is as far from all of them; elsewhere it is refused.
    `promote` refuses what `+` refuses, such as int8 and 300, where np.result_type looks at no value
    and says int8.
    """

    library = "NumPy"
    roots = True
    in_place = IN_PLACE | {"matmul"}
    has_scalars = True
    exceptions = by_op(FACTS)

    def common(self, operands: Sequence[Typed]) -> DType:
        """What np.result_type answers; never a weak dtype."""
        return self.committed(super().common(operands))

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """The join of all at once: first the kinds and widths of arrays, then the literals."""
        sized = [dtype for dtype in dtypes if not dtype.weak and dtype is not DType.bool]
        weak = max((dtype for dtype in dtypes if dtype.weak), key=_WEAK.index, default=None)
        if any(not dtype.is_integer for dtype in sized):
            part = _widest(FLOATS.get(dtype, dtype).part for dtype in sized)
            return _WITH_PARTS[part] if any(dtype.is_complex for dtype in dtypes) else part
        if weak and (weak is not DType.weak_int or not sized):
            return self.committed(weak)
        return _integer(sized)

    def known(self, dtype: DType) -> DType:
        """A dtype of NumPy's own."""
        if dtype is DType.bfloat16 or dtype.narrow:
            why = (
                f"there is no {dtype} under {self.name!r}: for the types of ml_dtypes NumPy itself "
                "gives three different answers (of bfloat16 and 1.5 np.result_type says float64, "
                "np.add float32; of bfloat16 and int16 np.result_type raises)"
            )
            raise self.lacking(dtype, why)
        return super().known(dtype)

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """The join; of functions of two floats, the join of the float of each operand."""
        if op == "scatter":
            return self.put(*operands)
        if op not in BINARY_FLOATS:
            return self.common(operands)
        dtypes = [self.common(operands) if one.dtype.weak else one.dtype for one in operands]
        return self.common([Operand(self.floating(self.known(d), op)) for d in dtypes])

    def compared(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Their join; integers whose join is a float, in 64 bits each, which compare exactly."""
        met = self.common(operands)
        if met.is_float and all(one.dtype.is_integer for one in operands):
            return tuple(
                DType.int64 if one.dtype.family == "int" else DType.uint64 for one in operands
            )
        return (met,) * len(operands)

    # -- literals

    def cell(self, value: Any, op: str) -> Hashable:
        """None for a float or complex number: only exponents count by value."""
        return super().cell(value, op) if type(value) is int or op == "pow" else None

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """A weak dtype; where that cannot hold it, or nothing is beside it, a dtype of its own."""
        own, op, partners = self.own(value), place.op, place.partners
        first = op == "clip" and not place.at  # which is made an array
        if len(place.operands) < 2 or op in OF_ARRAYS or first:
            return own
        weak = WEAK[type(value)]
        if weak is not DType.weak_int:
            if op in BINARY_FLOATS and place.operands[place.at].dtype is DType.weak_int:
                return self._taken(self.common(place.operands), op)
            return weak if partners else own
        met = self.common(place.operands)
        if own is DType.int64 and (op in _ANY_INT or self.fits(value, met)):
            return weak if partners else own
        if op in _COMPARISONS and any(one.dtype.is_integer for one in partners):
            return own
        taken = self._taken(met, op)
        if not self.fits(value, taken):
            raise self.misfit(value, taken)
        return taken

    def meant(self, value: Any, place: Place) -> Any:
        """True for the exponent 2 of n-d bools, which `**` squares; the limit for an idle bound.

        A bool of rank 0 is a NumPy scalar, whose `**` has no such short cut. Sources:
        fast_scalar_power in number.c, of `**` alone; _clip in numpy/_core/_methods.py, since 2.1.
        """
        if type(value) is not int or len(place.operands) < 2:
            return value
        if place.op == "clip" and self.unbounded(value, place):
            return self._idle_bound(place)
        if not -(2**63) <= value < 2**64:
            return self._beyond(value, place)
        squares = place.op == "pow" and place.at and self.shortcut(value, place)
        return True if squares else value

    def unbounded(self, value: Any, place: Place) -> bool:
        """A Python int that clips none of the integers of the first operand."""
        first = place.operands[0].dtype
        if place.op != "clip" or not place.at or type(value) is not int:
            return False
        if not first.is_integer or first.weak:
            return False
        return value <= first.min if place.at == 1 else value >= first.max

    def _idle_bound(self, place: Place) -> Any:
        """The bound of clip that clips nothing, in the dtype in which its other operands meet."""
        met, low = self.common(place.others), place.at == 1
        if met.is_integer:
            return int(met.min if low else met.max)
        end = -math.inf if low else math.inf
        return complex(end, end) if met.is_complex else end

    def shortcut(self, value: Any, place: Place) -> bool:
        """`**` squares n-d bools, in int8."""
        base = place.operands[0]
        return type(value) is int and value == 2 and base.dtype is DType.bool and base.rank > 0

    def _beyond(self, value: int, place: Place) -> Any:
        """The float that NumPy makes of an int beyond 64 bits; itself where NumPy refuses it."""
        op, integers = place.op, all(one.dtype.is_integer for one in place.partners)
        if op in _COMPARISONS and place.partners and integers:
            return math.inf if value > 0 else -math.inf
        dtype = self._taken(self.common(place.operands), op)
        if op in OF_ARRAYS or not (dtype.is_float or dtype.is_complex):
            return value
        found = float_of(value)
        if math.isinf(found):
            return value
        return rounded(found, dtype) if op in BINARY_FLOATS else found

    def _taken(self, met: DType, op: str) -> DType:
        """The dtype that an op makes of an int literal: the float it computes in, or int64."""
        if op == "divide":
            return self.divided(met, op)
        if op in BINARY_FLOATS:
            return self.floating(met, op)
        return DType.int64 if op in LOGICAL else met

    def own(self, value: Any) -> DType:
        """The dtype that NumPy gives a Python scalar by itself."""
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise PromotionError(
                f"the literal {number_text(value)} does not fit 64 bits, and there is no wider int "
                f"for {self.library} to make of it here; write it as a float"
            )
        huge = isinstance(value, int) and value >= 2**63
        return DType.uint64 if huge else self.committed(WEAK[type(value)])

    def fits(self, value: Any, dtype: DType) -> bool:
        """An int becomes a float by rounding."""
        rounded = isinstance(value, int) and (dtype.is_float or dtype.is_complex)
        return rounded or super().fits(value, dtype)

    # -- what NumPy does besides

    def boolean(self, op: str) -> DType:
        """Bool: + is or, * is and."""
        return DType.bool

    def floating(self, dtype: DType, op: str) -> DType:
        """float16 of integers of 8 bits, float32 of those of 16, else float64."""
        return FLOATS.get(dtype, dtype)

    def averaged(self, dtype: DType, op: str) -> DType:
        """float64 of all integers, as `/`."""
        return self.divided(dtype, op)

    def accumulated(self, dtype: DType, op: str) -> DType:
        """Integers in 64 bits."""
        return WIDE.get(dtype, dtype)

    def storable(self, source: DType, target: DType) -> bool:
        """Whether casting="same_kind" allows it: to the same kind, or to a later of _FAMILIES."""
        return _FAMILIES.index(source.family) <= _FAMILIES.index(target.family)

    def ordered(self, dtype: DType, op: str) -> DType:
        """Any dtype: complex numbers by their real parts, then by their imaginary parts."""
        return dtype

    def truth(self, dtype: DType, op: str) -> DType:
        """Whatever is not 0 is true."""
        return DType.bool


_FAMILIES = ("bool", "uint", "int", "float", "complex")
_WEAK = (DType.weak_int, DType.weak_float, DType.weak_complex)
_WITH_PARTS = {
    DType.float16: DType.complex64,
    DType.float32: DType.complex64,
    DType.float64: DType.complex128,
}


def _widest(dtypes: Iterable[DType]) -> DType:
    return max(dtypes, key=lambda dtype: dtype.bits)


def _integer(dtypes: Sequence[DType]) -> DType:
    """The integer dtype of integers; float64 where none is as wide as it would have to be."""
    signed = max((dtype.bits for dtype in dtypes if dtype.family == "int"), default=0)
    unsigned = max((dtype.bits for dtype in dtypes if dtype.family == "uint"), default=0)
    if not signed:
        return DType(f"uint{unsigned}")
    if signed > unsigned:
        return DType(f"int{signed}")
    return DType(f"int{2 * unsigned}") if unsigned < 64 else DType.float64


NUMPY = Numpy(
    "numpy",
    "NumPy 2: NEP 50, literals are weak, values never count.",
    source="NEP 50; numpy/_core/src/multiarray of 2.x",
    dtypes=DTYPES,
)

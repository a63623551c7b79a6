"""The rules of NumPy 2 (NEP 50), and of CuPy and Dask, which follow it.

Sources: NEP 50; numpy/_core/src/multiarray: common_dtype.c (all operands at once), dtypemeta.c (the
table of pairs), abstractdtypes.c (literals); the loops of numpy/_core/code_generators/
generate_umath.py; numpy/_core/_methods.py (mean, var). The tests measure every cell and every op on
NumPy 2.0.0, 2.4.6 and 2.5.5; `Numpy.releases` has where the earlier two differ.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion.library import COMPLEX, SIGNED, UNSIGNED, UPDATES, Facts, LibraryRules, by_op
from graphir.promotion.operands import ALONE, Operand, Place, Typed
from graphir.promotion.rules import IN_PLACE, PromotionRules
from graphir.promotion.scalars import WEAK, float_of, number_text, round_scalar

REALS = (DType.float16, DType.float32, DType.float64)
DTYPES = (DType.bool, *SIGNED, *UNSIGNED, *REALS, *COMPLEX)
FLOATS = {
    **dict.fromkeys((*SIGNED, *UNSIGNED), DType.float64),
    **dict.fromkeys((DType.bool, DType.int8, DType.uint8), DType.float16),
    **dict.fromkeys((DType.int16, DType.uint16), DType.float32),
}
"""The first float loop to which bool and each integer dtype casts safely."""

FACTS: Facts = {
    "negative positive sign subtract relu": {DType.bool: None},
    "square reciprocal conj pow floor_divide remainder fmod": {DType.bool: DType.int8},
    "left_shift right_shift": {DType.bool: DType.int8},
    "round": {DType.bool: DType.float16},
    "reciprocal": {dtype: dtype for dtype in (*SIGNED, *UNSIGNED)},
}
"""Ops without a bool loop take the first loop to which bool casts, or none; 1 / int is an int."""

WIDE = {
    **dict.fromkeys((DType.bool, *SIGNED), DType.int64),
    **dict.fromkeys(UNSIGNED, DType.uint64),
}
"""The dtypes of 64 bits in which bools and integers accumulate."""

BINARY_FLOATS = frozenset({"heaviside", "atan2", "hypot", "logaddexp", "copysign", "nextafter"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor"})
OF_ARRAYS = frozenset({"matmul", "tensordot", "outer", "searchsorted", "concat", "stack"})
"""The functions that first convert every operand to an array, so literals are int64, float64 ..."""

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_ANY_INT = BINARY_FLOATS | LOGICAL | {"divide"}


class Numpy(LibraryRules):
    """NumPy 2: all operands join at once, and literals are weak.

    Beside an inexact dtype each integer asks for a float of twice its width, so `join` is no fold
    of pairs. An int literal must fit the integer dtype that it takes; `where` refuses a misfit too,
    as NumPy does since 2.5 (numpy/numpy#30803). `/` and functions of floats accept any int literal,
    and comparisons with int literals are exact.

    The rules of NumPy 2.0 differ in ints beyond 64 bits, whose truth its logical ops take, in
    bounds of clip, which must fit, and in floor, ceil and trunc, which make floats of integers.

    An int beyond 64 bits becomes a float where NumPy converts it to one. In a comparison with
    integers it becomes an infinity, which compares alike with all of them. Everywhere else the
    rules refuse it.

    `promote` refuses the operands that `+` refuses, such as int8 and 300. np.result_type reads no
    value and answers int8 there.
    """

    library = "NumPy"
    roots = True
    in_place = IN_PLACE | {"matmul"}
    has_scalars = True
    exceptions = by_op(FACTS)

    wraps_in_where = False
    """Whether `where` wraps an int that does not fit."""

    takes_truth_of_ints = False
    """Whether the logical ops take an int beyond 64 bits."""

    has_idle_bounds = True
    """Whether clip takes an int bound beyond the integers that it clips."""

    releases: Mapping[str, Mapping[str, object]] = {
        "2.0": {
            "has_idle_bounds": False,
            "wraps_in_where": True,
            "takes_truth_of_ints": True,
            "exceptions": by_op({**FACTS, "floor ceil trunc": {**FLOATS}}),
        },
        "2.4": {"wraps_in_where": True},
        "2.5": {},
    }

    def common(self, operands: Sequence[Typed]) -> DType:
        """Return the answer of np.result_type; the result is never weak."""
        return self.concrete_dtype(super().common(operands))

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        """Return the join of all dtypes at once: first arrays by kind and width, then literals."""
        arrays = [dtype for dtype in dtypes if not dtype.weak and dtype is not DType.bool]
        weak = max((dtype for dtype in dtypes if dtype.weak), key=_WEAK.index, default=None)
        if any(not dtype.is_integer for dtype in arrays):
            parts = [FLOATS.get(dtype, dtype).part for dtype in arrays]
            part = max(parts, key=lambda dtype: dtype.bits)
            return _WITH_PARTS[part] if any(dtype.is_complex for dtype in dtypes) else part
        if weak and (weak is not DType.weak_int or not arrays):
            return self.concrete_dtype(weak)
        return _integer(arrays)

    def supported(self, dtype: DType) -> DType:
        """Return `dtype` if it is NumPy's own; raise PromotionError for the dtypes of ml_dtypes."""
        if dtype is DType.bfloat16 or (dtype.narrow and not dtype.emulated):
            why = (
                "for the types of ml_dtypes NumPy itself gives three different answers (of "
                "bfloat16 and 1.5 np.result_type says float64, np.add float32; of bfloat16 and "
                "int16 np.result_type raises)"
            )
            raise self.lacking(dtype, why)
        return super().supported(dtype)

    def meeting(self, operands: Sequence[Typed], op: str) -> DType:
        """Return the join.

        A function of two floats first converts each operand to its own float.
        """
        if op in UPDATES:
            return self.updated_dtype(op, *operands)
        if op not in BINARY_FLOATS:
            return self.common(operands)
        dtypes = [
            self.common(operands) if operand.dtype.weak else operand.dtype for operand in operands
        ]
        return self.common([Operand(self.floating(self.supported(d), op)) for d in dtypes])

    def comparison_dtypes(self, operands: Sequence[Typed], op: str) -> tuple[DType, ...]:
        """Return the join for each operand.

        Integers that join to a float compare exactly in 64 bits.
        """
        join = self.common(operands)
        if join.is_float and all(operand.dtype.is_integer for operand in operands):
            return tuple(
                DType.int64 if operand.dtype.family == "int" else DType.uint64
                for operand in operands
            )
        return (join,) * len(operands)

    # -- literals

    def cell(self, value: Any, op: str) -> Hashable:
        """Return one cell, None, for floats and complex numbers that are no exponents."""
        return super().cell(value, op) if type(value) is int or op == "pow" else None

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        """Return a weak dtype, or the literal's concrete dtype.

        A literal is concrete if its weak dtype cannot hold its value, or if it has no partner.
        """
        own, op, partners = self.own(value), place.op, place.partners
        first = op == "clip" and not place.at  # clip converts its first operand to an array
        if len(place.operands) < 2 or op in OF_ARRAYS or first:
            return own
        weak = WEAK[type(value)]
        if weak is not DType.weak_int:
            if op in BINARY_FLOATS and place.operands[place.at].dtype is DType.weak_int:
                return self._literal_dtype(self.common(place.operands), op)
            return weak if partners else own
        join = self.common(place.operands)
        if own is DType.int64 and (op in _ANY_INT or self.fits(value, join)):
            return weak if partners else own
        if op in _COMPARISONS and any(operand.dtype.is_integer for operand in partners):
            return own
        dtype = self._literal_dtype(join, op)
        if not self.fits(value, dtype) and self._wrapped(value, place) == value:
            raise self.misfit(value, dtype)
        return dtype

    def _wrapped(self, value: int, place: Place) -> int:
        """Return the int that `where` makes of one that does not fit, in releases that wrap it."""
        wraps = place.op == "where" and self.wraps_in_where and -(2**63) <= value < 2**64
        dtype = self.common(place.operands)
        if not wraps or dtype not in (*SIGNED, *UNSIGNED):
            return value
        return (value - int(dtype.min)) % 2**dtype.bits + int(dtype.min)

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return NumPy's replacement of a literal: True for the exponent 2 of n-d bools.

        `**` squares n-d bools. A bool of rank 0 is a NumPy scalar, whose `**` has no such short
        cut. A clip bound without effect becomes the limit of the dtype. Sources: fast_scalar_power
        in number.c, of `**` alone; _clip in numpy/_core/_methods.py, since 2.1.
        """
        if type(value) is not int or len(place.operands) < 2:
            return value
        if place.op == "clip" and self.omits_bound(value, place):
            return self._idle_bound(place)
        if self.takes_truth_of_ints and place.op in LOGICAL:
            return bool(value)
        value = self._wrapped(value, place)
        if not -(2**63) <= value < 2**64:
            return self._beyond(value, place)
        squares = place.op == "pow" and place.at and self.shortcut(value, place)
        return True if squares else value

    def omits_bound(self, value: Any, place: Place) -> bool:
        """Whether `value` is a Python int that clips none of the integers of the first operand."""
        first = place.operands[0].dtype
        if place.op != "clip" or not place.at or type(value) is not int:
            return False
        if not self.has_idle_bounds:
            return False
        if not first.is_integer or first.weak:
            return False
        return value <= first.min if place.at == 1 else value >= first.max

    def _idle_bound(self, place: Place) -> Any:
        """Return the clip bound without effect in the dtype in which clip's other operands meet."""
        join, low = self.common(place.others), place.at == 1
        if join.is_integer:
            return int(join.min if low else join.max)
        end = -math.inf if low else math.inf
        return complex(end, end) if join.is_complex else end

    def shortcut(self, value: Any, place: Place) -> bool:
        """Whether `**` squares its base: n-d bools to the power 2, computed in int8."""
        base = place.operands[0]
        return type(value) is int and value == 2 and base.dtype is DType.bool and base.rank > 0

    def _beyond(self, value: int, place: Place) -> Any:
        """Return the float that NumPy makes of an int beyond 64 bits.

        The result is the int itself if NumPy refuses the int.
        """
        op, integers = place.op, all(operand.dtype.is_integer for operand in place.partners)
        if op in _COMPARISONS and place.partners and integers:
            return math.inf if value > 0 else -math.inf
        dtype = self._literal_dtype(self.common(place.operands), op)
        if op in OF_ARRAYS or not dtype.is_inexact:
            return value
        number = float_of(value)
        if math.isinf(number):
            return value
        return round_scalar(number, dtype) if op in BINARY_FLOATS else number

    def _literal_dtype(self, join: DType, op: str) -> DType:
        """Return the dtype to which an op converts an int literal: its float, int64 or the join."""
        if op == "divide":
            return self.division(join, op)
        if op in BINARY_FLOATS:
            return self.floating(join, op)
        return DType.int64 if op in LOGICAL else join

    def own(self, value: Any) -> DType:
        """Return the dtype that NumPy gives a Python scalar without partners."""
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise PromotionError(
                f"the literal {number_text(value)} does not fit 64 bits, and there is no wider int "
                f"for {self.library} to make of it here",
                fix="write it as a float",
            )
        huge = isinstance(value, int) and value >= 2**63
        return DType.uint64 if huge else self.concrete_dtype(WEAK[type(value)])

    def fits(self, value: Any, dtype: DType) -> bool:
        """Whether a scalar may take `dtype`; an int rounds to every float and complex dtype."""
        rounds = isinstance(value, int) and dtype.is_inexact
        return rounds or super().fits(value, dtype)

    # -- NumPy's dtype rules of single ops

    def boolean(self, op: str) -> DType:
        """Return bool: `+` is or, `*` is and."""
        return DType.bool

    def floating(self, dtype: DType, op: str) -> DType:
        """Return float16 for bool and 8-bit integers, float32 for 16 bits, else float64."""
        return FLOATS.get(dtype, dtype)

    def division(self, dtype: DType, op: str) -> DType:
        """Return the dtype of `/`: float64 for bool and integers."""
        return PromotionRules.division(self, dtype, op)

    def average(self, dtype: DType, op: str) -> DType:
        """Return the dtype of `/`: float64 for bool and integers."""
        return self.division(dtype, op)

    def accumulation(self, dtype: DType, op: str) -> DType:
        """Return int64 or uint64 for integers and int64 for bool."""
        return WIDE.get(dtype, dtype)

    def storable(self, source: DType, target: DType) -> bool:
        """Whether casting="same_kind" allows a cast: to the same family or a later one."""
        return _FAMILIES.index(source.family) <= _FAMILIES.index(target.family)

    def ordering(self, dtype: DType, op: str) -> DType:
        """Return any dtype unchanged; complex numbers sort by real part, then by imaginary part."""
        return dtype

    def truth(self, dtype: DType, op: str) -> DType:
        """Return bool; every nonzero value is true."""
        return DType.bool


_FAMILIES = ("bool", "uint", "int", "float", "complex")
_WEAK = (DType.weak_int, DType.weak_float, DType.weak_complex)
_WITH_PARTS = {
    DType.float16: DType.complex64,
    DType.float32: DType.complex64,
    DType.float64: DType.complex128,
}


def _integer(dtypes: Sequence[DType]) -> DType:
    """Return the integer dtype of integers; float64 if no integer dtype is wide enough."""
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


# -- CuPy and Dask, which follow NumPy except for the differences in this file
#
# Measured on CuPy 14.2.0 (its dispatch tables; no kernel ran) and Dask 2026.8.0, both with NumPy
# 2.4.6. Before CuPy 14 and on NumPy 1, both libraries promoted by the values of scalars, but never
# by the values of 0-d arrays.


class Cupy(Numpy):
    """CuPy 14: NumPy 2, but clip and logical ops refuse complex numbers, and sign takes bool.

    CuPy's own atan2, hypot, copysign and nextafter would accept complex numbers; no op here does.
    CuPy has no scalars, and no operator `@=` (cupy/_core/core.pyx).
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    library = "CuPy"
    roots = False
    in_place = IN_PLACE
    has_scalars = False
    has_idle_bounds = False
    exceptions = by_op(
        {
            **FACTS,
            "clip logical_and logical_or logical_xor logical_not": dict.fromkeys(COMPLEX),
            "sign": {DType.bool: DType.int8},
        }
    )

    cell = Numpy.cell

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return the value unchanged: the bounds of clip are ordinary operands."""
        return value

    def shortcut(self, value: Any, place: Place) -> bool:
        """Return False: `**` is the function power (cupy/_core/core.pyx)."""
        return False


class Dask(Numpy):
    """Dask: NumPy's functions give the dtype of elementwise ops; 0-d arrays count like others.

    tensordot adds the products of chunks by `sum`, so bool and integer results have 64 bits. matmul
    does so only where the contracted axis has several chunks. Graphs have no chunks, so matmul
    keeps the join here, as with one chunk. Dask has no sort, argsort or take_along; its arrays
    never change.
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    library = "Dask"
    in_place = frozenset[str]()
    exceptions = by_op({**FACTS, "tensordot": WIDE, "positive": {DType.bool: DType.bool}})


CUPY = Cupy(
    "cupy",
    "CuPy 14: NumPy 2, with fewer ops on complex numbers.",
    source="github.com/cupy/cupy/pull/8323 (NEP 50), cupy/_core of 14.2",
    dtypes=DTYPES,
)
DASK = Dask(
    "dask",
    "dask.array: NumPy 2, to which it delegates.",
    source="dask/array/core.py, elemwise and apply_infer_dtype",
    dtypes=DTYPES,
)

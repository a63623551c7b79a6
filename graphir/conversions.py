"""The semantics of casts: values of any dtype converted to any other, correctly rounded once.

A cast is a chain of a few functions on arrays. The first function widens the values exactly to a
dtype that NumPy computes in (`plain`). NumPy itself rounds to float16, float32 and float64. For the
other float formats the values pass through float32 *rounded to odd*. Rounding to odd keeps enough
of the discarded bits that the rounding to the format gives the correctly rounded value, as if it
were the only rounding (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd, IEEE Trans. Computers 57(4), 2008).

The functions use the array protocol alone: operators, `astype`, `view`, `np.where`. On NumPy's
arrays they compute. On the symbolic values of machine code and of export targets, which implement
the same protocol, they emit instructions or nodes. `Conversions` chooses the chain; a target
overrides the steps that its engine provides.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
# (NumPy's stubs type np.where for arrays alone, and values of targets are not arrays.)

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from operator import methodcaller
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType, by_dtype
from graphir.errors import GraphError, PromotionError

Step: TypeAlias = Callable[[Any], Any]

_I32, _U32 = np.dtype(np.int32), np.dtype(np.uint32)
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def convert(array: NDArray[Any], source: DType, target: DType, tf32: str = "even") -> NDArray[Any]:
    """Return the values of `array`, of dtype `source`, converted to dtype `target`.

    The result has the shape of `array`. Integers wrap. A float becomes an integer by truncation;
    the integer saturates, and NaN becomes 0. Conversion to bool is `!= 0`. A real number becomes
    complex with imaginary part +0. Conversion to a float rounds once, to nearest, ties to even;
    `tf32="away"` rounds the ties of tensor_float32 away from zero. Values without a counterpart in
    a format convert as in ml_dtypes. The sign of a NaN never matters:

        format                                        overflow  inf        NaN   -0.0  -1.0
        float16, bfloat16, tensor_float32,
          float8_e3m4, float8_e4m3, float8_e5m2       inf       inf        NaN   -0.0  -1.0
        float8_e4m3fn                                 NaN       NaN        NaN   -0.0  -1.0
        float8_e4m3b11fnuz, _e4m3fnuz, _e5m2fnuz      NaN       NaN        NaN   0.0   -1.0
        float8_e8m0fnu (0.0 is NaN; the least is
          2**-127, ties go up: IEEE 754, 4.3.1)       NaN       NaN        NaN   NaN   NaN
        float6_*, float4_*                            greatest  greatest   -0.0  -0.0  -1.0

    The result may be `array` itself: do not write to it. Raises PromotionError for a conversion
    from complex to a real number.
    """
    key = source.code, target.code, tf32
    run = _CONVERTERS.get(key)
    if run is None:
        run = _CONVERTERS[key] = _converter(source, target, tf32)
    if run is same_value:
        return array
    return run(array) if array.ndim else run(array.reshape(1)).reshape(())


def plain(dtype: DType) -> DType:
    """Return the dtype of NumPy's own that represents all values of `dtype` and computes in them.

    It is int8 or uint8 for narrow integers, float32 for floats of fewer than 32 bits.
    """
    if dtype.is_integer and dtype.narrow:
        return DType.int8 if dtype.family == "int" else DType.uint8
    return DType.float32 if dtype.is_float and dtype.bits < 32 else DType.from_numpy(dtype.storage)


class Conversions:
    """The chain of steps of each cast. This class has NumPy's steps.

    An export target overrides the steps that its engine provides, and inherits the rest.
    """

    natively = frozenset(
        {DType.bool, DType.float16, DType.float32, DType.float64, DType.weak_float}
    )
    """The dtypes to which the engine rounds once, from every plain dtype.

    NumPy converts integers to float16 through float32. That rounds once as well: an integer that
    float32 rounds is too large for float16 and becomes inf.
    """

    def convert(self, x: Any, source: DType, target: DType, tf32: str = "even") -> Any:
        """Return a value of dtype `source` converted to dtype `target`; see `convert`."""
        for step in self.steps(source, target, tf32):
            x = step(x)
        return x

    def steps(self, source: DType, target: DType, tf32: str) -> tuple[Step, ...]:
        """Return the chain of functions of a cast, in the order of their application.

        Raises PromotionError for a cast from complex to a real number.
        """
        if source is target or (source.storage == target.storage and not target.emulated):
            return (self.cast(source, target),)
        if source.is_complex:
            if target.family not in ("bool", "complex"):
                raise PromotionError(
                    "the imaginary part would be dropped",
                    op="cast",
                    got=f"{source} to {target}",
                    fix="take .real (or .imag) first and cast that",
                )
            return (self.cast(source, target),)
        if target.is_complex:
            return *self.steps(source, target.part, tf32), self.cast(target.part, target)
        load, wide = self.widen(source), plain(source)
        if target.is_integer:
            whole = plain(target)
            truncate = self.saturate(target) if source.is_float else self.cast(wide, whole)
            return load, truncate, self.cast(whole, target)
        if target in self.natively or (target.emulated and source.exact_in(target)):
            return load, self.cast(wide, target)
        return load, *self.to_odd(source), self.narrow(target, tf32)

    def cast(self, source: DType, target: DType) -> Step:
        """Return the engine's own conversion, for casts that are exact there or round once."""
        same = source.storage == target.storage
        return same_value if same else methodcaller("astype", target.storage)

    def widen(self, source: DType) -> Step:
        """Return the exact conversion from the storage of `source` to its plain dtype."""
        if source.is_float and source.narrow and not source.emulated:
            return partial(_widen, source)
        return self.cast(source, plain(source))

    def saturate(self, target: DType) -> Step:
        """Return the saturating truncation of a plain float to the plain dtype of an integer.

        The values are limited to the range of `target`, which may be narrower than its plain dtype.
        """
        low, high = int(target.min), int(target.max)
        return partial(saturated, dtype=plain(target).storage, low=low, high=high)

    def to_odd(self, source: DType) -> tuple[Step, ...]:
        """Return the steps from the plain dtype to float32, exact or rounded to odd."""
        wide = plain(source)
        if source.exact_in(DType.float32):
            return (self.cast(wide, DType.float32),)
        if source.is_integer and source.bits == 64:
            return sticky, round_to_odd
        return self.cast(wide, DType.float64), round_to_odd

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the correct rounding from float32, exact or rounded to odd, to a smaller float."""
        if target.emulated:
            return rounding(target, tf32)
        return partial(_narrow, target) if target.narrow else self.cast(DType.float32, target)


_NUMPY = Conversions()
# The key is the codes of both dtypes and the tie-breaking mode of tensor_float32.
_CONVERTERS: dict[tuple[int, int, str], Step] = {}


def _converter(source: DType, target: DType, tf32: str) -> Step:
    """Compose the steps of a conversion into one function, for arrays of at least one dimension."""
    steps = _NUMPY.steps(source, target, tf32)
    first, *rest = [step for step in steps if step is not same_value] or [same_value]

    def run(array: NDArray[Any]) -> NDArray[Any]:
        array = first(array)
        for step in rest:
            array = step(array)
        return array

    # Conversions between integers, and from integers to any float but float16, never overflow and
    # never meet an invalid value, so that NumPy has no warning to suppress.
    may_warn = first is not same_value and (source.format or target is DType.float16)
    return np.errstate(all="ignore")(run) if may_warn else run if rest else first


# -- steps


def same_value(x: Any) -> Any:
    """Return the value unchanged: the step of a cast that changes no bits."""
    return x


def _widen(source: DType, array: NDArray[Any]) -> NDArray[Any]:
    return narrow_values(source).take(array.view(np.uint8))


@cache
def narrow_values(source: DType) -> NDArray[Any]:
    """Return the float32 values of a narrow float, float32[256] indexed by bit pattern."""
    return np.arange(256, dtype=np.uint8).view(source.storage).astype(_F32)


def saturated(x: Any, dtype: Any, low: int, high: int) -> Any:
    """Truncate floats to an integer dtype and saturate them at `low` and `high`; NaN becomes 0."""
    # Compare with high + 1: it is a power of two and exact in every float. A float rounds `high`.
    inside = (x >= float(low)) & (x < float(high + 1))
    if isinstance(inside, np.ndarray) and inside.all():
        return x.astype(dtype)
    # C leaves the conversion of a float out of range undefined, so such a float never reaches
    # astype.
    whole = np.where(inside, x, 0).astype(dtype)
    above = np.where(x >= float(high + 1), np.asarray(high, dtype), whole)
    return np.where(x < float(low), np.asarray(low, dtype), above)


def sticky(x: Any) -> Any:
    """Convert 64-bit integers to float64 so that a later rounding to few bits is correct.

    A result lies on the same side of every number of at most 41 bits as its integer. From 2**53 on
    those numbers are multiples of 2**12. An integer between two such multiples becomes the midpoint
    of the two; the midpoint has at most 53 bits and is exact in float64.
    """
    exact, low = x.astype(_F64), x & 0xFFF
    exactly_held = (np.abs(exact) < 2.0**53) | np.equal(low, 0)
    return np.where(exactly_held, exact, (x - low + 0x800).astype(_F64))


def round_to_odd(x: Any) -> Any:
    """Round float64 to float32 by rounding to odd.

    The value is truncated towards zero, and its last bit is set where the truncation discarded
    anything. A finite value never becomes inf here; the rounding that follows decides on overflow.
    """
    near = x.astype(_F32)
    wide, bits = near.astype(_F64), near.view(_I32)
    bits = bits - (np.abs(wide) > np.abs(x)).astype(_I32)
    return (bits | np.not_equal(wide, x).astype(_I32)).view(_F32)


# -- rounding within float32


def rounding(target: DType, tf32: str = "even") -> partial[Any]:
    """Return a function that rounds float32 to the values of a smaller float, as float32.

    Ties go to even. For tensor_float32 the argument `tf32` chooses: "even", or "away" from zero as
    NVIDIA's `cvt.rna.tf32.f32` rounds (PTX ISA, cvt). Raises GraphError for any other mode.
    """
    if tf32 not in ("even", "away"):
        raise GraphError('tensor_float32 rounds ties to "even" or "away"', got=f"tf32={tf32!r}")
    form = target.format
    assert form is not None  # of a float
    if has_range_of_float32(target):
        return partial(
            round_fraction, mantissa=form.mantissa, ties=tf32 if target.emulated else "even"
        )
    mantissa, least, most = form.mantissa, form.least, form.max
    return partial(
        round_to_format, mantissa=mantissa, least=least, most=most, specials=form.specials
    )


def has_range_of_float32(dtype: DType) -> bool:
    """Answer whether a float has the exponent range and the special values of float32.

    A conversion from float32 to such a dtype only rounds the fraction.
    """
    return _HAS_RANGE_OF_FLOAT32[dtype.code]


# A table indexed by dtype code, because the planner looks up the answer for each cast.
_HAS_RANGE_OF_FLOAT32 = by_dtype(
    lambda dtype: (
        dtype.format is not None and dtype.format._replace(mantissa=23) == DType.float32.format
    )
)


def round_fraction(x: Any, mantissa: int, ties: str = "even", quiet: bool = False) -> Any:
    """Round float32 to `mantissa` bits of fraction, on the bit pattern; the results are float32.

    The carry may increase the exponent, up to inf. For ties to "even" the sum adds half a unit,
    less 1 where the last kept bit is 0; for ties "away" from zero it adds half a unit. A NaN whose
    discarded bits are all 0 rounds like a number and stays NaN; `quiet` promises that every NaN of
    `x` has that form, which saves the test for NaN.
    """
    bits, cut = x.view(_U32), 23 - mantissa
    half = 1 << (cut - 1)
    up = bits + half if ties == "away" else bits + (((bits >> cut) & 1) + (half - 1))
    if not quiet:  # the carry would turn other NaNs into inf or -0.0
        up = np.where(np.not_equal(x, x), bits | 0x400000, up)
    return (up & (2**32 - 2**cut)).view(_F32)


def round_to_format(x: Any, mantissa: int, least: float, most: float, specials: str) -> Any:
    """Round float32, exact or rounded to odd, to a format of `mantissa` bits of fraction.

    The results are float32. `least` is the format's least positive value, `most` its greatest
    value, and `specials` its special values as in graphir.dtypes.Float. The table in the docstring
    of `convert` lists the results for values without a counterpart in the format.
    """
    if specials == "scale":  # powers of two have no fraction bit to be even: a tie goes up
        up = np.where(x >= 1.5 * least, round_fraction(x, mantissa, "away"), least)
        return np.where((x > 0) & (up <= most), up, np.nan)
    # Below its least normal number a format's values are the multiples of `least`. Float32 numbers
    # near 1.5 * 2**23 * least are `least` apart, so that adding this constant rounds to a multiple.
    size = np.abs(x)
    grid = 1.5 * 2**23 * least
    up = np.where(size < least * 2**mantissa, (size + grid) - grid, round_fraction(size, mantissa))
    beyond = {"ieee": np.inf, "finite": most}.get(specials, np.nan)
    up = np.where(up > most, beyond, up)
    signed = (up.view(_U32) | (x.view(_U32) & 0x80000000)).view(_F32)
    if specials == "finite":
        return np.where(np.not_equal(x, x), -0.0, signed)
    return np.where(np.equal(up, 0), 0.0, signed) if specials == "fnuz" else signed


def upper_half(x: Any) -> Any:
    """Return the upper 16 bits of a float32, with the last bit set where any lower bit is set.

    This is rounding to odd once more: 8 bits of the significand remain.
    """
    # The remaining 8 bits suffice for one correct rounding: a narrow float has at most 5.
    bits = x.view(_U32)
    return (bits >> 16) | np.not_equal(bits & 0xFFFF, 0)


def _narrow(target: DType, x: NDArray[Any]) -> NDArray[Any]:
    return narrow_patterns(target).take(upper_half(x)).view(target.storage)


@cache
def narrow_patterns(target: DType) -> NDArray[np.uint8]:
    """Return the bit patterns of a narrow float, uint8[65536] indexed by `upper_half`."""
    x: NDArray[Any] = (np.arange(2**16, dtype=_U32) << 16).view(_F32)
    x[np.isnan(x)] = np.nan  # one sign for all NaNs, because ml_dtypes keeps the sign
    with np.errstate(all="ignore"):
        return rounding(target)(x).astype(target.storage).view(np.uint8)

"""What each cast computes: the value of any dtype in any other, correctly rounded once.

A cast is a chain of a few functions of arrays. Values first go to a dtype that NumPy computes in
(`plain`). Where the target is a format that only ml_dtypes or nobody converts to, they pass through
float32 *rounded to odd*, which keeps enough of what was cut off that the rounding after it is the
only one (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using
rounding to odd, IEEE Trans. Computers 57(4), 2008).

The functions are written over the array protocol: operators, `astype`, `view`, `np.where`. NumPy's
arrays run them; the values of machine code and of the targets, which have the protocol too, emit
what they are made of. `Conversions` chooses the chain: a target overrides the steps that its engine
has itself.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false
# (np.where is typed for arrays alone, and values of targets are none.)

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from operator import methodcaller
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.errors import GraphError, PromotionError

Step: TypeAlias = Callable[[Any], Any]

_I32, _U32 = np.dtype(np.int32), np.dtype(np.uint32)
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


def convert(array: NDArray[Any], source: DType, target: DType, tf32: str = "even") -> NDArray[Any]:
    """The values of `array`, which are of dtype `source`, in dtype `target`, in the same shape.

    Integers wrap. A float becomes an integer by truncation, saturating, NaN as 0. Anything becomes
    bool as `!= 0`, a real number complex with imaginary part +0. Floats are rounded to nearest,
    ties to even, once; `tf32="away"` breaks the ties of tensor_float32 away from zero. A format
    that lacks what a value needs does as ml_dtypes, where the sign of NaN never matters:

        format                                        overflow  inf        NaN   -0.0  -1.0
        float16, bfloat16, tensor_float32,
          float8_e3m4, float8_e4m3, float8_e5m2       inf       inf        NaN   -0.0  -1.0
        float8_e4m3fn                                 NaN       NaN        NaN   -0.0  -1.0
        float8_e4m3b11fnuz, _e4m3fnuz, _e5m2fnuz      NaN       NaN        NaN   0.0   -1.0
        float8_e8m0fnu (0.0 is NaN; the least is
          2**-127, ties go up: IEEE 754, 4.3.1)       NaN       NaN        NaN   NaN   NaN
        float6_*, float4_*                            greatest  greatest   -0.0  -0.0  -1.0

    The result may be `array` itself: do not write to it. PromotionError for complex to a real
    number.
    """
    key = source.code, target.code, tf32
    run = _CONVERTERS.get(key)
    if run is None:
        run = _CONVERTERS[key] = _converter(source, target, tf32)
    return run(array) if array.ndim else run(array.reshape(1)).reshape(())


def plain(dtype: DType) -> DType:
    """The dtype of NumPy itself that has all values of `dtype` and computes with them."""
    if dtype.is_integer and dtype.narrow:
        return DType.int8 if dtype.family == "int" else DType.uint8
    return DType.float32 if dtype.is_float and dtype.bits < 32 else DType.from_numpy(dtype.storage)


class Conversions:
    """The steps of each cast, here those of NumPy.

    A target overrides the steps that its engine has itself, and inherits the rest.
    """

    natively = frozenset(
        {DType.bool, DType.float16, DType.float32, DType.float64, DType.weak_float}
    )
    """The dtypes to which the engine rounds once, from every plain dtype.

    NumPy takes integers to float16 by way of float32, but those that are inexact there are inf in
    float16.
    """

    def converted(self, x: Any, source: DType, target: DType, tf32: str = "even") -> Any:
        """A value of dtype `source` in dtype `target`; see `convert`."""
        for step in self.steps(source, target, tf32):
            x = step(x)
        return x

    def steps(self, source: DType, target: DType, tf32: str) -> tuple[Step, ...]:
        """The chain of a cast; PromotionError for complex to a real number."""
        if source is target or (source.storage == target.storage and not target.emulated):
            return (self.cast(source, target),)
        if source.is_complex:
            if target.family not in ("bool", "complex"):
                raise PromotionError(
                    f"cast of {source} to {target}: a complex number is not a real one",
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
        """The engine's own conversion, where it is exact or rounds once."""
        same = source.storage == target.storage
        return same_value if same else methodcaller("astype", target.storage)

    def widen(self, source: DType) -> Step:
        """From storage to the plain dtype, exactly."""
        if source.is_float and source.narrow and not source.emulated:
            return partial(_widen, source)
        return self.cast(source, plain(source))

    def saturate(self, target: DType) -> Step:
        """From a plain float to the plain dtype of an integer, within the integer's range."""
        low, high = int(target.min), int(target.max)
        return partial(saturated, dtype=plain(target).storage, low=low, high=high)

    def to_odd(self, source: DType) -> tuple[Step, ...]:
        """From the plain dtype to float32, exact or rounded to odd."""
        wide = plain(source)
        if source.exact_in(DType.float32):
            return (self.cast(wide, DType.float32),)
        if source.is_integer and source.bits == 64:
            return sticky, round_to_odd
        return self.cast(wide, DType.float64), round_to_odd

    def narrow(self, target: DType, tf32: str) -> Step:
        """From float32, perhaps rounded to odd, to a float that has less: the one rounding."""
        if target.emulated:
            return rounding(target, tf32)
        return partial(_narrow, target) if target.narrow else self.cast(DType.float32, target)


_NUMPY = Conversions()
# By the codes of both dtypes and the way in which ties of tensor_float32 are broken.
_CONVERTERS: dict[tuple[int, int, str], Step] = {}


def _converter(source: DType, target: DType, tf32: str) -> Step:
    """The function that computes a conversion, on arrays of at least one dimension."""
    steps = _NUMPY.steps(source, target, tf32)
    first, *rest = [step for step in steps if step is not same_value] or [same_value]

    def run(array: NDArray[Any]) -> NDArray[Any]:
        array = first(array)
        for step in rest:
            array = step(array)
        return array

    # Between integers, and from them to any float but float16, nothing overflows or is invalid.
    may_warn = first is not same_value and (source.format or target is DType.float16)
    return np.errstate(all="ignore")(run) if may_warn else run if rest else first


# -- steps


def same_value(x: Any) -> Any:
    """The value as it is."""
    return x


def _widen(source: DType, array: NDArray[Any]) -> NDArray[Any]:
    return narrow_values(source).take(array.view(np.uint8))


@cache
def narrow_values(source: DType) -> NDArray[Any]:
    """The values of a narrow float, by bit pattern."""
    return np.arange(256, dtype=np.uint8).view(source.storage).astype(_F32)


def saturated(x: Any, dtype: Any, low: int, high: int) -> Any:
    """Floats truncated to an integer dtype, from `low` to `high`; NaN is 0."""
    # high + 1 is a power of two, and exact in every float; high is not.
    inside = (x >= float(low)) & (x < float(high + 1))
    if isinstance(inside, np.ndarray) and inside.all():
        return x.astype(dtype)
    # What C makes of a float out of range is undefined: those never reach astype.
    whole = np.where(inside, x, 0).astype(dtype)
    above = np.where(x >= float(high + 1), np.asarray(high, dtype), whole)
    return np.where(x < float(low), np.asarray(low, dtype), above)


def sticky(x: Any) -> Any:
    """64-bit integers as float64, on the same side of every number of at most 41 bits.

    From 2**53 on these numbers are multiples of 2**12; an integer between two of them becomes the
    middle, which has at most 53 bits.
    """
    exact, low = x.astype(_F64), x & 0xFFF
    exactly_held = (np.abs(exact) < 2.0**53) | np.equal(low, 0)
    return np.where(exactly_held, exact, (x - low + 0x800).astype(_F64))


def round_to_odd(x: Any) -> Any:
    """Float64 as float32: cut off towards zero, the last bit set where anything was cut off.

    Never from finite to inf: that is for the rounding which follows.
    """
    near = x.astype(_F32)
    wide, bits = near.astype(_F64), near.view(_I32)
    bits = bits - (np.abs(wide) > np.abs(x)).astype(_I32)
    return (bits | np.not_equal(wide, x).astype(_I32)).view(_F32)


# -- rounding within float32


def rounding(target: DType, tf32: str = "even") -> partial[Any]:
    """From float32 to the values of a float that has less, in float32.

    Ties go to even; those of tensor_float32 to "even" or, as NVIDIA's `cvt.rna.tf32.f32` has it
    (PTX ISA, cvt), "away" from zero: `tf32` says which. GraphError for another mode.
    """
    if tf32 not in ("even", "away"):
        raise GraphError(f'tensor_float32 rounds ties "even" or "away", not {tf32!r}')
    form = target.format
    assert form is not None  # of a float
    if has_range_of_float32(target):
        return partial(round_fraction, kept=form.mantissa, ties=tf32 if target.emulated else "even")
    kept, least, most = form.mantissa, form.least, form.max
    return partial(round_to_format, kept=kept, least=least, most=most, specials=form.specials)


def has_range_of_float32(dtype: DType) -> bool:
    """Whether a float has the exponents and special values of float32, so that only bits round."""
    return _HAS_RANGE_OF_FLOAT32[dtype.code]


# A look-up: planning asks it of each cast.
_HAS_RANGE_OF_FLOAT32 = [
    form is not None and form._replace(mantissa=23) == DType.float32.format
    for form in [dtype.format for dtype in DType]
]


def round_fraction(x: Any, kept: int, ties: str = "even", quiet: bool = False) -> Any:
    """Float32 rounded to `kept` bits of fraction; the carry may reach the exponent, and inf.

    Ties go to "even": half a unit is added, less 1 where the last bit kept is 0; or "away" from
    zero. A NaN whose bits below those kept are 0 rounds like a number and stays one; `quiet` says
    that every NaN is such a one.
    """
    bits, cut = x.view(_U32), 23 - kept
    half = 1 << (cut - 1)
    up = bits + half if ties == "away" else bits + (((bits >> cut) & 1) + (half - 1))
    if not quiet:  # the sum would carry other NaNs over into inf or -0.0
        up = np.where(np.not_equal(x, x), bits | 0x400000, up)
    return (up & (2**32 - 2**cut)).view(_F32)


def round_to_format(x: Any, kept: int, least: float, most: float, specials: str) -> Any:
    """Float32, exact or rounded to odd, rounded to a format of `kept` bits of fraction.

    `least` and `most` are its least positive and its greatest value, and `specials` as in
    graphir.dtypes.Float; the table at `convert` says what becomes of values that the format lacks.
    """
    if specials == "scale":  # powers of two, where a tie goes up: there is no even fraction
        up = np.where(x >= 1.5 * least, round_fraction(x, kept, "away"), least)
        return np.where((x > 0) & (up <= most), up, np.nan)
    # Below its least normal number the values of a format are the multiples of the least one:
    # the distance of floats about 1.5 * 2**23 of those.
    size = np.abs(x)
    grid = 1.5 * 2**23 * least
    up = np.where(size < least * 2**kept, (size + grid) - grid, round_fraction(size, kept))
    beyond = {"ieee": np.inf, "finite": most}.get(specials, np.nan)
    up = np.where(up > most, beyond, up)
    signed = (up.view(_U32) | (x.view(_U32) & 0x80000000)).view(_F32)
    if specials == "finite":
        return np.where(np.not_equal(x, x), -0.0, signed)
    return np.where(np.equal(up, 0), 0.0, signed) if specials == "fnuz" else signed


def upper_half(x: Any) -> Any:
    """The upper 16 bits of a float32, the last one set where any of the lower is."""
    # A float32 rounded to odd keeps 8 bits of its significand so, and a narrow float has at most 5.
    bits = x.view(_U32)
    return (bits >> 16) | np.not_equal(bits & 0xFFFF, 0)


def _narrow(target: DType, x: NDArray[Any]) -> NDArray[Any]:
    return narrow_patterns(target).take(upper_half(x)).view(target.storage)


@cache
def narrow_patterns(target: DType) -> NDArray[np.uint8]:
    """The bit pattern of a narrow float for every upper half of a float32."""
    x: NDArray[Any] = (np.arange(2**16, dtype=_U32) << 16).view(_F32)
    x[np.isnan(x)] = np.nan  # whose sign ml_dtypes keeps
    with np.errstate(all="ignore"):
        return rounding(target)(x).astype(target.storage).view(np.uint8)

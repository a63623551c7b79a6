"""What each cast computes: the value of any dtype in any other, correctly rounded once.

A converter is built once for each pair, as a chain of a few array functions. Values first go to a
dtype that NumPy computes in (`_load`). Where the target is a format that only ml_dtypes or nobody
converts to, they pass through float32 *rounded to odd*, which keeps enough of what was cut off that
the rounding after it is the only one (Boldo and Melquiond, Emulation of FMA and correctly rounded
sums: proved algorithms using rounding to odd, IEEE Trans. Computers 57(4), 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from operator import methodcaller
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.dtypes import DType
from graphir.errors import GraphError, PromotionError

Step: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
# From every plain dtype NumPy rounds to these once. It takes integers to float16 by way of float32,
# but those that are inexact there are inf in float16.
_ROUNDED_BY_NUMPY = {DType.bool, DType.float16, DType.float32, DType.float64, DType.weak_float}


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


def round_to_tf32(array: NDArray[np.float32], mode: str = "even") -> NDArray[np.float32]:
    """A float32 array rounded to the 10 fraction bits of tensor_float32, ties "even" or "away".

    Away from zero is what NVIDIA's `cvt.rna.tf32.f32` does (PTX ISA, cvt). NaN stays NaN, and what
    rounds beyond the greatest value is inf. GraphError for another mode.
    """
    if mode not in ("even", "away"):
        raise GraphError(f'tensor_float32 rounds ties "even" or "away", not {mode!r}')
    bits = np.atleast_1d(array).view(np.uint32)
    rounded = bits + 0x1000 if mode == "away" else bits + ((bits >> 13) & 1) + 0xFFF
    # The sum would carry a NaN over into inf or -0.0; its quiet bit outlasts the mask.
    np.copyto(rounded, bits | 0x400000, where=(bits & 0x7FFFFFFF) > 0x7F800000)
    rounded &= 0xFFFFE000
    return rounded.view(np.float32).reshape(array.shape)


# By the codes of both dtypes and the way in which ties of tensor_float32 are broken.
_CONVERTERS: dict[tuple[int, int, str], Step] = {}


def _converter(source: DType, target: DType, tf32: str) -> Step:
    """The function that computes a conversion, on arrays of at least one dimension."""
    if source is target or (
        source.storage == target.storage and target is not DType.tensor_float32
    ):
        return _same
    if source.is_complex and target.family not in ("bool", "complex"):
        raise PromotionError(
            f"cast of {source} to {target}: a complex number is not a real one",
            fix="take .real (or .imag) first and cast that",
        )
    run = _chain(*_steps(source, target, tf32))
    # Between integers, and from them to any float but float16, nothing overflows or is invalid.
    may_warn = source.format is not None or target is DType.float16
    return np.errstate(all="ignore")(run) if may_warn else run


def _steps(source: DType, target: DType, tf32: str) -> tuple[Step, ...]:
    if source.is_complex:
        return (_cast(source.storage, target.storage),)
    if target.is_complex:
        return *_steps(source, target.part, tf32), _cast(target.part.storage, target.storage)
    plain = _plain(source)
    if target.is_integer:
        whole = _cast(plain, _plain(target))
        truncate = partial(_saturate, target) if source.is_float else whole
        return _load(source), truncate, _cast(_plain(target), target.storage)
    if target in _ROUNDED_BY_NUMPY:
        return _load(source), _cast(plain, target.storage)
    return _load(source), *_to_odd(source), _finish(target, tf32)


def _chain(*steps: Step) -> Step:
    first, *rest = [step for step in steps if step is not _same] or [_same]
    if not rest:
        return first

    def run(array: NDArray[Any]) -> NDArray[Any]:
        array = first(array)
        for step in rest:
            array = step(array)
        return array

    return run


def _same(array: NDArray[Any]) -> NDArray[Any]:
    return array


def _cast(source: np.dtype[Any], target: np.dtype[Any]) -> Step:
    return _same if source == target else methodcaller("astype", target)


def _plain(dtype: DType) -> np.dtype[Any]:
    """The dtype of NumPy itself in which values of `dtype` are exact and computed with."""
    if dtype.is_integer and dtype.narrow:
        return np.dtype(np.int8 if dtype.family == "int" else np.uint8)
    return _F32 if dtype.is_float and dtype.bits < 32 else dtype.storage


def _load(source: DType) -> Step:
    """Exactly to the plain dtype."""
    if source.is_float and source.narrow:
        return partial(_widen, source)
    return _cast(source.storage, _plain(source))


def _widen(source: DType, array: NDArray[Any]) -> NDArray[Any]:
    return narrow_values(source).take(array.view(np.uint8))


@cache
def narrow_values(source: DType) -> NDArray[Any]:
    """The values of a narrow float, by bit pattern."""
    return np.arange(256, dtype=np.uint8).view(source.storage).astype(_F32)


def _saturate(target: DType, x: NDArray[Any]) -> NDArray[Any]:
    """Floats truncated to the plain dtype of integer `target`, within its range; NaN is 0."""
    # 2**precision is exact in every float, the greatest integer below it is not.
    low, above = float(target.min), 2.0**target.precision
    inside = (x >= low) & (x < above)
    if inside.all():
        return x.astype(_plain(target))
    # What C makes of a float out of range is undefined: those never reach astype.
    whole = np.where(inside, x, 0).astype(_plain(target))
    np.copyto(whole, target.max, where=x >= above)
    np.copyto(whole, target.min, where=x < low)
    return whole


def _to_odd(source: DType) -> tuple[Step, ...]:
    """From the plain dtype to float32, exact or rounded to odd."""
    plain = _plain(source)
    if source.exact_in(DType.float32):
        return (_cast(plain, _F32),)
    if source.is_integer and source.bits == 64:
        return sticky, round_to_odd
    return _cast(plain, _F64), round_to_odd


def sticky(x: NDArray[Any]) -> NDArray[Any]:
    """64-bit integers as float64, on the same side of every number of at most 41 bits.

    From 2**53 on these numbers are multiples of 2**12; an integer between two of them becomes the
    middle, which has at most 53 bits.
    """
    exact, low = x.astype(_F64), x & 0xFFF
    return np.where((np.abs(exact) < 2**53) | (low == 0), exact, (x - low + 0x800).astype(_F64))


def round_to_odd(x: NDArray[Any]) -> NDArray[Any]:
    """Float64 as float32: cut off towards zero, the last bit set where anything was cut off.

    Never from finite to inf: that is for the rounding which follows.
    """
    near = x.astype(_F32)
    wide, bits = near.astype(_F64), near.view(np.uint32)
    bits -= np.abs(wide) > np.abs(x)
    bits |= wide != x
    return bits.view(_F32)


def _finish(target: DType, tf32: str) -> Step:
    """The one rounding, from float32 to `target`."""
    if target is DType.tensor_float32:
        return partial(round_to_tf32, mode=tf32)
    return partial(_narrow, target) if target.narrow else _cast(_F32, target.storage)


def _narrow(target: DType, x: NDArray[Any]) -> NDArray[Any]:
    # The upper half of a float32 rounded to odd has 8 bits, and a narrow float at most 5.
    bits = x.view(np.uint32)
    upper: NDArray[Any] = (bits >> 16) | ((bits & 0xFFFF) != 0)
    return narrow_patterns(target).take(upper).view(target.storage)


@cache
def narrow_patterns(target: DType) -> NDArray[np.uint8]:
    """The bit pattern of a narrow float for every upper half of a float32."""
    upper = np.arange(2**16, dtype=np.uint32)
    x: NDArray[Any] = (upper << 16).view(np.float32)
    if target is DType.float8_e8m0fnu:
        return scale_bits(upper, x)
    x[np.isnan(x)] = np.nan  # the sign of NaN reaches float6 and float4, which have none
    with np.errstate(all="ignore"):
        return x.astype(target.storage).view(np.uint8)


def scale_bits(upper: NDArray[np.uint32], x: NDArray[Any]) -> NDArray[np.uint8]:
    """The bit patterns of float8_e8m0fnu, which ml_dtypes rounds by rules that changed with 0.5.1.

    Half an ulp added carries into the exponent, which is all there is. Below 2**-126 a float32 has
    no exponent to carry into: up to the tie, 2**-127 is nearest.
    """
    least = np.where(x > 0, 0x00, 0xFF)
    return np.where(x >= 1.5 * 2.0**-127, (upper + 0x40) >> 7, least).astype(np.uint8)

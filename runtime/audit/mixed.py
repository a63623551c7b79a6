"""Wide values of which some elements are integers that float64 lacks: ids above 2**53 beside NaN.

Such a value is a float64 array and an array of the same shape to add, its low part. High and low
part are those of a double-double number (see runtime.audit.exact): the elements are exact, and as
high parts they are rounded as float64 arithmetic rounds them. Ops that move or select elements
apply to both parts. Arithmetic takes the high part. Integers of uint64 beyond int64 are such values
too; those of complex values have a complex low part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Op, Symbol, ops
from graphir.passes.rewriter import is_conversion
from graphir.runtime.audit.exact import Numbers, numbers

Array: TypeAlias = NDArray[Any]
Pair: TypeAlias = tuple[Array, Array]
"""A high and a low part."""


class WideValue(NamedTuple):
    """A wide value: an array, and its low part if it has one."""

    high: Array
    low: Array | None

    def numbers(self, at: slice, parts: int) -> Numbers:
        """Return a block of the flat values."""
        x = self.high.reshape(-1)[at]
        values = numbers(x, wide_dtype(x), parts)
        return values if self.low is None else values.with_low(self.low.reshape(-1)[at])


def wide_dtype(array: Array) -> DType:
    """Return the DType of an array of wide values."""
    return _OF_CHARACTER.get(array.dtype.char) or DType.from_numpy(array.dtype)


WIDE_DTYPES = DType.bool, DType.int64, DType.float64, DType.complex128
"""The dtypes of wide values, the narrowest first."""
_OF_CHARACTER = {dtype.storage.char: dtype for dtype in WIDE_DTYPES}


def fits_float64(x: Array) -> bool:
    """Whether all integers are within +-2**53, where float64 is exact."""
    return not x.size or bool(x.min() >= -(2**53) and x.max() <= 2**53)


_COMPARISONS: Mapping[Op, Callable[[Array, Array], Array]] = {
    ops.equal: np.equal,
    ops.not_equal: np.not_equal,
    ops.less: np.less,
    ops.less_equal: np.less_equal,
    ops.greater: np.greater,
    ops.greater_equal: np.greater_equal,
}
_SAME_LOW = {ops.positive, ops.floor, ops.ceil, ops.trunc, ops.round}
_SELECTING = {ops.where, ops.maximum, ops.minimum, ops.clip, ops.max, ops.min, ops.sort}
_SIGNED = {ops.negative, ops.abs}
_OF_PARTS = {ops.real, ops.imag, ops.conj}
SHARING = {*_COMPARISONS, *_SAME_LOW, *_SELECTING, *_SIGNED, *_OF_PARTS}
"""The ops besides movement that take low parts."""
_OF_COMPLEX = {ops.equal, ops.not_equal, ops.where, ops.positive, ops.negative, *_OF_PARTS}


def takes_low_parts(symbol: Symbol, is_complex: bool = False) -> bool:
    """Whether an op has a rule for operands with low parts; of complex values, `is_complex`."""
    sharing = _OF_COMPLEX if is_complex else SHARING
    is_shared = symbol.op in sharing or (symbol.op is ops.index_add and symbol.dtype.is_inexact)
    return symbol.op.kind == "movement" or is_shared or is_conversion(symbol)


def split(x: Array) -> Pair:
    """Return the high and the low part of int64 or uint64 values."""
    high, low = numbers(x.reshape(-1), DType.from_numpy(x.dtype)).parts[0]
    return high.reshape(x.shape), np.broadcast_to(low, high.shape).reshape(x.shape)


def bits(high: Array, low: Array) -> Array:
    """Return the int64 values that are congruent modulo 2**64 to integers with low parts."""
    rest = np.fmod(high, 2.0**64)
    rest = np.where(rest >= 2.0**63, rest - 2.0**64, rest)
    rest = np.where(rest < -(2.0**63), rest + 2.0**64, rest)
    return rest.astype(np.int64) + low.astype(np.int64)


def is_value(op: Op, position: int) -> bool:
    """Whether an operand has the elements of a result, and is no condition and no index."""
    return not (op is ops.where and position == 0) and op.operand(position) != "indices"


def low_part(
    op: Op,
    settings: Mapping[str, Any],
    parts: Sequence[Pair],
    result: Array,
    evaluate: Callable[[Sequence[Array]], Array],
) -> Array:
    """Return the low part of an op's result.

    `parts` has the operands; those that are no values have their low part twice. `result` is the
    op on the high parts, and `evaluate` applies the op with zeros in place of a fill value.
    """
    (high, low), *others = parts
    if op in _SAME_LOW:
        return low
    if op in _SIGNED:
        return -low if op is ops.negative else np.copysign(1.0, high) * low
    if op is ops.sort:
        axis = settings["axis"]
        order = np.lexsort((low, high), axis=axis)
        ordered = np.take_along_axis(low, order, axis)
        return np.flip(ordered, axis) if settings["descending"] else ordered
    if op in (ops.max, ops.min):
        extreme, axes = (np.max, np.min)[op is ops.min], tuple(settings["axis"])
        whole = np.expand_dims(result, axes) if result.ndim < high.ndim else result
        at: Array = high == whole
        bound = -np.inf if op is ops.max else np.inf
        least = extreme(np.where(at, low, bound), axis=axes).reshape(result.shape)
        return np.where(np.isfinite(least), least, 0.0)
    if op in (ops.maximum, ops.minimum):
        return _extreme((high, low), others[0], op is ops.maximum)[1]
    if op is ops.clip:
        return _extreme(_extreme((high, low), others[0], True), others[1], False)[1]
    lows = [part for _, part in parts]
    if op is ops.index_add:  # sums are float arithmetic; the other elements stay as they are
        updates, *indices = lows[1:]
        sums = evaluate([np.zeros_like(low), np.ones_like(updates), *indices])
        return np.where(sums != 0, 0.0, low)
    return evaluate(lows)


def compare(op: Op, left: Pair, right: Pair) -> Array:
    """Return a comparison of values with low parts."""
    test = _COMPARISONS[op]
    return np.where(left[0] == right[0], test(left[1], right[1]), test(left[0], right[0]))


def is_comparison(op: Op) -> bool:
    """Whether an op compares its operands."""
    return op in _COMPARISONS


def _extreme(left: Pair, right: Pair, greatest: bool) -> Pair:
    """Return the greater, or the lesser, of two values; that of NaN has no low part."""
    test = ops.greater_equal if greatest else ops.less_equal
    takes_left = compare(test, left, right)
    nan = np.isnan(left[0]) | np.isnan(right[0])
    low = np.where(takes_left, left[1], right[1])
    high = np.where(takes_left, left[0], right[0])
    return np.where(nan, np.nan, high), np.where(nan, 0.0, low)

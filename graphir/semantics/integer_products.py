"""Products of integer matrices by BLAS: exact products of floats, put together modulo 2**bits.

A float holds all integers up to 2**24 (float32) or 2**53 (float64). As long as the sums of the
absolute values of all terms stay below that, every partial sum of a product is exact, in whatever
order BLAS adds. A longer sum is cut along the inner axis. Larger operands are split into a low and
a high part, x = low + high * 2**s, down to products that are exact:

    x @ y = low @ y + (high @ y) * 2**s    modulo 2**bits

where the second product only counts modulo 2**(bits - s), which makes both of its operands smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = Sequence[int]

_TERM, _CALL, _ELEMENT, _WIDE_ELEMENT = 0.45, 15_000.0, 1.0, 2.5
"""Nanoseconds that a term takes in NumPy's loop; that a product by BLAS takes besides its terms;
and that an element of an operand or of the result adds in a float32, and in any other product:
kernels, products."""

_NARROW = 4
"""The least rows and columns of a result by BLAS: kernels, products."""

_PART = 256
"""The least terms of a sum that are worth a product of their own: kernels, products."""

_SAFE = 9
"""The logarithm of the terms whose sum has to be exact in a product of a low part. It is so large
that a sum of more terms costs little more, and so small that low parts stay large."""

_FLOATS = ((np.float32, 24, np.int32), (np.float64, 53, np.int64))
"""The dtypes of exact products: a float, the logarithm of its last integer, and an integer."""


def pays(x: Shape, y: Shape, dtype: np.dtype[Any]) -> bool:
    """Whether a product of integers of these shapes takes less time by BLAS than in NumPy's loop.

    NumPy's loop over bool, which ends a sum at its first True, is never slower.
    """
    if dtype.kind not in "iu" or min(len(x), len(y)) < 2 or min(x[-2], y[-1]) < _NARROW:
        return False
    return _gain(x, y) > _CALL


def _gain(x: Shape, y: Shape, per_element: float = _ELEMENT) -> float:
    """Return the nanoseconds of NumPy's loop, less those for the elements of one product."""
    result = x[-2] * y[-1]
    if len(x) > 2 or len(y) > 2:
        result *= math.prod(np.broadcast_shapes(tuple(x[:-2]), tuple(y[:-2])))
    elements = result + math.prod(x) + math.prod(y)
    return result * x[-1] * _TERM - elements * per_element


def product(x: Array, y: Array) -> Array | None:
    """Return x @ y for matrices, or stacks of them, of one integer dtype; sums wrap.

    The answer is None if the elements are too large for a product that NumPy's loop does not
    compute in less time. No operand may be empty.
    """
    signed = f"i{x.itemsize}"  # the same bits, and the same bits of sums
    x_signed, y_signed = x.view(signed), y.view(signed)
    largest = magnitude(x_signed) * magnitude(y_signed) * min(x.shape[-1], _PART)
    if largest > 1 << _FLOATS[0][1]:
        count = 1 if largest <= 1 << _FLOATS[1][1] else 2 if x.itemsize <= 4 else 6
        if _gain(x.shape, y.shape, count * _WIDE_ELEMENT) < count * _CALL:
            return None
    result = _product(x_signed, y_signed, 8 * x.itemsize)
    return np.ascontiguousarray(result).view(x.dtype)


def _product(x: Array, y: Array, bits: int) -> Array:
    """Return the product of signed integers, right in its low `bits` bits."""
    left, right, terms = magnitude(x), magnitude(y), x.shape[-1]
    for dtype, mantissa, whole in _FLOATS:
        part = (1 << mantissa) // max(left * right, 1)
        if part >= min(terms, _PART):
            left_factor, right_factor = x.astype(dtype), y.astype(dtype)
            result = np.zeros((), x.dtype)
            for k in range(0, terms, part):
                of_part = left_factor[..., k : k + part] @ right_factor[..., k : k + part, :]
                exact = of_part.astype(whole).astype(x.dtype, copy=False)
                result = np.add(result, exact, out=exact)
            return result
    if left < right:
        return _product(y.mT, x.mT, bits).mT
    room = _FLOATS[-1][1] - _SAFE
    low_bits = room - (right - 1).bit_length() + 1
    if low_bits < _NARROWEST:
        low_bits = room // 2 + 1
    low, rest = _low(x, low_bits), bits - low_bits
    high = _product((x - low) >> low_bits, _low(y, rest), rest)
    return _product(low, y, bits) + (high << low_bits)


_NARROWEST = 8
"""The fewest bits of a low part that leave the other operand whole."""


def magnitude(x: Array) -> int:
    """Return the largest absolute value of integers."""
    return max(int(x.max()), -int(x.min()))


def _low(x: Array, bits: int) -> Array:
    """Return the low bits of integers, as integers from -(2 ** (bits - 1))."""
    rest = x.dtype.type(8 * x.itemsize - bits)
    return x << rest >> rest

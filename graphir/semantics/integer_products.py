"""Products of integer matrices by BLAS: exact products of floats, put together modulo 2**bits.

A float holds all integers up to 2**24 (float32) or 2**53 (float64). As long as the sums of the
absolute values of all terms stay below that, every partial sum of a product is exact, in whatever
order BLAS adds. A longer sum is cut along the inner axis. Larger operands are split into a low and
a high part, x = low + high * 2**s, down to products that are exact:

    x @ y = low @ y + (high @ y) * 2**s    modulo 2**bits

where the second product only counts modulo 2**(bits - s), which makes both of its operands smaller.

An operand in memory that is never written, such as the weights of a model, keeps what products
compute of it alone, for as long as it lives: see `of_constant`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar
from weakref import ref

import numpy as np

from graphir.hints import Array
from graphir.ops.attributes import is_frozen

Shape: TypeAlias = Sequence[int]
Fact = TypeVar("Fact")

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
    if dtype.kind not in "iu" or min(len(x), len(y)) < 2:
        return False
    x = _as_rows(x, y)
    return min(x[-2], y[-1]) >= _NARROW and _gain(x, y) > _CALL


def _as_rows(x: Shape, y: Shape) -> Shape:
    """Return the shape of x with all matrices as one, if each of them is multiplied by y."""
    return (math.prod(x[:-1]), x[-1]) if len(x) > len(y) == 2 else x


def _gain(x: Shape, y: Shape, per_element: float = _ELEMENT) -> float:
    """Return the nanoseconds of NumPy's loop, less those for the elements of one product."""
    result = x[-2] * y[-1]
    if len(x) > 2 or len(y) > 2:
        result *= math.prod(np.broadcast_shapes(tuple(x[:-2]), tuple(y[:-2])))
    elements = result + math.prod(x) + math.prod(y)
    return result * x[-1] * _TERM - elements * per_element


def product(x: Array, y: Array, dtype: np.dtype[Any]) -> Array | None:
    """Return x @ y for matrices, or stacks of them, in an integer dtype; sums wrap.

    The operands have integer dtypes, or bool, whose values `dtype` holds. The answer is None if the
    elements are too large for a product that NumPy's loop does not compute in less time. No operand
    may be empty.
    """
    shape = (*x.shape[:-1], y.shape[-1])
    if x.ndim > y.ndim == 2:
        result = product(x.reshape(-1, x.shape[-1]), y, dtype)
        return None if result is None else result.reshape(shape)
    left, right = magnitude_of(x, dtype), magnitude_of(y, dtype)
    largest = left * right * min(x.shape[-1], _PART)
    if largest > 1 << _FLOATS[0][1]:
        count = 1 if largest <= 1 << _FLOATS[1][1] else 2 if dtype.itemsize <= 4 else 6
        if _gain(x.shape, y.shape, count * _WIDE_ELEMENT) < count * _CALL:
            return None
    for form in _FLOATS:
        part = _part(form, left, right)
        if part >= min(x.shape[-1], _PART):
            left_factor, right_factor = (
                of_constant(operand, (form[0], dtype), partial(_floats, operand, dtype, form[0]))
                for operand in (x, y)
            )
            return _sum_of_parts(left_factor, right_factor, form, part, dtype)
    signed = np.dtype(f"i{dtype.itemsize}")
    x, y = (_signed(operand, dtype).astype(signed, copy=False) for operand in (x, y))
    result = _product(x, y, 8 * dtype.itemsize)
    return np.ascontiguousarray(result).view(dtype)


def _signed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers modulo 2**bits as signed integers, if they have as many bits as a dtype."""
    return x.view(f"i{x.itemsize}") if x.itemsize == dtype.itemsize else x


def _floats(x: Array, dtype: np.dtype[Any], to: Any) -> Array:
    return _signed(x, dtype).astype(to)


def _part(form: Any, left: int, right: int) -> int:
    """Return the most terms whose sum is exact, for two largest absolute values of factors."""
    return (1 << form[1]) // max(left * right, 1)


def _sum_of_parts(x: Array, y: Array, form: Any, part: int, dtype: np.dtype[Any]) -> Array:
    """Return the product of floats as integers, by products of `part` terms, which are exact."""
    result: Array = np.zeros((), dtype)
    for k in range(0, x.shape[-1], part):
        of_part = x[..., k : k + part] @ y[..., k : k + part, :]
        exact: Array = of_part.astype(form[2]).astype(dtype, copy=False)
        result = np.add(result, exact, out=exact)
    return result


def _product(x: Array, y: Array, bits: int) -> Array:
    """Return the product of signed integers, right in its low `bits` bits."""
    left, right, terms = magnitude(x), magnitude(y), x.shape[-1]
    for form in _FLOATS:
        part = _part(form, left, right)
        if part >= min(terms, _PART):
            return _sum_of_parts(x.astype(form[0]), y.astype(form[0]), form, part, x.dtype)
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


def magnitude_of(x: Array, dtype: np.dtype[Any]) -> int:
    """Return that of an operand of a product in a dtype, as signed integers of as many bits."""
    return of_constant(x, (magnitude, dtype), lambda: magnitude(_signed(x, dtype)))


def of_constant(array: Array, key: Hashable, make: Callable[[], Fact]) -> Fact:
    """Return `make()`, which depends on an array alone, and keep it with a constant.

    The `key` names what `make` computes.
    """
    if not is_frozen(array):
        return make()
    entry = _FACTS.get(id(array))
    if entry is None or entry[0]() is not array:
        number = id(array)
        entry = _FACTS[number] = ref(array, lambda _: _FACTS.pop(number, None)), {}
    facts = entry[1]
    if key not in facts:
        facts[key] = make()
    return facts[key]


_FACTS: dict[int, tuple[ref[Any], dict[Hashable, Any]]] = {}
"""What products have computed of constants, by their ids."""


def _low(x: Array, bits: int) -> Array:
    """Return the low bits of integers, as integers from -(2 ** (bits - 1))."""
    rest = x.dtype.type(8 * x.itemsize - bits)
    return x << rest >> rest

"""The kernel of numpy_sum: the order in which NumPy adds floats depends on how they lie in memory.

NumPy adds pairwise along the axes that it can walk through in one stride. Where it cannot, and
where it casts, it adds parts of 8192 elements (numpy/_core/src/umath/reduction.c and
numpy/_core/src/multiarray/nditer_constr.c).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir.hints import Array
from graphir.semantics.matrix_products import Strides, laid_out, strides_of

Layout: TypeAlias = tuple[Strides, Strides]
"""The strides of the operand and of the mask, in elements."""

BUFFER = 8192
"""The number of elements up to which NumPy adds an operand as a whole."""


class SumOrder(NamedTuple):
    """The order of a sum of floats: attributes of numpy_sum.

    `selection` stands for x[mask] in place of where=mask. `layout` is the strides of the operand
    and of the mask, in elements; None is C order. `buffered` holds where NumPy casts the operand.
    """

    selection: bool = False
    layout: Layout | None = None
    buffered: bool = False


def numpy_sum(
    x: Array,
    mask: Array,
    axis: tuple[int, ...],
    keepdims: bool,
    selection: bool = False,
    layout: Layout | None = None,
    buffered: bool = False,
    initial: complex | None = None,
) -> Array:
    """Return the sum that np.add.reduce gives for an operand of some layout."""
    dtype = x.dtype
    settings: dict[str, Any] = {} if initial is None else {"initial": initial}
    if selection:
        if len(axis) == x.ndim:
            axes, x = None, x[np.broadcast_to(mask, x.shape)]
        else:
            axes, x = 0, x[mask.reshape(mask.shape[: len(axis)])]
        total = np.add.reduce(_swapped(x) if buffered else x, axes, dtype, **settings)
        return np.expand_dims(total, axis) if keepdims else np.asarray(total)
    if layout is not None:
        mask = laid_out(mask, layout[1])
    if mask.ndim or not mask:
        settings["where"] = mask
    is_vector = layout is None and len(axis) == x.ndim and x.size > BUFFER
    if buffered and not settings and is_vector:
        total = _in_parts(x.reshape(-1))
        return total.reshape((1,) * x.ndim if keepdims else ())
    if buffered:
        x = _swapped(x)
    if layout is not None:
        x = laid_out(x, layout[0])
    return np.asarray(np.add.reduce(x, axis, dtype, keepdims=keepdims, **settings))


def layout_of_result(layout: Layout, shape: tuple[int, ...]) -> Layout | None:
    """Return the layout with a new array that an elementwise function makes of the operand."""
    operand = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, layout[0])
    result = np.empty_like(operand)
    return None if result.flags.c_contiguous and not layout[1] else (result.strides, layout[1])


def _in_parts(x: Array) -> Array:
    """Return the sum of a vector as NumPy adds it from another dtype, without another copy."""
    end = len(x) // BUFFER * BUFFER
    sums = np.add.reduce(x[:end].reshape(-1, BUFFER), axis=1)
    if end < len(x):
        sums = np.append(sums, np.add.reduce(x[end:]))
    return np.add.accumulate(sums)[-1:]


def _swapped(x: Array) -> Array:
    """Return the array in the other byte order, from which NumPy casts as from another dtype."""
    return x.astype(x.dtype.newbyteorder())


def rounds_each_sum(shape: Sequence[Any], axes: Collection[int]) -> bool:
    """Whether NumPy rounds each step of a sum of float16: along axes before the last."""
    sums = [i in axes for i, size in enumerate(shape) if size != 1]
    return sums != sorted(sums)


def layout_of_sum(view: Array, axes: Collection[int], mask: Array) -> Layout | None:
    """Return the layout on which a sum over axes depends; None for that of copies.

    The array `mask` is without axes if all elements are added.
    """
    if mask.ndim:
        is_plain = view.flags.c_contiguous and mask.flags.c_contiguous
    else:
        sizes = [size for size in view.shape if size != 1]
        steps = [step for step, size in zip(view.strides, view.shape, strict=True) if size != 1]
        reaches = [abs(step) for step in steps if step]
        several = sum(view.shape[i] != 1 for i in axes) > 1
        merge = all(steps[i] == steps[i + 1] * sizes[i + 1] for i in range(len(steps) - 1))
        in_order = reaches == sorted(reaches, reverse=True)
        is_plain = in_order and (not several or merge or view.size <= BUFFER)
    return None if is_plain else (strides_of(view), strides_of(mask))

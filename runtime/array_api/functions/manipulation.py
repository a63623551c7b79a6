"""Manipulation functions: the same elements in another shape or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphir import GraphError, ops
from graphir.ops.attributes import axis as axis_of
from graphir.ops.attributes import several
from graphir.ops.shape_rules import broadcast_shapes
from runtime.array_api.array import Array, array_of, eager, record
from runtime.array_api.views import view

__all__ = [
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "matrix_transpose",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "take",
    "take_along_axis", "tile", "unstack",
]  # fmt: skip


def _axis(x: Array, axis: int) -> int:
    """Return an axis counted from 0; raise AxisError if x lacks it."""
    return axis_of(axis, (x.type,))


def flat(x: Array) -> Array:
    """Return all elements as a vector, in row-major order."""
    return x if array_of(x).ndim == 1 else record(ops.reshape, x, shape=(x.size,))


def broadcast_to(x: Array, /, shape: Any) -> Array:
    """Broadcast to a shape: repeat along axes of size 1 and along new leading axes."""
    return record(ops.broadcast_to, array_of(x), shape=several(shape))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Broadcast arrays to their common shape."""
    shape = broadcast_shapes([array_of(x).shape for x in arrays])
    return [record(ops.broadcast_to, x, shape=shape) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Concatenate arrays along an axis; axis=None flattens them first."""
    several = _arrays(arrays)
    if axis is None:
        return record(ops.concat, *map(flat, several), axis=0)
    return record(ops.concat, *several, axis=axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Stack arrays of one shape along a new axis."""
    return record(ops.stack, *_arrays(arrays), axis=axis)


def _arrays(arrays: Any) -> list[Array]:
    several = list(map(array_of, arrays))
    if not several:
        raise GraphError("at least one array is needed")
    return several


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices along an axis, each without that axis."""
    front = moveaxis(x, axis, 0)
    return tuple([front[i, ...] for i in range(front.shape[0])])


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    """Insert an axis of size 1; raise AxisError, an IndexError, for an invalid position."""
    return view(ops.unsqueeze, array_of(x), axis=axis)


def squeeze(x: Array, /, axis: Any) -> Array:
    """Remove the given axes, each of size 1."""
    axes = [_axis(array_of(x), axis_) for axis_ in several(axis)]
    if len({*axes}) != len(axes):
        raise GraphError(f"an axis is repeated in {axis!r}")
    for axis_ in sorted(axes, reverse=True):
        x = view(ops.squeeze, x, axis=axis_)
    return x


def flip(x: Array, /, *, axis: Any = None) -> Array:
    """Reverse the elements along axes; None means all axes."""
    return view(ops.flip, array_of(x), axis=axis)


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    """Shift elements cyclically along axes; axis=None shifts the flattened array."""
    if axis is None:
        flat_result = roll(flat(x), shift, axis=0) if array_of(x).size else x
        return record(ops.reshape, flat_result, shape=x.shape)
    axes = several(axis)
    shifts = several(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise GraphError(
            "roll needs a shift for each axis", got=f"{len(shifts)} shifts and {len(axes)} axes"
        )
    for axis_, by in zip(axes, shifts, strict=True):
        x = record(ops.roll, array_of(x), shift=by, axis=axis_)
    return x


def permute_dims(x: Array, /, axes: Any) -> Array:
    """Permute the axes."""
    return view(ops.permute, array_of(x), dims=several(axes))


def matrix_transpose(x: Array, /) -> Array:
    """Exchange the last two axes."""
    return array_of(x).mT


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Move axes from `source` to `destination`; the other axes keep their order."""
    sources = [_axis(array_of(x), axis) for axis in several(source)]
    places = [_axis(x, axis) for axis in several(destination)]
    if (
        len({*sources}) != len({*places})
        or len(sources) != len({*sources})
        or len(places) != len(sources)
    ):
        raise GraphError(
            "source and destination must have as many distinct axes",
            got=f"{source!r} and {destination!r}",
        )
    order = [i for i in range(x.ndim) if i not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return view(ops.permute, x, dims=tuple(order))


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Array:
    """Reshape an array; one size of `shape` may be -1. Returns a view unless copy=True."""
    make = record if copy else view
    return make(ops.reshape, array_of(x), shape=several(shape))


def tile(x: Array, repetitions: Any, /) -> Array:
    """Repeat the whole array along its axes, and along new leading axes."""
    repeats = several(repetitions)
    rank = max(array_of(x).ndim, len(repeats))
    repeats = (1,) * (rank - len(repeats)) + repeats
    whole = record(ops.reshape, x, shape=(1,) * (rank - x.ndim) + x.shape)
    return record(ops.tile, whole, repeats=repeats)


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Repeat each element along an axis; axis=None flattens x first.

    `repeats` is an int, or an Array with a count for each element.
    """
    if axis is None:
        x, axis = flat(x), 0
    if isinstance(repeats, Array):
        if not repeats.dtype.is_integer:
            raise TypeError(f"repeats are integers, not {repeats.dtype}")
        return eager(np.repeat, x, repeats, axis)
    return record(ops.repeat, array_of(x), repeats=repeats, axis=axis)


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Return the slices of x at `indices`, a vector, along an axis."""
    if array_of(indices).ndim != 1:
        raise GraphError("take: the indices must be a vector", got=f"shape {indices.shape}")
    if axis is None and array_of(x).ndim != 1:
        raise GraphError(f"take: an axis is needed for an array of shape {x.shape}")
    return record(ops.gather, x, indices, axis=axis or 0)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return the elements of x at `indices` along an axis; the other axes broadcast."""
    if array_of(x).ndim != array_of(indices).ndim:
        raise GraphError(f"take_along_axis: {x.ndim} axes and indices of {indices.ndim}")
    along = _axis(x, axis)
    rest = [[*array.shape[:along], 1, *array.shape[along + 1 :]] for array in (x, indices)]
    shape = broadcast_shapes([tuple(array) for array in rest])
    both = [
        record(
            ops.broadcast_to, array, shape=(*shape[:along], array.shape[along], *shape[along + 1 :])
        )
        for array in (x, indices)
    ]
    return record(ops.take_along, *both, axis=along)

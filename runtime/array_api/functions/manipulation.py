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


def _axis(x: Array, axis: int) -> int:
    """An axis counted from 0; AxisError where there is none."""
    return axis_of(axis, (x.type,))


def flat(x: Array) -> Array:
    """All elements along one axis."""
    return x if array_of(x).ndim == 1 else record(ops.reshape, x, shape=(x.size,))


def broadcast_to(x: Array, /, shape: Any) -> Array:
    """Repeated along axes of 1, and along new ones in front."""
    return record(ops.broadcast_to, array_of(x), shape=several(shape))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """All in the shape that they have together."""
    shape = broadcast_shapes([array_of(x).shape for x in arrays])
    return [record(ops.broadcast_to, x, shape=shape) for x in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """One after another along an axis; flat where it is None."""
    several = _arrays(arrays)
    if axis is None:
        return record(ops.concat, *map(flat, several), axis=0)
    return record(ops.concat, *several, axis=axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Side by side along a new axis."""
    return record(ops.stack, *_arrays(arrays), axis=axis)


def _arrays(arrays: Any) -> list[Array]:
    several = list(map(array_of, arrays))
    if not several:
        raise GraphError("at least one array is needed")
    return several


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, without it."""
    front = moveaxis(x, axis, 0)
    return tuple([front[i, ...] for i in range(front.shape[0])])


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    """With a new axis of 1; AxisError, an IndexError, where there is no such place."""
    return view(ops.unsqueeze, array_of(x), axis=axis)


def squeeze(x: Array, /, axis: Any) -> Array:
    """Without axes of 1."""
    axes = [_axis(array_of(x), axis_) for axis_ in several(axis)]
    if len({*axes}) != len(axes):
        raise GraphError(f"an axis is repeated in {axis!r}")
    for axis_ in sorted(axes, reverse=True):
        x = view(ops.squeeze, x, axis=axis_)
    return x


def flip(x: Array, /, *, axis: Any = None) -> Array:
    """Backwards along axes, all of them without `axis`."""
    return view(ops.flip, array_of(x), axis=axis)


def roll(x: Array, /, shift: Any, *, axis: Any = None) -> Array:
    """Shifted around axes; flat where there is none."""
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
    """Axes in another order."""
    return view(ops.permute, array_of(x), dims=several(axes))


def matrix_transpose(x: Array, /) -> Array:
    """The last two axes exchanged."""
    return array_of(x).mT


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Some axes moved to other places, the others in their order."""
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
    """The same elements in another shape, one size of which may be -1."""
    make = record if copy else view
    return make(ops.reshape, array_of(x), shape=several(shape))


def tile(x: Array, repetitions: Any, /) -> Array:
    """Repeated as a whole, along new axes in front too."""
    repeats = several(repetitions)
    rank = max(array_of(x).ndim, len(repeats))
    repeats = (1,) * (rank - len(repeats)) + repeats
    whole = record(ops.reshape, x, shape=(1,) * (rank - x.ndim) + x.shape)
    return record(ops.tile, whole, repeats=repeats)


def repeat(x: Array, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element repeated along an axis, flat without one; an array says how often each."""
    if axis is None:
        x, axis = flat(x), 0
    if isinstance(repeats, Array):
        if not repeats.dtype.is_integer:
            raise TypeError(f"repeats are integers, not {repeats.dtype}")
        return eager(np.repeat, x, repeats, axis)
    return record(ops.repeat, array_of(x), repeats=repeats, axis=axis)


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """The slices that a vector of indices names along an axis."""
    if array_of(indices).ndim != 1:
        raise GraphError("take: the indices must be a vector", got=f"shape {indices.shape}")
    if axis is None and array_of(x).ndim != 1:
        raise GraphError(f"take: an axis is needed for an array of shape {x.shape}")
    return record(ops.gather, x, indices, axis=axis or 0)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """The elements that indices name along an axis, the other axes broadcast."""
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

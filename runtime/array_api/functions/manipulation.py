"""Manipulation functions: the same elements in another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from graphir.hints import Int, Ints
from graphir.numpy_api.pieces import unstack as unstacked
from graphir.ops import shape_rules
from graphir.ops.attributes import natural, several
from graphir.ops.dims import ShapeLike
from graphir.public import GraphError, ops
from graphir.runtime.array_api.array import Array, array_of, eager, record
from graphir.runtime.array_api.expansions import expanded
from graphir.runtime.array_api.views import view

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
    "matrix_transpose", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze",
    "stack", "take", "take_along_axis", "tile", "unstack",
]  # fmt: skip


def broadcast_to(x: Array, /, shape: ShapeLike) -> Array:
    """Broadcast to a shape along axes of size 1 and new leading axes, as a read-only view."""
    return view(ops.broadcast_to, array_of(x), shape=several(shape))


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Broadcast arrays to their common shape."""
    return expanded(np.broadcast_arrays, *map(array_of, arrays)) if arrays else ()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape of shapes, () for none; ShapeError, a ValueError, without one."""
    sizes = [tuple(map(natural, several(shape))) for shape in shapes]
    return cast("tuple[int, ...]", shape_rules.broadcast_shapes(sizes))


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Concatenate arrays along an axis; axis=None flattens them first."""
    return expanded(np.concat, _arrays(arrays), axis=axis)


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Stack arrays of one shape along a new axis."""
    return record(ops.stack, *_arrays(arrays), axis=axis)


def _arrays(arrays: Sequence[Array]) -> list[Array]:
    several = list(map(array_of, arrays))
    if not several:
        raise GraphError("no arrays", fix="pass at least one array")
    return several


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices along an axis, each without that axis."""
    return expanded(unstacked, array_of(x), axis=axis)


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Insert an axis of size 1 at each position of the result; return a view.

    Raises AxisError, an IndexError, for an invalid position, GraphError for a repeated one.
    """
    return expanded(np.expand_dims, array_of(x), axis)


def squeeze(x: Array, /, axis: Ints) -> Array:
    """Remove the given axes, each of size 1."""
    return expanded(np.squeeze, array_of(x), axis)


def flip(x: Array, /, *, axis: Ints | None = None) -> Array:
    """Reverse the elements along axes; None means all axes."""
    return view(ops.flip, array_of(x), axis=axis)


def roll(x: Array, /, shift: Ints, *, axis: Ints | None = None) -> Array:
    """Shift elements cyclically along axes; axis=None shifts the flattened array."""
    shifts, axes = several(shift), several(axis)
    if isinstance(shift, (tuple, list)) and len(shifts) != len(axes):
        raise GraphError(
            "roll needs a shift for each axis", got=f"{len(shifts)} shifts and {len(axes)} axes"
        )
    return expanded(np.roll, array_of(x), shift, axis=axis)


def permute_dims(x: Array, /, axes: Ints) -> Array:
    """Permute the axes."""
    return view(ops.permute, array_of(x), dims=several(axes))


def matrix_transpose(x: Array, /) -> Array:
    """Exchange the last two axes."""
    return array_of(x).mT


def moveaxis(x: Array, source: Ints, destination: Ints, /) -> Array:
    """Move axes from `source` to `destination`; the other axes keep their order."""
    return expanded(np.moveaxis, array_of(x), source, destination)


def reshape(x: Array, /, shape: ShapeLike, *, copy: bool | None = None) -> Array:
    """Reshape an array; one size of `shape` may be -1. Returns a view unless copy=True."""
    make = record if copy else view
    return make(ops.reshape, array_of(x), shape=several(shape))


def tile(x: Array, repetitions: Ints, /) -> Array:
    """Repeat the whole array along its axes, and along new leading axes."""
    return expanded(np.tile, array_of(x), repetitions)


def repeat(x: Array, repeats: Int | Array, /, *, axis: int | None = None) -> Array:
    """Repeat each element along an axis; axis=None flattens x first.

    `repeats` is an int, or an Array with a count for each element.
    """
    if isinstance(repeats, Array):
        if not repeats.dtype.is_integer:
            raise TypeError(f"repeats are integers, not {repeats.dtype}")
        return eager(np.repeat, array_of(x), repeats, axis)
    return expanded(np.repeat, array_of(x), repeats, axis=axis)


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """Return the slices of x at `indices`, a vector, along an axis."""
    if array_of(indices).ndim != 1:
        raise GraphError("the indices must be a vector", op="take", got=f"shape {indices.shape}")
    if axis is None and array_of(x).ndim != 1:
        raise GraphError("an array of several axes needs axis=", op="take", got=f"shape {x.shape}")
    return record(ops.gather, x, indices, axis=axis or 0)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return the elements of x at `indices` along an axis; the other axes broadcast."""
    if array_of(x).ndim != array_of(indices).ndim:
        raise GraphError(
            "the array and the indices differ in rank",
            op="take_along_axis",
            got=f"{x.shape} and {indices.shape}",
        )
    return expanded(np.take_along_axis, x, indices, axis=axis)

"""The decompositions of ops that move elements, in terms of slices, gathers and reshapes.

decompositions.py says what a decomposition is, and has those of ops that compute.
"""

from __future__ import annotations

import math
from typing import Any

from graphir.dtypes import DType
from graphir.ops.decompositions import Axes, Primitives, Sizes, Tensor, exact


@exact
def transpose(p: Primitives, x: Tensor, axis1: int, axis2: int) -> Tensor:
    """The operand with two axes exchanged."""
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = axis2, axis1
    return p.permute(x, dims=tuple(order))


@exact
def squeeze(p: Primitives, x: Tensor, axis: int) -> Tensor:
    """The same elements without an axis of 1."""
    return p.reshape(x, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))


@exact
def unsqueeze(p: Primitives, x: Tensor, axis: int) -> Tensor:
    """The same elements with a new axis of 1."""
    return p.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))


@exact
def item(p: Primitives, x: Tensor, index: tuple[Any, ...]) -> Tensor:
    """The slice of one element, without axes."""
    stop = tuple(i + 1 for i in index)
    return p.reshape(p.slice(x, start=index, stop=stop, step=(1,) * len(index)), shape=())


@exact
def affine_view(
    p: Primitives, x: Tensor, shape: Sizes, origin: Sizes, steps: Sizes
) -> Tensor | None:
    """The elements gathered at computed indices, axis by axis, or in the flat operand.

    The op is a primitive if an axis of the result runs along several axes of the operand, one of
    which has a named size, and if a named size is part of the origin.
    """
    if not all(isinstance(at, int) for at in origin):
        return None
    if 0 in shape:
        return p.reshape(_cleared(p, x), shape=shape)
    if any(sum(map(bool, step)) > 1 for step in steps):
        if not all(isinstance(n, int) for n in x.shape):
            return None
        strides = [math.prod(x.shape[axis + 1 :]) for axis in range(len(x.shape))]
        dot = _dot_product
        x = p.reshape(x, shape=(math.prod(x.shape),))
        origin, steps = (dot(origin, strides),), tuple((dot(step, strides),) for step in steps)
    order: list[int] = []
    for axis in reversed(range(len(x.shape))):
        own = [k for k, step in enumerate(steps) if step[axis]]
        x = _gathered(p, x, axis, origin[axis], [(steps[k][axis], shape[k]) for k in own])
        order = own + order
    gathered = tuple(shape[k] for k in order)
    x = _shaped(p, x, gathered)
    if order != sorted(order):
        x = p.permute(x, dims=tuple(map(order.index, sorted(order))))
    ones = tuple(size if k in order else 1 for k, size in enumerate(shape))
    return _spread(p, _shaped(p, x, ones), shape)


def _dot_product(left: Any, right: Any) -> Any:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _cleared(p: Primitives, x: Tensor) -> Tensor:
    """Return the slice of no elements along the first axis."""
    x = x if len(x.shape) else p.reshape(x, shape=(1,))
    return _sliced(p, x, 0, 0, 0)


def _gathered(
    p: Primitives, x: Tensor, axis: int, first: Any, lines: list[tuple[int, Any]]
) -> Tensor:
    """Return x gathered along an axis at first + i * step + j * step + ... of several lines."""
    if not lines:
        return _sliced(p, x, axis, first, first + 1)
    (step, size), *_ = lines
    if len(lines) == 1 and step > 0:
        return _sliced(p, x, axis, first, first + (size - 1) * step + 1, step)
    sizes = tuple(size for _, size in lines)
    is_small = all(isinstance(n, int) and n < 2**31 for n in (x.shape[axis], *sizes))
    dtype = DType.int32 if is_small else DType.int64  # JAX has no int64 unless it is switched on
    indices = None
    for k, (step, size) in enumerate(lines):
        line = p.range(dtype=dtype, start=0 if k else first, step=step, size=size)
        spread = _along(p, line, k, sizes)
        indices = spread if indices is None else p.add(indices, spread)
    return p.gather(x, indices, axis=axis)


@exact
def slice_update(
    p: Primitives, x: Tensor, updates: Tensor, start: Axes, stop: Axes, step: Axes
) -> Tensor:
    """The elements before the updates, the updates and the elements after, axis by axis.

    Along an axis with a step, the updates are scattered. An inner axis is updated first, in the
    part of x that the slices of the outer axes select.
    """
    bounds = list(zip(start, stop, step, strict=True))
    parts = [x]
    for axis, bound in enumerate(bounds):
        parts.append(_sliced(p, parts[-1], axis, *bound))
    result = _spread(p, updates, parts[-1].shape)
    for axis, part in reversed([*enumerate(parts[:-1])]):
        result = _entered(p, part, result, axis, *bounds[axis])
    return result


def _sliced(p: Primitives, x: Tensor, axis: int, start: Any, stop: Any, step: int = 1) -> Tensor:
    """Return the slice start:stop:step along one axis; x itself if that is the whole axis."""
    if (start, stop, step) == (0, x.shape[axis], 1):
        return x
    bounds = [(0, n, 1) for n in x.shape]
    bounds[axis] = start, stop, step
    starts, stops, steps = zip(*bounds, strict=True)
    return p.slice(x, start=starts, stop=stops, step=steps)


def _entered(
    p: Primitives, x: Tensor, new: Tensor, axis: int, start: Any, stop: Any, step: int
) -> Tensor:
    """Return x with `new` in place of the slice start:stop:step along one axis."""
    size = x.shape[axis]
    if (start, stop, step) == (0, size, 1):
        return new
    if step != 1:
        line = p.range(dtype=DType.int64, start=start, step=step, size=new.shape[axis])
        return p.scatter(x, new, _along(p, line, axis, new.shape), axis=axis)
    before, after = _sliced(p, x, axis, 0, start), _sliced(p, x, axis, stop, size)
    return p.concat([before, new, after], axis=axis)


@exact
def index_update(
    p: Primitives, x: Tensor, updates: Tensor, indices: Tensor, axis: int | None
) -> Tensor:
    """The updates scattered along the axis, or to the flat x."""
    indices_shape = tuple(indices.shape)
    count = math.prod(indices_shape)
    places = _shaped(p, indices, (count,))
    if axis is None:
        flat = _shaped(p, x, (math.prod(x.shape),))
        wide = _shaped(p, _spread(p, updates, indices_shape), (count,))
        return _shaped(p, p.scatter(flat, wide, places, axis=0), x.shape)
    before, after = tuple(x.shape[:axis]), tuple(x.shape[axis + 1 :])
    shape = (*before, count, *after)
    wide = _shaped(p, _spread(p, updates, (*before, *indices_shape, *after)), shape)
    return p.scatter(x, wide, _along(p, places, axis, shape), axis=axis)


def _along(p: Primitives, line: Tensor, axis: int, shape: Sizes) -> Tensor:
    """Return a vector along one axis, broadcast to a shape."""
    column = _shaped(p, line, tuple(n if i == axis else 1 for i, n in enumerate(shape)))
    return _spread(p, column, shape)


def _shaped(p: Primitives, x: Tensor, shape: Sizes) -> Tensor:
    return x if tuple(x.shape) == tuple(shape) else p.reshape(x, shape=tuple(shape))


def _spread(p: Primitives, x: Tensor, shape: Sizes) -> Tensor:
    return x if tuple(x.shape) == tuple(shape) else p.broadcast_to(x, shape=tuple(shape))


@exact
def stack(p: Primitives, *arrays: Tensor, axis: int) -> Tensor:
    """The arrays concatenated along a new axis."""
    return p.concat([p.unsqueeze(x, axis=axis) for x in arrays], axis=axis)


@exact
def tile(p: Primitives, x: Tensor, repeats: tuple[Any, ...]) -> Tensor:
    """The operand repeated along each axis: a broadcast along a new axis before each axis."""
    pairs = list(zip(x.shape, repeats, strict=True))
    split = tuple(size for n, _ in pairs for size in (1, n))
    wide = tuple(size for n, count in pairs for size in (count, n))
    spread = p.broadcast_to(p.reshape(x, shape=split), shape=wide)
    return p.reshape(spread, shape=tuple(n * count for n, count in pairs))


@exact
def repeat(p: Primitives, x: Tensor, repeats: Any, axis: int) -> Tensor:
    """Each element repeated along an axis: a tile of a new axis after that axis."""
    before, after = x.shape[: axis + 1], x.shape[axis + 1 :]
    counts = (1,) * len(before) + (repeats,) + (1,) * len(after)
    spread = p.tile(p.reshape(x, shape=(*before, 1, *after)), repeats=counts)
    return p.reshape(spread, shape=(*before[:-1], before[-1] * repeats, *after))


@exact
def roll(p: Primitives, x: Tensor, shift: int, axis: int) -> Tensor | None:
    """The last shift % size elements of an axis before the others; a primitive for a named size."""
    size = x.shape[axis]
    if not isinstance(size, int):
        return None
    if not size or not shift % size:
        return x
    cut = size - shift % size
    return p.concat([_sliced(p, x, axis, cut, size), _sliced(p, x, axis, 0, cut)], axis=axis)

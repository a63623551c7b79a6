"""From strides to view steps: the ops that lead from an array to a view of its memory.

A view that selects a slice of each axis, in another order or broadcast, becomes flips, a cut, a
permutation, a reshape and a broadcast. A view of parts of axes, as the heads of attention, is such
a view of the array in another shape. Sliding windows, diagonals and other views with strides become
an AffineView, each of whose axes runs along the array's axes in constant steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from graphir.hints import Array
from graphir.numpy_api.view_steps import (
    AffineView,
    Broadcast,
    Cut,
    Flip,
    Permute,
    Reshape,
    Steps,
    ViewPart,
    ViewStep,
)
from graphir.semantics.matrix_products import address

Sizes: TypeAlias = tuple[int, ...]


class ViewLayout(NamedTuple):
    """The layout of an array: its shape, and its strides in bytes."""

    shape: Sizes
    strides: Sizes

    @property
    def contiguous(self) -> bool:
        """Whether the elements are contiguous in row-major order.

        The last stride counts as the itemsize.
        """
        stride_expected = self.strides[-1] if self.shape else 0
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != stride_expected:
                return False
            stride_expected *= size
        return True


_CACHE: dict[Any, Steps | None] = {}
_MOST = 20_000


def steps_between(whole: Array, view: Array) -> Steps | None:
    """Return the steps from an array to a view of its memory, or None if no steps lead there."""
    offset = address(view) - address(whole)
    dtypes = whole.dtype, view.dtype
    if dtypes[0] != dtypes[1]:
        return _part(whole, view, offset)
    outer, inner = ViewLayout(whole.shape, whole.strides), ViewLayout(view.shape, view.strides)
    key = outer, inner, offset, whole.itemsize
    if key not in _CACHE:
        if len(_CACHE) > _MOST:
            _CACHE.clear()
        _CACHE[key] = _steps(outer, inner, offset, whole.itemsize)
    return _CACHE[key]


def _part(whole: Any, view: Array, offset: int) -> Steps | None:
    """Return the steps to a real or imaginary part."""
    if whole.dtype.kind != "c" or view.dtype != whole.real.dtype:
        return None
    imaginary = bool(offset % whole.itemsize)
    parts = whole.imag if imaginary else whole.real
    rest = steps_between(parts, view)
    return None if rest is None else (ViewPart(imaginary), *rest)


def _steps(whole: ViewLayout, view: ViewLayout, offset: int, itemsize: int) -> Steps | None:
    if whole == view and not offset:
        return ()
    if not math.prod(view.shape):
        return _empty(whole, view)
    if not offset and _same_elements(whole, view, itemsize):
        return (Reshape(view.shape),)
    for steps in (_cut(whole, view, offset), _split(whole, view, offset, itemsize)):
        if steps is not None:
            return steps
    reorder_steps, memory_layout, low = _in_memory_order(whole, offset)
    cut_steps = _cut(memory_layout, view, low)
    if cut_steps is not None:
        return (*reorder_steps, *cut_steps)
    affine_view = _affine(whole, view, offset)
    if affine_view is not None:
        return (affine_view,)
    affine_view = _affine(memory_layout, view, low)
    return None if affine_view is None else (*reorder_steps, affine_view)


def _empty(whole: ViewLayout, view: ViewLayout) -> Steps:
    """Return the steps to an empty view, from an array of any size."""
    none = (0,) * len(whole.shape)
    cut_step = Cut(none, none, (1,) * len(none))
    start: Steps = (
        (cut_step,) if none and math.prod(whole.shape) else () if none else (Reshape((1,)),)
    )
    end = () if none else (Cut((0,), (0,), (1,)),)
    return (*start, *end, Reshape(view.shape))


def _same_elements(whole: ViewLayout, view: ViewLayout, itemsize: int) -> bool:
    last = [layout.strides[-1] == itemsize for layout in (whole, view) if layout.shape]
    same = math.prod(whole.shape) == math.prod(view.shape)
    return same and all(last) and whole.contiguous and view.contiguous


def _cut(whole: ViewLayout, view: ViewLayout, offset: int) -> Steps | None:
    """Return the steps of a view that slices each axis, then reorders and broadcasts; else None."""
    for starts in _origins(whole, offset):
        axes = _matched(whole, view, starts)
        if axes is not None:
            break
    else:
        return None
    flips, cut_step, shape = _spans(whole, view, starts, axes)
    order = [axis for axis in axes if axis is not None]
    spread_shape = tuple(
        1 if axis is None else size for axis, size in zip(axes, view.shape, strict=True)
    )
    steps: list[ViewStep] = []
    if cut_step is not None and order == sorted(order) and not flips:
        steps.append(replace(cut_step, shape=spread_shape))
        shape = spread_shape
    elif cut_step is not None:
        steps.append(cut_step)
    if flips:
        steps.append(Flip(flips))
    if order != sorted(order):
        order += [axis for axis in range(len(whole.shape)) if axis not in order]
        steps.append(Permute(tuple(order)))
        shape = tuple(shape[axis] for axis in order)
    if spread_shape != shape:
        steps.append(Reshape(spread_shape))
    if spread_shape != view.shape:
        steps.append(Broadcast(view.shape))
    return tuple(steps)


def _split(whole: ViewLayout, view: ViewLayout, offset: int, itemsize: int) -> Steps | None:
    """Return the steps of a view of a contiguous array whose axes are parts of its axes; else None.

    The array first gets a shape with an axis for each stride of the view.
    """
    if not whole.shape or whole.strides[-1] != itemsize or not whole.contiguous:
        return None
    both = zip(view.shape, view.strides, strict=True)
    steps = {itemsize, *[abs(stride) for size, stride in both if size > 1 and stride]}
    strides = tuple(sorted(steps, reverse=True))
    bounds = [*itertools.pairwise((math.prod(whole.shape) * itemsize, *strides))]
    if any(outer % inner for outer, inner in bounds):
        return None
    shape = tuple([outer // inner for outer, inner in bounds])
    cut_steps = _cut(ViewLayout(shape, strides), view, offset)
    return None if cut_steps is None else (Reshape(shape), *cut_steps)


def _origins(whole: ViewLayout, offset: int) -> Iterator[Sizes]:
    """Yield the indices of the element at an offset in bytes.

    There is one at most, unless axes overlap in memory. The index along an axis that repeats one
    element is 0.
    """
    axes = [*_distinct_axes(whole)]
    sizes, strides = whole.shape, whole.strides
    low = sum((sizes[axis] - 1) * strides[axis] for axis in axes if strides[axis] < 0)
    spans = [(sizes[axis], abs(strides[axis])) for axis in axes]
    for counts in itertools.islice(_counts(spans, offset - low), _ORIGINS):
        origin = [0] * len(sizes)
        for axis, count in zip(axes, counts, strict=True):
            origin[axis] = count if strides[axis] > 0 else sizes[axis] - 1 - count
        yield tuple(origin)


_ORIGINS = 1000
"""The maximum number of indices of one element that are tried."""


def _distinct_axes(whole: ViewLayout) -> list[int]:
    """Return the axes along which elements differ, the outermost in memory first."""
    both = enumerate(zip(whole.shape, whole.strides, strict=True))
    axes = [axis for axis, (size, stride) in both if size > 1 and stride]
    return sorted(axes, key=lambda axis: -abs(whole.strides[axis]))


def _counts(spans: Sequence[tuple[int, int]], rest: int) -> Iterator[Sizes]:
    """Yield the counts of strides that sum to a distance, for axes as pairs (size, stride)."""
    if not spans:
        if not rest:
            yield ()
        return
    (size, stride), *inner = spans
    reach = sum((n - 1) * by for n, by in inner)
    for count in range(min(size - 1, rest // stride), max(-1, (rest - reach - 1) // stride), -1):
        for counts in _counts(inner, rest - count * stride):
            yield (count, *counts)


def overlaps(layout: ViewLayout) -> bool:
    """Whether elements share memory: along a repeated axis, or where axes overlap."""
    reach = 0
    for size, stride in sorted(zip(layout.shape, layout.strides, strict=True), key=_stride_size):
        if size > 1 and abs(stride) <= reach:
            return bool(math.prod(layout.shape))
        reach += (size - 1) * abs(stride)
    return False


def _stride_size(axis: tuple[int, int]) -> int:
    return abs(axis[1])


def _matched(whole: ViewLayout, view: ViewLayout, starts: Sizes) -> list[int | None] | None:
    """Return for each axis of the view the axis of the whole along which it runs.

    An axis of size 1, or with stride 0, has None. The result is None if an axis matches no other.
    """
    free = _distinct_axes(whole)
    axes: list[int | None] = []
    for size, stride in zip(view.shape, view.strides, strict=True):
        if size == 1 or not stride:
            axes.append(None)
            continue
        for i in free:
            by, rest = divmod(stride, whole.strides[i])
            if not rest and 0 <= starts[i] + (size - 1) * by < whole.shape[i]:
                break
        else:
            return None
        free.remove(i)
        axes.append(i)
    return axes


def _spans(
    whole: ViewLayout, view: ViewLayout, starts: Sizes, axes: list[int | None]
) -> tuple[Sizes, Cut | None, Sizes]:
    """Return the axes of the cut to flip, the cut to take and the shape of the cut."""
    spans = {i: (at, at + 1, 1) for i, at in enumerate(starts)}
    flips: list[int] = []
    for axis, size, stride in zip(axes, view.shape, view.strides, strict=True):
        if axis is None:
            continue
        by, at = stride // whole.strides[axis], starts[axis]
        if by < 0:
            flips.append(axis)
            at, by = at + (size - 1) * by, -by
        spans[axis] = at, at + (size - 1) * by + 1, by
    shape = tuple(-(-(stop - start) // by) for start, stop, by in spans.values())
    start, stop, by = zip(*spans.values(), strict=True) if spans else ((), (), ())
    cut_step = None if shape == whole.shape else Cut(start, stop, by)
    return tuple(sorted(flips)), cut_step, shape


def _affine(whole: ViewLayout, view: ViewLayout, offset: int) -> AffineView | None:
    """Return the view whose axes run along axes of the whole in constant steps; else None."""
    orders = _axis_orders(whole)
    choices: list[dict[Sizes, None]] = []
    for size, stride in zip(view.shape, view.strides, strict=True):
        strides = [(order, nearest) for order in orders for nearest in (False, True)]
        stride = stride if size > 1 else 0
        choices.append(dict.fromkeys(_along_axes(whole, stride, *way) for way in strides))
    for origin, *steps in itertools.product(_origins(whole, offset), *choices):
        if _is_within(whole.shape, view.shape, origin, steps):
            return AffineView(view.shape, origin, tuple(steps))
    return None


def _axis_orders(whole: ViewLayout) -> list[Sizes]:
    """Return the orders in which axes take parts of a distance in memory.

    That is from the outermost axis to the innermost, and any order if axes overlap in memory.
    """
    axes = _distinct_axes(whole)
    if overlaps(whole) and len(axes) <= _PERMUTED_AXES:
        return [*itertools.permutations(axes)]
    return [tuple(axes)]


_PERMUTED_AXES = 4
"""The number of overlapping axes up to which all orders are tried: that of windows in a plane."""


def _along_axes(whole: ViewLayout, distance: int, order: Sizes, nearest: bool = False) -> Sizes:
    """Return a distance in bytes as counts of elements along the axes of the whole.

    Each axis takes as many strides as fit into the rest, or the nearest number of them, after which
    an inner axis may run backward. The result is () if a rest remains.
    """
    counts = [0] * len(whole.shape)
    for axis in order:
        stride = abs(whole.strides[axis])
        count = (abs(distance) + (stride // 2 if nearest else 0)) // stride
        counts[axis] = count if (distance < 0) == (whole.strides[axis] < 0) else -count
        distance -= counts[axis] * whole.strides[axis]
    return () if distance else tuple(counts)


def _is_within(whole: Sizes, view: Sizes, origin: Sizes, steps: Sequence[Sizes]) -> bool:
    """Whether a view has steps, and all its positions lie within the whole."""
    if any(len(step) != len(whole) for step in steps):
        return False
    for axis, size in enumerate(whole):
        reaches = [step[axis] * (count - 1) for step, count in zip(steps, view, strict=True)]
        low = origin[axis] + sum(reach for reach in reaches if reach < 0)
        high = origin[axis] + sum(reach for reach in reaches if reach > 0)
        if low < 0 or high >= size:
            return False
    return True


def _in_memory_order(whole: ViewLayout, offset: int) -> tuple[Steps, ViewLayout, int]:
    """Return the steps to the elements in memory order with as few axes as possible.

    The results are the steps, the layout that they lead to, and the offset from its first element.
    """
    both = [*zip(whole.shape, whole.strides, strict=True)]
    flips = tuple(axis for axis, (size, stride) in enumerate(both) if size > 1 and stride < 0)
    offset -= sum((both[axis][0] - 1) * both[axis][1] for axis in flips)
    order = sorted(range(len(both)), key=lambda axis: -abs(both[axis][1]))
    shape: list[int] = []
    strides: list[int] = []
    for size, stride in [(both[axis][0], abs(both[axis][1])) for axis in order]:
        if shape and strides[-1] == stride * size:
            shape[-1], strides[-1] = shape[-1] * size, stride
        elif size > 1:
            shape.append(size)
            strides.append(stride)
    steps: list[ViewStep] = [Flip(flips)] if flips else []
    if order != sorted(order):
        steps.append(Permute(tuple(order)))
    steps.append(Reshape(tuple(shape)))
    return tuple(steps), ViewLayout(tuple(shape), tuple(strides)), offset

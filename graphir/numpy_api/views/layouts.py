"""From strides to view steps: the ops that lead from an array to a view of its memory.

A view that selects a slice of each axis, in another order or broadcast, becomes flips, a cut, a
permutation, a reshape and a broadcast. A view of parts of axes, as the heads of attention, is such
a view of the array in another shape. Any other view becomes a Pick of elements by their addresses.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.numpy_api.views.steps import (
    Broadcast,
    Cut,
    Flip,
    Permute,
    Pick,
    Reshape,
    Steps,
    ViewPart,
    ViewStep,
)
from graphir.semantics.products import address

Array: TypeAlias = NDArray[Any]
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
    return _picked(whole, view, offset)


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
    starts = _starts(whole, offset)
    axes = None if starts is None else _matched(whole, view, starts)
    if starts is None or axes is None:
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


def _starts(whole: ViewLayout, offset: int) -> list[int] | None:
    """Return the index of the view's first element, or None if the offset does not determine it.

    The offset determines the index if no two axes overlap in memory.
    """
    starts, reach = [0] * len(whole.shape), 0
    axes = sorted(range(len(whole.shape)), key=lambda i: abs(whole.strides[i]))
    for i in axes:  # from the innermost on
        size, stride = whole.shape[i], abs(whole.strides[i])
        if size > 1 and stride <= reach:
            return None
        reach += (size - 1) * stride
        if whole.strides[i] < 0:
            offset += (size - 1) * stride
    for i in reversed(axes):
        size, stride = whole.shape[i], whole.strides[i]
        if size > 1:
            at, offset = divmod(offset, abs(stride))
            starts[i] = at if stride > 0 else size - 1 - at
    within = all(0 <= at < size for at, size in zip(starts, whole.shape, strict=True))
    return starts if within and not offset else None


def _matched(whole: ViewLayout, view: ViewLayout, starts: list[int]) -> list[int | None] | None:
    """Return for each axis of the view the axis of the whole along which it runs.

    An axis of size 1, or with stride 0, has None. The result is None if an axis matches no other.
    """
    free = [i for i, size in enumerate(whole.shape) if size > 1]
    free.sort(key=lambda i: -abs(whole.strides[i]))
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
    whole: ViewLayout, view: ViewLayout, starts: list[int], axes: list[int | None]
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


def _picked(whole: ViewLayout, view: ViewLayout, offset: int) -> Steps | None:
    """Return the Pick of the view's elements from the whole, by their addresses; else None."""
    whole_addresses, view_addresses = _addresses(whole), _addresses(view) + offset
    order = np.argsort(whole_addresses.ravel(), kind="stable")
    at = np.searchsorted(whole_addresses.ravel()[order], view_addresses.ravel())
    places = order[np.minimum(at, whole_addresses.size - 1)]
    if not np.array_equal(whole_addresses.ravel()[places], view_addresses.ravel()):
        return None
    return (Pick(places.reshape(view.shape)),)


def _addresses(layout: ViewLayout) -> NDArray[np.int64]:
    addresses = np.zeros((), np.int64)
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        addresses = addresses[..., None] + np.arange(size, dtype=np.int64) * stride
    return np.broadcast_to(addresses, layout.shape)

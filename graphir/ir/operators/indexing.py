"""NumPy's basic indexing, and gather by one integer array, in terms of movement ops.

Each int or slice in the key becomes a span of one axis. The spans become one op `slice`, after a
`flip` of the axes with a negative step. Then `squeeze` drops the axes indexed by an int, and
`unsqueeze` adds an axis for each None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, ShapeError
from graphir.ops.attributes import axis as axis_of
from graphir.ops.attributes import integer, natural
from graphir.ops.dims import Dim, DimLike, Size, total
from graphir.ops.op import GraphValue

if TYPE_CHECKING:
    from graphir.ir.symbol import Symbol


class _Span(NamedTuple):
    start: Size
    stop: Size
    step: int  # positive; with `flipped` the axis is reversed before slicing
    flipped: bool


def index(x: Symbol, key: Any) -> Symbol:
    """Add `x[key]`: ints, slices, ..., None, or one integer symbol or array on the first axis.

    Negative bounds count from the end, as in NumPy. The runtime checks bounds on symbolic dims when
    the graph runs. Raises ShapeError for too many indices and for an int out of range, GraphError
    for masks and for other keys.
    """
    if x.graph.trace_state.numbers is not None:
        key = x.graph.trace_state.numbers.place(key)
    if isinstance(key, (GraphValue, np.ndarray, list)):
        return _gather(x, key)
    keys = _expand_keys(x, cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,))
    spans: list[_Span] = []
    for k in keys:
        if k is not None:
            spans.append(_span(k, x.shape[len(spans)], len(spans)))
    return _adjust_axes(_apply_spans(x, spans), keys)


def pieces(x: Symbol, sizes: int | list[DimLike], axis: int) -> tuple[Symbol, ...]:
    """Split x into consecutive slices along an axis.

    `sizes` lists the sizes of the slices, or is one size that divides the axis. Raises ShapeError
    unless the sizes add up to the size of the axis.
    """
    axis = axis_of(axis, (x.type,))
    whole = x.shape[axis]
    if not isinstance(sizes, (list, tuple)):
        sizes = natural(sizes)
        if not isinstance(whole, int) or sizes < 1 or whole % sizes:
            raise ShapeError(
                f"an axis of {whole} does not split into equal pieces of {sizes}",
                got=f"axis {axis} of {x.type}",
            )
        dims: list[Size] = [sizes] * (whole // sizes)
    else:
        dims = [Dim.of(size) for size in sizes]
    if total(dims) != whole:
        raise ShapeError(
            f"sizes that sum to {total(dims)} do not split an axis of {whole}",
            got=", ".join(map(str, dims)),
        )
    parts: list[Symbol] = []
    start: Size = 0
    for dim in dims:
        spans = [_Span(0, size, 1, False) for size in x.shape]
        spans[axis] = _Span(start, start + dim, 1, False)
        parts.append(_apply_spans(x, spans))
        start = start + dim
    return tuple(parts)


def _gather(x: Symbol, key: Any) -> Symbol:
    try:
        indices: Any = key if isinstance(key, GraphValue) else np.asarray(key)
    except ValueError:
        raise GraphError(
            "an index must be an int, a slice or an array of integers", got=repr(key)
        ) from None
    if indices.dtype in (DType.bool, np.bool_):
        raise GraphError(
            "the shape of x[mask] would depend on values", fix="use ops.where(mask, x, other)"
        )
    return ops.gather(x, indices, axis=0)


def _expand_keys(x: Symbol, keys: tuple[Any, ...]) -> list[Any]:
    """Expand `...`: return one key for each axis of x, and a None for each new axis."""
    count = sum(1 for k in keys if k is not None and k is not Ellipsis)
    dots = sum(1 for k in keys if k is Ellipsis)
    if count > x.rank or dots > 1:
        raise ShapeError(
            f"too many indices or ellipses for {x.type}", got=f"{count} indices and {dots} ellipses"
        )
    fill = [slice(None)] * (x.rank - count)
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), len(keys))
    return [*keys[:at], *fill, *keys[at + dots :]]


def _span(key: Any, dim: Size, axis: int) -> _Span:
    if isinstance(key, slice):
        return _slice_span(cast(Any, key), dim)
    try:
        at = integer(key)
    except (GraphError, TypeError):
        raise GraphError(
            f"the index of axis {axis} must be an int, a slice, None or ...", got=repr(key)
        ) from None
    if isinstance(dim, int) and not -dim <= at < dim:
        raise ShapeError(f"index {at} is out of range for axis {axis} of size {dim}")
    start = _count_from_start(at, dim)
    return _Span(start, start + 1, 1, False)


def _slice_span(key: slice, dim: Size) -> _Span:
    start, stop = _bound(key.start), _bound(key.stop)
    step = 1 if key.step is None else integer(key.step)
    if step == 0:
        raise ShapeError("the step of a slice is not 0", got="x[::0]")
    if isinstance(dim, int) and not isinstance(start, Dim) and not isinstance(stop, Dim):
        first, last, step = slice(start, stop, step).indices(dim)
        if step > 0:
            return _Span(first, max(first, last), step, False)
        return _Span(dim - 1 - first, max(dim - 1 - first, dim - 1 - last), -step, True)
    if step > 0:
        last = dim if stop is None else _count_from_start(stop, dim)
        return _Span(_count_from_start(start or 0, dim), last, step, False)
    # x[a:b:-k] is flip(x)[n-1-a : n-1-b : k].
    first = 0 if start is None else dim - 1 - _count_from_start(start, dim)
    last = dim if stop is None else dim - 1 - _count_from_start(stop, dim)
    return _Span(first, last, -step, True)


def _bound(bound: Any) -> Size | None:
    if bound is None:
        return None
    return Dim.of(bound) if isinstance(bound, (str, Dim)) else integer(bound)


def _count_from_start(bound: Size, dim: Size) -> Size:
    """Convert a bound that may count from the end to a bound that counts from the start."""
    return dim + bound if isinstance(bound, int) and bound < 0 else bound


def _apply_spans(x: Symbol, spans: list[_Span]) -> Symbol:
    flip_axes = tuple(i for i, span in enumerate(spans) if span.flipped)
    if flip_axes:
        x = ops.flip(x, axis=flip_axes)
    if all(
        s.start == 0 and s.stop == d and s.step == 1 for s, d in zip(spans, x.shape, strict=True)
    ):
        return x
    start, stop, step, _ = zip(*spans, strict=True)
    return ops.slice(x, start=start, stop=stop, step=step)


def _adjust_axes(x: Symbol, keys: list[Any]) -> Symbol:
    """Squeeze the axes indexed by an int, and unsqueeze an axis for each None."""
    axis = 0
    for key in keys:
        if key is None:
            x, axis = ops.unsqueeze(x, axis), axis + 1
        elif isinstance(key, slice):
            axis += 1
        else:
            x = ops.squeeze(x, axis)
    return x

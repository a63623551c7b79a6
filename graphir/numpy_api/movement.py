"""NumPy's functions that move elements, on symbols: joined arrays, changed axes, diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DTypeLike
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber, Ints, Number, Pairs
from graphir.ir.graph import Graph
from graphir.ir.symbol import Symbol
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.ops.attributes import axis as axis_of
from graphir.ops.attributes import axis_within, several
from graphir.ops.dims import Shape, ShapeLike
from graphir.ops.op import Op
from graphir.ops.shape_rules import broadcast_shapes


def flat(x: Any) -> Any:
    """Return all elements of a symbol or an array along a single axis, in row-major order."""
    return ops.reshape(x, (x.size,)) if isinstance(x, Symbol) else np.ravel(x)


def as_symbols(*values: ArrayOrNumber) -> list[Symbol]:
    """Return symbols, arrays and numbers as symbols of one graph.

    Numbers become arrays as in NumPy.
    """
    graph = next(value.graph for value in values if isinstance(value, Symbol))
    values = tuple(value.symbol() if type(value) is TracedNumber else value for value in values)
    return [
        value if isinstance(value, Symbol) else graph.constant(np.asarray(value))
        for value in values
    ]


def axes_of(x: Symbol, axis: Ints) -> list[int]:
    """Return one or several axes, counted from the first; raise ShapeError for a repeated axis."""
    return _distinct(axis, [axis_of(each, (x.type,)) for each in several(axis)])


def _distinct(axis: Ints, axes: list[int]) -> list[int]:
    if len({*axes}) < len(axes):
        raise ShapeError("an axis is repeated", got=f"axis={axis!r}")
    return axes


# -- joining arrays


def _concatenate(
    arrays: Sequence[Any], axis: int | None = 0, *, dtype: DTypeLike | None = None
) -> Symbol:
    if axis is None:
        arrays, axis = list(map(flat, arrays)), 0
    return _join(ops.concat, arrays, axis, dtype)


def _stack(arrays: Sequence[Any], axis: int = 0, *, dtype: DTypeLike | None = None) -> Symbol:
    return _join(ops.stack, arrays, axis, dtype)


def _join(op: Op, arrays: Sequence[Any], axis: int, dtype: DTypeLike | None) -> Symbol:
    if dtype is not None:
        arrays = [array.astype(dtype) for array in arrays]
    return op(list(arrays), axis=axis)


def _along(axis: int, rank: int) -> Callable[..., Symbol]:
    """Return the function that joins arrays of at least `rank` axes along `axis`.

    Vectors join along their only axis where `rank` is 1.
    """

    def join(tup: Sequence[Any], *, dtype: DTypeLike | None = None) -> Symbol:
        arrays = [of_rank(array, rank, rank == 3) for array in tup]
        return _join(ops.concat, arrays, min(axis, len(arrays[0].shape) - 1), dtype)

    return join


def of_rank(x: Any, rank: int, last: bool = False) -> Any:
    """Return an array with new axes in front, up to `rank` axes.

    `last` puts one new axis at the end.
    """
    x = x if isinstance(x, Symbol) else np.asarray(x)
    missing = rank - len(x.shape)
    if missing <= 0:
        return x
    return x.reshape((*(1,) * (missing - last), *x.shape, *(1,) * last))


def _block(arrays: Any) -> Symbol:
    """Join nested lists of blocks: the innermost along the last axis, and so on outwards."""
    depth, first = 0, arrays
    while isinstance(first, list):
        depth, first = depth + 1, cast("Any", first[0])
    rank = max(depth, *(len(np.shape(x)) for x in _blocks(arrays)))

    def join(blocks: Any, level: int) -> Any:
        if isinstance(blocks, list) != (level < depth):
            raise ShapeError("blocks are lists of one depth", got=f"a list at depth {level}")
        if level == depth:
            return of_rank(blocks, rank)
        parts = [join(block, level + 1) for block in cast("list[Any]", blocks)]
        return ops.concat(parts, axis=rank - (depth - level))

    return join(arrays, 0)


def _blocks(arrays: Any) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [block for row in cast("list[Any]", arrays) for block in _blocks(row)]


# -- axes


def _reshape(
    a: Symbol, /, shape: ShapeLike, order: str = "C", *, copy: bool | None = None
) -> Symbol:
    _in_rows("reshape", order)
    return ops.reshape(a, shape)


def _ravel(a: Symbol, order: str = "C") -> Symbol:
    _in_rows("ravel", order)
    return flat(a)


def _in_rows(name: str, order: str) -> None:
    if order not in ("C", "K", "A"):
        raise GraphError(
            f"{name} supports row-major order alone", got=f"order={order!r}", fix="transpose first"
        )


def _transpose(a: Symbol, axes: Ints | None = None) -> Symbol:
    return a.T if axes is None else ops.permute(a, axes)


def _swapaxes(a: Symbol, axis1: int, axis2: int) -> Symbol:
    return ops.transpose(a, axis1, axis2)


def moveaxis(a: Symbol, source: Ints, destination: Ints) -> Symbol:
    """Return a symbol with axes moved to other positions; the remaining axes keep their order."""
    sources, to = axes_of(a, source), axes_of(a, destination)
    if len(sources) != len(to):
        raise ShapeError(
            "source and destination must have as many distinct axes",
            got=f"{source!r} and {destination!r}",
        )
    order = [axis for axis in range(a.rank) if axis not in sources]
    for place, axis in sorted(zip(to, sources, strict=True)):
        order.insert(place, axis)
    return ops.permute(a, order)


def squeeze(a: Symbol, axis: Ints | None = None) -> Symbol:
    """Return a symbol without its axes of size 1, or without the named axes."""
    axes = [i for i, n in enumerate(a.shape) if n == 1] if axis is None else axes_of(a, axis)
    for each in sorted(axes, reverse=True):
        a = ops.squeeze(a, each)
    return a


def _expand_dims(a: Symbol, axis: Ints) -> Symbol:
    axes = several(axis)
    rank = a.rank + len(axes)
    for each in sorted(_distinct(axis, [axis_within(each, rank) for each in axes])):
        a = ops.unsqueeze(a, each)
    return a


def broadcast_to(array: Any, shape: Any) -> Any:
    """Return a symbol or an array, broadcast to a shape; the symbol itself if it has the shape."""
    if isinstance(array, Symbol):
        return array if array.shape == shape else ops.broadcast_to(array, shape)
    return np.broadcast_to(array, shape)


def _broadcast_to(array: Symbol, shape: ShapeLike) -> Symbol:
    return ops.broadcast_to(array, shape)


def _sliding_windows(
    x: Symbol,
    window_shape: Ints,
    axis: Ints | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Symbol:
    """Return all windows along axes; the last axes run within a window."""
    window = several(window_shape)
    over = range(x.rank) if axis is None else [axis_of(each, (x.type,)) for each in several(axis)]
    if len(window) != len(over):
        raise ShapeError(
            "each axis takes the size of a window", got=f"window_shape={window_shape}, axis={axis}"
        )
    shape = [*x.shape]
    for each, size in zip(over, window, strict=True):
        shape[each] = positions = shape[each] - (size - 1)
        if isinstance(positions, int) and positions < 1:
            raise ShapeError(f"the window is longer than axis {each}", got=f"{size} of {x.type}")
    steps = [[int(k == each) for k in range(x.rank)] for each in (*range(x.rank), *over)]
    return ops.affine_view(x, shape=(*shape, *window), origin=(0,) * x.rank, steps=steps)


# -- elements


def _flip(m: Symbol, axis: Ints | None = None) -> Symbol:
    return ops.flip(m, axis=axis)


def _flipud(m: Symbol) -> Symbol:
    return ops.flip(m, axis=0)


def _fliplr(m: Symbol) -> Symbol:
    return ops.flip(m, axis=1)


def _copy(a: Symbol) -> Symbol:
    return a  # a symbol never changes


def _roll(a: Symbol, shift: Any, axis: Ints | None = None) -> Symbol:
    if axis is None:
        return ops.reshape(ops.roll(flat(a), shift=shift, axis=0), a.shape)
    axes, shifts = several(axis), several(shift)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise ShapeError(
            "roll needs a shift for each axis", got=f"{len(shifts)} shifts and {len(axes)} axes"
        )
    for by, each in zip(shifts, axes, strict=True):
        a = ops.roll(a, shift=by, axis=each)
    return a


def _pad(
    array: Symbol, pad_width: Pairs, mode: str = "constant", *, constant_values: Number = 0
) -> Symbol:
    if mode != "constant":
        raise GraphError("pad supports mode='constant' alone", got=f"mode={mode!r}")
    return ops.pad(array, padding=pad_width, value=constant_values)


def _tile(A: Symbol, reps: Ints) -> Symbol:  # noqa: N803 -- NumPy's name
    counts = several(reps)
    x = of_rank(A, len(counts))
    return ops.tile(x, (*(1,) * (len(x.shape) - len(counts)), *counts))


def _repeat(a: Symbol, repeats: int, axis: int | None = None) -> Symbol:
    return ops.repeat(flat(a), repeats, 0) if axis is None else ops.repeat(a, repeats, axis)


def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Symbol:
    """Return the slices at `indices` along an axis; without an axis, the elements at `indices`."""
    a, indices = as_symbols(a, indices) if mode != "raise" else (a, indices)
    indices = indices if isinstance(indices, Symbol) else np.asarray(indices)
    if mode != "raise":
        size: Any = a.size if axis is None else a.shape[axis_of(axis, (a.type,))]
        wraps = mode == "wrap"
        indices = indices % size if wraps else ops.minimum(ops.maximum(indices, 0), size - 1)
    return (
        ops.gather(flat(a), indices, axis=0) if axis is None else ops.gather(a, indices, axis=axis)
    )


def _take_along_axis(
    arr: Symbol | NDArray[Any], indices: Symbol | NDArray[Any], axis: int | None = -1
) -> Symbol:
    if axis is None:
        return ops.take_along(flat(arr), indices, axis=0)
    at = axis_within(axis, len(arr.shape))
    rest = broadcast_shapes([(*x.shape[:at], 1, *x.shape[at + 1 :]) for x in (arr, indices)])
    arr, indices = (
        broadcast_to(x, (*rest[:at], x.shape[at], *rest[at + 1 :])) for x in (arr, indices)
    )
    return ops.take_along(arr, indices, axis=at)


# -- diagonals


def diagonal(a: Symbol, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbol:
    """Return the diagonal along a new last axis, as NumPy does.

    The function raises ShapeError if the sizes do not determine the diagonal's length.
    """
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    a = a[..., max(-offset, 0) :, max(offset, 0) :]
    rows, columns = a.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        rows = columns = min(rows, columns)
        a = a[..., :rows, :columns]
    if rows != columns:
        raise ShapeError("the diagonal needs axes of known sizes", got=f"{rows} and {columns}")
    places = ops.unsqueeze(a.graph.range(rows, dtype="int64"), 1)
    return ops.squeeze(_take_along_axis(a, ops.broadcast_to(places, (*a.shape[:-1], 1))), -1)


def _trace(
    a: Symbol, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None
) -> Symbol:
    return ops.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def _last_diagonal(x: Symbol, *, offset: int = 0) -> Symbol:
    return diagonal(x, offset, -2, -1)


def _last_trace(x: Symbol, *, offset: int = 0, dtype: DTypeLike | None = None) -> Symbol:
    return _trace(x, offset, -2, -1, dtype)


def _places(graph: Graph, shape: Shape) -> tuple[Symbol, Symbol]:
    """Return the row numbers, as a column vector, and the column numbers of a matrix shape."""
    rows, columns = (graph.range(size, dtype="int64") for size in shape)
    return ops.unsqueeze(rows, 1), columns


def _diagflat(v: Symbol, k: int = 0) -> Symbol:
    x = ops.pad(flat(v), padding=((max(k, 0), max(-k, 0)),)) if k else flat(v)
    rows, columns = _places(x.graph, x.shape * 2)
    return ops.where(rows + k == columns, x, x.graph.full(0, (), x.dtype))


def _diag(v: Symbol, k: int = 0) -> Symbol:
    if v.rank == 1:
        return _diagflat(v, k)
    if v.rank != 2:
        raise ShapeError("diag takes a vector or a matrix", got=str(v.type))
    return diagonal(v, k)


def _triangle(lower: bool) -> Callable[..., Symbol]:
    """Return the function that keeps the lower or the upper triangle, with the diagonal.

    Of a vector it is the triangle of the matrix whose rows are all the vector.
    """

    def keep(m: Symbol, k: int = 0) -> Symbol:
        if not m.rank:
            raise ShapeError("a triangle needs at least one axis", got=str(m.type))
        rows, columns = _places(m.graph, m.shape[-2:] if m.rank > 1 else m.shape * 2)
        there = rows + k >= columns if lower else rows + k <= columns
        return ops.where(there, m, m.graph.full(0, (), m.dtype))

    return keep


# -- what a run demands of values


def checked(places: Symbol, valid: Symbol, size: int) -> Symbol:
    """Return places in an axis of a size; the run raises an error where `valid` is false."""
    line = places.graph.range(size, dtype="int64")
    return ops.gather(line, ops.where(valid, places, size), axis=0)


def demanded(x: Symbol, valid: Symbol) -> Symbol:
    """Return x; the run raises an error unless `valid`, a bool, is true."""
    return ops.gather(ops.unsqueeze(x, 0), ops.where(valid, 0, 1), axis=0)


MOVEMENT: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("concatenate", "concat"), _concatenate),
    "stack": _stack,
    "block": _block,
    "hstack": _along(1, 1),
    "vstack": _along(0, 2),
    "dstack": _along(2, 3),
    "reshape": _reshape,
    "ravel": _ravel,
    **dict.fromkeys(("transpose", "permute_dims"), _transpose),
    **dict.fromkeys(("matrix_transpose", "linalg.matrix_transpose"), ops.transpose),
    "swapaxes": _swapaxes,
    "moveaxis": moveaxis,
    "squeeze": squeeze,
    "expand_dims": _expand_dims,
    "broadcast_to": _broadcast_to,
    "lib.stride_tricks.sliding_window_view": _sliding_windows,
    "flip": _flip,
    "flipud": _flipud,
    "fliplr": _fliplr,
    "roll": _roll,
    "pad": _pad,
    "tile": _tile,
    "repeat": _repeat,
    "take": take,
    "take_along_axis": _take_along_axis,
    "diagonal": diagonal,
    "linalg.diagonal": _last_diagonal,
    "trace": _trace,
    "linalg.trace": _last_trace,
    "diag": _diag,
    "diagflat": _diagflat,
    "tril": _triangle(True),
    "triu": _triangle(False),
    "copy": _copy,
}
"""The implementations by the function's path in numpy."""

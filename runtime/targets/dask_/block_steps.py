"""Steps of ops that are not elementwise: chunks of their operands, tasks on blocks, movement.

Reductions over axes of several blocks are Dask's trees of partial results, and its scans. Partial
results have the dtype of the operand, which is the accumulator of a lowered op.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.conversions import convert
from graphir.ops import CATALOGUE
from graphir.public import DType, Symbol
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.runtime.targets.dask_.regions import (
    Arrays,
    BlockPiece,
    ControlTask,
    Labels,
    dask_array,
    meta,
    numbered,
    quiet,
    rechunked,
    single,
    without_elements,
)
from graphir.runtime.targets.emission import emitter
from graphir.semantics import data_movement as movement
from graphir.semantics.data_movement import Sizes
from graphir.semantics.evaluation import settings_of
from graphir.semantics.kernels import KERNELS

# -- reductions

Axes: TypeAlias = tuple[int, ...]
Function: TypeAlias = Callable[..., Any]


def reduced(piece: BlockPiece, symbol: Symbol, values: Arrays) -> Any:
    """Return an op along axes: one Program if each axis is one block, else partial results."""
    x, axis = values[symbol.args[0]], symbol.attrs["axis"]
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if x.size == 0 or all(x.numblocks[each] == 1 for each in axes):
        return piece.arrays(values)[0]
    return PARTIAL[symbol.op.name](x, symbol, axes)


def contracted(piece: BlockPiece, symbol: Symbol, values: Arrays) -> Any:
    """Return a contraction: by one Program if each summed axis is one block.

    Otherwise tasks multiply block by block, and a tree of tasks adds the products.
    """
    sum_labels = tuple(
        dict.fromkeys(each for _, own in piece.operands for each in own if each[0] == "k")
    )
    if all(
        values[each].numblocks[axis] == 1
        for each, own in piece.operands
        for axis, label in enumerate(own)
        if label in sum_labels
    ):
        return piece.arrays(values)[0]
    task = partial(_lifted, piece.task, len(sum_labels))
    products = piece.blocks(task, values, symbol.dtype.storage, sum_labels)
    return tree(products, symbol, tuple(range(len(sum_labels))), KERNELS["sum"])


# -- functions of tasks


def _lifted(task: Function, axes: int, *blocks: NDArray[Any]) -> Any:
    return np.expand_dims(task(*blocks), tuple(range(axes)))


def _folding(
    function: Function, x: NDArray[Any], axis: Axes, keepdims: bool, computing_meta: bool = False
) -> Any:
    """Run a step of a tree; for Dask's probe of the `meta`, return x, as `tree` passes a meta."""
    if computing_meta:
        return x
    with np.errstate(all="ignore"):
        return function(x, axis=axis, keepdims=keepdims)


def _mean(sums: NDArray[Any], axis: Axes, keepdims: bool, count: int) -> Any:
    total = KERNELS["sum"](sums, axis=axis, keepdims=keepdims)
    return np.true_divide(total, np.intp(count), out=total, casting="unsafe")


def _moments(x: NDArray[Any], axis: Axes, keepdims: bool) -> Any:
    """Return the moments of each row: the count, the mean, and the sum of |x - mean|**2."""
    mean = KERNELS["mean"](x, axis=axis, keepdims=True)
    squares = _squared(x - mean)
    fields = [("count", np.int64), ("mean", mean.dtype), ("squares", squares.dtype)]
    moments: Any = np.empty(mean.shape, fields)
    moments["count"] = math.prod(x.shape[i] for i in axis)
    moments["mean"] = mean
    moments["squares"] = KERNELS["sum"](squares, axis=axis, keepdims=True)
    return moments


def _squared(x: Any) -> Any:
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def _merge_moments(parts: NDArray[Any], axis: Axes, keepdims: bool) -> Any:
    """Return the combined moments of all parts along axes (Chan, Golub and LeVeque, 1979)."""
    shape = tuple(1 if i in axis else size for i, size in enumerate(parts.shape))
    moments: Any = np.empty(shape, parts.dtype)
    moments["count"] = np.sum(parts["count"], axis, keepdims=True)
    share = parts["count"] / moments["count"]
    moments["mean"] = np.sum(parts["mean"] * share, axis, keepdims=True)
    between = _squared(parts["mean"] - moments["mean"]) * parts["count"]
    moments["squares"] = np.sum(parts["squares"] + between, axis, keepdims=True)
    return moments


def _spread(parts: NDArray[Any], axis: Axes, keepdims: bool, correction: int, root: bool) -> Any:
    moments = _merge_moments(parts, axis, keepdims)
    count = np.maximum(moments["count"] - correction, 0)
    variance = (moments["squares"] / count).astype(moments["squares"].dtype)
    result = np.sqrt(variance) if root else variance
    return result if keepdims else result.squeeze(axis)


# -- combination of partial results by Dask


def tree(
    x: Any, symbol: Symbol, axes: Axes, chunk: Function, aggregate: Any = None, combine: Any = None
) -> Any:
    """Return Dask's reduction: a tree of tasks combines a partial result of each block.

    `chunk` reduces a block, `combine` combines partial results, and `aggregate` makes the final
    result; the last two default to `chunk`.
    """
    keepdims = bool(symbol.attrs.get("keepdims"))
    dtype, rank = symbol.dtype.storage, x.ndim - len(axes) * (not keepdims)
    return dask_array().reduction(
        x,
        chunk=partial(_folding, chunk),
        combine=partial(_folding, combine or chunk),
        aggregate=partial(_folding, aggregate or chunk),
        axis=axes,
        keepdims=keepdims,
        dtype=dtype,
        meta=meta(dtype, rank),
        concatenate=True,
        name=symbol.op.name,
    )


def _folded(x: Any, symbol: Symbol, axes: Axes) -> Any:
    """Return a reduction that combines its partial results by the same function."""
    return tree(x, symbol, axes, KERNELS[symbol.op.name])


def _averaged(x: Any, symbol: Symbol, axes: Axes) -> Any:
    count = math.prod(x.shape[axis] for axis in axes)
    return tree(x, symbol, axes, KERNELS["sum"], partial(_mean, count=count), KERNELS["sum"])


def _varied(x: Any, symbol: Symbol, axes: Axes) -> Any:
    root, correction = symbol.op.name == "std", symbol.attrs["correction"]
    last = partial(_spread, correction=correction, root=root)
    return tree(x, symbol, axes, _moments, last, _merge_moments)


def _located(x: Any, symbol: Symbol, axes: Axes) -> Any:
    """Return the index of the first extreme value in row-major order.

    Without the flattening Dask would take the first block's.
    """
    axis, keeps = symbol.attrs["axis"], symbol.attrs["keepdims"]
    locate = getattr(dask_array(), symbol.op.name)
    if axis is not None or x.ndim == 1:
        return locate(x, axis=axes[0], keepdims=keeps)
    return locate(x.reshape(-1), axis=0).reshape((1,) * x.ndim if keeps else ())


def _scanned(x: Any, symbol: Symbol, axes: Axes) -> Any:
    """Return the scan: each block's own scan, joined with the end of the block before it."""
    join, start = SCANS[symbol.op.name]
    scan = dask_array().reductions.cumreduction
    own, dtype = quiet(KERNELS[symbol.op.name]), symbol.dtype.storage
    return scan(own, quiet(join), start, x, axis=axes[0], dtype=dtype)


SCANS = {"cumulative_sum": (operator.add, 0), "cumulative_prod": (operator.mul, 1)}
PARTIAL: Mapping[str, Callable[[Any, Symbol, Axes], Any]] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all"), _folded),
    "mean": _averaged,
    **dict.fromkeys(("var", "std"), _varied),
    **dict.fromkeys(("argmax", "argmin"), _located),
    **dict.fromkeys(SCANS, _scanned),
}


# -- steps


def solid(x: Any) -> Any:
    """Return the array without empty blocks, over which max and scans are undefined."""
    chunks = tuple(tuple(size for size in axis if size) or (0,) for axis in x.chunks)
    return x if chunks == x.chunks and x.size else rechunked(x, chunks)


def as_dask(array: NDArray[Any]) -> Any:
    """Return a NumPy array as a Dask array."""
    return dask_array().from_array(array, cut(array.shape, array.dtype))


# -- parts and repetitions


def _reshape(x: Any, shape: Sizes) -> Any:
    if not x.size:
        return as_dask(np.empty(shape, x.dtype))
    try:
        return x.reshape(shape)
    except NotImplementedError:  # of several blocks whose axes split unevenly
        return rechunked(x, -1).reshape(shape)


def _broadcast_to(x: Any, shape: Sizes) -> Any:
    """Return x broadcast to a shape, with the repeated axes in Dask's default chunks.

    The broadcast blocks are views, but the results of later ops need memory.
    """
    if x.shape == shape:
        return x
    lead = len(shape) - x.ndim
    keeps = [i >= lead and x.shape[i - lead] == size for i, size in enumerate(shape)]
    chunks = tuple(x.chunks[i - lead] if keep else "auto" for i, keep in enumerate(keeps))
    return dask_array().broadcast_to(x, shape, cut(shape, x.dtype, chunks))


def _rebind(x: Any, shape: Sizes) -> Any:
    movement.rebind(x, shape)
    return x


def _slice(x: Any, start: Sizes, stop: Sizes, step: Sizes) -> Any:
    return movement.sliced(x, start, stop, step)


def _slice_update(x: Any, updates: Any, start: Sizes, stop: Sizes, step: Sizes) -> Any:
    shape = movement.sliced(x, start, stop, step).shape
    if not x.ndim or 0 in shape:
        return x if x.ndim else updates
    result = x.copy()
    result[tuple(map(slice, start, stop, step))] = _broadcast_to(updates, shape)
    return result


def _at_indices(
    task: Callable[..., Any], x: Any, updates: Any, indices: Any, axis: int | None
) -> Any:
    """Return x with updates at indices, by a kernel; one task takes all operands whole."""
    arguments: list[Any] = []
    for name, array in zip("xui", (x, updates, indices), strict=True):
        labels = [f"{name}{i}" for i in range(array.ndim)]
        arguments += [rechunked(array, -1) if labels else array, labels]
    settings: dict[str, Any] = {"axis": axis, "dtype": x.dtype, "meta": meta(x.dtype, x.ndim)}
    return dask_array().blockwise(task, arguments[1], *arguments, concatenate=True, **settings)


def _flip(x: Any, axis: Sizes) -> Any:
    return x[tuple(slice(None, None, -1 if i in axis else None) for i in range(x.ndim))]


def _pad(x: Any, padding: tuple[tuple[int, int], ...], value: ArrayLike) -> Any:
    for axis, sides in enumerate(padding):
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sides]
        before, after = (_full(value, shape) for shape in shapes)
        x = _concat(before, x, after, axis=axis)
    return x


def _full(value: ArrayLike, shape: Sizes) -> Any:
    return _broadcast_to(as_dask(np.asarray(value)), shape)


def _tile(x: Any, repeats: Sizes) -> Any:
    for axis, count in enumerate(repeats):
        x = _concat(*[x] * count, axis=axis) if count else _none(x, axis)
    return x


def _repeat(x: Any, repeats: int, axis: int) -> Any:
    if not repeats or not x.size:
        shape = (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :])
        return as_dask(np.empty(shape, x.dtype))
    return dask_array().repeat(x, repeats, axis)


def _none(x: Any, axis: int) -> Any:
    return x[(*[slice(None)] * axis, slice(0, 0))]


def _concat(*arrays: Any, axis: int) -> Any:
    return solid(dask_array().concatenate(arrays, axis))


def _stack(*arrays: Any, axis: int) -> Any:
    return dask_array().stack(arrays, axis)


# -- creation, block by block


def _range(dtype: DType, start: int, step: int, size: int) -> Any:
    make = partial(movement.part_of_range, dtype, start, step)
    for end in {0, size - 1} if size else ():
        make(end, 1)  # raises an error now that otherwise a block would raise
    return _make_blocks((size,), make(0, 0).dtype, partial(_ranged, make))


def _ranged(make: Callable[..., Any], span: tuple[int, int]) -> Any:
    return make(span[0], span[1] - span[0])


def _eye(dtype: DType, rows: int, columns: int, offset: int) -> Any:
    return _make_blocks((rows, columns), dtype.storage, partial(_diagonal, dtype, offset))


def _diagonal(dtype: DType, offset: int, down: tuple[int, int], across: tuple[int, int]) -> Any:
    rows, columns = (end - start for start, end in (down, across))
    return movement.eye(dtype, rows, columns, offset + down[0] - across[0])


def _make_blocks(shape: Sizes, dtype: DTypeLike, make: Callable[..., Any]) -> Any:
    """Return an array whose blocks are `make(*spans)`, with start and end on each axis as spans."""
    return dask_array().map_blocks(
        partial(_block_at, make),
        chunks=cut(shape, dtype),
        dtype=dtype,
        meta=meta(dtype, len(shape)),
    )


def _block_at(make: Callable[..., Any], block_info: Any = None) -> Any:
    with np.errstate(all="ignore"):
        return make(*block_info[None]["array-location"])


def cut(shape: Sizes, dtype: DTypeLike, chunks: Sequence[Any] = ()) -> Any:
    """Return Dask's default chunks; an empty array, for which Dask finds none, is one chunk.

    `chunks` has given chunks for some axes and "auto" for the others.
    """
    auto = "auto" if 0 not in shape else -1
    specification = [
        auto if chunk == "auto" else chunk for chunk in chunks or ("auto",) * len(shape)
    ]
    return dask_array().core.normalize_chunks(tuple(specification), shape, dtype=dtype)


MOVES: Mapping[str, Callable[..., Any]] = {
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "rebind": _rebind,
    "transpose": lambda x, axis1, axis2: x.swapaxes(axis1, axis2),
    "permute": lambda x, dims: x.transpose(dims),
    "squeeze": lambda x, axis: x.squeeze(axis),
    "unsqueeze": lambda x, axis: x[(*[slice(None)] * axis, None)],
    "index_update": partial(_at_indices, movement.index_update),
    "index_add": partial(_at_indices, movement.index_add),
    "slice": _slice,
    "slice_update": _slice_update,
    "flip": _flip,
    "roll": lambda x, shift, axis: dask_array().roll(x, shift, axis),
    "pad": _pad,
    "tile": _tile,
    "repeat": _repeat,
    "concat": _concat,
    "stack": _stack,
    "shape_of": lambda x: as_dask(np.array(x.shape, np.int64)),
    "constant": lambda value: as_dask(value),
    "full": _full,
    "range": _range,
    "eye": _eye,
}


class Movement:
    """A movement or creation op, which dask.array executes."""

    def __init__(self, symbol: Symbol) -> None:
        self.needs, self.results = symbol.args, (symbol,)
        self.move = emitter("Dask", MOVES, symbol)

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the result. Raises ExecutionError if a shape contradicts an assertion."""
        (symbol,) = self.results
        tf32, operands = symbol.graph.tf32, [values[arg] for arg in self.needs]
        settings = settings_of(symbol.op, symbol.dtype, symbol.attrs, sizes, tf32)
        try:
            result = self.move(*operands, **settings)
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol) from None
        if operands and not result.size:
            result = without_elements(result.shape, result.dtype, operands)
        return [_as(result, symbol.dtype, tf32)]


class Along:
    """An op over axes: one Program if each axis lies in one block, else the function `parts`."""

    def __init__(self, symbol: Symbol, piece: BlockPiece, parts: Callable[..., Any]) -> None:
        self.needs, self.results = symbol.args, (symbol,)
        self.piece, self.parts = piece, parts

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the result."""
        (symbol,) = self.results
        return [_as(self.parts(self.piece, symbol, values), symbol.dtype, symbol.graph.tf32)]


def _as(x: Any, dtype: DType, tf32: str) -> Any:
    """Return x in the dtype of the result; indices, for example, are int64 at first."""
    if x.dtype == dtype.storage:
        return x
    function = partial(convert, source=DType.from_numpy(x.dtype), target=dtype, tf32=tf32)
    return x.map_blocks(quiet(function), dtype=dtype.storage, meta=meta(dtype.storage, x.ndim))


BlockStep: TypeAlias = Movement | Along | BlockPiece | ControlTask
"""A step: `compute` returns the arrays of its `results` from those of the symbols it `needs`."""


# -- labels: axes with one label have the same chunks. A label that the result lacks is a whole
#    axis, unless the label begins with k: the op sums over such an axis.

Cut: TypeAlias = "tuple[Labels, ...]"


def _alone(symbol: Symbol) -> Cut:
    return (numbered(symbol.args[0]),)


def _normed(symbol: Symbol) -> Cut:
    labels = numbered(symbol.args[0])
    return labels, labels[-1:], labels[-1:]


def _looked_up(symbol: Symbol) -> Cut:
    return numbered(symbol.args[0], "s"), numbered(symbol.args[1])


def _at_places(symbol: Symbol) -> Cut:
    """Return the labels of the data, and of operands with the same axes except along one axis."""
    labels, axis = numbered(symbol.args[0]), symbol.attrs["axis"]
    others = (*labels[:axis], "places", *labels[axis + 1 :])
    return labels, *[others] * (len(symbol.args) - 1)


def _of_matmul(symbol: Symbol) -> Cut:
    x, y = (numbered(arg)[:-2] for arg in symbol.args)
    left = (*x, "row", "k") if symbol.args[0].rank > 1 else ("k",)
    right = (*y, "k", "column") if symbol.args[1].rank > 1 else ("k",)
    return left, right


def _of_tensordot(symbol: Symbol) -> Cut:
    x, y = (list(numbered(arg, name)) for arg, name in zip(symbol.args, "ab", strict=True))
    for place, (i, j) in enumerate(zip(*symbol.attrs["axes"], strict=True)):
        x[i] = y[j] = f"k{place}"
    return tuple(x), tuple(y)


LABELS: Mapping[str, Callable[[Symbol], Cut]] = {
    **dict.fromkeys(PARTIAL, _alone),
    **dict.fromkeys(("softmax", "logsoftmax", "sort", "argsort"), _alone),
    "layer_norm": _normed,
    "searchsorted": _looked_up,
    "gather": _looked_up,
    **dict.fromkeys(("take_along", "scatter"), _at_places),
    "matmul": _of_matmul,
    "tensordot": _of_tensordot,
    "outer": lambda symbol: (("a",), ("b",)),
}
_WHOLE = (*SCANS, "softmax", "logsoftmax", "sort", "argsort", "layer_norm", "scatter")
"""Ops that take an axis whole which their result has too."""

COMPOSITES = frozenset(CATALOGUE) - {"affine_view", "item", "matmul", "numpy_sum"}
"""The composite ops that stay whole: a Program or dask.array computes them."""


def step_of(symbol: Symbol) -> BlockStep:
    """Return the step of a non-elementwise op. Raises TargetError for an op that Dask lacks."""
    name = symbol.op.name
    if name not in LABELS:
        return Movement(symbol)
    labels = LABELS[name](symbol)
    axis: int = symbol.attrs.get("axis", -1)
    piece = single(symbol, labels, labels[0][axis] if name in _WHOLE else "")
    if name in PARTIAL:
        return Along(symbol, piece, reduced)
    return Along(symbol, piece, contracted) if symbol.op.kind == "contraction" else piece

"""Which ops the methods of ndarray are that ask no ufunc.

Each is called `(recorder, x, values, *args, **kwargs)` with the symbol of the array, its values and
the arguments of the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import DType, Op, Symbol, ops
from runtime.recording.recorder import Recorder
from runtime.recording.steps import Pick, UnrecordedError
from runtime.recording.ufunc_methods import axis_of
from runtime.recording.values import plains

Symbolic = Callable[..., Symbol]


# -- reductions that are no ufunc's


def _averaging(op: Op) -> Symbolic:
    def enter(
        recorder: Recorder,
        x: Symbol,
        values: Any,
        axis: Any = None,
        dtype: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        where: Any = True,
        **_: Any,
    ) -> Symbol:
        if where is not True or type(ddof) is not int:
            raise UnrecordedError(f"{op.name} has neither where= nor a fraction of ddof")
        if dtype is not None:
            x = recorder.cast(x, DType.from_numpy(dtype), "x", op.name)
        more = {} if op is ops.mean else {"correction": ddof}
        return recorder.emit(op, (x,), axis=axis_of(axis, x.rank), keepdims=bool(keepdims), **more)

    return enter


def averaged(
    recorder: Recorder, x: Symbol, values: Any, axis: Any = None, *args: Any, **kw: Any
) -> Symbol:
    """Of mean."""
    names = ("dtype", "out", "keepdims")
    return _averaging(ops.mean)(
        recorder, x, values, axis, **dict(zip(names, args, strict=False)), **kw
    )


def spread(op: Op) -> Symbolic:
    """Of var and std."""

    def enter(
        recorder: Recorder, x: Symbol, values: Any, axis: Any = None, *args: Any, **kw: Any
    ) -> Symbol:
        kw |= dict(zip(("dtype", "out", "ddof", "keepdims"), args, strict=False))
        kw["ddof"] = kw.pop("correction", kw.get("ddof", 0))
        kw.pop("mean", None)
        return _averaging(op)(recorder, x, values, axis, **kw)

    return enter


def locating(op: Op) -> Symbolic:
    """Of argmax and argmin."""

    def enter(
        recorder: Recorder,
        x: Symbol,
        values: Any,
        axis: Any = None,
        out: Any = None,
        *,
        keepdims: bool = False,
    ) -> Symbol:
        at = None if axis is None else int(axis) % x.rank
        return recorder.emit(op, (x,), axis=at, keepdims=bool(keepdims), dtype=None)

    return enter  # fmt: skip


def traced_diagonal(
    recorder: Recorder, x: Symbol, values: Any, offset: int = 0, axis1: int = 0, axis2: int = 1,
    dtype: Any = None, out: Any = None,
) -> Symbol:  # fmt: skip
    """Of trace."""
    diagonal = Pick(places_of(x).diagonal(offset, axis1, axis2)).forward(recorder, x)
    to = None if dtype is None else DType.from_numpy(dtype)
    return recorder.emit(ops.sum, (diagonal,), axis=(diagonal.rank - 1,), keepdims=False, dtype=to)


def places_of(x: Symbol) -> Any:
    """The place of each element in row-major order."""
    shape: Any = x.shape
    line: Any = np.arange(math.prod(shape))
    return line.reshape(shape)


# -- order


def sorting(
    recorder: Recorder, x: Symbol, values: Any, axis: Any = -1, *args: Any, **kw: Any
) -> Symbol:
    """Of argsort, where NumPy leaves equal values in their order, as the op does."""
    if not np.array_equal(values.argsort(axis, *args, **kw), values.argsort(axis, kind="stable")):
        raise UnrecordedError("equal values are not in their order")
    flat = recorder.reshaped(x, (x.size,)) if axis is None else x
    at = flat.rank - 1 if axis is None else int(axis) % max(x.rank, 1)
    return recorder.emit(ops.argsort, (flat,), axis=at, descending=False, dtype=None)


def searched(
    recorder: Recorder, x: Symbol, values: Any, v: Any, side: str = "left", sorter: Any = None
) -> Symbol:
    """Of searchsorted."""
    if sorter is not None:
        x = recorder.emit(ops.gather, (x, recorder.symbol(sorter)), axis=0)
    side = "right" if side[0] in "rR" else "left"
    args = x, recorder.symbol(v)
    return recorder.emit(ops.searchsorted, args, side=side, dtype=None)


# -- moved elements


def taken(
    recorder: Recorder, x: Symbol, values: Any, indices: Any, axis: Any = None, out: Any = None,
    mode: str = "raise",
) -> Symbol:  # fmt: skip
    """Of take."""
    found = recorder.symbol(indices)
    if mode != "raise":
        raise UnrecordedError("indices out of range have no symbol")
    if axis is None:
        return recorder.emit(ops.gather, (recorder.reshaped(x, (x.size,)), found), axis=0)
    return recorder.emit(ops.gather, (x, found), axis=int(axis) % x.rank)


def by_places(name: str) -> Symbolic:
    """Any method that only moves elements: what it does to their places."""

    def enter(recorder: Recorder, x: Symbol, values: Any, *args: Any, **kwargs: Any) -> Symbol:
        moved = getattr(places_of(x), name)(*plains(args), **plains(kwargs))
        return Pick(np.asarray(moved)).forward(recorder, x)

    return enter


def dotted(recorder: Recorder, x: Symbol, values: Any, b: Any, out: Any = None) -> Symbol:
    """Of dot."""
    return product(recorder, x, recorder.symbol(b))


def product(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
    """np.dot of two symbols."""
    if not x.rank or not y.rank:
        return recorder.emit(ops.multiply, (x, y))
    if y.rank < 3 and x.rank < 3:
        return recorder.emit(ops.matmul, (x, y))
    axes = (x.rank - 1,), (max(y.rank - 2, 0),)
    return recorder.emit(ops.tensordot, (x, y), axes=axes)

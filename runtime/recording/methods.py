"""The methods of ndarray that compute or copy without asking a ufunc, recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import DType, Op, Symbol, ops
from runtime.recording.indexing import Flat, get, put
from runtime.recording.recorder import Recorder
from runtime.recording.steps import Pick, Reshape, UnrecordedError
from runtime.recording.ufuncs import axis_of, store
from runtime.recording.values import Trace, Traced, active, plains, trace_of, view_of

Symbolic = Callable[..., Symbol]


def traced(name: str, symbolic: Symbolic) -> Callable[..., Any]:
    """The method of that name: NumPy's result, and what `symbolic` enters for it.

    `symbolic(recorder, x, real, *args, **kwargs)` has the symbol of the array and the result.
    """

    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        real = getattr(self.plain, name)(*plains(args), **plains(kwargs))
        if recorder is None:
            return real if kwargs.get("out") is None else kwargs["out"]
        recorder.locate()
        out = kwargs.pop("out", None)

        def enter() -> Symbol:
            return symbolic(recorder, trace_of(self, recorder).read(), real, *args, **kwargs)

        if out is None:
            return recorder.outcome(name, real, enter)
        store(recorder, name, out, enter)
        return out

    method.__name__ = name
    return method


# -- reductions that are no ufunc's


def _averaging(op: Op) -> Symbolic:
    def enter(
        recorder: Recorder,
        x: Symbol,
        real: Any,
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


def _mean(recorder: Recorder, x: Symbol, real: Any, axis: Any = None, *args: Any, **kw: Any) -> Any:
    names = ("dtype", "out", "keepdims")
    return _averaging(ops.mean)(
        recorder, x, real, axis, **dict(zip(names, args, strict=False)), **kw
    )


def _spread(op: Op) -> Symbolic:
    def enter(
        recorder: Recorder, x: Symbol, real: Any, axis: Any = None, *args: Any, **kw: Any
    ) -> Symbol:
        kw |= dict(zip(("dtype", "out", "ddof", "keepdims"), args, strict=False))
        kw["ddof"] = kw.pop("correction", kw.get("ddof", 0))
        kw.pop("mean", None)
        return _averaging(op)(recorder, x, real, axis, **kw)

    return enter


def _locating(op: Op) -> Symbolic:
    def enter(
        recorder: Recorder,
        x: Symbol,
        real: Any,
        axis: Any = None,
        out: Any = None,
        *,
        keepdims: bool = False,
    ) -> Symbol:
        at = None if axis is None else int(axis) % x.rank
        return recorder.emit(op, (x,), axis=at, keepdims=bool(keepdims), dtype=None)

    return enter  # fmt: skip


def _trace(
    recorder: Recorder, x: Symbol, real: Any, offset: int = 0, axis1: int = 0, axis2: int = 1,
    dtype: Any = None, out: Any = None,
) -> Symbol:  # fmt: skip
    diagonal = Pick(_places(x).diagonal(offset, axis1, axis2)).forward(recorder, x)
    to = None if dtype is None else DType.from_numpy(dtype)
    return recorder.emit(ops.sum, (diagonal,), axis=(diagonal.rank - 1,), keepdims=False, dtype=to)


def _places(x: Symbol) -> Any:
    """The place of each element in row-major order."""
    shape: Any = x.shape
    line: Any = np.arange(math.prod(shape))
    return line.reshape(shape)


# -- order


def _argsort(recorder: Recorder, x: Symbol, real: Any, axis: Any = -1, *_: Any, **kw: Any) -> Any:
    """The op, whose order of equal values is that of their places."""
    flat = recorder.reshaped(x, (x.size,)) if axis is None else x
    at = flat.rank - 1 if axis is None else int(axis) % max(x.rank, 1)
    return recorder.emit(ops.argsort, (flat,), axis=at, descending=False, dtype=None)


def _searchsorted(
    recorder: Recorder, x: Symbol, real: Any, v: Any, side: str = "left", sorter: Any = None
) -> Symbol:
    if sorter is not None:
        x = recorder.emit(ops.gather, (x, recorder.symbol(sorter)), axis=0)
    side = "right" if side[0] in "rR" else "left"
    args = x, recorder.symbol(v)
    return recorder.emit(ops.searchsorted, args, side=side, dtype=None)


# -- moved elements


def _taken(
    recorder: Recorder, x: Symbol, real: Any, indices: Any, axis: Any = None, out: Any = None,
    mode: str = "raise",
) -> Symbol:  # fmt: skip
    found = recorder.symbol(indices)
    if mode != "raise":
        raise UnrecordedError("indices out of range have no symbol")
    if axis is None:
        return recorder.emit(ops.gather, (recorder.reshaped(x, (x.size,)), found), axis=0)
    return recorder.emit(ops.gather, (x, found), axis=int(axis) % x.rank)


def _by_places(name: str) -> Symbolic:
    """Any method that only moves elements: what it does to their places."""

    def enter(recorder: Recorder, x: Symbol, real: Any, *args: Any, **kwargs: Any) -> Symbol:
        moved = getattr(_places(x), name)(*plains(args), **plains(kwargs))
        return Pick(np.asarray(moved)).forward(recorder, x)

    return enter


def _reordered(name: str) -> Callable[..., None]:
    """Of sort and partition, which work in place: the array in the order that NumPy gave it."""

    def method(self: Traced, *args: Any, **kwargs: Any) -> None:
        recorder = active()
        if recorder is None:
            getattr(self.plain, name)(*plains(args), **plains(kwargs))
            return
        recorder.locate()
        trace, before = trace_of(self, recorder), self.plain.copy()
        x = recorder.before(self)
        getattr(self.plain, name)(*plains(args), **plains(kwargs))
        position = 1 if name == "partition" else 0
        axis = kwargs.get("axis", args[position] if len(args) > position else -1)
        if x is None:
            return
        if name == "sort":
            trace.write(recorder.emit(ops.sort, (x,), axis=int(axis) % x.rank, descending=False))
            return
        order = before.argpartition(*plains(args), **plains(kwargs))
        same = np.array_equal(np.take_along_axis(before, order, axis), self.plain, equal_nan=True)
        if not same:
            trace.write(None)
            return
        operands = x, recorder.input(order)
        trace.write(recorder.emit(ops.take_along, operands, axis=int(axis) % x.rank))

    return method


# -- copies and other views


def _dot(recorder: Recorder, x: Symbol, real: Any, b: Any, out: Any = None) -> Symbol:
    return product(recorder, x, recorder.symbol(b))


def product(recorder: Recorder, x: Symbol, y: Symbol) -> Symbol:
    """np.dot of two symbols."""
    if not x.rank or not y.rank:
        return recorder.emit(ops.multiply, (x, y))
    if y.rank < 3 and x.rank < 3:
        return recorder.emit(ops.matmul, (x, y))
    axes = (x.rank - 1,), (max(y.rank - 2, 0),)
    return recorder.emit(ops.tensordot, (x, y), axes=axes)


def _moving(name: str) -> Callable[..., Any]:
    """A method that gives a view where it can, else a copy of elements moved."""
    by_places = _by_places(name)

    def enter(recorder: Recorder, x: Symbol, real: Any, *args: Any, **kwargs: Any) -> Symbol:
        if kwargs.get("order", "C") == "C" and not (name != "reshape" and args):
            return recorder.reshaped(x, real.shape)
        return by_places(recorder, x, real, *args, **kwargs)

    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        real = getattr(self.plain, name)(*plains(args), **plains(kwargs))
        if recorder is None:
            return real
        recorder.locate()
        if name != "flatten" and np.may_share_memory(real, self.plain):
            parent = trace_of(self, recorder)
            in_order = kwargs.get("order", "C") == "C" and name == "reshape"
            known = Trace(recorder, real, None, parent, (Reshape(real.shape),))
            return view_of(self, real, known if in_order else None)
        x = trace_of(self, recorder)
        return recorder.outcome(
            name, real, lambda: enter(recorder, x.read(), real, *args, **kwargs)
        )

    method.__name__ = name
    return method


class Methods(Traced):
    """The methods of ndarray, under their names."""

    __slots__ = ()

    mean = traced("mean", _mean)
    var = traced("var", _spread(ops.var))
    std = traced("std", _spread(ops.std))
    argmax = traced("argmax", _locating(ops.argmax))
    argmin = traced("argmin", _locating(ops.argmin))
    trace = traced("trace", _trace)
    argsort = traced("argsort", _argsort)
    searchsorted = traced("searchsorted", _searchsorted)
    take = traced("take", _taken)
    repeat = traced("repeat", _by_places("repeat"))
    compress = traced("compress", _by_places("compress"))
    dot = traced("dot", _dot)
    sort = _reordered("sort")
    partition = _reordered("partition")
    reshape = _moving("reshape")
    ravel = _moving("ravel")
    flatten = _moving("flatten")

    def __getitem__(self, key: Any) -> Any:
        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        put(self, key, value)

    def fill(self, value: Any) -> None:
        """Every element set."""
        put(self, ..., value)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Elements set by their places in row-major order."""
        at = np.asarray(plains(indices))
        if mode != "raise":
            at = at % self.size if mode == "wrap" else np.clip(at, 0, self.size - 1)
        self.flat[at] = values

    def copy(self, order: Any = "C") -> Any:
        """A copy, which has the same symbol."""
        recorder, real = active(), self.plain.copy(order)
        if recorder is None:
            return real
        return recorder.watched(recorder.wrapped(real, recorder.before(self)))

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        return self.plain.__reduce__()

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """In another dtype, as the program asks."""
        recorder = active()
        real = self.plain.astype(dtype, *args, **kwargs)
        if recorder is None:
            return real
        if real is self.plain:
            return self
        recorder.locate()
        return recorder.outcome("astype", real, lambda: self._cast(recorder, real))

    def _cast(self, recorder: Recorder, real: Any) -> Symbol:
        x = trace_of(self, recorder).read()
        return recorder.converted(x, self.plain, recorder.dtype(real.dtype))

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[:] = value

    def nonzero(self) -> Any:
        """The places of what is not 0, as they are now."""
        recorder, real = active(), self.plain.nonzero()
        if recorder is None:
            return real
        recorder.locate()
        recorder.note("nonzero", "depends on values: the places found are taken as given")
        return tuple(recorder.wrapped(one, recorder.input(one)) for one in real)

    def item(self, *args: Any) -> Any:
        """An element as a Python number, in which the recording ends."""
        return number_of("item", self if self.size == 1 else None, self.plain.item(*args))

    def tolist(self) -> Any:
        """The elements as Python numbers, in which the recording ends."""
        return number_of("tolist", None, self.plain.tolist())

    def __float__(self) -> float:
        return number_of("float", self, float(self.plain))

    def __int__(self) -> int:
        return number_of("int", self, int(self.plain))

    def __complex__(self) -> complex:
        return number_of("complex", self, complex(self.plain))


def number_of(name: str, value: Any, number: Any) -> Any:
    """A Python number that a recorded value becomes: literals are all that it can go on as.

    If it is what the program returns, the value is an output.
    """
    recorder = active()
    if recorder is not None:
        recorder.locate()
        recorder.note(name, "makes Python numbers: they are taken as literals")
        if value is not None:
            recorder.numbers[id(number)] = number, value
    return number

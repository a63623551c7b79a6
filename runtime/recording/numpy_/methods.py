"""Recording of the ndarray methods that compute or copy without dispatch to a ufunc.

`Methods` has them all, under NumPy's names: start there. The functions above it make methods of
one kind, from the function on symbols in `method_ops`, or change the size and the shape in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.ir.literals import is_literal
from graphir.numpy_api.signatures import bound
from graphir.numpy_api.view_steps import Cut, Reshape
from graphir.public import Symbol, ops
from graphir.runtime.recording.builder import IS_WRITTEN
from graphir.runtime.recording.fallback import with_fallback
from graphir.runtime.recording.leaving import AS_BYTES, AS_NUMBER, AS_TRUTH, note_question, reading
from graphir.runtime.recording.leaving import operands as operands_of
from graphir.runtime.recording.numpy_.dates import converted, is_dated
from graphir.runtime.recording.numpy_.method_ops import (
    Symbolic,
    adding,
    by_places,
    dot_method,
    filled,
    in_ops,
    not_an_op,
    sorting,
)
from graphir.runtime.recording.numpy_.python_numbers import PythonNumbers
from graphir.runtime.recording.numpy_.ufunc_ops import returned, stored
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.structured import move_structured
from graphir.runtime.recording.subscripts import FlatIterator, Key, get, put, put_flat
from graphir.runtime.recording.values import (
    RecordedValue,
    RecordingTrace,
    UnrecordedError,
    active,
    plain,
    plains,
    recording_with,
    trace_of,
    view_of,
)
from graphir.runtime.results import counts_references, is_held

_NDARRAY: Any = np.ndarray


def traced(name: str, symbolic: Symbolic) -> Callable[..., Any]:
    """Return a method that has NumPy's result, and records it by `symbolic`.

    `symbolic(recorder, values, x, *args, **kwargs)` takes the values of the array and its symbol,
    and returns the symbol of the result.
    """

    def method(self: RecordedValue, *args: Any, **kwargs: Any) -> Any:
        recorder, function = active(), getattr(self.plain, name)
        if recorder is None:
            real = function(*plains(args), **plains(kwargs))
            return returned(kwargs.get("out"), real)
        recorder.locate()
        x = recorder.before(self)
        with recording_with(None):
            real = recorder.call(function, plains(args), plains(kwargs))
        out = kwargs.pop("out", None)

        def enter() -> Symbol:
            if x is None:
                raise UnrecordedError("it is of what has no symbol")
            of_numpy = getattr(_NDARRAY, name)
            (_, *places), settings = bound(of_numpy, symbolic, (x, *args), kwargs, leading=2)
            return symbolic(recorder, self.plain, x, *places, **settings)

        if out is None:
            return recorder.outcome(name, real, enter)
        return stored(recorder, name, out, real, enter)

    method.__name__ = name
    return method


def _reordered(name: str) -> Callable[..., None]:
    """Return the recorded method `sort` or `partition`, which reorders an array in place."""

    def method(self: RecordedValue, *args: Any, **kwargs: Any) -> None:
        recorder = active()
        if recorder is None:
            getattr(self.plain, name)(*plains(args), **plains(kwargs))
            return
        recorder.locate()
        if self.plain.dtype.names and name == "sort":
            _sort_rows(recorder, self, *args, **kwargs)
            return
        trace, before = trace_of(self, recorder), self.plain.copy()
        x = recorder.before(self)
        recorder.call(getattr(self.plain, name), plains(args), plains(kwargs))
        if x is None:
            return
        symbolic, real = _REORDERING[name], self.plain

        def enter() -> Symbol:
            of_numpy = getattr(_NDARRAY, name)
            (_, *places), settings = bound(of_numpy, symbolic, (x, *args), kwargs, leading=3)
            return symbolic(recorder, before, real, x, *places, **settings)

        trace.write(recorder.result_symbol(name, real, enter))

    return method


def _sort_rows(recorder: Recorder, x: RecordedValue, *args: Any, **kwargs: Any) -> None:
    """Sort the rows of a structured array in place, each used field by their order."""
    rows: Any = x[x.argsort(*args, **kwargs)] if x.ndim == 1 else None
    recorder.call(x.plain.sort, plains(args), plains(kwargs))
    if rows is None or rows.plain.tobytes() != x.plain.tobytes():
        return  # the next read of a field finds other values
    for name in x.plain.dtype.names or ():
        if recorder.has(x.plain.dtype[name]):
            field: Any = x[name]
            trace_of(field, recorder).write(trace_of(rows[name], recorder).read())


def _order_of_rows(
    recorder: Recorder, x: RecordedValue, real: NDArray[Any], order: str | Sequence[str] | None
) -> Any:
    """Return the recorded order `real` of the rows of a structured array, by its fields."""
    names = [order] if isinstance(order, str) else list(order or x.plain.dtype.names or ())
    if len(names) == 1 and recorder.has(x.plain.dtype[names[0]]):
        by_key: Any = np.argsort(x[names[0]], kind="stable")
        if np.array_equal(plain(by_key), real):
            return by_key
    symbol, operands = recorder.input(real), operands_of(recorder, [x])
    reason = "is taken as given: it orders the rows of a structured array"
    recorder.step("argsort", reason, (symbol,), operands, exact=True)
    return recorder.wrapped(real, symbol)


def _sorted(
    recorder: Recorder,
    before: NDArray[Any],
    real: NDArray[Any],
    x: Symbol,
    axis: int = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
    descending: bool | None = None,
) -> Symbol:
    settings = {"kind": kind, "stable": stable} | ({"descending": True} if descending else {})
    return recorder.applied(np.sort, x, int(axis) % x.rank, **settings)


def _partitioned(
    recorder: Recorder,
    before: NDArray[Any],
    real: NDArray[Any],
    x: Symbol,
    kth: int | Sequence[int],
    axis: int = -1,
    kind: Literal["introselect"] = "introselect",
) -> Symbol:
    order = before.argpartition(plains(kth), axis, kind)
    if not np.array_equal(np.take_along_axis(before, order, axis), real, equal_nan=True):
        raise UnrecordedError("it leaves the order of its parts open")
    places = recorder.input(order)
    recorder.step("partition", "is taken as given: values decide it", (places,), (x,), exact=True)
    return recorder.emit(ops.take_along, (x, places), axis=int(axis) % x.rank)


_REORDERING: dict[str, Callable[..., Symbol]] = {"sort": _sorted, "partition": _partitioned}


# -- copies and other views


def _moving(name: str) -> Callable[..., Any]:
    """Return a recorded method whose result is a view if possible, else a copy in another order."""
    places = by_places(name)

    def enter(
        recorder: Recorder, x: Symbol, real: NDArray[Any], *args: Any, **kwargs: Any
    ) -> Symbol:
        is_plain = kwargs.keys() <= {"order"} and kwargs.get("order", "C") == "C"
        if is_plain and not (name != "reshape" and args):
            return recorder.reshaped(x, real.shape)
        return places(recorder, real, x, *args, **kwargs)

    def method(self: RecordedValue, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        real = getattr(self.plain, name)(*plains(args), **plains(kwargs))
        if recorder is None:
            return real
        recorder.locate()
        recorder.setting(f"an argument of {name}", [args, kwargs])
        if name != "flatten" and np.may_share_memory(real, self.plain):
            parent = trace_of(self, recorder)
            is_known = kwargs.keys() <= {"order", "copy"} and kwargs.get("order", "C") == "C"
            in_order = is_known and name == "reshape"
            trace = RecordingTrace(recorder, real, None, parent, (Reshape(real.shape),))
            return view_of(self, real, trace if in_order else None)
        read = trace_of(self, recorder).read
        return recorder.outcome(name, real, lambda: enter(recorder, read(), real, *args, **kwargs))

    method.__name__ = name
    return method


# -- changes of the size or the shape in place

_HOLDERS = 4
"""The references to an array besides the program's: its wrapper, its trace and the frames of calls
hold them."""


def resize(x: RecordedValue, *shape: Any, refcheck: bool = True) -> None:
    """Resize an array in place, with zeros as new elements, and record it.

    NumPy reallocates the memory, which no other array may share. Here `x` gets memory of its own;
    at the end of the recording, the original array gets the final size and values.
    """
    recorder, original = active(), x.plain
    if recorder is None:
        original.resize(*shape, refcheck=refcheck)
        return
    recorder.locate()
    new = original.copy("K")
    new.resize(*shape, refcheck=False)
    if new.size == x.size:
        shape_in_place(x, lambda array: np.ndarray.resize(array, new.shape, refcheck=False))
        return
    is_resized = recorder.memory.is_resized(x)
    if original.base is not None and not is_resized:
        recorder.call(original.resize, shape, {"refcheck": refcheck})
    is_shared = counts_references() and is_held(original, _HOLDERS)
    if refcheck and not is_resized and is_shared:
        recorder.call(_refused, (), {})
    before, in_order = recorder.before(x), original.flags.c_contiguous

    def enter() -> Symbol:
        if before is None or not in_order:
            raise UnrecordedError("its elements are not in row-major order")
        return recorder.reshaped(_cut_or_filled(recorder, before, new.size), new.shape)

    recorder.memory.add_resized(x, original)
    order = new.flags.f_contiguous and not new.flags.c_contiguous
    np.ndarray.__setstate__(x, (1, new.shape, new.dtype, order, new.tobytes("A")))  # pyright: ignore
    recorder.replace_memory(x, "resize", enter)


def shape_in_place(x: RecordedValue, change: Callable[[Any], None]) -> None:
    """Apply `change`, which sets a shape with as many elements, to `x` and to its plain array."""
    recorder = active()
    before = trace_of(x, recorder) if recorder else None
    if before is not None:
        before.plain = x.plain.view()
    change(x.plain)
    change(x)
    if before is not None:
        steps = (Reshape(x.shape),)
        x.recording_trace = RecordingTrace(before.recorder, x.plain, None, before, steps)


def _refused() -> None:
    """Raise NumPy's own refusal to resize an array with another reference, which a list holds."""
    arrays = [np.empty(1)]
    array = arrays[0]
    array.resize(2)


def _cut_or_filled(recorder: Recorder, x: Symbol, size: int) -> Symbol:
    flat = recorder.reshaped(x, (x.size,))
    length: Any = flat.size
    if size <= length:
        return Cut((0,), (size,), (1,)).forward(recorder, flat)
    zeros = recorder.filled(0, (size - length,), x.dtype)
    return recorder.emit(ops.concat, (flat, zeros), axis=0)


# -- decorators of the class of methods

_Class = TypeVar("_Class", bound=type)


def _writing(name: str) -> Callable[..., Any]:
    """Return a method that writes a file, whose values are data if the program reads it again."""

    def method(self: RecordedValue, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None and recorder.locate():
            recorder.note(name, IS_WRITTEN)
            recorder.leaving.add_saved(self)
        return getattr(self.plain, name)(*plains(args), **plains(kwargs))

    return method


def _with_methods_that_leave(kind: _Class) -> _Class:
    """Class decorator: adds the methods of ndarray that give values to unrecorded code.

    They give bytes, the number of an index, the truth of an array, or write a file.
    """
    for name in ("tobytes", "dumps", "__reduce__", "__reduce_ex__", "__dlpack__"):
        setattr(kind, name, reading(name, AS_BYTES))
    for name in ("tofile", "dump"):
        setattr(kind, name, _writing(name))
    kind.__index__ = reading("__index__", AS_NUMBER)
    kind.__bool__ = reading("__bool__", AS_TRUTH, truth=True)
    return kind


def _with_fallbacks(kind: _Class) -> _Class:
    """Class decorator: adds to each method and setter the fallback to NumPy's on plain arrays.

    The methods that change the recorded and the plain array together get no fallback.
    """
    changing = {"shape", "dtype", "setflags", "resize"}
    for name, method in [*vars(PythonNumbers).items(), *vars(kind).items()]:
        if name in changing:
            continue
        of_numpy = getattr(_NDARRAY, name, None)
        if isinstance(method, property) and method.fset is not None:
            fset = with_fallback(_method_of_numpy(of_numpy.__set__), "method")(method.fset)  # pyright: ignore
            setattr(kind, name, property(method.fget, fset, None, method.__doc__))
        elif callable(method) and callable(of_numpy):
            setattr(kind, name, with_fallback(_method_of_numpy(of_numpy), "method")(method))
    return kind


def _method_of_numpy(of_numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's method on plain arrays, with the array of `out=` as its result."""

    def call(*args: Any, **kwargs: Any) -> Any:
        real = of_numpy(*plains(args), **plains(kwargs))
        return real if kwargs.get("out") is None else kwargs["out"]

    return call


# -- the methods by name

_byteswap = traced("byteswap", not_an_op)
_argsort = traced("argsort", sorting)
_round = traced("round", in_ops(np.round))


@_with_fallbacks
@_with_methods_that_leave
class Methods(PythonNumbers, RecordedValue):
    """The recorded methods of ndarray, under NumPy's names."""

    __slots__ = ()

    mean = traced("mean", adding(np.mean))
    var = traced("var", adding(np.var))
    std = traced("std", adding(np.std))
    argmax = traced("argmax", in_ops(np.argmax))
    argmin = traced("argmin", in_ops(np.argmin))
    trace = traced("trace", in_ops(np.trace))
    searchsorted = traced("searchsorted", in_ops(np.searchsorted, 2))
    take = traced("take", in_ops(np.take, 2))
    repeat = traced("repeat", by_places("repeat"))
    compress = traced("compress", by_places("compress"))
    dot = traced("dot", dot_method)
    argpartition = traced("argpartition", not_an_op)
    choose = traced("choose", not_an_op)
    sort = _reordered("sort")
    partition = _reordered("partition")
    reshape = _moving("reshape")
    ravel = _moving("ravel")
    flatten = _moving("flatten")

    def __getitem__(self, key: Any) -> Any:
        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        put(self, key, value)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        """Return the order of the elements along an axis; of a structured array, of its rows."""
        recorder = active()
        if recorder is None or not self.plain.dtype.names or self.ndim != 1:
            return _argsort(self, *args, **kwargs)
        recorder.locate()
        real = recorder.call(self.plain.argsort, plains(args), plains(kwargs))
        order = kwargs.get("order", (*args, None, None, None)[2])
        return _order_of_rows(recorder, self, real, order)

    def fill(self, value: Any) -> None:
        """Set every element to a value."""
        put(self, ..., value, _fill)

    resize = resize

    def put(self, indices: ArrayLike, values: ArrayLike, mode: str = "raise") -> None:
        """Set elements at row-major positions."""
        plain_indices = plains(indices)
        places = np.asarray(plain_indices)
        if mode != "raise" and self.size:
            wraps = mode == "wrap"
            places = places % self.size if wraps else np.clip(places, 0, self.size - 1)
        put_flat(self, self.plain.put, (plain_indices, plains(values), mode), places, values)

    def byteswap(self, inplace: bool = False) -> Any:
        """Return the array with swapped bytes; no op swaps bytes, so the result is an input."""
        return _NDARRAY.byteswap(self, True) if inplace else _byteswap(self)

    def round(self, decimals: SupportsIndex = 0, out: NDArray[Any] | None = None) -> Any:  # pyright: ignore
        """Return the array rounded to a number of decimals."""
        if self.dtype.kind == "f":  # which NumPy rounds in a plain array, by out=...
            return _round(self, decimals, **({} if out is None else {"out": out}))
        result = _NDARRAY.round(self, decimals, out)
        # A result of C code has a plain array that is a view. NumPy's result owns its memory, and
        # so does a copy.
        from_c_code = out is None and isinstance(result, RecordedValue) and self.dtype.kind in "iuc"
        return result.copy("K") if from_c_code else result

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """Return a view of the memory in another dtype or class."""
        recorder = active()
        if recorder is not None:  # the class of recorded arrays stands in for ndarray
            args = tuple([value for value in args if value is not np.ndarray])
            kwargs = {key: value for key, value in kwargs.items() if value is not np.ndarray}
        return _NDARRAY.view(self, *args, **kwargs)

    def copy(self, order: Literal["K", "A", "C", "F"] | None = "C") -> Any:
        """Return a copy, which has the same symbol."""
        recorder, real = active(), self.plain.copy(order)
        if recorder is None:
            return real
        if real.dtype.names:
            return move_structured(recorder, self, real, lambda field: field)
        return recorder.wrapped(real, recorder.before(self))

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: dict[int, Any] | None) -> Any:
        return self.copy("K")

    @property
    def data(self) -> Any:
        """The buffer, through which unrecorded code may read and write."""
        return self._leaving("data").data

    @property
    def ctypes(self) -> Any:
        """The memory for ctypes, through which unrecorded code may read and write."""
        return self._leaving("ctypes").ctypes

    def _leaving(self, name: str) -> Any:
        """Return the plain array, and note that its values leave the recording."""
        recorder = active()
        if recorder is not None:
            recorder.locate()
            recorder.read(name, self, AS_BYTES)
        return self.plain

    def astype(self, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Any:
        """Return the array cast to another dtype; the program asks for this cast."""
        recorder = active()
        if recorder is None:
            return self.plain.astype(dtype, *args, **kwargs)
        recorder.locate()
        real = recorder.call(self.plain.astype, (dtype, *args), kwargs)
        if real is self.plain:
            return self
        return recorder.outcome("astype", real, lambda: self._cast(recorder, real))

    def _cast(self, recorder: Recorder, real: NDArray[Any]) -> Symbol:
        x = trace_of(self, recorder).read()
        if is_dated(self.dtype) or is_dated(real.dtype):
            return converted(recorder, x, self.plain, real)
        return recorder.converted(x, self.plain, recorder.dtype(real.dtype), real=real)

    @property
    def real(self) -> Any:
        """The real part, a view."""
        return _NDARRAY.real.__get__(self)

    @real.setter
    def real(self, value: Any) -> None:
        _put_part(self, "real", value)

    @property
    def imag(self) -> Any:
        """The imaginary part: a view of a complex array, zeros for a real array."""
        recorder = active()
        if self.dtype.kind == "c" or recorder is None:
            return _NDARRAY.imag.__get__(self)
        recorder.locate()
        real: Any = _NDARRAY.imag.__get__(self.plain)
        return recorder.outcome("imag", real, lambda: filled(recorder, real, 0))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            _NDARRAY.imag.__set__(self.plain, plains(value))  # raises NumPy's error
        _put_part(self, "imag", value)

    @property
    def base(self) -> Any:
        """The array that owns the memory, as in plain NumPy."""
        owner = self.plain.base
        if owner is self:  # the plain array of a result of C code is a view of this very array
            owner = _NDARRAY.base.__get__(self)
        recorder = active()
        return owner if recorder is None else recorder.program_arrays.wrapper_of(owner)

    @property
    def flags(self) -> Any:
        """The flags of the plain array; a change here changes the plain array."""
        return self.plain.flags

    def setflags(self, *args: Any, **kwargs: Any) -> None:
        """Set flags of this array and of the plain array."""
        self.plain.setflags(*args, **kwargs)
        _NDARRAY.setflags(self, *args, **kwargs)

    @property
    def shape(self) -> Any:
        """The sizes of the axes."""
        note_question(self)
        return _NDARRAY.shape.__get__(self)

    @shape.setter
    def shape(self, value: Any) -> None:
        shape_in_place(self, lambda array: _NDARRAY.shape.__set__(array, value))

    @property
    def dtype(self) -> Any:
        """The dtype."""
        note_question(self)
        return _NDARRAY.dtype.__get__(self)

    @dtype.setter
    def dtype(self, value: Any) -> None:
        _NDARRAY.dtype.__set__(self, value)

    def _set_dtype(self, value: Any) -> None:
        """Set the dtype of a view, as NumPy 2.5 does for classes with a `dtype` of their own."""
        of_numpy: Any = _NDARRAY
        of_numpy._set_dtype(self, value)

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return FlatIterator(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        put_flat(self, setattr, (self.plain, "flat", plains(value)), slice(None), value)

    def nonzero(self) -> Any:
        """Return the indices of the nonzero elements; they depend on values and become inputs."""
        recorder, real = active(), self.plain.nonzero()
        if recorder is None:
            return real
        recorder.locate()
        reason = "is taken as given: the places depend on values"
        recorder.note("nonzero", reason)
        recorder.read("nonzero", self, reason, truth=True)
        return tuple(recorder.wrapped(places, recorder.input(places)) for places in real)


def _fill(array: NDArray[Any], key: Key, value: Any) -> None:
    array.fill(value)


def _put_part(x: RecordedValue, name: str, value: Any) -> None:
    """Assign to the real or imaginary part of an array.

    NumPy converts a number to an array first, and then casts that array like any other.
    """

    def write(*_: Any) -> None:
        setattr(x.plain, name, plains(value))

    put(getattr(x, name), ..., np.asarray(value) if is_literal(value) else value, write)

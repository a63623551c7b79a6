"""Recording of NumPy's array constructors, which do not dispatch on the class of an argument.

During a recording, recording wrappers replace the constructors in each module that holds them under
their own names. On threads without a recording a wrapper calls the original.
"""

from __future__ import annotations

import cmath
import math
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce, wraps
from itertools import chain, islice
from operator import attrgetter
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import BuiltinFunctionType, ModuleType
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from graphir.hints import Number
from graphir.location import is_internal
from graphir.numpy_api.interception import Interceptor
from graphir.numpy_api.signatures import bound
from graphir.public import DType, Symbol, ops
from graphir.runtime.recording.captured import LIBRARIES
from graphir.runtime.recording.fallback import opaque, rescued
from graphir.runtime.recording.leaving import traced_leaves
from graphir.runtime.recording.numpy_ import dates
from graphir.runtime.recording.numpy_.callbacks import vectorized
from graphir.runtime.recording.numpy_.functions import filling, full_of
from graphir.runtime.recording.numpy_.python_numbers import function_of, rounded
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedInt,
    TracedScalar,
    UnrecordedError,
    active,
    plain,
    plains,
    recording,
    recording_with,
    view_of,
)
from graphir.semantics.library_calls import leaves

Maker = Callable[..., Any]
_ASARRAY = np.asarray
_LEFT = {__name__, "numpy._core._methods"}
"""Modules that keep NumPy's originals. This module needs them; NumPy's asks for 0-d arrays of
numbers by out=..., which wrappers would not pass on."""
_DEMANDING = ("scipy.fft._pocketfft.pypocketfft",)
"""Compiled modules that refuse a subclass of ndarray as the array of a result."""
_RECORDED = Interceptor()
"""Has the stand-ins of all running recordings."""


@contextmanager
def makers_recorded() -> Generator[None]:
    """Context manager: inside the block, array constructors on a recording thread are recorded."""
    with _RECORDED.block(_replace):
        yield


def _replace() -> None:
    for namespace, name, maker in maker_places():
        _RECORDED.replace(namespace, name, maker)
    for owner, name, record in _METHODS:
        if name in vars(owner):
            _RECORDED.replace_attribute(owner, name, recorded_function(vars(owner)[name], record))
    for path in _DEMANDING:
        namespace = getattr(sys.modules.get(path), "__dict__", {})
        for name, original in list(namespace.items()):
            if isinstance(original, BuiltinFunctionType):
                _RECORDED.replace(namespace, name, recorded_function(original, _compiled))


MakerPlaces: TypeAlias = "list[tuple[dict[str, Any], str, Maker]]"


def maker_places() -> MakerPlaces:
    """Return the names of NumPy's constructors in all modules, each with its recording wrapper."""
    return [
        (namespace, name, maker)
        for path, module in list(sys.modules.items())
        for namespace in (cast("dict[str, Any]", getattr(module, "__dict__", {})),)
        for name, original, maker in _candidates(path, namespace)
        if namespace.get(name) is original
    ]


_Names: TypeAlias = "Sequence[tuple[str, Any, Maker]]"
_MODULE_NAMES: dict[str, tuple[int, int, _Names]] = {}
"""A cache for installed modules, which seldom change: the id and the size of a module's namespace,
and the names in it to replace. It has at most one entry for each path of `sys.modules`."""


def _candidates(path: str, namespace: dict[str, Any]) -> _Names:
    """Return the names of a module that may hold an original, with the original and its wrapper.

    Most modules are installed and unchanged: the cache is asked before all else.
    """
    entry = _MODULE_NAMES.get(path)
    if entry is not None and entry[0] == id(namespace) and entry[1] == len(namespace):
        return entry[2]
    if namespace.get("__name__") in _LEFT:
        return ()
    reads = path in _HOLDING or path.partition(".")[0] not in LIBRARIES
    table = _ALL if reads else _MAKING
    names = [row for name in table.keys() & namespace.keys() for row in table[name]]
    if not reads or "site-packages" in str(namespace.get("__file__", "")):
        _MODULE_NAMES[path] = id(namespace), len(namespace), names
    return names


def recorded_function(original: Any, record: Callable[..., Any]) -> Maker:
    """Return the function that a recorded program calls in place of one of NumPy's.

    `record(recorder, original, *args, **kwargs)` makes the call and returns the recorded result.
    """

    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is None or is_internal(_getframe(1)) or not recorder.locate():
            return original(*plains(args), **plains(kwargs))
        return _recorded(original, record, args, kwargs)

    return make


def _plainly(
    original: Maker, record: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    return original(*plains(args), **plains(kwargs))


@rescued(_plainly, "maker")
def _recorded(
    original: Maker, record: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    return record(recording(), original, *args, **kwargs)


def _compiled(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Record a function of a compiled module as an opaque call on plain arrays."""
    return opaque(recorder, original.__name__, _plainly, (original, _compiled, args, kwargs), {})


# -- arrays of values


def _converted(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Record np.array, np.asarray and similar constructors.

    The result is the argument itself, a view, a copy, a cast, or the array of a list.
    """
    value: Any = args[0] if args else kwargs.get("object", kwargs.get("a"))
    if type(value) is np.ma.MaskedArray:
        return _of_masked(recorder, original, value, args[1:], kwargs)
    with recording_with(None):
        real = recorder.call(original, plains(args), plains(kwargs))
    if isinstance(value, RecordedValue):
        if real is value.plain:
            return value
        if np.may_share_memory(real, value.plain):
            return view_of(value, real)
    elif type(value) is np.ndarray and (real is value or np.may_share_memory(real, value)):
        return real
    recorder.locate()
    if type(real) is not np.ndarray:
        return real
    if not isinstance(value, (np.ndarray, np.generic, list, tuple, int, float, complex)):
        is_numpy = str(type(value).__module__).partition(".")[0] == "numpy"
        return real if is_numpy else data(recorder, original.__name__, real)

    table = _table_of_rows(recorder, value, real) if real.dtype.names else None
    if table is not None:
        return table

    def enter() -> Symbol:
        bound(original, _conversion, args, kwargs)
        return array_symbol(recorder, value, real)

    return recorder.outcome(original.__name__, real, enter)


def _table_of_rows(recorder: Recorder, value: Any, real: NDArray[Any]) -> Any:
    """Return the structured array of a list of tuples, assigned field by field; or None."""
    rows = cast("list[Any]", value) if isinstance(value, list) else []
    if not all(isinstance(row, tuple) for row in rows) or not traced_leaves(rows):
        return None
    table = recorder.zeros_of(real)
    for name, column in zip(real.dtype.names or (), zip(*rows, strict=True), strict=True):
        table[name] = list(column)
    return table if table.plain.tobytes() == real.tobytes() else None


def _of_masked(
    recorder: Recorder,
    original: Maker,
    value: np.ma.MaskedArray[Any, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Record np.array and similar constructors of a masked array: of its data, and of its mask."""
    real, mask = original(value, *args, **kwargs), cast("Any", np.ma.getmask(value))
    if real is value or np.shape(real) != value.shape:
        return real
    kwargs = {name: x for name, x in kwargs.items() if name != "subok"}
    data = _converted(recorder, original, np.ma.getdata(value), *args, **kwargs)
    if type(real) is not np.ma.MaskedArray:
        return data
    result = data.view(np.ma.MaskedArray)
    result._update_from(value)
    if mask is not np.ma.nomask:
        result._mask = mask.copy()
    return result


def _conversion(
    value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    ndmin: int = 0,
) -> None:
    """The parameters of np.array and similar constructors that a cast and a reshape stand for."""


def array_symbol(recorder: Recorder, value: Any, real: Any) -> Symbol:
    """Return the symbol of a value as an array or a scalar of the dtype and shape of `real`."""
    if type(value) is np.ndarray and not recorder.has(value.dtype):
        raise UnrecordedError(recorder.objects.reason)
    if isinstance(value, (list, tuple)) and isinstance(next(iter(leaves(value)), None), str):
        return recorder.constant_array(real)  # texts are data
    to, values = recorder.dtype(real.dtype), plains(value)
    symbol = recorder.symbol(value)
    if isinstance(value, np.ndarray) and (
        dates.is_dated(values.dtype) or dates.is_dated(real.dtype)
    ):
        cast = dates.converted(recorder, symbol, values, real.reshape(values.shape))
    else:
        cast = recorder.converted(symbol, values, to, real=real)
    return recorder.reshaped(cast, real.shape)


# -- arrays of one value, and lines


def _made(symbolic: Callable[..., Symbol], operand: int | None = None) -> Callable[..., Any]:
    """Return the recorder of a constructor, whose symbol `symbolic` enters.

    `operand` is the position of the argument that is an operand; the other arguments are settings.
    """

    def record(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
        with recording_with(None):
            real = recorder.call(original, plains(args), plains(kwargs))
        if type(real) is not np.ndarray:
            return real
        recorder.locate()
        settings = [value for at, value in enumerate(args) if at != operand]
        keywords = {name: value for name, value in kwargs.items() if name != "fill_value"}
        recorder.setting(f"an argument of {original.__name__}", [settings, keywords])

        def enter() -> Symbol:
            places, settings = bound(original, symbolic, args, kwargs, leading=2)
            return symbolic(recorder, real, *places, **settings)

        return recorder.outcome(original.__name__, real, enter)

    return record


def _arange(
    recorder: Recorder,
    real: NDArray[Any],
    start: Number,
    stop: Number | None = None,
    step: Number = 1,
    dtype: DTypeLike | None = None,
) -> Symbol:
    if real.dtype.kind not in "iu" or not real.size:
        return recorder.input(real)
    by = int(real[1]) - int(real[0]) if real.size > 1 else 1
    to = DType.from_numpy(real.dtype)
    return recorder.emit(ops.range, (), dtype=to, start=int(real[0]), step=by, size=real.size)


def _eye(
    recorder: Recorder,
    real: NDArray[Any],
    rows: int | None = None,
    M: int | None = None,  # noqa: N803 -- NumPy's name
    k: int = 0,
    dtype: DTypeLike | None = None,
    order: str | None = None,
) -> Symbol:
    """Record np.eye and np.identity; NumPy's result has the shape and the dtype."""
    attrs = {"rows": real.shape[0], "columns": real.shape[1], "offset": int(k)}
    return recorder.emit(ops.eye, (), dtype=DType.from_numpy(real.dtype), **attrs)


# -- arrays from external sources


def _external(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Record an array from a file or of random numbers as an input.

    If an argument is recorded, the call is opaque instead.
    """
    if traced_leaves([args, kwargs]):
        for leaf in leaves([args, kwargs]):
            if isinstance(leaf, (TracedInt, np.integer)):
                recorder.setting(original.__name__, leaf)
        name = f"numpy.{original.__name__}"
        return opaque(recorder, name, _plainly, (original, _external, args, kwargs), {})
    with recording_with(None):
        real = recorder.call(original, args, kwargs)
    recorder.locate()
    return data(recorder, original.__name__, real)


def data(recorder: Recorder, name: str, real: Any) -> Any:
    """Return an array that came from outside, which is data, in the form that the program gets."""
    if isinstance(real, np.memmap):
        real = cast("Any", real).view(np.ndarray)
    if type(real) is not np.ndarray or not (recorder.has(real.dtype) or real.dtype.names):
        return recorder.wrapped(real, None) if isinstance(real, np.ndarray) else real
    recorder.note(name, "is taken as given: it is data")
    return recorder.wrap_file_content(name, real) if name in _LOADERS else recorder.wrap_data(real)


def _of_buffer(recorder: Recorder, original: Maker, buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """Record np.frombuffer as an input, unless the buffer is that of an array.

    Recorded values that became bytes were noted.
    """
    owner: object = buffer.obj if isinstance(buffer, memoryview) else buffer
    if not isinstance(owner, np.ndarray):
        return _external(recorder, original, buffer, *args, **kwargs)
    return recorder.call(original, plains((buffer, *args)), plains(kwargs))


class _RecordedClass(type):
    """The metaclass of a class in place of one of NumPy's, whose calls are recorded."""

    original: Any
    record: Callable[..., Any]
    numpy_class: Any
    """NumPy's own class, of which the program may have made objects before."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is None or is_internal(_getframe(1)) or not recorder.locate():
            return cls.original(*plains(args), **plains(kwargs))
        return _recorded(cls.original, cls.record, args, kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        owner = plain(instance)
        while isinstance(owner, np.ndarray) and not isinstance(owner, cls.numpy_class):
            owner = cast("Any", owner).base
        return isinstance(owner, cls.numpy_class)


def _recorded_class(
    original: type[Any], record: Callable[..., Any], numpy_class: type[Any] | None = None
) -> Any:
    facts = {"__doc__": original.__doc__, "original": original, "record": staticmethod(record)}
    facts["numpy_class"] = numpy_class or original
    return _RecordedClass(original.__name__, (original,), facts)


def _aside(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Make an object of numpy.random beside the recording; its arrays are data of the program."""
    with recording_with(None):
        return random_data(recorder.call(original, plains(args), plains(kwargs)))


class RandomData:
    """Mixin of NumPy's sources of random numbers: the arrays of their methods are data."""

    def __getattribute__(self, name: str) -> Any:
        value: Any = super().__getattribute__(name)
        is_method = callable(value) and name[0] != "_" and name != "bit_generator"
        return recorded_function(value, _external) if is_method else value


class _Generator(RandomData, np.random.Generator):
    pass


class _RandomState(RandomData, np.random.RandomState):
    pass


_GENERATOR = np.random.Generator  # during a recording NumPy has another class of that name


def random_data(source: Any) -> Any:
    """Return a generator with the same bit generator, whose arrays are data; others as they are."""
    if type(source) is _GENERATOR:
        return _Generator(source.bit_generator)
    return source


def _iterated(
    recorder: Recorder,
    original: Maker,
    iter: Iterable[Any],  # noqa: A002 -- NumPy's name
    dtype: DTypeLike | None,
    count: int = -1,
) -> Any:
    values: list[Any] = _listed(recorder, islice(iter, count) if count >= 0 else chain(iter))
    with recording_with(None):
        real = recorder.call(original, (plains(values), dtype, count), {})
    if not recorder.has(real.dtype):
        return real
    recorder.locate()
    return recorder.outcome("fromiter", real, lambda: array_symbol(recorder, values, real))


def _listed(recorder: Recorder, value: Any) -> Any:
    """Return a list in place of an iterator, which allows one pass; other values as they are."""
    if not isinstance(value, Iterator):
        return value
    values = recorder.call(list, (cast("Iterator[Any]", value),), {})  # the iterator is the user's
    recorder.calls.forget_result()
    return values


_FUNCTIONS = [
    getattr(math, name)
    for name in ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
                 "sinh", "cosh", "tanh", "fabs", "degrees", "radians")
]  # fmt: skip
"""The functions of Python's math that NumPy has under the same names."""
_ROUNDINGS = {math.floor: np.floor, math.ceil: np.ceil, math.trunc: np.trunc}


def _number(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Call a function of Python's math modules, which reads recorded values as Python numbers."""
    args = tuple(_listed(recorder, arg) for arg in args)
    is_of_one = len(args) == 1 and bool(traced_leaves(args)) and np.ndim(plain(args[0])) == 0
    if is_of_one and original in _FUNCTIONS:
        number = recorder.call(original, plains(args), {})
        return function_of(original.__name__, args[0], number)
    if is_of_one and original in _ROUNDINGS:
        number = recorder.call(original, plains(args), {})
        return rounded(original.__name__, args[0], number, _ROUNDINGS[original])
    recorder.setting(original.__name__, [list(args), kwargs])
    for arg in args:
        if isinstance(arg, RecordedValue):
            recorder.note(original.__name__, "makes Python numbers: they are taken as literals")
    return recorder.call(original, plains(args), plains(kwargs))


# -- methods of NumPy


def _of_archive(
    recorder: Recorder, original: Maker, archive: np.lib.npyio.NpzFile, key: str
) -> Any:
    """Record an array of an .npz file, which NumPy loads where the program asks for it."""
    with recording_with(None):
        real = original(archive, key)
    recorder.locate()
    return data(recorder, "load", real)


_METHODS: Sequence[tuple[Any, str, Callable[..., Any]]] = (
    (np.vectorize, "_vectorize_call", vectorized),
    (np.lib.npyio.NpzFile, "__getitem__", _of_archive),
)
"""Methods of NumPy's classes that a recording replaces."""


# -- functions that do not dispatch on the class


def as_recorded(recorder: Recorder, value: Any) -> Any:
    """Return an operand of a function as a recorded array; the call of the function is to come."""
    array = _converted(recorder, _ASARRAY, value)
    recorder.calls.forget_result()
    return array


def _of_list(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Call np.sum or a similar function; a list of rows or of recorded numbers becomes an array.

    NumPy does not dispatch on a list.
    """
    rows = cast("Sequence[Any]", args[0] if args and isinstance(args[0], (list, tuple)) else ())
    if traced_leaves(rows) or any(isinstance(row, (list, tuple)) for row in rows):
        args = (as_recorded(recorder, args[0]), *args[1:])
    return original(*args, **kwargs)


def _method_of_list(
    recorder: Recorder, original: Maker, values: Any, method: str, *args: Any, **kwargs: Any
) -> Any:
    """Call `_wrapit`, by which np.cumsum and others call the method of a list's array."""
    return getattr(as_recorded(recorder, values), method)(*args, **kwargs)


def _interpolated(
    recorder: Recorder,
    original: Maker,
    a: ArrayLike,
    b: ArrayLike,
    t: ArrayLike,
    out: NDArray[Any] | None = None,
) -> Any:
    """Call `_lerp`; for numbers the operands become vectors of one element.

    For numbers NumPy asks for a 0-d array by out=..., which dispatch does not pass on.
    """
    if np.ndim(a) or np.ndim(b) or np.ndim(t) or out is not None:
        return original(a, b, t, out=out)
    a, b = (as_recorded(recorder, operand).reshape(1) for operand in (a, b))
    return original(a, b, t)[0]


def _neighbours(
    recorder: Recorder, original: Maker, x: ArrayLike, at: ArrayLike, count: ArrayLike
) -> Any:
    """Call `_get_indexes`; one number becomes a vector, for the reason given in `_interpolated`."""
    if np.ndim(at):
        return original(x, at, count)
    places = original(x, as_recorded(recorder, at).reshape(1), count)
    return tuple(place.reshape(()) for place in places)


def _array_converter(recorder: Recorder, original: Maker, *args: Any) -> Any:
    """Call the class by which np.linspace and others read scalars as plain arrays."""
    for scalar in [x for x in args if isinstance(x, TracedScalar)]:
        recorder.setting("a scalar", scalar)
    return recorder.call(original, args, {})


_LOADERS = frozenset(("load", "loadtxt", "genfromtxt", "fromfile", "memmap"))
"""NumPy's functions that read files."""
_RECORDERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"), _converted
    ),
    "asarray_chkfinite": _converted,
    "zeros": _made(filling(0)),
    "empty": _made(filling(0, is_empty=True)),
    "ones": _made(filling(1)),
    "full": _made(full_of, 1),
    "arange": _made(_arange),
    "eye": _made(_eye),
    "identity": _made(_eye),
    "fromiter": _iterated,
    **dict.fromkeys(_LOADERS - {"memmap"}, _external),
    "fromstring": _external,
    "frombuffer": _of_buffer,
    "random.default_rng": _aside,
    **dict.fromkeys(("sum", "prod", "mean", "std", "var", "median"), _of_list),
    **dict.fromkeys(("max", "min", "amax", "amin", "linalg.norm"), _of_list),
    "_core.fromnumeric._wrapit": _method_of_list,
    "_core._multiarray_umath._unique_hash": _compiled,
    "_core._multiarray_umath._vec_string": _compiled,
    "lib._function_base_impl._array_converter": _array_converter,
    "lib._function_base_impl._lerp": _interpolated,
    "lib._function_base_impl._get_indexes": _neighbours,
}
_CLASSES: dict[str, Any] = {
    "memmap": _recorded_class(np.memmap, _external),
    "random.RandomState": _recorded_class(_RandomState, _aside, np.random.RandomState),
    **{
        f"random.{name}": _recorded_class(getattr(np.random, name), _aside)
        for name in (
            "Generator",
            "SeedSequence",
            "MT19937",
            "PCG64",
            "PCG64DXSM",
            "Philox",
            "SFC64",
        )
    },
}
_ORIGINALS = {
    path: function_
    for path in _RECORDERS
    if (function_ := reduce(lambda owner, name: getattr(owner, name, None), path.split("."), np))
}
MAKERS: dict[str, tuple[Any, Maker]] = {
    path: (function_, recorded_function(function_, _RECORDERS[path]))
    for path, function_ in _ORIGINALS.items()
} | {path: (attrgetter(path)(np), class_) for path, class_ in _CLASSES.items()}
"""By path in numpy: each constructor, and the wrapper that replaces it during a recording."""


def _functions(module: ModuleType) -> dict[str, Any]:
    kinds: Any = BuiltinFunctionType, type(np.random.seed), type(np.random.rand)
    public = [name for name in dir(module) if name[0] != "_"]
    functions = {name: getattr(module, name) for name in public}
    return {name: value for name, value in functions.items() if isinstance(value, kinds)}


def _readers() -> dict[str, tuple[Any, Maker]]:
    """Return the wrappers of Python's math functions and of numpy.random's functions, by path."""
    readers = {
        f"{module.__name__}.{name}": (function, recorded_function(function, _number))
        for module in (math, cmath)
        for name, function in _functions(module).items()
    }
    state = {"seed", "get_state", "set_state", "default_rng", "shuffle", "bytes"}
    return readers | {
        f"numpy.random.{name}": (function, recorded_function(function, _external))
        for name, function in _functions(np.random).items()
        if name not in state
    }


READERS = _readers()
_HOLDING = frozenset(("math", "cmath", "statistics", "numpy.random"))


def _by_last_name(wrappers: dict[str, tuple[Any, Maker]]) -> dict[str, _Names]:
    """Return the originals with their wrappers by the last part of their paths."""
    rows: dict[str, list[tuple[str, Any, Maker]]] = {}
    for path, (original, maker) in wrappers.items():
        name = path.rpartition(".")[2]
        rows.setdefault(name, []).append((name, original, maker))
    return dict(rows)


_MAKING = _by_last_name(MAKERS)
_ALL = _by_last_name(MAKERS | READERS)

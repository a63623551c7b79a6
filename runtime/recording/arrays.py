"""The classes of the arrays, scalars and rows with which a recorded program computes.

Start at `RecordedArray`, whose methods are those of `numpy_.methods`. `RecordedScalar` has the
methods of the scalar classes, which `_scalar_classes` makes, one for each type of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike

from graphir.numpy_api.ufuncs import BINARY, COMPARISONS, UNARY
from graphir.public import Symbol
from graphir.runtime.recording.leaving import (
    AS_BYTES,
    AS_NUMBER,
    AS_TRUTH,
    Texts,
    note_question,
    reading,
    text_of,
)
from graphir.runtime.recording.numpy_ import functions, ufuncs
from graphir.runtime.recording.numpy_.calls import callee
from graphir.runtime.recording.numpy_.methods import Methods
from graphir.runtime.recording.numpy_.python_numbers import PythonNumbers, rounded
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedScalar,
    UnrecordedError,
    active,
    plain,
    plains,
    recording,
    view_of,
)

MEMMAP: type[Any] = np.memmap
"""NumPy's own class: a recording has another one in its place."""


class Dispatching:
    """The protocols by which NumPy dispatches its functions on recorded values to the recorder."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return ufuncs.call(ufunc, method, inputs, kwargs)

    def __array_function__(
        self,
        function: Any,
        types: Iterable[type[Any]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        return functions.call(function, args, kwargs)


class RecordedArray(Texts, Dispatching, Methods):
    """An ndarray whose operations are recorded; NumPy computes its values."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the memory map whose memory the array is."""
        owner: Any = self.plain.base
        while owner is not None and not isinstance(owner, MEMMAP):
            owner = getattr(owner, "base", None)
        if owner is None or name[:2] == "__":
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        memory_map: Any = owner
        return getattr(memory_map, name)


RecordedArray.__name__ = "array"  # which the texts of masked arrays name


class RecordedScalar(Dispatching):
    """The methods of recorded scalars, which are subclasses of NumPy's scalar types."""

    plain: Any
    symbol: Symbol
    recorder: Recorder

    @property
    def dtype(self) -> Any:
        """The dtype."""
        note_question(cast("TracedScalar", self))
        return self.plain.dtype

    @property
    def real(self) -> Any:
        """The real part."""
        return _apply_to_array(self, lambda x: x.real)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return _apply_to_array(self, lambda x: x.imag)

    def astype(self, dtype: DTypeLike, *args: Any, **kwargs: Any) -> Any:
        """Return the scalar cast to another dtype."""
        return _apply_to_array(self, lambda x: x.astype(dtype, *args, **kwargs))

    def __getitem__(self, key: Any) -> Any:
        return self if type(key) is tuple and not key else self.plain[plains(key)]

    @property
    def T(self) -> Any:  # noqa: N802 -- NumPy's name
        """The scalar itself."""
        return self

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            return _apply_to_array(self, lambda x: x.round(plains(digits)))
        return rounded("round", self, round(self.plain), np.rint)

    def __divmod__(self, other: Any) -> Any:
        return ufuncs.call(np.divmod, "__call__", (self, other), {})

    def __rdivmod__(self, other: Any) -> Any:
        return ufuncs.call(np.divmod, "__call__", (other, self), {})

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


def _apply_to_array(scalar: RecordedScalar, function: Callable[[Any], Any]) -> Any:
    """Apply a function to the scalar as a 0-d array, and return the element of a 0-d result."""
    recorder = active()
    if recorder is None or scalar.recorder is not recorder:
        return function(np.asarray(scalar.plain))[()]
    result = function(recorder.wrapped(np.asarray(scalar.plain), scalar.symbol))
    return result[()] if np.ndim(plain(result)) == 0 else result


def _operator(name: str, is_reflected: bool = False) -> Callable[..., Any]:
    function, ufunc = (BINARY | COMPARISONS | UNARY)[name]

    def method(*operands: Any) -> Any:
        return ufuncs.operate(function, ufunc, operands)

    def reflected(self: RecordedScalar, other: Any) -> Any:
        return ufuncs.operate(function, ufunc, (other, self))

    return reflected if is_reflected else method


def _operators() -> dict[str, Any]:
    """Return the operators of scalars, because NumPy computes its own without dispatch."""
    methods = {f"__{name}__": _operator(name) for name in BINARY | COMPARISONS | UNARY}
    return methods | {f"__r{name}__": _operator(name, is_reflected=True) for name in BINARY}


_ARRAY_METHODS = (
    *("all", "any", "argmax", "argmin", "argsort", "byteswap", "choose", "clip", "compress"),
    *("conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "flatten", "getfield", "max"),
    *("mean", "min", "prod", "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze"),
    *("std", "sum", "swapaxes", "take", "trace", "transpose", "var", "view"),
)
_READING = {
    **dict.fromkeys(("tobytes", "tofile", "dump", "dumps", "__reduce__"), AS_BYTES),
    **dict.fromkeys(("as_integer_ratio", "hex", "is_integer", "bit_count"), AS_NUMBER),
    **dict.fromkeys(("__floor__", "__ceil__", "__trunc__", "__index__", "__hash__"), AS_NUMBER),
}


def _array_method(name: str) -> Callable[..., Any]:
    def method(self: RecordedScalar, *args: Any, **kwargs: Any) -> Any:
        return _apply_to_array(self, lambda x: getattr(x, name)(*args, **kwargs))

    return method


def _scalar_methods(base: type[Any]) -> dict[str, Any]:
    """Return the methods of a scalar type that compute on a 0-d array, or leave the recording."""
    methods = {name: _array_method(name) for name in _ARRAY_METHODS}
    methods |= {name: reading(name, reason) for name, reason in _READING.items()}
    methods["__bool__"] = reading("__bool__", AS_TRUTH, truth=True)
    return {name: method for name, method in methods.items() if hasattr(base, name)}


def _scalar_classes() -> dict[type[Any], type[Any]]:
    """Return a subclass of each NumPy scalar type except np.bool_, which allows none.

    The methods are copied into each subclass instead of inherited: NumPy takes the next class in
    the method resolution order to define the memory of the scalar.
    """
    namespace = {**_operators(), **vars(Dispatching), **vars(PythonNumbers), **vars(Texts)}
    namespace |= vars(RecordedScalar)
    items = namespace.items()
    methods = {name: x for name, x in items if callable(x) or type(x) is property}
    classes: dict[type[Any], type[Any]] = {}
    for code in "bhilqBHILQefdFD":
        base = np.dtype(code).type
        # Without `__iter__ = None`, `__getitem__` would make the scalar iterable.
        body = {
            **methods,
            **_scalar_methods(base),
            "__iter__": None,
            "__new__": _scalar_constructor(base),
        }
        classes[base] = type(f"Recorded_{base.__name__}", (base, TracedScalar), body)
    return classes


def _scalar_constructor(base: type[Any]) -> Callable[..., Any]:
    """Return the constructor of recorded scalars, which `type(x)(value)` calls."""

    def new(_: type[Any], *args: Any, **kwargs: Any) -> Any:
        return callee(base)(*args, **kwargs)

    return new


SCALARS = _scalar_classes()


class RecordedRow(np.void, TracedScalar):
    """An element of a structured array; `array` is the same memory as a 0-d array."""

    array: RecordedValue

    @property
    def symbol(self) -> Symbol:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Raise UnrecordedError: the fields have the symbols."""
        raise UnrecordedError("a row has no symbol; its fields have")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return cast("tuple[str, ...]", self.plain.dtype.names)

    def __getitem__(self, key: str | list[str] | SupportsIndex) -> Any:
        return self.array[self._name(key)][()]

    def __setitem__(self, key: str | list[str] | SupportsIndex, value: Any) -> None:
        self.array[self._name(key)] = value

    def _name(self, key: str | list[str] | SupportsIndex) -> Any:
        return cast("Any", key if isinstance(key, (str, list)) else self.names[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[name] for name in self.names)

    def item(self, *_: Any) -> Any:
        """Return the fields as Python numbers, which are not recorded any more."""
        return tuple(map(_as_numbers, self))

    tolist = item
    tobytes = reading("tobytes", AS_BYTES)
    __eq__ = reading("__eq__", AS_TRUTH)
    __ne__ = reading("__ne__", AS_TRUTH)
    __hash__ = reading("__hash__", AS_NUMBER)  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return text_of(self, repr(self.plain))

    def __str__(self) -> str:
        return text_of(self, str(self.plain))


def _as_numbers(field: Any) -> Any:
    if isinstance(cast("object", field), np.generic):
        return field.item()
    return field.copy() if isinstance(cast("object", field), np.ndarray) else field


def row(array: RecordedValue, key: int | tuple[int, ...]) -> RecordedRow:
    """Return an element of a structured array, in the form that the program gets."""
    keys = cast("tuple[Any, ...]", key if type(key) is tuple else (key,))
    place = array.plain[(*keys, ...)]
    element: Any = place.view(np.dtype((RecordedRow, place.dtype)))[()]
    element.plain, element.recorder = place[()], recording()
    element.array = view_of(array, place)
    return element


class ArrayRecorder(Recorder):
    """The recorder that wraps results in the classes of this module."""

    array, row = RecordedArray, staticmethod(row)
    scalars = SCALARS

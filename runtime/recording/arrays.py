"""The classes of what a recording program computes with."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import Symbol
from runtime.recording.leaving import AS_BYTES, AS_NUMBER, AS_TRUTH, number_of, reading
from runtime.recording.numpy_ import functions, ufuncs
from runtime.recording.numpy_.methods import Methods
from runtime.recording.recorder import Recorder
from runtime.recording.values import TracedScalar, active, plains


class Dispatching:
    """What NumPy asks of a class whose objects its functions are called on."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return ufuncs.call(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return functions.call(function, args, kwargs)


class RecordedArray(Dispatching, Methods):
    """An ndarray whose every operation is recorded; its values are NumPy's."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)

    def __format__(self, spec: str) -> str:
        return format(self.plain, spec)


class RecordedScalar(Dispatching):
    """The methods of the subclasses of NumPy's scalar types: numbers that know a symbol."""

    plain: Any
    symbol: Symbol
    recorder: Recorder

    @property
    def real(self) -> Any:
        """The real part."""
        return _of_array(self, lambda x: x.real)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return _of_array(self, lambda x: x.imag)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """In another dtype."""
        return _of_array(self, lambda x: x.astype(dtype, *args, **kwargs))

    def __getitem__(self, key: Any) -> Any:
        return self if type(key) is tuple and not key else self.plain[plains(key)]

    def item(self, *args: Any) -> Any:
        """The Python number, in which the recording ends."""
        return number_of("item", self, self.plain.item(*args))

    def __float__(self) -> float:
        return number_of("float", self, float(self.plain))

    def __int__(self) -> int:
        return number_of("int", self, int(self.plain))

    def __complex__(self) -> complex:
        return number_of("complex", self, complex(self.plain))

    def tolist(self) -> Any:
        """The Python number, in which the recording ends."""
        return number_of("tolist", self, self.plain.tolist())

    @property
    def T(self) -> Any:  # noqa: N802 -- NumPy's name
        """The scalar itself."""
        return self

    def __round__(self, digits: Any = None) -> Any:
        if digits is not None:
            return _of_array(self, lambda x: x.round(plains(digits)))
        return number_of("round", self, round(self.plain))

    def __divmod__(self, other: Any) -> Any:
        return ufuncs.call(np.divmod, "__call__", (self, other), {})

    def __rdivmod__(self, other: Any) -> Any:
        return ufuncs.call(np.divmod, "__call__", (other, self), {})

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def _of_array(scalar: RecordedScalar, function: Callable[[Any], Any]) -> Any:
    """A function of the scalar as a 0-d array, whose element is the result."""
    recorder = active()
    if recorder is None or scalar.recorder is not recorder:
        return function(np.asarray(scalar.plain))[()]
    result = function(recorder.wrapped(np.asarray(scalar.plain), scalar.symbol))
    return result[()] if np.ndim(result) == 0 else result


_BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "matmul": np.matmul,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY: dict[str, np.ufunc] = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}


def _binary(name: str, ufunc: np.ufunc, is_reflected: bool) -> Callable[[Any, Any], Any]:
    function = getattr(operator, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        operands = (other, self) if is_reflected else (self, other)
        return ufuncs.operate(function, ufunc, operands)

    return method


def _unary(name: str, ufunc: np.ufunc) -> Callable[[Any], Any]:
    function = getattr(operator, f"__{name}__")
    return lambda self: ufuncs.operate(function, ufunc, (self,))


def _methods() -> dict[str, Any]:
    """The operators of scalars, which NumPy would compute without asking."""
    comparisons = ("lt", "le", "gt", "ge", "eq", "ne")
    methods: dict[str, Any] = {}
    for name, ufunc in _BINARY.items():
        methods[f"__{name}__"] = _binary(name, ufunc, False)
        if name not in comparisons:
            methods[f"__r{name}__"] = _binary(name, ufunc, True)
    return methods | {f"__{name}__": _unary(name, ufunc) for name, ufunc in _UNARY.items()}


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
        return _of_array(self, lambda x: getattr(x, name)(*args, **kwargs))

    return method


def _of(base: type[Any]) -> dict[str, Any]:
    """The methods by which a scalar of a type is computed with as an array, or leaves."""
    methods = {name: _array_method(name) for name in _ARRAY_METHODS}
    methods |= {name: reading(name, reason) for name, reason in _READING.items()}
    methods["__bool__"] = reading("__bool__", AS_TRUTH, truth=True)
    return {name: method for name, method in methods.items() if hasattr(base, name)}


def _scalars() -> dict[type[Any], type[Any]]:
    """A subclass of each scalar type of NumPy that can have one: not of np.bool_.

    Methods are copied into it, since NumPy takes the class that follows it in its bases' order to
    be the one whose memory it has.
    """
    namespace = {**vars(Dispatching), **vars(RecordedScalar), **_methods()}
    methods = {
        name: value
        for name, value in namespace.items()
        if callable(value) or type(value) is property
    }
    classes: dict[type[Any], type[Any]] = {}
    for code in "bhilqBHILQefdFD":
        base = np.dtype(code).type
        # Not iterable, for all that it can be indexed.
        body = {**methods, **_of(base), "__iter__": None}
        classes[base] = type(f"Recorded_{base.__name__}", (base, TracedScalar), body)
    return classes


SCALARS = _scalars()


class ArrayRecorder(Recorder):
    """The recorder whose results are of these classes."""

    array = RecordedArray
    scalars = SCALARS

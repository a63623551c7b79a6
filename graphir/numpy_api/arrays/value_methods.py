"""Methods that symbolic arrays and scalars share: operators, functions, unknown values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike

from graphir.errors import GraphError
from graphir.hints import Int
from graphir.ir.operators.in_place import WRITING, refuse_write
from graphir.ir.symbol import Symbol, ValuelessError
from graphir.numpy_api.arrays import function_calls, ufunc_calls
from graphir.numpy_api.arrays.boundary import (
    Class,
    asks_in_trace,
    attributes_of,
    bounded,
    numpy_class,
)
from graphir.numpy_api.arrays.builtin_stand_ins import hide_attributes
from graphir.numpy_api.arrays.makers import TRACED_NUMPY
from graphir.numpy_api.arrays.memory import (
    ArrayAttributeError,
    ArrayValue,
    ScalarValue,
    TracedValue,
    plainly,
)
from graphir.numpy_api.signatures import bind_methods
from graphir.numpy_api.ufuncs import BINARY, COMPARISONS, MATMUL, UNARY
from graphir.ops.op import GraphValue
from graphir.semantics.library_calls import Function

# -- operators


def operator_method(
    function: Callable[..., Any], call: Callable[..., Any] = ufunc_calls.operate
) -> Any:
    """Return the method of an operator, by `call(function, *operands)`."""

    def operate(self: Any, *other: Any) -> Any:
        return call(function, self, *other)

    return operate


def _reflected(function: Function) -> Any:
    def operate(self: GraphValue, other: Any) -> Any:
        return ufunc_calls.operate(function, other, self)

    return operate


def _in_place(function: Function, ufunc: np.ufunc) -> Any:
    def operate(self: GraphValue, other: Any) -> Any:
        return ufunc_calls.in_place(function, ufunc, self, other)

    return operate


def _add_operators(cls: type, in_place: bool) -> None:
    """Add NumPy's operators to a class of symbolic values."""

    def define(name: str, method: Function) -> None:
        setattr(cls, f"__{name}__", method)

    for name, (function, _) in (*UNARY.items(), *COMPARISONS.items()):
        define(name, operator_method(function))
    for name, (function, ufunc) in BINARY.items():
        if issubclass(cls, ScalarValue) and function is MATMUL:
            continue  # NumPy's scalars have no @
        define(name, operator_method(function))
        define(f"r{name}", _reflected(function))
        if in_place and name != "divmod":
            define(f"i{name}", _in_place(function, ufunc))


def stands_for(numpys: type, in_place: bool) -> Callable[[type[Class]], type[Class]]:
    """Class decorator: give a class of symbolic values the behaviour of one of NumPy's classes.

    The decorator changes the class in four steps:

    - The methods with names of ndarray's take arguments by NumPy's signatures (`bind_methods`).
    - The class gets NumPy's operators, and with `in_place` the assignments `+=` and so on.
    - Every method and attribute that a program can use is at the boundary (`bounded`), operators
      included.
    - Programs do not see the attributes that `numpys` lacks (`hide_attributes`).
    """

    def decorate(cls: type[Class]) -> type[Class]:
        bind_methods(cls)
        _add_operators(cls, in_place)
        bounded(cls)
        hide_attributes(cls, numpys)
        return cls

    return decorate


# -- dispatch, and methods that call functions


def ufunc_protocol(call: Callable[..., Any]) -> Any:
    """Return `__array_ufunc__` by `call(ufunc, method, inputs, keywords)`."""

    def __array_ufunc__(  # noqa: N807 -- NumPy's name
        self: GraphValue, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        return call(ufunc, method, inputs, kwargs)

    return __array_ufunc__


@bounded
class DispatchProtocols:
    """NumPy's dispatch protocols, `__array_ufunc__` and `__array_function__`."""

    __slots__ = ()

    __array_ufunc__ = ufunc_protocol(ufunc_calls.call_ufunc)

    def __array_function__(
        self, function: Function, _: Collection[type], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return function_calls.call_like(self, function, args, kwargs)


def method_of(function: Function) -> Callable[..., Any]:
    """Return the method that calls a NumPy function with the value as its first argument."""

    def method(self: TracedValue, *args: Any, **kwargs: Any) -> Any:
        return function_calls.call_function(function, (self, *args), kwargs)

    return method


def number_method(kind: Callable[[Any], complex]) -> Callable[[Any], Any]:
    """Return the conversion to a Python number, which an array with known values has."""

    def convert(self: Any) -> Any:
        return kind(self.plain if self.is_known else self.read())

    return convert


REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std")
"""The methods that call the NumPy function of the same name, of selections too."""
_OF_FUNCTIONS = (
    *REDUCTIONS,
    *("argmax", "argmin", "argsort", "cumsum", "cumprod", "round", "trace"),
    *("take", "repeat", "searchsorted", "nonzero", "choose"),
)


def with_functions(names: Iterable[str]) -> Callable[[type[Class]], type[Class]]:
    """Class decorator: add methods that call the NumPy functions of the same names."""

    def decorate(cls: type[Class]) -> type[Class]:
        for name in names:
            setattr(cls, name, method_of(getattr(np, name)))
        return cls

    return decorate


@bounded
@with_functions(_OF_FUNCTIONS)
class FunctionMethods:
    """The methods of ndarrays and scalars that call the NumPy function of the same name."""

    __slots__ = ()

    __bool__ = number_method(bool)
    __float__ = number_method(float)
    __int__ = number_method(int)
    __complex__ = number_method(complex)

    def __index__(self) -> int:
        x: Any = self
        return operator.index(x.plain if x.is_known else x.read())

    def compress(self, condition: ArrayLike, axis: Int | None = None, out: Any = None) -> Any:
        """Return the slices at which a condition is true."""
        return function_calls.call_function(np.compress, (condition, self, axis), {"out": out})

    def clip(self, min: Any = None, max: Any = None, out: ArrayValue | None = None) -> Any:  # noqa: A002
        """Return the elements between two bounds."""
        return function_calls.call_function(np.clip, (self, min, max), {"out": out})

    def conj(self) -> Any:
        """Return the complex conjugate; of real numbers the array itself, as NumPy does."""
        x: Any = self
        if x.dtype.kind != "c":
            return x
        return ufunc_calls.call_ufunc(np.conjugate, "__call__", (x,), {})

    conjugate = conj


def _of_known(name: str) -> Any:
    """Return the method that is the ndarray's, for known values alone."""

    def method(self: TracedValue, *args: Any) -> Any:
        return _plain_attribute(self, name)(*args)

    return method


@bounded
class UnknownValueMethods:
    """What a program can ask of a value that exists when the graph runs: text, bytes, memory.

    Known values answer. Other questions end the trace.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return _text(self, repr)

    def __str__(self) -> str:
        return _text(self, str)

    def __format__(self, how: str) -> str:
        return _text(self, format, how)

    __reduce_ex__ = _of_known("__reduce_ex__")
    __reduce__ = _of_known("__reduce__")
    __getstate__ = _of_known("__getstate__")
    __sizeof__ = _of_known("__sizeof__")
    __bytes__ = _of_known("tobytes")

    def __buffer__(self, flags: int) -> memoryview:
        value: Any = self
        if not value.is_known:
            refuse_conversion(value)
        return memoryview(value.__array__())

    def __dlpack__(self, *_: Any, **__: Any) -> Any:
        return _plain_attribute(self, "__dlpack__")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # NumPy's: the CPU

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        plainly(np.empty(()).__array_namespace__, api_version=api_version)
        return TRACED_NUMPY

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        is_scalar = return_scalar and isinstance(array, ArrayValue) and not array.dims
        return cast("Any", array)[()] if is_scalar else array

    device = property(lambda _: "cpu", doc="The device of the memory.")

    def to_device(self, device: str, /, *, stream: int | None = None) -> Any:
        """Return the value itself, which is on the CPU."""
        plainly(np.empty(()).to_device, device, stream=stream)
        return self

    def __dir__(self) -> list[str]:
        return dir(numpy_class(self))

    def __getattr__(self, name: str) -> Any:
        value: Any = self
        if name not in attributes_of(value):
            kind = numpy_class(value)
            text = f"{kind.__module__}.{kind.__name__!s} object has no attribute {name!r}"
            raise ArrayAttributeError(text)
        if value.is_known and name in _OF_MEMORY:
            return getattr(value.__array__(), name)
        if name in ("__array_struct__", "__array_interface__"):
            refuse_conversion(value)
        if name in WRITING:
            refuse_write(name)
        raise unknown_values_error()


_OF_MEMORY = frozenset(("__array_struct__", "__array_interface__", "data", "ctypes"))
"""The attributes of an ndarray that tell where its memory is; it is read-only."""


def refuse_conversion(value: TracedValue) -> NoReturn:
    """Raise ValuelessError: compiled code asks for the values of an array, as `np.float64(x)`."""
    try:
        Symbol.__array__(value.read())
    except ValuelessError as error:
        raise error.having(fixes=_CONVERSIONS) from None
    raise AssertionError  # which has raised


_CONVERSIONS = (
    "use x.astype(np.float64) for np.float64(x)",
    "np.stack(list) for an array of a list",
    "and pass an array that x indexes as an argument",
)


def _plain_attribute(value: Any, name: str) -> Any:
    """Return an attribute of the ndarray of a known value."""
    if not value.is_known:
        raise unknown_values_error()
    return getattr(value.plain, name)


def _text(value: Any, function: Function, *how: str) -> str:
    if value.is_known:
        return function(value.plain, *how)
    if asks_in_trace(value.memory):
        raise unknown_values_error()
    return repr(value.read())


def unknown_values_error() -> GraphError:
    """Return the error for a question that needs the values of an array during the trace."""
    return GraphError(
        "the values of an array are known when the graph runs",
        fix="do this outside of the traced function",
    )

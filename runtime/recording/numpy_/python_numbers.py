"""Recorded Python floats: their arithmetic is recorded as that of NumPy's float64.

`float(x)`, `x.item()` and `math.sqrt(x)` of recorded values are floats of Python's class that also
have the symbol of a recorded float64. An operator computes Python's float and the recorded scalar.
Where the two differ, the operands are read, and the result is a plain float. Compiled code reads
the memory of such a float without a call of its methods: `read_number` notes that. An integer that
the program makes of a recorded value is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from math import isnan
from types import FunctionType
from typing import Any, cast

import numpy as np

from graphir import DType
from graphir.runtime.recording.leaving import AS_NUMBER, Texts, number_of
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedFloat,
    TracedScalar,
    active,
    plain,
    plains,
)

SHORT = 1000
"""The most elements of an array that become recorded numbers of Python."""
EXACT = 2**53
"""The bound of the integers that float64 holds."""


# -- numbers of recorded values


def traced_float(value: Any, number: float) -> float:
    """Return a Python float of a recorded value, recorded if the program may go on by it.

    It is recorded only beside numbers that are narrower than those of Python: other values have
    no errors that the float could carry on.
    """
    recorder, symbol = active(), None
    if recorder is not None and recorder.locate() and recorder.has_narrow_dtypes:
        symbol = None if recorder.sites.leaves() else recorder.before(value)
    if recorder is None or symbol is None or symbol.dtype.is_complex:
        return number_of("float", value, number)
    symbol = recorder.cast(recorder.reshaped(symbol, ()), DType.float64)
    return _with(number, recorder.wrapped(np.float64(number), symbol))


def function_of(name: str, value: Any, number: float) -> Any:
    """Return a result of a function of Python's math modules, recorded as that of NumPy's name."""
    x = value if isinstance(value, TracedFloat) else traced_float(value, float(plain(value)))
    if not isinstance(x, TracedFloat):
        return number
    with np.errstate(all="ignore"):
        return _with(number, getattr(np, name)(x.scalar))


def _with(number: float, scalar: Any) -> Any:
    """Return a recorded float with the symbol of a scalar, which NumPy may have rounded otherwise.

    It is a plain one if the scalar has another value.
    """
    recorder, value = active(), float(plain(scalar))
    is_close = math.isclose(value, number, rel_tol=1e-14) or (isnan(value) and isnan(number))
    if recorder is None or not isinstance(scalar, TracedScalar) or not is_close:
        return number_of("float", scalar, number)
    if value != number and not isnan(value):
        recorder.observed[scalar.symbol] = np.array(number)
        scalar = recorder.wrapped(np.float64(number), scalar.symbol)
    recorder.float_count += 1
    result = float.__new__(RecordedFloat, number)
    result.plain, result.scalar = number, scalar
    return result


class PythonNumbers:
    """The methods of recorded arrays and scalars that give Python numbers."""

    __slots__ = ()

    def item(self, *args: Any) -> Any:
        """Return an element as a Python number, which is recorded if the program goes on by it."""
        real = plain(self)
        number = real.item(*args)
        if type(number) is float and real.size == 1:
            return traced_float(self, number)
        return number_of("item", self, number)

    def tolist(self) -> Any:
        """Return the elements as Python numbers; floats of a short vector are recorded."""
        real = plain(self)
        is_short = real.dtype.kind == "f" and real.ndim == 1 and real.size <= SHORT
        recorder = active() if is_short else None
        if recorder is not None and recorder.has_narrow_dtypes and not recorder.sites.leaves():
            return list(map(traced_float, cast("Any", self), real.tolist()))
        return number_of("tolist", self, real.tolist())

    def __float__(self) -> float:
        return number_of("float", self, float(plain(self)))

    def __int__(self) -> int:
        return number_of("int", self, int(plain(self)))

    def __complex__(self) -> complex:
        return number_of("complex", self, complex(plain(self)))


# -- classes


class RecordedFloat(Texts, TracedFloat):
    """A Python float whose arithmetic is recorded, as that of a float64 without its warnings.

    A call of its class, as `type(x)(value)`, makes a plain float.
    """

    __slots__ = ()

    def __new__(cls, *args: Any) -> Any:
        """Return a plain float."""
        return float(*args)

    def __float__(self) -> float:
        return number_of("float", self.scalar, self.plain)

    def __int__(self) -> int:
        return number_of("int", self.scalar, int(self.plain))

    def __bool__(self) -> bool:
        return bool(self.scalar != 0.0)

    @property
    def real(self) -> Any:
        """The float itself."""
        return self

    def conjugate(self) -> Any:
        """Return the float itself."""
        return self

    def __round__(self, *digits: Any) -> Any:
        return number_of("round", self.scalar, round(self.plain, *plains(digits)))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return float, (number_of("__reduce_ex__", self.scalar, self.plain),)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


# -- operators


def _float_operator(name: str) -> Callable[..., Any]:
    compute = getattr(float, name)

    def method(self: RecordedFloat, *others: Any) -> Any:
        if not all(type(x) in _NUMBERS for x in others):
            if any(map(reads_numbers, others)):
                read_number(name, self)
            return NotImplemented
        number = compute(self.plain, *map(plain, others))
        recorder = active()
        if recorder is None or number is NotImplemented:
            return number
        is_beyond = type(number) is bool and any(map(_is_beyond, others))
        if is_beyond or type(number) not in (float, bool):  # a complex power, or a pair
            return _read_all(name, number, self, *others)
        operands = [x.scalar if type(x) is RecordedFloat else float(x) for x in others]
        with np.errstate(all="ignore"):
            scalar = getattr(self.scalar, name)(*operands)
        if type(number) is bool:
            return number
        return _with(number, scalar)

    method.__name__ = name
    return method


def _is_beyond(number: Any) -> bool:
    """Whether an integer is compared otherwise as a float."""
    return isinstance(number, int) and abs(number) >= EXACT


def _read_all(name: str, number: Any, *operands: Any) -> Any:
    for operand in operands:
        read_number(name, operand)
    return number


def reads_numbers(operand: Any) -> bool:
    """Whether an operator of a value reads the memory of a float: it is compiled, unrecorded code.

    Operators that are written in Python compute with the recorded float.
    """
    return _kind_reads_numbers(cast("Any", type(operand)))


@lru_cache(maxsize=1024)
def _kind_reads_numbers(kind: type[Any]) -> bool:
    is_recorded = issubclass(kind, (RecordedValue, TracedScalar, TracedFloat))
    operator = None if is_recorded or kind in ASKING else getattr(kind, "__rmul__", None)
    return operator is not None and not isinstance(operator, FunctionType)


ASKING = frozenset((int, bool, float, str, bytes, bytearray, list, tuple))
"""The types of Python whose operators leave those with a recorded float to the float."""


def read_number(name: str, value: Any) -> None:
    """Note that the program may go on by a recorded number; other values need no note.

    Compiled code reads the memory of NumPy's float64 too, as that is a float of Python.
    """
    recorder, is_python = active(), isinstance(value, TracedFloat)
    scalar = value.scalar if is_python else value
    if recorder is None or not isinstance(scalar, TracedScalar):
        return
    if is_python or isinstance(scalar, float):
        recorder.locate()
        recorder.read(name, scalar, AS_NUMBER)


def _reading_method(name: str) -> Any:
    own = getattr(float, name)
    if not callable(own):
        return property(lambda self: getattr(_read(name, self), name))

    def method(self: Any, *args: Any) -> Any:
        return getattr(_read(name, self), name)(*map(partial(_read, name), args))

    method.__name__ = name
    return method


def _read(name: str, value: Any) -> Any:
    read_number(name, value)
    return plain(value)


_NUMBERS = frozenset((int, float, bool, RecordedFloat))
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod")
_UNARY = ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne")
for _name in (*(f"__{x}__" for x in (*_BINARY, *_UNARY)), *(f"__r{x}__" for x in _BINARY)):
    setattr(RecordedFloat, _name, _float_operator(_name))
_OF_OBJECTS = frozenset(("__class_getitem__", "__getformat__", "fromhex", "imag", *dir(object)))
"""The attributes of floats that do not depend on the value."""
for _name in (*(x for x in dir(float) if x not in _OF_OBJECTS), "__hash__"):
    if _name not in vars(RecordedFloat):
        setattr(RecordedFloat, _name, _reading_method(_name))

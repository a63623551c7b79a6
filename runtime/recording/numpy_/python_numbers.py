"""Recorded Python numbers: floats and integers whose arithmetic is recorded as NumPy's.

`float(x)`, `int(x)` and `x.item()` of recorded values are numbers of Python's classes, which also
have the symbol of a recorded scalar: a float64 or an int64. An operator computes Python's number
and the recorded scalar. Where the two differ, as for integers beyond 64 bits, the operands are
read, and the result is a plain number. Compiled code reads the memory of such a number without a
call of its methods: `read_number` notes that.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from math import isnan
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, SupportsIndex, TypeVar, cast
from weakref import WeakValueDictionary

import numpy as np

from graphir.numpy_api.view_steps import Cut
from graphir.public import DType, Symbol
from graphir.runtime.recording.leaving import AS_NUMBER, Texts, number_of
from graphir.runtime.recording.sites import program_frame
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    TracedFloat,
    TracedInt,
    TracedScalar,
    active,
    plain,
    plains,
)

SHORT = 1000
"""The most elements of an array that become recorded numbers of Python."""
EXACT = 2**53
"""The bound of the integers that float64 holds, and that Python and NumPy divide alike."""
WATCHED: WeakValueDictionary[int, CodeType] = WeakValueDictionary()
"""The code, by its id, that asks before it reads an integer (see numpy_.calls)."""


# -- numbers of recorded values


def traced_float(value: Any, number: float) -> float:
    """Return a Python float of a recorded value, recorded if the program may go on by it.

    It is recorded only beside numbers that are narrower than those of Python: other values have
    no errors that the float could carry on.
    """
    symbol = _symbol_going_on(value)
    if symbol is None:
        return number_of("float", value, number)
    return float_of_symbol(symbol, number)


def traced_int(name: str, value: Any, number: int, frame: FrameType | None = None) -> int:
    """Return a Python integer of a recorded value, recorded as `traced_float` does.

    `frame` is that of the program, if it may run code that reads integers unseen. A float becomes
    an integer by a cast.
    """
    is_watched = frame is None or id(frame.f_code) in WATCHED
    symbol = _symbol_going_on(value) if is_watched and fits(number) else None
    if symbol is None or (symbol.dtype.is_float and abs(number) >= 2**62):
        return number_of(name, value, number)
    return int_of_symbol(symbol, number)


def _symbol_going_on(value: Any) -> Symbol | None:
    """Return the symbol of one real number, if the program may go on by it; else None."""
    recorder = active()
    if recorder is None or not recorder.locate() or not recorder.has_narrow_dtypes:
        return None
    if recorder.sites.is_escape():
        return None
    symbol = recorder.before(value)
    return None if symbol is None or symbol.dtype.is_complex else symbol


def float_of_symbol(symbol: Symbol, number: float) -> float:
    """Return a recorded float with the values of a symbol of one element."""
    recorder = active()
    if recorder is None:
        return number
    symbol = recorder.cast(recorder.reshaped(symbol, ()), DType.float64)
    return _recorded_float(number, recorder.wrapped(np.float64(number), symbol))


def int_of_symbol(symbol: Symbol, number: int) -> int:
    """Return a recorded integer with the values of a symbol of one element."""
    recorder = active()
    if recorder is None:
        return number
    symbol = recorder.cast(recorder.reshaped(symbol, ()), DType.int64)
    return _recorded_int(number, recorder.wrapped(np.int64(number), symbol))


def numbers_of(array: RecordedValue | TracedScalar) -> np.ndarray[Any, Any] | None:
    """Return the elements of a recorded array as recorded numbers of Python, in an object array.

    Bools are read. The answer is None for other elements than real numbers, and for many.
    """
    recorder, real = active(), plain(array)
    if recorder is None or real.dtype.kind not in "fiu" or real.size > SHORT:
        return None
    symbol = recorder.before(array)
    if symbol is None or real.dtype.char == "g":
        return None
    make: Any = float_of_symbol if real.dtype.kind == "f" else int_of_symbol
    flat = recorder.reshaped(symbol, (real.size,))
    result: Any = np.empty_like(real, object, subok=False)
    for at, number in enumerate(real.reshape(-1).tolist()):
        if not fits(number):
            recorder.read("an integer", _element(flat, at), AS_NUMBER)
        result.flat[at] = make(_element(flat, at), number) if fits(number) else number
    return result


def _element(vector: Symbol, at: int) -> Symbol:
    return Cut((at,), (at + 1,), (1,), ()).forward(cast("Any", active()), vector)


def fits(number: float) -> bool:
    """Whether a Python number is a float, or an integer that int64 holds."""
    return isinstance(number, float) or -(2**63) <= number < 2**63


def function_of(name: str, value: Any, number: float) -> Any:
    """Return a result of a function of Python's math modules, recorded as that of NumPy's name."""
    x = value if isinstance(value, TracedFloat) else traced_float(value, float(plain(value)))
    if not isinstance(x, TracedFloat):
        return number
    with np.errstate(all="ignore"):
        return _recorded_float(number, getattr(np, name)(x.scalar))


def rounded(name: str, value: Any, number: int, function: Callable[..., Any] | None = None) -> Any:
    """Return an integer that Python makes of a recorded number, by a function of NumPy on floats.

    Without function, it is the truncated float.
    """
    x = value.scalar if isinstance(value, RecordedNumber) else value
    if function is None or x.dtype.kind != "f" or active() is None:
        return traced_int(name, x, number, program_frame())
    return traced_int(name, function(x), number, program_frame())


def is_watched(function: Callable[..., Any]) -> bool:
    """Whether a function runs code of the program that asks before it reads recorded numbers."""
    while isinstance(function, (partial, MethodType)):
        function = function.func if isinstance(function, partial) else function.__func__
    return isinstance(function, FunctionType) and id(function.__code__) in WATCHED


def _recorded_float(number: float, scalar: Any) -> Any:
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
    recorder.numbers.add_float()
    result = float.__new__(RecordedFloat, number)
    result.plain, result.scalar = number, scalar
    return result


def _recorded_int(number: int, scalar: Any) -> Any:
    """Return a recorded integer with the symbol of a scalar of the same value."""
    recorder = active()
    assert recorder is not None and plain(scalar) == number
    recorder.numbers.add_integer()
    result = int.__new__(RecordedInt, number)
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
        if type(number) is int and real.size == 1:
            return traced_int("item", self, number, program_frame())
        return number_of("item", self, number)

    def tolist(self) -> Any:
        """Return the elements as Python numbers; floats of a short vector are recorded."""
        real = plain(self)
        is_short = real.dtype.kind == "f" and real.ndim == 1 and real.size <= SHORT
        recorder = active() if is_short else None
        if recorder is not None and recorder.has_narrow_dtypes and not recorder.sites.is_escape():
            return list(map(traced_float, cast("Any", self), real.tolist()))
        return number_of("tolist", self, real.tolist())

    def __float__(self) -> float:
        return number_of("float", self, float(plain(self)))

    def __int__(self) -> int:
        return number_of("int", self, int(plain(self)))

    def __complex__(self) -> complex:
        return number_of("complex", self, complex(plain(self)))


# -- operators

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod")
_OF_BITS = ("and", "or", "xor", "lshift", "rshift")
_UNARY = ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne")
_ARITHMETIC = (*(f"__{x}__" for x in (*_BINARY, *_UNARY)), *(f"__r{x}__" for x in _BINARY))
_OF_INTEGERS = ("__invert__", *(f"__{y}{x}__" for x in _OF_BITS for y in ("", "r")))
_QUOTIENTS = "__truediv__", "__rtruediv__"
_COMPARISONS = {f"__{x}__": getattr(operator, x) for x in ("lt", "le", "gt", "ge", "eq", "ne")}


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
        operands = [x.scalar if type(x) in _RECORDED else float(x) for x in others]
        with np.errstate(all="ignore"):
            scalar = getattr(self.scalar, name)(*operands)
        if type(number) is bool:
            return number
        return _recorded_float(number, scalar)

    method.__name__ = name
    return method


def _is_beyond(number: float) -> bool:
    """Whether an integer is compared otherwise as a float."""
    return isinstance(number, int) and abs(plain(number)) >= EXACT


def _int_operator(name: str) -> Callable[..., Any]:
    compute = getattr(int, name)

    def method(self: RecordedInt, *others: Any) -> Any:
        kinds = {*map(type, others)}
        if not kinds <= _NUMBERS:
            if any(map(_reads_integers, others)):
                read_number(name, self)
            return NotImplemented
        if kinds & _FLOATS:
            if name in _COMPARISONS and abs(self.plain) >= EXACT:
                number = _COMPARISONS[name](self.plain, *map(plain, others))
                return _read_all(name, number, self, *others)
            return getattr(as_float(self), name, _not_implemented)(*others)
        number = compute(self.plain, *map(plain, others))
        if active() is None or number is NotImplemented:
            return number
        if len(others) > 1 or not all(map(_is_alike, (number, self, *others))):
            return _read_all(name, number, self, *others)
        operands = [x.scalar if type(x) is RecordedInt else int(x) for x in others]
        with np.errstate(all="ignore"):
            scalar = getattr(self.scalar, name)(*operands)
        if type(number) is bool:
            return number
        if not isinstance(scalar, TracedScalar) or plain(scalar) != number:
            return _read_all(name, number, self, *others)
        make: Any = _recorded_int if type(number) is int else _recorded_float
        return make(number, scalar)

    def _is_alike(x: Any) -> bool:
        """Whether NumPy computes this operand or result as Python does."""
        if type(x) is int or type(x) is RecordedInt:
            return abs(x.plain if type(x) is RecordedInt else x) < bound
        return type(x) in (float, bool) and (type(x) is bool or name in _QUOTIENTS)

    bound = EXACT if name in _QUOTIENTS else 2**63
    method.__name__ = name
    return method


def _not_implemented(*_: Any) -> Any:
    return NotImplemented


def _read_all(name: str, number: Any, *operands: Any) -> Any:
    for operand in operands:
        read_number(name, operand)
    return number


def as_float(number: RecordedNumber) -> Any:
    """Return a recorded integer as a recorded float; raises OverflowError as Python does."""
    real = float(number.plain)
    return float_of_symbol(number.scalar.symbol, real)


def reads_numbers(operand: Any) -> bool:
    """Whether an operator of a value reads the memory of a float: it is compiled, unrecorded code.

    Operators that are written in Python compute with the recorded float.
    """
    return _kind_reads_numbers(cast("Any", type(operand)))


@lru_cache(maxsize=1024)
def _kind_reads_numbers(kind: type[Any]) -> bool:
    is_recorded = issubclass(kind, (RecordedValue, TracedScalar, RecordedNumber))
    operator = None if is_recorded or kind in ASKING else getattr(kind, "__rmul__", None)
    return operator is not None and not isinstance(operator, FunctionType)


def _reads_integers(operand: Any) -> bool:
    """Whether an operator of a value reads the memory of an integer, as `[0] * n` does."""
    return type(operand) in _SEQUENCES or reads_numbers(operand)


_SEQUENCES = frozenset((str, bytes, bytearray, list, tuple))
ASKING = frozenset((int, bool, float, *_SEQUENCES))
"""The types of Python whose operators leave those with a recorded float to the float."""


def read_number(name: str, value: Any) -> None:
    """Note that the program may go on by a recorded number; other values need no note.

    Compiled code reads the memory of NumPy's float64 too, as that is a float of Python.
    """
    recorder, is_python = active(), isinstance(value, RecordedNumber)
    scalar = value.scalar if is_python else value
    if recorder is None or not isinstance(scalar, TracedScalar):
        return
    if is_python or isinstance(scalar, float):
        recorder.locate()
        recorder.read(name, scalar, AS_NUMBER)


def _reading_method(base: type[Any], name: str) -> Any:
    own = getattr(base, name)
    if not callable(own):
        return property(lambda self: getattr(_read_plain(name, self), name))

    def method(self: RecordedFloat | RecordedInt, *args: Any) -> Any:
        return getattr(_read_plain(name, self), name)(*map(partial(_read_plain, name), args))

    method.__name__ = name
    return method


def _read_plain(name: str, value: Any) -> Any:
    read_number(name, value)
    return plain(value)


# -- classes


class _Number(Texts):
    """The methods that recorded floats and integers share.

    A call of their classes, as `type(x)(value)`, makes a plain number.
    """

    __slots__ = ()

    plain: Any
    scalar: Any

    def __new__(cls, *args: Any) -> Any:
        """Return a plain number."""
        return cls.__mro__[-2](*args)

    def __float__(self) -> float:
        return number_of("float", self.scalar, float(self.plain))

    def __int__(self) -> int:
        return number_of("int", self.scalar, int(self.plain))

    def __bool__(self) -> bool:
        return bool(self.scalar != 0)

    def conjugate(self, *_: Any) -> Any:
        """Return the number itself."""
        return self

    real = property(conjugate)
    __copy__ = __deepcopy__ = conjugate

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return type(self.plain), (number_of("__reduce_ex__", self.scalar, self.plain),)


_MAKING = ("__class_getitem__", "__getformat__", "fromhex", "from_bytes")
_OF_OBJECTS = frozenset((*_MAKING, *dir(object)))
"""The attributes of numbers that do not depend on the value."""
_Class = TypeVar("_Class", bound=type)


def _with_attributes(
    operator_of: Callable[[str], Any], names: Iterable[str]
) -> Callable[[_Class], _Class]:
    """Class decorator: adds the attributes of Python's number that the class does not define.

    Those of `names` are operators, made by `operator_of(name)`; all others read the number.
    """

    def add(kind: _Class) -> _Class:
        base: Any = kind.__mro__[-2]
        for name in names:
            setattr(kind, name, operator_of(name))
        for name in (*(x for x in dir(base) if x not in _OF_OBJECTS), "__hash__"):
            if name not in {*vars(kind), *vars(_Number), "imag", "denominator"}:
                setattr(kind, name, _reading_method(base, name))
        return kind

    return add


@_with_attributes(_float_operator, _ARITHMETIC)
class RecordedFloat(_Number, TracedFloat):
    """A Python float whose arithmetic is recorded, as that of a float64 without its warnings."""

    __slots__ = ()

    def __round__(self, *digits: Any) -> Any:
        number = round(self.plain, *plains(digits))
        if type(number) is int:
            return rounded("round", self, number, np.rint)
        return number_of("round", self.scalar, number)


@_with_attributes(_int_operator, (*_ARITHMETIC, *_OF_INTEGERS))
class RecordedInt(_Number, TracedInt):
    """A Python integer whose arithmetic is recorded as that of an int64, while it fits in one."""

    numerator = _Number.real  # pyright: ignore[reportIncompatibleMethodOverride]
    __floor__ = __ceil__ = __trunc__ = cast("Any", _Number.conjugate)

    def __round__(self, *digits: Any) -> Any:
        return _read_plain("round", self).__round__(*plains(digits)) if digits else self


_RECORDED = frozenset((RecordedFloat, RecordedInt))
_FLOATS = frozenset((float, RecordedFloat))
_NUMBERS = frozenset((int, float, bool, *_RECORDED))

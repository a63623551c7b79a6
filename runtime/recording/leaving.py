"""The ways in which recorded values leave the recording: as Python numbers, bools and bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from math import isnan
from types import FunctionType
from typing import Any, cast

import numpy as np

from graphir import DType
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedFloat,
    TracedScalar,
    active,
    plain,
    plains,
)

_SHORT = 1000
"""The most elements of a list of recorded floats."""
AS_BYTES = "gives its bytes to what is not recorded"
AS_NUMBER = "is read as a Python number, by which the program may go on"
AS_TEXT = "is read as text, by which the program may go on"
AS_TRUTH = "is read as a bool, by which the program may go on"


def reading(name: str, reason: str, truth: bool = False) -> Callable[..., Any]:
    """Return a method that calls NumPy's method on the plain value, and notes that values left.

    `truth` is whether only the truth of the value leaves.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None:
            recorder.locate()
            if reason == AS_BYTES:
                recorder.hand_out(name, self, reason)
            else:
                recorder.read(name, self, reason, truth)
        return getattr(self.plain, name)(*plains(args), **plains(kwargs))

    method.__name__ = name
    return method


def number_of(name: str, value: Any, number: Any) -> Any:
    """Return the Python number of a recorded value, and note that the value left the recording.

    The graph can contain such a number only as a literal. If the number leaves the program (see
    passes.analysis.value_flows), the recorded value is an output.
    """
    recorder = active()
    if recorder is not None:
        recorder.locate()
        if name == "float" and value.dtype.kind in "iu" and recorder.sites.leaves():
            value = value.astype(np.float64)  # a cast of the graph, which may round
        if recorder.hand_out(name, value, "makes Python numbers, by which the program may go on"):
            return number
        recorder.note(name, "makes Python numbers: they are taken as literals")
        if value.size == 1:
            recorder.numbers[id(number)] = number, value
    return number


def text_of(value: Any, text: str) -> str:
    """Return the text of a recorded value, and note that the value leaves the program.

    If the program may go on by the text, the value is read.
    """
    recorder = active()
    if recorder is not None and recorder.locate():
        recorder.hand_out("str", value, AS_TEXT)
    return text


def traced_float(value: Any, number: float) -> float:
    """Return a Python float of a recorded value, recorded if the program may go on by it.

    It is recorded only beside numbers that are narrower than those of Python: other values have
    no errors that the float could carry on.
    """
    recorder = active()
    if recorder is None or not recorder.locate() or not recorder.has_narrow_dtypes:
        return number_of("float", value, number)
    if recorder.sites.leaves():
        return number_of("float", value, number)
    symbol = recorder.before(value)
    if symbol is None or symbol.dtype.is_complex:
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


class Texts:
    """The methods of recorded arrays and scalars that give texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self, repr(plain(self)))

    def __str__(self) -> str:
        return text_of(self, str(plain(self)))

    def __format__(self, spec: str) -> str:
        return text_of(self, format(plain(self), spec))


class PythonNumbers:
    """The methods of recorded arrays and scalars that give Python numbers."""

    __slots__ = ()

    def item(self, *args: Any) -> Any:
        """Return an element as a Python number, which is not recorded any more."""
        real = plain(self)
        number = real.item(*args)
        if type(number) is float and real.size == 1:
            return traced_float(self, number)
        return number_of("item", self, number)

    def tolist(self) -> Any:
        """Return the elements as Python numbers; floats of a short vector are recorded."""
        real = plain(self)
        is_short = real.dtype.kind == "f" and real.ndim == 1 and real.size <= _SHORT
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


def _float_operator(name: str) -> Callable[..., Any]:
    compute = getattr(float, name)

    def method(self: RecordedFloat, *others: Any) -> Any:
        if not all(type(x) in (int, float, bool, RecordedFloat) for x in others):
            if any(map(reads_floats, others)):
                read_float(name, self)
            return NotImplemented
        number = compute(self.plain, *map(plain, others))
        recorder = active()
        if recorder is None or number is NotImplemented:
            return number
        if type(number) not in (float, bool):  # a complex power, or a pair
            for x in (self, *others):
                read_float(name, x)
            return number
        operands = [x.scalar if type(x) is RecordedFloat else float(x) for x in others]
        with np.errstate(all="ignore"):
            scalar = getattr(self.scalar, name)(*operands)
        if type(number) is bool:
            return number
        return _with(number, scalar)

    method.__name__ = name
    return method


def reads_floats(operand: Any) -> bool:
    """Whether an operator of a value reads the memory of a float: it is compiled, unrecorded code.

    Operators that are written in Python compute with the recorded float.
    """
    return _kind_reads_floats(cast("Any", type(operand)))


@lru_cache(maxsize=1024)
def _kind_reads_floats(kind: type[Any]) -> bool:
    is_recorded = issubclass(kind, (RecordedValue, TracedScalar, TracedFloat))
    operator = None if is_recorded or kind in ASKING else getattr(kind, "__rmul__", None)
    return operator is not None and not isinstance(operator, FunctionType)


ASKING = frozenset((int, bool, float, str, bytes, bytearray, list, tuple))
"""The types of Python whose operators leave those with a recorded float to the float."""


def read_float(name: str, value: Any) -> None:
    """Note that the program may go on by a recorded float; other values need no note.

    Compiled code reads the memory of NumPy's float64 too, as that is a float of Python.
    """
    recorder, value = active(), value.scalar if isinstance(value, TracedFloat) else value
    if recorder is not None and isinstance(value, TracedScalar) and isinstance(value, float):
        recorder.locate()
        recorder.read(name, value, AS_NUMBER)


def _reading_method(name: str) -> Any:
    own = getattr(float, name)
    if not callable(own):
        return property(lambda self: getattr(_read(name, self), name))

    def method(self: RecordedFloat, *args: Any) -> Any:
        return getattr(_read(name, self), name)(*map(partial(_read, name), args))

    method.__name__ = name
    return method


def _read(name: str, value: Any) -> Any:
    read_float(name, value)
    return plain(value)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod"):
    setattr(RecordedFloat, f"__{_name}__", _float_operator(f"__{_name}__"))
    setattr(RecordedFloat, f"__r{_name}__", _float_operator(f"__r{_name}__"))
for _name in ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(RecordedFloat, f"__{_name}__", _float_operator(f"__{_name}__"))
_OF_OBJECTS = frozenset(("__class_getitem__", "__getformat__", "fromhex", "imag", *dir(object)))
"""The attributes of floats that do not depend on the value."""
for _name in (*(x for x in dir(float) if x not in _OF_OBJECTS), "__hash__"):
    if _name not in vars(RecordedFloat):
        setattr(RecordedFloat, _name, _reading_method(_name))

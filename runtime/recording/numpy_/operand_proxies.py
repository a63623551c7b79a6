"""Proxies of operands and containers of compiled code, which note the numbers that it reads.

`0.5 * n` with a recorded integer `n` runs the operator of Python's float, and `row[n]` the
subscript of a list; both read the memory of `n`. In watched code, a proxy stands in place of
the left operand or of the container, and notes the read. The functions that watched code calls are
`left_operand`, `right_operand`, `container`, `sequence` and `read_integer`.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from graphir.runtime.recording.numpy_.python_numbers import (
    ASKING,
    EXACT,
    as_float,
    read_number,
    reads_numbers,
)
from graphir.runtime.recording.values import RecordedNumber, RecordedValue, TracedInt, active, plain
from graphir.semantics.library_calls import leaves

# -- integers


def read_integers(item: Any) -> Any:
    """Note the recorded integers in an item as read; return the item."""
    for value in leaves(item):
        if isinstance(value, TracedInt):
            read_number("a call", value)
    return item


def read_integer(value: Any) -> Any:
    """Return a value of which compiled code may read recorded integers, with these noted."""
    recorder = active()
    if recorder is None or not recorder.numbers.has_integers:
        return value
    return plain(read_integers(value)) if isinstance(value, TracedInt) else read_integers(value)


# -- operators

_INTEGER_READERS = frozenset((float, bool, str, bytes))
"""Types whose operators read the memory of an integer on the right."""
_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
_COMPUTING = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"),
    *("lshift", "rshift"),
)
_Class = TypeVar("_Class", bound=type)


def _read_right(name: str, left: Any, right: Any) -> None:
    """Note a recorded right operand as read; NumPy asks its own scalars for their operators."""
    if isinstance(right, RecordedNumber) or not isinstance(left, (np.ndarray, np.generic)):
        read_number(name, right)


def _noting_operator(name: str) -> Callable[..., Any]:
    """Return an operator of a `_LeftOperand` that computes as its value does."""
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        value = self._value
        is_float = type(value) is float
        if is_float and isinstance(other, TracedInt):
            if name not in _COMPARING or abs(other.plain) < EXACT:
                other = as_float(other)
            else:
                read_number(name, other)
        elif not is_float:
            _read_right(name, value, other)
        return compute(value, other)

    return method


def _with_operators(kind: _Class) -> _Class:
    """Class decorator: adds the methods of all binary operators and comparisons of `operator`."""
    for name in (*_COMPUTING, *_COMPARING):
        setattr(kind, f"__{name.rstrip('_')}__", _noting_operator(name))
    return kind


@_with_operators
class _LeftOperand:
    """A left operand whose compiled operators note a recorded number on the right as read."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value


def left_operand(value: Any) -> Any:
    """Return the left operand of an operator of the program."""
    recorder = active()
    if recorder is None:
        return value
    numbers = recorder.numbers
    if type(value) in _INTEGER_READERS:
        return _LeftOperand(value) if numbers.has_integers else value
    is_reader = type(value) not in ASKING and reads_numbers(value)
    return _LeftOperand(value) if is_reader and numbers.has_any else value


def right_operand(left: Any, value: Any) -> Any:
    """Return the right operand of an assignment such as `x *= value`."""
    if isinstance(value, TracedInt) and type(left) in _INTEGER_READERS:
        return as_float(value) if type(left) is float else read_integer(value)
    if type(left) not in ASKING and reads_numbers(left):
        _read_right("an operator", left, value)
    return value


# -- containers

_KEEPING = (list, dict, deque)
"""The compiled containers of Python that keep the values themselves."""


class _KeyReader:
    """A container of compiled code that notes recorded integers by which it finds its items."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, key: Any) -> Any:
        return self._value[read_integer(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._value[read_integer(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._value[read_integer(key)]


class _MemoryContainer(_KeyReader):
    """A container of compiled code that notes a recorded float which the program stores in it."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        for leaf in leaves(value):
            read_number("__setitem__", leaf)
        super().__setitem__(key, value)


def container(value: Any) -> Any:
    """Return the container in which the program stores an item."""
    recorder = active()
    kind: Any = cast("Any", type(value))
    if recorder is None or not recorder.numbers.has_any or isinstance(value, RecordedValue):
        return value
    if issubclass(kind, _KEEPING):
        return _KeyReader(value) if recorder.numbers.has_integers else value
    is_python = isinstance(getattr(kind, "__setitem__", None), FunctionType)
    return value if is_python else _MemoryContainer(value)


def sequence(value: Any) -> Any:
    """Return the container from which the program takes an item, or deletes one."""
    recorder = active()
    if recorder is None or not recorder.numbers.has_integers or isinstance(value, RecordedValue):
        return value
    is_python = isinstance(getattr(cast("Any", type(value)), "__getitem__", None), FunctionType)
    return value if is_python else _KeyReader(value)

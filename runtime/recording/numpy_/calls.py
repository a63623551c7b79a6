"""Calls of the program that leave NumPy: `np.float32(x)`, `"%f" % x`, `table.to_numpy()`.

A recorded scalar is a NumPy scalar, whose value compiled code reads from memory without a call of
any method. While a recording runs, the functions of the program therefore have other code: their
own, with a look at each function before they call it (see `watched_code`). `callee` chooses what
the program calls instead, by the kind of the function:

| function | what it reads of recorded arguments | the program calls instead |
|---|---|---|
| a function or ufunc of NumPy | lists, on which it does not dispatch | `recording_lists` |
| a scalar type of NumPy | the value, which it casts | `scalar_constructor` |
| a builtin such as `float`, `sum` | the value; the result is recorded | `IN_PLACE` |
| of a module in `READS_OF_MODULE` | numbers or bytes, or it writes them | `noting_arguments` |
| other compiled code | the numbers that `number_reads` tells | `noting_numbers` |
| `eval`, `exec` | anything | itself, with a note |
| a function of an installed package | integers; it makes data | `noting_integers(giving_data)` |
| a function of Python's library | integers | `noting_integers` |
| a function of the program | its own code is watched | itself |
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

import numpy as np

from graphir.runtime.recording.captured import LIBRARIES, is_user
from graphir.runtime.recording.leaving import AS_TEXT
from graphir.runtime.recording.numpy_ import call_wrappers as wrappers
from graphir.runtime.recording.numpy_.memory_readers import (
    BYTE_TYPES,
    READS_OF_MODULE,
    Reads,
    module_of,
)
from graphir.runtime.recording.numpy_.outside_data import wrap_outside
from graphir.runtime.recording.numpy_.python_functions import IN_PLACE
from graphir.runtime.recording.values import active, plains


def callee(function: Any) -> Any:
    """Return the function that the program calls in place of a function."""
    if active() is None:
        return function
    kind: Any = cast("Any", type(function))
    return _CALLEES.get(kind, _callee_of_object)(function)


def _callee_of_class(kind: Any) -> Any:
    if issubclass(kind, np.generic):
        return wrappers.scalar_constructor(cast("Any", kind))
    if id(kind) in IN_PLACE:
        return IN_PLACE[id(kind)]
    if kind in BYTE_TYPES:
        return wrappers.noting_arguments(kind, Reads.BYTES)
    if READS_OF_MODULE.get(kind.__module__) is Reads.NUMBERS:
        return wrappers.noting_arguments(kind, Reads.NUMBERS)
    return wrappers.noting_numbers(kind)


def _callee_of_compiled(function: Any) -> Any:
    """Return the callee of a compiled function, or of a compiled method with its object."""
    if isinstance(function.__self__, np.ufunc):
        return wrappers.recording_lists(function)
    if id(function) in IN_PLACE:
        return IN_PLACE[id(function)]
    if isinstance(function.__self__, bytes) and function.__name__ == "join":
        return wrappers.noting_arguments(function, Reads.BYTES)
    if function is eval or function is exec:
        _note_unseen(function)
        return function
    reads = READS_OF_MODULE.get(module_of(function).partition(".")[0])
    if reads is None or reads is Reads.FILE:
        reader = wrappers.noting_numbers(function)
        if reader is not function:
            return reader
    return _callee_of_python(function)


def _callee_of_python(function: Any) -> Any:
    """Return the callee of a function or method by its module, as if its code were Python's."""
    module = module_of(function)
    package = module.partition(".")[0]
    if package in READS_OF_MODULE:
        return wrappers.noting_arguments(function, READS_OF_MODULE[package])
    if is_user(module):
        return function
    called = function if package in LIBRARIES else wrappers.giving_data(function)
    return wrappers.noting_integers(called, function)


def _callee_of_object(function: Any) -> Any:
    """Return the callee of an object with `__call__`; a class of a metaclass is one of them."""
    if isinstance(function, type):
        return _callee_of_class(function)
    is_of_ufunc = isinstance(getattr(function, "__self__", None), np.ufunc)
    return wrappers.recording_lists(function) if is_of_ufunc else wrappers.noting_numbers(function)


_CALLEES: dict[type[Any], Callable[[Any], Any]] = {
    np.ufunc: wrappers.recording_lists,
    wrappers.DISPATCHER: wrappers.recording_lists,
    type: _callee_of_class,
    BuiltinFunctionType: _callee_of_compiled,
    FunctionType: _callee_of_python,
    MethodType: _callee_of_python,
}
"""For each type of a function, what returns the function that the program calls instead."""


def _note_unseen(function: Callable[..., Any]) -> None:
    """Note that `eval` or `exec` runs code that may read all recorded values in other ways."""
    recorder = active()
    if recorder is not None and recorder.numbers.has_any and recorder.locate():
        recorder.read(function.__name__, object(), "runs code whose source is not recorded")


def called_method(function: Callable[..., Any]) -> Any:
    """Return what the program calls in place of an attribute whose calls are not watched."""
    if type(function) is not FunctionType and type(function) is not MethodType:
        return wrappers.noting_numbers(function)
    is_foreign = type(function) is FunctionType and _is_foreign(module_of(function))
    called = wrappers.noting_callbacks(function) if is_foreign else function
    return wrappers.noting_integers(called, function)


@lru_cache(maxsize=1024)
def _is_foreign(module: str) -> bool:
    """Whether a module is of an installed package, whose compiled code may read numbers."""
    return module.partition(".")[0] not in LIBRARIES and not is_user(module)


def from_attribute(value: Any) -> Any:
    """Return the value of an attribute such as `table.values`, recorded if it is an array."""
    recorder = active()
    if recorder is None or type(value) is not np.ndarray or not recorder.locate():
        return value
    is_recorded = recorder.memory.owner(value) is not None
    return value if is_recorded else wrap_outside(recorder, "values", value)


def formatted(value: Any) -> Any:
    """Return the right operand of `text % value` in plain values, and note what the text shows."""
    recorder = active()
    if recorder is None or not recorder.locate():
        return value
    operands = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    for part, operand in enumerate(operands):
        recorder.leaving.hand_out("str", operand, AS_TEXT, part)
    return plains(value)

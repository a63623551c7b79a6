"""Which functions read recorded values by their memory alone: the tables, by module and by name.

A recorded number is a number of NumPy's or Python's class. Code that asks for its methods and
operators is recorded; compiled code may read its memory instead, and what it makes of the value is
unknown. `READS_OF_MODULE` tells what functions of Python's library read of all their
arguments; `number_reads`, which recorded numbers any other function reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import reduce
from itertools import accumulate
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple, cast

import numpy as np

from graphir.runtime.recording.captured import is_user
from graphir.runtime.recording.leaving import AS_BYTES, AS_NUMBER
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    TracedFloat,
    TracedScalar,
)

# -- what functions of Python's library read of all arguments


class Reads(Enum):
    """What a function reads of recorded arguments; the value is the reason that a note gives."""

    NUMBERS = AS_NUMBER
    BYTES = AS_BYTES
    FILE = "writes a file"


NUMBER_MODULES = frozenset(
    ("_struct", "_decimal", "_datetime", "array", "_ctypes", "datetime", "decimal",
     "ctypes", "fractions", "json")
)  # fmt: skip
"""Modules of Python's library whose functions and types read numbers from memory.

Those of the last three, which are written in Python, call such functions.
"""
BYTE_MODULES = frozenset(
    ("_hashlib", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_md5", "_blake2", "hashlib",
     "zlib", "binascii", "base64", "_bz2", "_lzma", "marshal")
)  # fmt: skip
"""Modules whose functions and types read bytes from memory."""
READS_OF_MODULE = {
    **dict.fromkeys(NUMBER_MODULES, Reads.NUMBERS),
    **dict.fromkeys(BYTE_MODULES, Reads.BYTES),
    "_io": Reads.FILE,
}
"""What the functions of each module read."""
BYTE_TYPES = (memoryview, np.nditer, np.broadcast)
"""Types that read the memory of an array."""

# -- which recorded numbers a function reads

_FOLLOWING = frozenset(
    ("builtins", "itertools", "functools", "_functools", "_operator", "operator", "_collections",
     "collections", "_heapq", "_bisect", "copy", "math", "cmath", "_io", "io", "sys", "gc",
     "numpy", "graphir", "passes", "runtime")
)  # fmt: skip
"""Modules whose compiled functions keep recorded floats, or ask for their methods and operators."""
_ARITHMETIC = sum, pow, divmod, reduce, accumulate
"""Functions that ask for the operators of their operands, as those of the module operator do."""
_KEEPING_CALLS: Any = (
    *(print, list, tuple, dict, set, zip, enumerate, iter, next, reversed, sorted, min, max, abs),
    *(str, repr, format, isinstance, len, id, setattr, any, all, filter, callable),
    *(locals, vars, globals, dir, super),
)
"""Builtin functions that keep integers, or ask for their methods and operators."""
_KEEPING_METHODS: Any = {
    list: ("append", "extend"), deque: ("append", "appendleft", "extend"), str: ("format",)
}  # fmt: skip
"""Methods of Python's containers and texts that do so."""
_RECORDING = str(Path(__file__).parent)
"""The folder of the stand-ins and wrappers, whose code asks for methods."""


class NumberReads(NamedTuple):
    """The recorded numbers whose memory a function reads."""

    floats: bool
    integers: bool
    calls_operators: bool = False
    """Whether it calls operators: then it reads a float only beside an operand that reads it."""


def number_reads(function: Any, has_integers: bool) -> NumberReads:
    """Return which recorded numbers a function reads; `has_integers` is whether there are any."""
    calls_operators = any(function is x for x in _ARITHMETIC) or (
        isinstance(function, BuiltinFunctionType) and function.__module__ == "_operator"
    )
    reads_integers = has_integers and not keeps_integers(function)
    return NumberReads(calls_operators or _reads_floats(function), reads_integers, calls_operators)


def keeps_integers(function: Callable[..., Any]) -> bool:
    """Whether a function reads no memory of a recorded integer: it asks for its methods.

    So do the functions of the program, and those of a recording.
    """
    owner: Any = getattr(function, "__self__", None)
    if isinstance(owner, (RecordedValue, TracedScalar, RecordedNumber)):
        return True
    if isinstance(function, FunctionType):
        is_recorder = function.__code__.co_filename.startswith(_RECORDING)
        return is_recorder or is_user(function.__module__)
    if isinstance(function, MethodType):
        return is_user(module_of(function))
    if isinstance(function, BuiltinFunctionType):
        name = function.__name__
        is_method = name in _KEEPING_METHODS.get(type(owner), ())
        return is_method or any(function is x for x in _KEEPING_CALLS)
    if any(function is x for x in _KEEPING_CALLS):
        return True
    kind: Any = function if isinstance(function, type) else type(function)
    is_python = kind.__new__ is object.__new__ or isinstance(kind.__new__, FunctionType)
    return is_python and is_user(kind.__module__)


def _reads_floats(function: Callable[..., Any]) -> bool:
    """Whether a compiled function may read the memory of a recorded float."""
    if isinstance(function, (FunctionType, MethodType)):
        return False
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (RecordedValue, TracedScalar, TracedFloat)):
        return False
    owner = getattr(function if owner is None else owner, "__objclass__", owner)
    kind: Any = cast("Any", owner if isinstance(owner, type) else type(owner))
    if function is complex or kind in (float, complex) or issubclass(kind, np.generic):
        return True
    if not isinstance(function, BuiltinFunctionType):
        return False
    return module_of(function).partition(".")[0] not in _FOLLOWING


def module_of(function: Callable[..., Any]) -> str:
    """Return the name of the module of a function, or of the class of its object."""
    owner: Any = getattr(function, "__self__", None)
    kind: Any = cast("Any", owner if isinstance(owner, type) else type(owner))
    return str(getattr(function, "__module__", None) or kind.__module__)

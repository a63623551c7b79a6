"""Calls of the program that leave NumPy: `np.float32(x)`, `"%f" % x`, `table.to_numpy()`.

A recorded scalar is a NumPy scalar, whose value compiled code reads from memory without a call of
any method. While a recording runs, the functions of the program therefore have other code: their
own, with a look at each function before they call it. The line numbers and columns are the same.
The arrays that functions of other packages make for the program are its data.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from functools import lru_cache, reduce
from itertools import accumulate
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
)
from typing import Any, cast

import numpy as np

from graphir.numpy_api.arrays.operands import leaves
from graphir.runtime.recording.captured import LIBRARIES, is_user
from graphir.runtime.recording.leaving import (
    AS_BYTES,
    AS_NUMBER,
    AS_TEXT,
)
from graphir.runtime.recording.numpy_ import functions, ufuncs
from graphir.runtime.recording.numpy_.creation import (
    array_symbol,
    as_recorded,
    data,
    recorded_function,
)
from graphir.runtime.recording.numpy_.python_numbers import (
    ASKING,
    read_number,
    reads_numbers,
    traced_float,
)
from graphir.runtime.recording.operands import traced_leaves
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedFloat,
    TracedScalar,
    active,
    plain,
    plains,
    recording_with,
)

READERS = frozenset(("_struct", "_decimal", "_datetime", "array", "_ctypes", "datetime", "decimal"))
"""Compiled modules of Python's library whose functions and types read numbers from memory."""
BYTE_READERS = frozenset(
    (
        *(
            "_hashlib",
            "_sha1",
            "_sha2",
            "_sha256",
            "_sha512",
            "_sha3",
            "_md5",
            "_blake2",
            "hashlib",
        ),
        *("zlib", "binascii", "base64", "_bz2", "_lzma", "marshal"),
    )
)
"""Modules whose functions and types read bytes from memory."""
_FOLLOWING = frozenset(
    ("builtins", "itertools", "functools", "_functools", "_operator", "operator", "_collections",
     "collections", "_heapq", "_bisect", "copy", "math", "cmath", "_io", "io", "sys", "gc",
     "numpy", "graphir", "passes", "runtime")
)  # fmt: skip
"""Modules whose compiled functions keep recorded floats, or ask for their methods and operators."""
_BYTE_TYPES = (memoryview, np.nditer, np.broadcast)
PYTHON_READERS = frozenset(("ctypes", "fractions", "json"))
"""Modules of Python's library that call such functions."""


def callee(function: Any) -> Any:
    """Return the function that the program calls in place of a function."""
    if active() is None:
        return function
    if type(function) is np.ufunc or type(function) is _DISPATCHER:
        return _of_lists(function)
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return _of_lists(function)
    if is_scalar_type(function):
        return _scalar_type(function)
    for builtin, of_plain in _OF_CLASS:
        if function is builtin:
            return of_plain
    reason = reading_reason(function)
    if reason:
        return _reader(function, reason)
    if function is eval or function is exec:
        _note_unseen(function)
        return function
    if not isinstance(function, (FunctionType, MethodType)):
        function = _number_reader(function)
    if not isinstance(function, (BuiltinFunctionType, FunctionType, MethodType)):
        return function
    module = _module_of(function)
    package = module.partition(".")[0]
    if package == "_io":
        return _writer(function)
    if is_user(module):
        return function
    return function if package in LIBRARIES else _from_outside(function)


@lru_cache(maxsize=1024)
def _of_lists(function: Any) -> Callable[..., Any]:
    """Return a function of NumPy that records its call on lists: NumPy does not dispatch on them.

    In place of a ufunc's lists stand arrays of their own.
    """
    is_ufunc = not isinstance(function, _DISPATCHER)
    get_class, masked = type, np.ma.MaskedArray

    def call(*args: Any, **kwargs: Any) -> Any:
        kinds = [*map(get_class, args)]
        if masked in kinds and isinstance(function, np.ufunc) and function.nout == 1 and not kwargs:
            return ufuncs.of_masked(function, args)
        if list not in kinds and tuple not in kinds and "dtype" not in kwargs:
            return function(*args, **kwargs)
        recorder = active()
        if recorder is None or not recorder.locate():
            return function(*args, **kwargs)
        if is_ufunc:
            arrays = [
                as_recorded(recorder, x) if kind is list or kind is tuple else x
                for x, kind in zip(args, kinds, strict=True)
            ]
            return function(*arrays, **kwargs)
        if list in kinds or kinds[:1] == [tuple]:
            return functions.call(function, args, kwargs)
        return function(*args, **kwargs)

    return call


_DISPATCHER = cast("type[Any]", type(np.sum))


def _type(*args: Any, **kwargs: Any) -> Any:
    return type(*map(plain, args)) if len(args) == 1 and not kwargs else type(*args, **kwargs)


def _float(*args: Any) -> float:
    value: Any = args[0] if len(args) == 1 else None
    if isinstance(value, TracedFloat):
        return value
    if isinstance(value, (RecordedValue, TracedScalar)) and value.plain.dtype.kind in "fiu":
        return traced_float(value, float(value.plain))
    return float(*args)


def _map(function: Any, *iterables: Any) -> Any:
    return map(_float if function is float else function, *iterables)


def _hasattr(value: Any, name: str, /) -> bool:
    return hasattr(plain(value), name)


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    owner = value if hasattr(plain(value), name) else plain(value)
    return getattr(owner, name, *default)


_OF_CLASS = (
    *((float, _float), (map, _map), (type, _type), (hasattr, _hasattr), (getattr, _getattr)),
)
"""Builtin functions, and functions that look at NumPy's value in place of a recorded value."""


def is_scalar_type(function: Any) -> bool:
    """Whether a function is one of NumPy's scalar types."""
    return isinstance(function, type) and issubclass(function, np.generic)


def reading_reason(function: Any) -> str:
    """Return how a compiled function reads values from memory, as a reason; "" for any other."""
    if isinstance(function, type):
        kind = cast("type[Any]", function)
        if kind in _BYTE_TYPES:
            return AS_BYTES
        return AS_NUMBER if kind.__module__ in READERS | PYTHON_READERS else ""
    if not isinstance(function, (BuiltinFunctionType, FunctionType, MethodType)):
        return ""
    package = _module_of(function).partition(".")[0]
    joins = function.__name__ == "join" and isinstance(getattr(function, "__self__", None), bytes)
    if package in BYTE_READERS or joins:
        return AS_BYTES
    return AS_NUMBER if package in READERS | PYTHON_READERS else ""


def _module_of(function: Any) -> str:
    owner: Any = getattr(function, "__self__", None)
    kind: Any = cast("Any", owner if isinstance(owner, type) else type(owner))
    return str(getattr(function, "__module__", None) or kind.__module__)


def from_attribute(value: Any) -> Any:
    """Return the value of an attribute such as `table.values`, recorded if it is an array."""
    recorder = active()
    if recorder is None or type(value) is not np.ndarray or not recorder.locate():
        return value
    return value if recorder.owner(value) is not None else data(recorder, "values", value)


def _from_outside(function: Any) -> Callable[..., Any]:
    """Return a function of a library that gives arrays which it makes to the program as data.

    Without recorded values and functions of the program among the arguments, the library's own
    steps are not recorded.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder, values = active(), [*args, *kwargs.values()]
        if (
            recorder is None
            or traced_leaves(values)
            or any(callable(leaf) for leaf in leaves(values))
        ):
            return _calling_back(function)(*args, **kwargs)
        with recording_with(None):
            real = function(*args, **kwargs)
        if type(real) is not np.ndarray or not recorder.locate() or recorder.owner(real):
            return real
        return data(recorder, function.__name__, real)

    return call


def formatted(value: Any) -> Any:
    """Return the right operand of `text % value` in plain values, and note what the text shows."""
    recorder = active()
    if recorder is None or not recorder.locate():
        return value
    operands = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,))
    for part, operand in enumerate(operands):
        recorder.leaving.hand_out("str", operand, AS_TEXT, part)
    return plains(value)


@lru_cache(maxsize=256)
def _scalar_type(kind: type[Any]) -> Callable[..., Any]:
    return recorded_function(kind, _scalar)


def _scalar(recorder: Recorder, kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a NumPy scalar: of a recorded value a cast, of a Python number a constant."""
    real = recorder.call(kind, plains(args), plains(kwargs))
    if len(args) != 1:
        return real
    recorder.locate()
    if not traced_leaves(args) and not isinstance(args[0], (list, tuple)):
        is_number = isinstance(args[0], (int, float, complex))
        return recorder.wrapped(real, recorder.constant(real)) if is_number else real
    return recorder.outcome(kind.__name__, real, lambda: array_symbol(recorder, args[0], real))


def _writer(function: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None and traced_leaves([args, kwargs]) and recorder.locate():
            recorder.leaving.add_saved([args, kwargs])
        return function(*args, **kwargs)

    return call


def _reader(function: Any, reason: str = AS_NUMBER) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None and traced_leaves([args, kwargs]) and recorder.locate():
            recorder.leaving.hand_out(function.__name__, [args, kwargs], reason)
        return function(*args, **kwargs)

    return call


def _number_reader(function: Any) -> Any:
    """Return a compiled function that notes the recorded numbers whose memory it reads.

    Other functions return as they are.
    """
    recorder = active()
    if recorder is None or not recorder.has_scalars:
        return function
    mixed = any(function is x for x in _ARITHMETIC) or (
        isinstance(function, BuiltinFunctionType) and function.__module__ == "_operator"
    )
    if not (mixed or _reads_memory(function)):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        name, values = getattr(function, "__name__", "a call"), [*leaves([args, kwargs])]
        if not mixed or any(map(reads_numbers, values)):
            for value in values:
                read_number(name, value)
        return function(*args, **kwargs)

    return call


_ARITHMETIC = sum, pow, divmod, reduce, accumulate
"""Functions that ask for the operators of their operands, as those of the module operator do."""


def _reads_memory(function: Any) -> bool:
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
    return _module_of(function).partition(".")[0] not in _FOLLOWING


def _note_unseen(function: Any) -> None:
    """Note that `eval` or `exec` runs code that may read all recorded values in other ways."""
    recorder = active()
    if recorder is not None and recorder.has_scalars and recorder.locate():
        recorder.read(function.__name__, object(), "runs code whose source is not recorded")


def called_method(function: Any) -> Any:
    """Return what the program calls in place of an attribute whose calls are not watched."""
    if type(function) is FunctionType:
        return _calling_back(function) if _is_foreign(_module_of(function)) else function
    if type(function) is MethodType:
        return function
    return _number_reader(function)


@lru_cache(maxsize=1024)
def _is_foreign(module: str) -> bool:
    """Whether a module is of an installed package, whose compiled code may read numbers."""
    return module.partition(".")[0] not in LIBRARIES and not is_user(module)


def _calling_back(function: Any) -> Callable[..., Any]:
    """Return a function of a library that notes the recorded floats of functions that it calls."""

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        before = 0 if recorder is None else recorder.float_count
        result = function(*args, **kwargs)
        is_called = recorder is not None and recorder.float_count > before
        if is_called and any(callable(leaf) for leaf in leaves([args, kwargs])):
            reason = "calls a function of the program, whose numbers it may read"
            cast("Any", recorder).read(function.__name__, object(), reason)
        return result

    return call


def _read_right(name: str, left: Any, right: Any) -> None:
    """Note a recorded right operand as read; NumPy asks its own scalars for their operators."""
    if isinstance(right, TracedFloat) or not isinstance(left, (np.ndarray, np.generic)):
        read_number(name, right)


class _Left:
    """A left operand whose compiled operators note a recorded float on the right as read."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value


def _noting(name: str) -> Callable[..., Any]:
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        _read_right(name, self._value, other)
        return compute(self._value, other)

    return method


for _name in (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"),
    *("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge"),
):
    setattr(_Left, f"__{_name.rstrip('_')}__", _noting(_name))


class _Memory:
    """A container of compiled code that notes a recorded float which the program stores in it."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, key: Any) -> Any:
        return self._value[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        for leaf in leaves(value):
            read_number("__setitem__", leaf)
        self._value[key] = value


def left_operand(value: Any) -> Any:
    """Return the left operand of an operator of the program."""
    if type(value) in ASKING or not reads_numbers(value):
        return value
    recorder = active()
    return _Left(value) if recorder is not None and recorder.has_scalars else value


def right_operand(left: Any, value: Any) -> Any:
    """Return the right operand of an assignment such as `x *= value`."""
    if type(left) not in ASKING and reads_numbers(left):
        _read_right("an operator", left, value)
    return value


def container(value: Any) -> Any:
    """Return the container in which the program stores an item."""
    recorder = active()
    kind: Any = cast("Any", type(value))
    if recorder is None or not recorder.has_scalars or isinstance(value, RecordedValue):
        return value
    is_python = isinstance(getattr(kind, "__setitem__", None), FunctionType)
    return value if is_python or issubclass(kind, _KEEPING) else _Memory(value)


_KEEPING = (list, dict, deque)
"""The compiled containers of Python that keep the values themselves."""

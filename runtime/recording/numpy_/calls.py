"""Calls of the program that leave NumPy: `np.float32(x)`, `"%f" % x`, `table.to_numpy()`.

A recorded scalar is a NumPy scalar, whose value compiled code reads from memory without a call of
any method. While a recording runs, the functions of the program therefore have other code: their
own, with a look at each function before they call it. The line numbers and columns are the same.
The arrays that functions of other packages make for the program are its data.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import accumulate
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType
from typing import Any, cast

import numpy as np

from graphir.runtime.recording.captured import LIBRARIES, is_user
from graphir.runtime.recording.leaving import AS_BYTES, AS_NUMBER, AS_TEXT, traced_leaves
from graphir.runtime.recording.numpy_ import functions, ufuncs
from graphir.runtime.recording.numpy_.creation import (
    array_symbol,
    as_recorded,
    data,
    recorded_function,
)
from graphir.runtime.recording.numpy_.python_numbers import (
    ASKING,
    EXACT,
    as_float,
    read_number,
    reads_numbers,
    rounded,
    traced_float,
)
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedNumber,
    RecordedValue,
    TracedFloat,
    TracedInt,
    TracedScalar,
    active,
    plain,
    plains,
    recording_with,
)
from graphir.semantics.library_calls import leaves

NUMBER_READERS = frozenset(
    ("_struct", "_decimal", "_datetime", "array", "_ctypes", "datetime", "decimal",
     "ctypes", "fractions", "json")
)  # fmt: skip
"""Modules of Python's library whose functions and types read numbers from memory.

Those of the last three, which are written in Python, call such functions.
"""
BYTE_READERS = frozenset(
    ("_hashlib", "_sha1", "_sha2", "_sha256", "_sha512", "_sha3", "_md5", "_blake2", "hashlib",
     "zlib", "binascii", "base64", "_bz2", "_lzma", "marshal")
)  # fmt: skip
"""Modules whose functions and types read bytes from memory."""
_READING = {**dict.fromkeys(NUMBER_READERS, AS_NUMBER), **dict.fromkeys(BYTE_READERS, AS_BYTES)}
"""How the functions of those modules read values from memory, as a reason."""
_FOLLOWING = frozenset(
    ("builtins", "itertools", "functools", "_functools", "_operator", "operator", "_collections",
     "collections", "_heapq", "_bisect", "copy", "math", "cmath", "_io", "io", "sys", "gc",
     "numpy", "graphir", "passes", "runtime")
)  # fmt: skip
"""Modules whose compiled functions keep recorded floats, or ask for their methods and operators."""
_BYTE_TYPES = (memoryview, np.nditer, np.broadcast)


@lru_cache(maxsize=1024)
def _of_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that records its call on lists: NumPy does not dispatch on them.

    In place of a ufunc's lists stand arrays of their own.
    """
    is_ufunc = not isinstance(function, _DISPATCHER)
    get_class, masked = type, np.ma.MaskedArray

    def call(*args: Any, **kwargs: Any) -> Any:
        kinds = [*map(get_class, args)]
        if masked in kinds and isinstance(function, np.ufunc) and function.nout == 1 and not kwargs:
            return ufuncs.of_masked(function, args)
        recorder = active()
        has_integers = recorder is not None and recorder.numbers.has_integers and not is_ufunc
        has_integers = has_integers and _has_integers(args, kwargs)
        is_alone = list not in kinds and tuple not in kinds and "dtype" not in kwargs
        if is_alone and not has_integers:
            return function(*args, **kwargs)
        if recorder is None or not recorder.locate():
            return function(*args, **kwargs)
        if has_integers:
            return functions.call(function, args, kwargs)
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


def _has_integers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether recorded integers are among arguments, which NumPy's code would read unseen."""
    return any(isinstance(x, TracedInt) for x in leaves([args, kwargs]))


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


def _int(*args: Any) -> int:
    value: Any = args[0] if len(args) == 1 else None
    if isinstance(value, TracedInt):
        return value
    if isinstance(value, (TracedScalar, TracedFloat)) and isinstance(value.plain, _REALS):
        return rounded("int", value, int(cast("Any", value).plain))
    return int(*args)


_REALS = (float, np.integer, np.floating)


def _sum(values: Iterable[Any], /, start: Any = 0) -> Any:
    recorder = active()
    if recorder is None or not recorder.numbers.has_any:
        return sum(values, start)
    numbers = [*values]
    if not any(isinstance(x, TracedInt) for x in numbers):
        return _number_reader(sum)(numbers, start)
    total: Any = start
    for number in numbers:
        total = left_operand(total) + number
    return total


def _enumerate(values: Iterable[Any], /, start: int = 0) -> Any:
    return enumerate(values, read_integer(start))


def _round(number: Any, /, ndigits: int | None = None) -> Any:
    return round(number) if ndigits is None else round(number, read_integer(ndigits))


def _map(function: Any, *iterables: Any) -> Any:
    is_number = function is float or function is int
    return map(_IN_PLACE[id(function)] if is_number else function, *iterables)


def _hasattr(value: Any, name: str, /) -> bool:
    return hasattr(plain(value), name)


def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    owner = value if hasattr(plain(value), name) else plain(value)
    return getattr(owner, name, *default)


_IN_PLACE: dict[int, Callable[..., Any]] = {
    id(float): _float,
    id(int): _int,
    id(type): _type,
    id(sum): _sum,
    id(map): _map,
    id(round): _round,
    id(enumerate): _enumerate,
    id(hasattr): _hasattr,
    id(getattr): _getattr,
}
"""Functions that look at recorded values as numbers, in place of Python's, by the id of these."""


def callee(function: Any) -> Any:
    """Return the function that the program calls in place of a function."""
    if active() is None:
        return function
    kind: Any = cast("Any", type(function))
    return _CALLEES.get(kind, _callee_of_object)(function)


def _callee_of_class(kind: Any) -> Any:
    if issubclass(kind, np.generic):
        return _scalar_type(cast("Any", kind))
    if id(kind) in _IN_PLACE:
        return _IN_PLACE[id(kind)]
    if kind in _BYTE_TYPES:
        return _reader(kind, AS_BYTES)
    return _reader(kind, AS_NUMBER) if kind.__module__ in NUMBER_READERS else _number_reader(kind)


def _callee_of_compiled(function: Any) -> Any:
    """Return the callee of a compiled function, or of a compiled method with its object."""
    if isinstance(function.__self__, np.ufunc):
        return _of_lists(function)
    if id(function) in _IN_PLACE:
        return _IN_PLACE[id(function)]
    if isinstance(function.__self__, bytes) and function.__name__ == "join":
        return _reader(function, AS_BYTES)
    if function is eval or function is exec:
        _note_unseen(function)
        return function
    if _module_of(function).partition(".")[0] not in _READING:
        reader = _number_reader(function)
        if reader is not function:
            return reader
    return _callee_of_python(function)


def _callee_of_python(function: Any) -> Any:
    """Return the callee of a function or method by its module, as if its code were Python's."""
    module = _module_of(function)
    package = module.partition(".")[0]
    if package in _READING:
        return _reader(function, _READING[package])
    if package == "_io":
        return _writer(function)
    if is_user(module):
        return function
    return _integer_reader(function if package in LIBRARIES else _from_outside(function), function)


def _callee_of_object(function: Any) -> Any:
    """Return the callee of an object with `__call__`; a class of a metaclass is one of them."""
    if isinstance(function, type):
        return _callee_of_class(function)
    is_of_ufunc = isinstance(getattr(function, "__self__", None), np.ufunc)
    return _of_lists(function) if is_of_ufunc else _number_reader(function)


_CALLEES: dict[type[Any], Callable[[Any], Any]] = {
    np.ufunc: _of_lists,
    _DISPATCHER: _of_lists,
    type: _callee_of_class,
    BuiltinFunctionType: _callee_of_compiled,
    FunctionType: _callee_of_python,
    MethodType: _callee_of_python,
}
"""For each type of a function, what returns the function that the program calls instead."""


def _module_of(function: Callable[..., Any]) -> str:
    owner: Any = getattr(function, "__self__", None)
    kind: Any = cast("Any", owner if isinstance(owner, type) else type(owner))
    return str(getattr(function, "__module__", None) or kind.__module__)


def from_attribute(value: Any) -> Any:
    """Return the value of an attribute such as `table.values`, recorded if it is an array."""
    recorder = active()
    if recorder is None or type(value) is not np.ndarray or not recorder.locate():
        return value
    return value if recorder.memory.owner(value) is not None else data(recorder, "values", value)


def _from_outside(function: Callable[..., Any]) -> Callable[..., Any]:
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
        if type(real) is not np.ndarray or not recorder.locate() or recorder.memory.owner(real):
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


def _scalar(recorder: Recorder, kind: type[Any], *args: Any, **kwargs: Any) -> Any:
    """Record a NumPy scalar: of a recorded value a cast, of a Python number a constant."""
    real = recorder.call(kind, plains(args), plains(kwargs))
    if len(args) != 1:
        return real
    recorder.locate()
    if not traced_leaves(args) and not isinstance(args[0], (list, tuple)):
        is_number = isinstance(args[0], (int, float, complex))
        return recorder.wrapped(real, recorder.constant(real)) if is_number else real
    return recorder.outcome(kind.__name__, real, lambda: array_symbol(recorder, args[0], real))


def _writer(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None and traced_leaves([args, kwargs]) and recorder.locate():
            recorder.leaving.add_saved([args, kwargs])
        return function(*args, **kwargs)

    return call


def _reader(function: Callable[..., Any], reason: str = AS_NUMBER) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None and traced_leaves([args, kwargs]) and recorder.locate():
            recorder.leaving.hand_out(function.__name__, [args, kwargs], reason)
        return function(*args, **kwargs)

    return call


def _number_reader(function: Callable[..., Any]) -> Any:
    """Return a compiled function that notes the recorded numbers whose memory it reads.

    Other functions return as they are.
    """
    recorder = active()
    if recorder is None or not recorder.numbers.has_any:
        return function
    reads_integers = recorder.numbers.has_integers and not _keeps_integers(function)
    mixed = any(function is x for x in _ARITHMETIC) or (
        isinstance(function, BuiltinFunctionType) and function.__module__ == "_operator"
    )
    reads_floats = mixed or _reads_memory(function)
    if not reads_floats and not reads_integers:
        return function

    name = getattr(function, "__name__", "a call")
    inner = _reading_integers(function, name) if reads_integers else function

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [*leaves([args, kwargs])]
        if not mixed or any(map(reads_numbers, values)):
            for value in values:
                read_number(name, value)
        return inner(*args, **kwargs)

    return call if reads_floats else inner


def _reading_integers(function: Any, name: str) -> Callable[..., Any]:
    """Return a function that notes the recorded integers among its arguments as read."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for value in leaves([args, kwargs]):
            if isinstance(value, TracedInt):
                read_number(name, value)
        items = [map(_read_item, cast("Any", x)) if isinstance(x, _ITERATORS) else x for x in args]
        return function(*items, **kwargs)

    return call


_ITERATORS = (GeneratorType, map, filter, zip)


def _integer_reader(function: Callable[..., Any], own: Callable[..., Any]) -> Any:
    """Return a function that notes recorded integers that `own`, a library's function, reads."""
    recorder = active()
    if recorder is None or not recorder.numbers.has_integers or _keeps_integers(own):
        return function
    return _reading_integers(function, own.__name__)


def _keeps_integers(function: Callable[..., Any]) -> bool:
    """Whether a function reads no memory of a recorded integer: it asks for its methods.

    So do the functions of the program, and those of a recording.
    """
    owner: Any = getattr(function, "__self__", None)
    if isinstance(owner, (RecordedValue, TracedScalar, RecordedNumber)):
        return True
    if isinstance(function, FunctionType):
        is_recorder = function.__code__.co_filename in _RECORDING_FILES
        return is_recorder or is_user(function.__module__)
    if isinstance(function, MethodType):
        return is_user(_module_of(function))
    if isinstance(function, BuiltinFunctionType):
        name = function.__name__
        is_method = name in _KEEPING_METHODS.get(type(owner), ())
        return is_method or any(function is x for x in _KEEPING_CALLS)
    if any(function is x for x in _KEEPING_CALLS):
        return True
    kind: Any = function if isinstance(function, type) else type(function)
    is_python = kind.__new__ is object.__new__ or isinstance(kind.__new__, FunctionType)
    return is_python and is_user(kind.__module__)


_RECORDING_FILES = frozenset((__file__, str(recorded_function.__code__.co_filename)))
_KEEPING_CALLS: Any = (
    *(print, list, tuple, dict, set, zip, enumerate, iter, next, reversed, sorted, min, max, abs),
    *(str, repr, format, isinstance, len, id, setattr, any, all, filter, callable),
    *(locals, vars, globals, dir, super),
)
"""Builtin functions that keep integers, or ask for their methods and operators."""
_KEEPING_METHODS: Any = {
    list: ("append", "extend"), deque: ("append", "appendleft", "extend"), str: ("format",)
}  # fmt: skip


def _read_item(item: Any) -> Any:
    for value in leaves(item):
        if isinstance(value, TracedInt):
            read_number("a call", value)
    return item


def read_integer(value: Any) -> Any:
    """Return a value of which compiled code may read recorded integers, with these noted."""
    recorder = active()
    if recorder is None or not recorder.numbers.has_integers:
        return value
    return plain(_read_item(value)) if isinstance(value, TracedInt) else _read_item(value)


_ARITHMETIC = sum, pow, divmod, reduce, accumulate
"""Functions that ask for the operators of their operands, as those of the module operator do."""


def _reads_memory(function: Callable[..., Any]) -> bool:
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


def _note_unseen(function: Callable[..., Any]) -> None:
    """Note that `eval` or `exec` runs code that may read all recorded values in other ways."""
    recorder = active()
    if recorder is not None and recorder.numbers.has_any and recorder.locate():
        recorder.read(function.__name__, object(), "runs code whose source is not recorded")


def called_method(function: Callable[..., Any]) -> Any:
    """Return what the program calls in place of an attribute whose calls are not watched."""
    if type(function) is FunctionType:
        is_foreign = _is_foreign(_module_of(function))
        return _integer_reader(_calling_back(function) if is_foreign else function, function)
    if type(function) is MethodType:
        return _integer_reader(function, function)
    return _number_reader(function)


@lru_cache(maxsize=1024)
def _is_foreign(module: str) -> bool:
    """Whether a module is of an installed package, whose compiled code may read numbers."""
    return module.partition(".")[0] not in LIBRARIES and not is_user(module)


def _calling_back(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a library that notes the recorded floats of functions that it calls."""

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        before = 0 if recorder is None else recorder.numbers.python_count
        result = function(*args, **kwargs)
        is_called = recorder is not None and recorder.numbers.python_count > before
        if is_called and any(callable(leaf) for leaf in leaves([args, kwargs])):
            reason = "calls a function of the program, whose numbers it may read"
            cast("Any", recorder).read(function.__name__, object(), reason)
        return result

    return call


def _read_right(name: str, left: Any, right: Any) -> None:
    """Note a recorded right operand as read; NumPy asks its own scalars for their operators."""
    if isinstance(right, RecordedNumber) or not isinstance(left, (np.ndarray, np.generic)):
        read_number(name, right)


class _Left:
    """A left operand whose compiled operators note a recorded float on the right as read."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value


def _noting(name: str) -> Callable[..., Any]:
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


for _name in (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"),
    *("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge"),
):
    setattr(_Left, f"__{_name.rstrip('_')}__", _noting(_name))


_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")


class _Keys:
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


class _Memory(_Keys):
    """A container of compiled code that notes a recorded float which the program stores in it."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        for leaf in leaves(value):
            read_number("__setitem__", leaf)
        super().__setitem__(key, value)


def left_operand(value: Any) -> Any:
    """Return the left operand of an operator of the program."""
    if type(value) in _READING_INTEGERS:
        recorder = active()
        return _Left(value) if recorder is not None and recorder.numbers.has_integers else value
    if type(value) in ASKING or not reads_numbers(value):
        return value
    recorder = active()
    return _Left(value) if recorder is not None and recorder.numbers.has_any else value


_READING_INTEGERS = frozenset((float, bool, str, bytes))
"""Types whose operators read the memory of an integer on the right."""


def right_operand(left: Any, value: Any) -> Any:
    """Return the right operand of an assignment such as `x *= value`."""
    if isinstance(value, TracedInt) and type(left) in _READING_INTEGERS:
        return as_float(value) if type(left) is float else read_integer(value)
    if type(left) not in ASKING and reads_numbers(left):
        _read_right("an operator", left, value)
    return value


def container(value: Any) -> Any:
    """Return the container in which the program stores an item."""
    recorder = active()
    kind: Any = cast("Any", type(value))
    if recorder is None or not recorder.numbers.has_any or isinstance(value, RecordedValue):
        return value
    if issubclass(kind, _KEEPING):
        return _Keys(value) if recorder.numbers.has_integers else value
    is_python = isinstance(getattr(kind, "__setitem__", None), FunctionType)
    return value if is_python else _Memory(value)


def sequence(value: Any) -> Any:
    """Return the container from which the program takes an item, or deletes one."""
    recorder = active()
    if recorder is None or not recorder.numbers.has_integers or isinstance(value, RecordedValue):
        return value
    is_python = isinstance(getattr(cast("Any", type(value)), "__getitem__", None), FunctionType)
    return value if is_python else _Keys(value)


_KEEPING = (list, dict, deque)
"""The compiled containers of Python that keep the values themselves."""

"""The boundary of a trace: the one place where errors leave for the user's code.

A program may catch any error. An error that NumPy raises too, for operands of these types and
shapes, belongs to the program: its handler runs as it would without a trace. Any other error is a
refusal. The program would take another way than with NumPy if it caught one, so a refusal ends the
trace: the graph keeps it, every later op raises it again, and `trace_into` raises it at the end.

`at_boundary` decides which of the two an error is. It asks NumPy: the same call runs on stand-ins,
arrays of zeros, of ones and of sevens with the operands' dtypes, shapes and strides. The error is
the program's if NumPy raises on all of them, and then has NumPy's class.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

import numpy as np

from graphir.errors import GraphirError, MissingOpError
from graphir.ir.graph import Graph
from graphir.location import is_internal, is_numpy, user_location
from graphir.numpy_api.arrays.call_operands import is_known
from graphir.numpy_api.arrays.memory import (
    ArrayValue,
    TracedValue,
    TraceMemory,
    active_memory,
    as_graph_error,
    copied,
    like_numpy,
    tracing_with,
)
from graphir.numpy_api.arrays.selections import SelectionValue
from graphir.numpy_api.traced_numbers import TracedNumber, concrete
from graphir.numpy_api.ufuncs import BINARY, COMPARISONS, UNARY
from graphir.ops.op import GraphValue, keep_refusal, tracing_graph
from graphir.semantics.library_calls import Function, Keywords, mapped

Class = TypeVar("Class")
Question = Callable[..., Any]
"""NumPy's own call, of the arguments that the method of a symbolic value receives."""
Settings = Callable[[Any, Any], Any]
Label = str | Callable[..., str]
"""The operation's name in errors, or a function of the arguments that returns it."""

_OF_VALUES = (
    *(np.linalg.LinAlgError, ZeroDivisionError, FloatingPointError),
    *(MemoryError, RecursionError),
)
"""The errors that NumPy may raise for the values of stand-ins, but not for those of a program."""


def bounded(cls: type[Class]) -> type[Class]:
    """Class decorator: every method and attribute that a program can use is at the boundary."""
    for name, member in list(cast("dict[str, Any]", vars(cls)).items()):
        if name in _UNBOUNDED or (name.startswith("_") and not name.startswith("__")):
            continue
        label = _LABELS.get(name) or (name.strip("_") if name.startswith("__") else f".{name}")
        if isinstance(member, FunctionType):
            question: Question = _QUESTIONS.get(name) or partial(_call_method, name)
            settings = _SETTINGS.get(name) if name.startswith("__") else has_settings
            setattr(cls, name, at_boundary(label, question, settings)(member))
        elif isinstance(member, property):
            getter, setter = member.fget, member.fset
            if getter is not None and name not in _FACTS:
                getter = at_boundary(label, partial(_get, name))(getter)
            setter = setter and at_boundary(label, partial(_set, name))(setter)
            setattr(cls, name, property(getter, setter, None, member.__doc__))
    return cls


def _call_method(name: str, value: GraphValue, *args: Any, **kwargs: Any) -> Any:
    return getattr(value, name)(*args, **kwargs)


def _call_ufunc(_: GraphValue, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return getattr(ufunc, method)(*inputs, **kwargs)


def _call_function(
    _: GraphValue,
    function: Function,
    types: Collection[type],
    args: Sequence[Any],
    kwargs: Keywords,
) -> Any:
    return function(*args, **kwargs)


def _reflected(function: Function, value: GraphValue, other: Any) -> Any:
    return function(other, value)


def _call_buffer(value: Any, flags: int) -> Any:
    return memoryview(value)


def _attribute_label(_: GraphValue, name: str) -> str:
    return f".{name}"


def _function_label(_: GraphValue, function: Function, *__: Any) -> str:
    return f"np.{function.__name__}"


def _get(name: str, value: GraphValue) -> Any:
    return getattr(value, name)


def _set(name: str, value: GraphValue, new: Any) -> None:
    setattr(value, name, new)


_UNBOUNDED = frozenset(("__class__", "__init__", "__new__", "__dir__"))
_FACTS = frozenset(("dtype", "shape", "ndim", "size", "itemsize", "nbytes"))
"""The attributes that cannot fail, and which programs read most often."""

_LABELS: dict[str, Label] = {
    "__getitem__": "[]",
    "__setitem__": "[] =",
    "__delitem__": "del []",
    "__getattr__": _attribute_label,
    "__array_ufunc__": "np",
    "__array_function__": _function_label,
    "__array__": "np.asarray",
    "__reduce__": "pickle",
    "__reduce_ex__": "pickle",
}
_QUESTIONS: dict[str, Question] = {
    **{f"__{kind.__name__}__": kind for kind in (bool, float, int, complex, len, iter, hash)},
    **{f"__{kind.__name__}__": kind for kind in (round, repr, str, format, operator.index)},
    **{f"__{name}__": call for name, (call, _) in (BINARY | COMPARISONS | UNARY).items()},
    **{f"__r{name}__": partial(_reflected, call) for name, (call, _) in BINARY.items()},
    "__bytes__": bytes,
    "__buffer__": _call_buffer,
    "__getattr__": getattr,
    "__array_ufunc__": _call_ufunc,
    "__array_function__": _call_function,
}


def _keywords(args: Sequence[Any], kwargs: Keywords) -> Any:
    return kwargs


def has_settings(args: Sequence[Any], kwargs: Keywords) -> Any:
    """Whether a call has arguments beside the first."""
    return kwargs or len(args) > 1


def _settings_of_function(args: Sequence[Any], kwargs: Keywords) -> Any:
    return args[4] or len(args[3]) > 1


_SETTINGS: dict[str, Settings] = {
    "__array_ufunc__": _keywords,
    "__array_function__": _settings_of_function,
}


def at_boundary(
    label: Label, question: Question, settings: Settings | None = None
) -> Callable[..., Any]:
    """Decorator: a method, or a stand-in of a function, that a traced program calls.

    Errors get the user's source line and the operation's name. The graph keeps a refusal. If
    `settings(args, kwargs)` is true of a call, its arguments must be some that NumPy accepts.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            try:
                if settings is not None and settings(args, kwargs):
                    _check_accepted(_getframe(1), question, args, kwargs)
                return method(*args, **kwargs)
            except Exception as error:
                leaving = _leaving(error, label, question, args, kwargs)
                if leaving is error:
                    raise
                raise leaving from None

        return bounded

    return decorate


_BOUNDED = at_boundary("", len)(len).__code__


def _leaving(
    error: Exception, label: Label, question: Question, args: Sequence[Any], kwargs: Keywords
) -> Exception:
    """Return the error with which a call leaves for the code that made it."""
    caller = _getframe(2)
    if is_users(error):
        return error
    name = label if isinstance(label, str) else label(*args)
    memory = active_memory()
    in_body = is_numpy(caller) and memory is not None and memory.bodies
    if isinstance(error, GraphirError) and not in_body:  # else the function of the body is named
        error = error.at(user_location(), name)
    graph = None if is_internal(caller) else tracing_graph()
    if graph is None or graph.trace_state.refusal is not None:
        return error
    is_refusal = isinstance(error, MissingOpError)
    numpys = None if is_refusal else numpys_error(question, args, kwargs)
    if not isinstance(error, GraphirError):
        if numpys is not None:
            return error if type(numpys) is type(error) else numpys
        text = f"{type(error).__name__}: {error}"
        error = MissingOpError("no op does this", reason=text).at(user_location(), name)
    if numpys is not None:
        return like_numpy(error, type(numpys))
    return keep_refusal(error, caller)


def is_users(error: Exception) -> bool:
    """Whether an error comes from the user's code, which the boundary calls: from a callback."""
    place: TracebackType | None = error.__traceback__
    place = place and place.tb_next  # the frame of the boundary itself
    while place is not None:
        if not is_library(place.tb_frame):
            return True
        place = place.tb_next
    return False


def is_library(frame: FrameType) -> bool:
    """Whether a frame runs code of graphir, NumPy or the standard library."""
    if is_internal(frame) or is_numpy(frame):
        return True
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in sys.stdlib_module_names


# -- the question to NumPy


class NoStandInError(Exception):
    """NumPy cannot be asked about a value, or a call with it may have effects."""


_FILLS = 0, 1, 7
"""The values of the elements of stand-ins, by which an error that depends on values may differ."""


def numpys_error(question: Question, args: Sequence[Any], kwargs: Keywords) -> Exception | None:
    """Return the error that NumPy raises for operands like these, whatever their values; or None.

    The result is None too for a call that may have effects, as one of the user's functions.
    """
    is_certain = is_known(args, kwargs)
    errors: list[Exception] = []
    for fill in (0,) if is_certain else _FILLS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            error = _error_with(question, partial(stand_in, fill), args, kwargs)
        if error is None:
            return None
        errors.append(error)
    error = errors[0]
    differ = len(set(map(type, errors))) > 1
    return None if not is_certain and (differ or depends_on_values(error)) else error


def depends_on_values(error: Exception) -> bool:
    """Whether an error that NumPy raises for stand-ins may come from their values."""
    is_of_shapes = isinstance(error, np.linalg.LinAlgError) and "dimension" in str(error)
    return isinstance(error, _OF_VALUES) and not is_of_shapes


def _error_with(
    question: Question, make: Function, args: Sequence[Any], kwargs: Keywords
) -> Exception | None:
    """Return the error of NumPy's call with stand-ins; None without an error or a stand-in."""
    try:
        places, names = mapped(make, [list(args), dict(kwargs)])
    except Exception:  # no stand-in, or no array of the layout
        return None
    with tracing_with(None), np.errstate(all="ignore"):
        try:
            question(*places, **names)
        except Exception as error:
            return error
    return None


def _check_accepted(
    caller: FrameType, question: Question, args: Sequence[Any], kwargs: Keywords
) -> None:
    """Raise NumPy's error if NumPy does not accept the arguments of a call of the program.

    NumPy is asked about arrays of one element along each axis, which costs microseconds, and only
    if it does not accept these about arrays of the operands' shapes.
    """
    memory = active_memory()
    if memory is None or is_internal(caller) or is_numpy(caller):
        return
    error = memory.graph.numpy_call(_error_of_arguments, question, args, kwargs)
    if error is not None:
        raise as_graph_error(error)


def _error_of_arguments(
    _: Graph, question: Question, args: Sequence[Any], kwargs: Keywords
) -> Exception | None:
    if is_known(args, kwargs) or _error_with(question, single, args, kwargs) is None:
        return None  # NumPy itself computes with known values
    return numpys_error(question, args, kwargs)


_LARGE = 10_000
"""The size of a plain array that is not copied for a look at the arguments of a call."""


def single(value: Any) -> Any:
    """Return a plain value of the same type, with one element along each axis of an array."""
    if isinstance(value, ArrayValue):
        shape = [min(size, 1) if isinstance(size, int) else 1 for size in value.dims]
        return np.ones(shape, value.element.to_numpy())
    if type(value) is TracedNumber:
        raise NoStandInError(value)  # its value would become a part of the signature
    if type(value) is np.ndarray and value.size > _LARGE:
        raise NoStandInError(value)
    return stand_in(1, value)


PLAIN = frozenset(
    (
        *(bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented)),
        type(np._NoValue),  # pyright: ignore[reportPrivateUsage]
    )
)
_WRITES_FILES = frozenset(("save", "savez", "savez_compressed", "savetxt", "tofile", "dump"))


def stand_in(fill: int, value: Any) -> Any:
    """Return a plain value of the same type and layout; raise NoStandInError without one."""
    if isinstance(value, TracedValue):
        return value.stand_in(fill)
    kind: Any = cast("object", type(value))
    if kind is TracedNumber:
        return concrete(value)
    if kind is np.ndarray and not value.dtype.hasobject:
        return copied(value)
    if isinstance(value, type) and issubclass(value, GraphValue):
        return np.ndarray
    argument = cast("Any", value)  # of any other type
    if is_static(argument) or _is_numpys(argument):
        return argument
    raise NoStandInError(argument)


def is_static(value: Any) -> bool:
    """Whether an argument of NumPy's functions is no operand: a number, text, a dtype, a class."""
    if type(value) in PLAIN or isinstance(value, (np.generic, np.dtype)):
        return True
    return isinstance(value, type) and value.__module__ in ("builtins", "numpy")


def _is_numpys(value: Any) -> bool:
    """Whether a value is a function of NumPy that only computes."""
    name = getattr(value, "__name__", "")
    if isinstance(value, np.ufunc):
        return type(value) is np.ufunc and getattr(np, name, None) is value
    if not callable(value) or isinstance(value, (type, GraphValue)) or name in _WRITES_FILES:
        return False
    return str(getattr(value, "__module__", "")).partition(".")[0] == "numpy"


def asks_in_trace(memory: TraceMemory) -> bool:
    """Whether a traced program calls the method that calls this function.

    graphir's own code does not, and nobody does after the trace: they see a value's symbol.
    """
    return active_memory() is memory and not is_internal(caller_of_boundary())


def caller_of_boundary() -> FrameType:
    """Return the frame that calls the innermost method at the boundary, inside of which we run."""
    frame = _getframe(1)
    while frame.f_code is not _BOUNDED and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_back or frame


# -- the class that a value has in NumPy


def numpy_class(value: Any) -> Any:
    """Return the class that NumPy's value has in place of a symbolic value; None for others."""
    kind: Any = cast("object", type(value))
    return value.__class__ if issubclass(kind, _TRACED) else None


_TRACED = TracedValue, SelectionValue, TracedNumber


@lru_cache(64)
def _attributes(kind: type) -> frozenset[str]:
    return frozenset(dir(kind))


def attributes_of(value: Any) -> frozenset[str]:
    """Return the names of the attributes of NumPy's value in place of a symbolic value."""
    return _attributes(numpy_class(value))

"""Wrappers of functions that the program calls, which record or note what the function reads.

`calls.callee` chooses the wrapper; each of them is made of one function:

- `recording_lists` records a call of a NumPy function on lists, on which NumPy does not dispatch;
- `scalar_constructor` records `np.float32(x)`;
- `noting_arguments` notes all recorded arguments as read;
- `noting_numbers` and `noting_integers` note the recorded numbers that the function reads;
- `noting_callbacks` and `giving_data` are for functions of installed packages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import GeneratorType
from typing import Any, cast

import numpy as np

from graphir.runtime.recording.leaving import traced_leaves
from graphir.runtime.recording.numpy_ import functions, ufuncs
from graphir.runtime.recording.numpy_.creation import array_symbol, as_recorded
from graphir.runtime.recording.numpy_.memory_readers import (
    NumberReads,
    Reads,
    keeps_integers,
    number_reads,
)
from graphir.runtime.recording.numpy_.operand_proxies import read_integers
from graphir.runtime.recording.numpy_.outside_data import wrap_outside
from graphir.runtime.recording.numpy_.python_numbers import read_number, reads_numbers
from graphir.runtime.recording.numpy_.stand_ins import recorded_function
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import TracedInt, active, plains, recording_with
from graphir.semantics.library_calls import leaves

DISPATCHER = cast("type[Any]", type(np.sum))
"""The type of NumPy's functions that dispatch on the class of an argument."""

# -- functions of NumPy


@lru_cache(maxsize=1024)
def recording_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that records its call on lists: NumPy does not dispatch on them.

    In place of a ufunc's lists stand arrays of their own.
    """
    is_ufunc = not isinstance(function, DISPATCHER)
    get_class, masked = type, np.ma.MaskedArray

    def call(*args: Any, **kwargs: Any) -> Any:
        kinds = [*map(get_class, args)]
        if masked in kinds and isinstance(function, np.ufunc) and function.nout == 1 and not kwargs:
            return ufuncs.call_on_masked(function, args)
        recorder = active()
        has_integers = recorder is not None and recorder.numbers.has_integers and not is_ufunc
        has_integers = has_integers and _has_integers(args, kwargs)
        is_alone = list not in kinds and tuple not in kinds and "dtype" not in kwargs
        if recorder is None or (is_alone and not has_integers) or not recorder.locate():
            return function(*args, **kwargs)
        has_list = list in kinds or kinds[:1] == [tuple]
        if has_integers or (has_list and not is_ufunc):
            return functions.call(function, args, kwargs)
        if is_ufunc:
            args = tuple(as_recorded(recorder, x) if type(x) in (list, tuple) else x for x in args)
        return function(*args, **kwargs)

    return call


def _has_integers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether recorded integers are among arguments, which NumPy's code would read unseen."""
    return any(isinstance(x, TracedInt) for x in leaves([args, kwargs]))


@lru_cache(maxsize=256)
def scalar_constructor(kind: type[Any]) -> Callable[..., Any]:
    """Return the stand-in of a scalar type of NumPy."""
    return recorded_function(kind, _record_scalar)


def _record_scalar(recorder: Recorder, kind: type[Any], *args: Any, **kwargs: Any) -> Any:
    """Record a NumPy scalar: of a recorded value a cast, of a Python number a constant."""
    real = recorder.call(kind, plains(args), plains(kwargs))
    if len(args) != 1:
        return real
    recorder.locate()
    if not traced_leaves(args) and not isinstance(args[0], (list, tuple)):
        is_number = isinstance(args[0], (int, float, complex))
        return recorder.wrapped(real, recorder.constant(real)) if is_number else real
    return recorder.outcome(kind.__name__, real, lambda: array_symbol(recorder, args[0], real))


# -- compiled functions


def noting_arguments(function: Callable[..., Any], reads: Reads) -> Callable[..., Any]:
    """Return a function that notes what it reads of all its recorded arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None and traced_leaves([args, kwargs]) and recorder.locate():
            if reads is Reads.FILE:
                recorder.leaving.add_saved([args, kwargs])
            else:
                recorder.leaving.hand_out(function.__name__, [args, kwargs], reads.value)
        return function(*args, **kwargs)

    return call


def noting_numbers(function: Callable[..., Any]) -> Any:
    """Return a compiled function that notes the recorded numbers whose memory it reads.

    Other functions return as they are.
    """
    recorder = active()
    if recorder is None or not recorder.numbers.has_any:
        return function
    reads = number_reads(function, recorder.numbers.has_integers)
    if not reads.floats and not reads.integers:
        return function
    return _noting(function, getattr(function, "__name__", "a call"), reads)


def noting_integers(function: Callable[..., Any], own: Callable[..., Any]) -> Any:
    """Return a function that notes recorded integers that `own`, a library's function, reads."""
    recorder = active()
    if recorder is None or not recorder.numbers.has_integers or keeps_integers(own):
        return function
    return _noting(function, own.__name__, NumberReads(floats=False, integers=True))


def _noting(function: Any, name: str, reads: NumberReads) -> Callable[..., Any]:
    """Return a function that notes the recorded numbers among its arguments that it reads.

    Iterators give it their items one by one, and note these then.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        values = [*leaves([args, kwargs])]
        is_reader = not reads.calls_operators or any(map(reads_numbers, values))
        reads_all = reads.floats and is_reader
        for value in values:
            if reads_all or (reads.integers and isinstance(value, TracedInt)):
                read_number(name, value)
        if reads.integers:
            args = tuple(map(_noting_items, args))
        return function(*args, **kwargs)

    return call


def _noting_items(value: Any) -> Any:
    """Return an iterator that notes the integers in its items as read; other values as they are."""
    return map(read_integers, cast("Any", value)) if isinstance(value, _ITERATORS) else value


_ITERATORS = (GeneratorType, map, filter, zip)

# -- functions of installed packages


def noting_callbacks(function: Callable[..., Any]) -> Callable[..., Any]:
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


def giving_data(function: Callable[..., Any]) -> Callable[..., Any]:
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
            return noting_callbacks(function)(*args, **kwargs)
        with recording_with(None):
            real = function(*args, **kwargs)
        if type(real) is not np.ndarray or not recorder.locate() or recorder.memory.owner(real):
            return real
        return wrap_outside(recorder, function.__name__, real)

    return call

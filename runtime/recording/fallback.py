"""Calls that recording cannot follow: on plain arrays, their results taken as given.

Two kinds of errors meet in a recorded program. What NumPy raises is the program's and passes; it
comes out of `Recorder.call`, through which alone NumPy computes. Whatever else is raised is a fault
of the recording: the call is then made on plain arrays, unless it has been made by then. If that
raises, the error is the program's after all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np

from graphir import Symbol
from runtime.recording.recorder import UNDONE, Recorder
from runtime.recording.values import (
    RecordedValue,
    UnrecordedError,
    active,
    recording_with,
    trace_of,
    view_of,
)

Handler = Callable[..., Any]


def rescued(plainly: Handler) -> Callable[[Handler], Handler]:
    """A handler of calls, which are made `plainly(*args, **kwargs)` where nothing records.

    So they are where the handler fails by itself; each call is made once.
    """

    def wrap(handle: Handler) -> Handler:
        @wraps(handle)
        def call(*args: Any, **kwargs: Any) -> Any:
            recorder = active()
            if recorder is None:
                return plainly(*args, **kwargs)
            outer, recorder.call_result, recorder.error_id = recorder.call_result, UNDONE, 0
            recorder.arguments.append((args, kwargs))
            try:
                try:
                    return handle(*args, **kwargs)
                except Exception as error:
                    if recorder.error_id == id(error):
                        raise
                    fault = error
                name = getattr(args[0], "__name__", handle.__name__)
                if recorder.call_result is UNDONE:
                    result = opaque(recorder, name, plainly, args, kwargs)
                else:
                    result = _keep_result(
                        recorder, name, recorder.call_result, arrays_of((args, kwargs))
                    )
                recorder.failed(fault)  # else it was the program's
                return result
            finally:
                recorder.call_result = outer
                recorder.arguments.pop()

        return call

    return wrap


def opaque(recorder: Recorder, name: str, plainly: Handler, args: Any, kwargs: Any) -> Any:
    """A call on plain arrays, its results and what it wrote being taken as given."""
    arrays = [array for array in arrays_of((args, kwargs)) if array.flags.writeable]
    before = [array.plain.tobytes() for array in arrays]
    for array in arrays:
        recorder.before(array)
    with recording_with(None):
        real = recorder.call(plainly, args, kwargs)
    pairs = zip(arrays, before, strict=True)
    _note_writes(
        recorder,
        name,
        [array for array, bytes_before in pairs if array.plain.tobytes() != bytes_before],
    )
    return given(recorder, name, real, arrays)


def _keep_result(recorder: Recorder, name: str, real: Any, arrays: Sequence[RecordedValue]) -> Any:
    """The result of a call that has been made; nobody knows what it wrote."""
    _note_writes(recorder, name, [array for array in arrays if array.flags.writeable])
    return given(recorder, name, real, arrays)


def _note_writes(recorder: Recorder, name: str, arrays: Sequence[RecordedValue]) -> None:
    for array in arrays:
        trace_of(array, recorder).write(recorder.checked(name, array.plain, _nothing))


def arrays_of(value: Any) -> list[RecordedValue]:
    """The recorded arrays in lists, tuples and dicts."""
    if isinstance(value, RecordedValue):
        return [value]
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in arrays_of(item)]  # pyright: ignore
    return arrays_of(list(value.values())) if isinstance(value, dict) else []  # pyright: ignore


def given(recorder: Recorder, name: str, real: Any, arrays: Sequence[RecordedValue]) -> Any:
    """A result as the program goes on with it: one of the arrays, a view of one, or an input."""
    kind: Any = cast("object", type(real))
    if kind is tuple or kind is list:
        return kind(given(recorder, name, array, arrays) for array in real)  # pyright: ignore
    if kind is np.ndarray:
        for array in arrays:
            if real is array.plain:
                return array
            if np.may_share_memory(real, array.plain):
                return view_of(array, real)
    if not isinstance(real, (np.ndarray, np.generic)):
        return real
    return recorder.outcome(name, real, _nothing)


def _nothing() -> Symbol:
    raise UnrecordedError("it is compiled")


def repeatable(recorder: Recorder, value: Any, since: int) -> bool:
    """Whether a call on these arguments, which has failed, can be made again.

    It has written to none of them since that many writes; and functions among them, which are the
    program's, are called once.
    """
    if isinstance(value, RecordedValue):
        recorder.before(value)  # which sees what compiled code wrote
        trace = trace_of(value, recorder)
        return (trace.root or trace).version <= since
    if isinstance(value, dict):
        value = list(cast("dict[Any, Any]", value).values())
    if isinstance(value, (tuple, list)):
        return all(repeatable(recorder, item, since) for item in cast("list[Any]", value))
    return isinstance(value, type) or not callable(value)

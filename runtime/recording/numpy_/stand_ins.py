"""Stand-ins: what a recorded program calls in place of a function or a class of NumPy or Python.

A stand-in is made of the original and of a recorder of its calls, `record(recorder, original,
*args, **kwargs)`, which makes the call and returns the recorded result. Without a recording, and in
calls by the project's own code, a stand-in calls the original on plain values. The recorders are in
`creation`, `outside_data` and `python_functions`; `interception` puts the stand-ins in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import Any, cast

import numpy as np

from graphir.location import is_internal
from graphir.runtime.recording.fallback import opaque, with_fallback
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import active, plain, plains, recording

Maker = Callable[..., Any]


def recorded_function(original: Any, record: Callable[..., Any]) -> Maker:
    """Return the function that a recorded program calls in place of one of NumPy's.

    `record(recorder, original, *args, **kwargs)` makes the call and returns the recorded result.
    """

    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is None or is_internal(_getframe(1)) or not recorder.locate():
            return original(*plains(args), **plains(kwargs))
        return _recorded(original, record, args, kwargs)

    return make


def call_original(
    original: Maker, record: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call the original of a stand-in on plain values; the result is plain too."""
    return original(*plains(args), **plains(kwargs))


@with_fallback(call_original, "maker")
def _recorded(
    original: Maker, record: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    return record(recording(), original, *args, **kwargs)


def record_opaque(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Record a function of a compiled module as an opaque call on plain arrays."""
    call = original, record_opaque, args, kwargs
    return opaque(recorder, original.__name__, call_original, call, {})


class _RecordedClass(type):
    """The metaclass of a stand-in of a class: it records calls of the class.

    Objects that the program has made of NumPy's own class before are instances of the stand-in.
    """

    original: Any
    record: Callable[..., Any]
    numpy_class: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is None or is_internal(_getframe(1)) or not recorder.locate():
            return cls.original(*plains(args), **plains(kwargs))
        return _recorded(cls.original, cls.record, args, kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        owner = plain(instance)
        while isinstance(owner, np.ndarray) and not isinstance(owner, cls.numpy_class):
            owner = cast("Any", owner).base
        return isinstance(owner, cls.numpy_class)


def recorded_class(
    original: type[Any], record: Callable[..., Any], numpy_class: type[Any] | None = None
) -> Any:
    """Return the stand-in of a class; `numpy_class` is NumPy's own if the original derives from it.

    `record` is as for `recorded_function`.
    """
    facts = {"__doc__": original.__doc__, "original": original, "record": staticmethod(record)}
    facts["numpy_class"] = numpy_class or original
    return _RecordedClass(original.__name__, (original,), facts)

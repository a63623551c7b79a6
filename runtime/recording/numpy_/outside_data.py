"""Arrays that come from outside of the program: of files, of buffers, of random numbers.

They are data, so each is an input of the graph. Start at `record_outside`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from graphir.runtime.recording.builder import IS_DATA
from graphir.runtime.recording.fallback import opaque
from graphir.runtime.recording.leaving import traced_leaves
from graphir.runtime.recording.numpy_.stand_ins import (
    Maker,
    call_original,
    recorded_class,
    recorded_function,
)
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import TracedInt, plains, recording_with
from graphir.semantics.library_calls import leaves

FILE_READERS = frozenset(("load", "loadtxt", "genfromtxt", "fromfile", "memmap"))
"""NumPy's functions that read files."""


def record_outside(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Record an array from a file or of random numbers as an input.

    If an argument is recorded, the call is opaque instead.
    """
    if traced_leaves([args, kwargs]):
        for leaf in leaves([args, kwargs]):
            if isinstance(leaf, (TracedInt, np.integer)):
                recorder.setting(original.__name__, leaf)
        name = f"numpy.{original.__name__}"
        return opaque(recorder, name, call_original, (original, record_outside, args, kwargs), {})
    with recording_with(None):
        real = recorder.call(original, args, kwargs)
    recorder.locate()
    return wrap_outside(recorder, original.__name__, real)


def wrap_outside(recorder: Recorder, name: str, real: Any) -> Any:
    """Return an array that came from outside, which is data, in the form that the program gets."""
    if isinstance(real, np.memmap):
        real = cast("Any", real).view(np.ndarray)
    if type(real) is not np.ndarray or not (recorder.has(real.dtype) or real.dtype.names):
        return recorder.wrapped(real, None) if isinstance(real, np.ndarray) else real
    recorder.note(name, IS_DATA)
    if name in FILE_READERS:
        return recorder.program_arrays.wrap_file_content(name, real)
    return recorder.program_arrays.wrap_data(real)


def _record_buffer(
    recorder: Recorder, original: Maker, buffer: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record np.frombuffer as an input, unless the buffer is that of an array.

    Recorded values that became bytes were noted.
    """
    owner: object = buffer.obj if isinstance(buffer, memoryview) else buffer
    if not isinstance(owner, np.ndarray):
        return record_outside(recorder, original, buffer, *args, **kwargs)
    return recorder.call(original, plains((buffer, *args)), plains(kwargs))


def record_archived(
    recorder: Recorder, original: Maker, archive: np.lib.npyio.NpzFile, key: str
) -> Any:
    """Record an array of an .npz file, which NumPy loads where the program asks for it."""
    with recording_with(None):
        real = original(archive, key)
    recorder.locate()
    return wrap_outside(recorder, "load", real)


# -- random numbers


def _record_source(recorder: Recorder, original: Maker, *args: Any, **kwargs: Any) -> Any:
    """Make an object of numpy.random beside the recording; its arrays are data of the program."""
    with recording_with(None):
        return random_data(recorder.call(original, plains(args), plains(kwargs)))


class RandomData:
    """Mixin of NumPy's sources of random numbers: the arrays of their methods are data."""

    def __getattribute__(self, name: str) -> Any:
        value: Any = super().__getattribute__(name)
        is_method = callable(value) and name[0] != "_" and name != "bit_generator"
        return recorded_function(value, record_outside) if is_method else value


class _Generator(RandomData, np.random.Generator):
    pass


class _RandomState(RandomData, np.random.RandomState):
    pass


_GENERATOR = np.random.Generator  # during a recording NumPy has another class of that name


def random_data(source: Any) -> Any:
    """Return a generator with the same bit generator, whose arrays are data; others as they are."""
    if type(source) is _GENERATOR:
        return _Generator(source.bit_generator)
    return source


OUTSIDE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(FILE_READERS - {"memmap"}, record_outside),
    "fromstring": record_outside,
    "frombuffer": _record_buffer,
    "random.default_rng": _record_source,
}
"""The recorders of functions that make arrays of outside data, by path in numpy."""
_SOURCES = ("Generator", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
OUTSIDE_CLASSES: dict[str, Any] = {
    "memmap": recorded_class(np.memmap, record_outside),
    "random.RandomState": recorded_class(_RandomState, _record_source, np.random.RandomState),
    **{
        f"random.{name}": recorded_class(getattr(np.random, name), _record_source)
        for name in _SOURCES
    },
}
"""The stand-ins of classes, by path in numpy."""

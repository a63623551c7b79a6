"""`x.resize(shape)` and `x.shape = shape`: changes of an array in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.numpy_api.view_steps import Cut, Reshape
from graphir.public import Symbol, ops
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedValue,
    RecordingTrace,
    UnrecordedError,
    active,
    trace_of,
)
from graphir.runtime.references import counts_references, is_held

_HOLDERS = 4
"""The references to an array besides the program's: its wrapper, its trace and the frames of calls
hold them."""


def resize(x: RecordedValue, *shape: Any, refcheck: bool = True) -> None:
    """Resize an array in place, with zeros as new elements, and record it.

    NumPy reallocates the memory, which no other array may share. Here `x` gets memory of its own;
    at the end of the recording, the original array gets the final size and values.
    """
    recorder, original = active(), x.plain
    if recorder is None:
        original.resize(*shape, refcheck=refcheck)
        return
    recorder.locate()
    new = original.copy("K")
    new.resize(*shape, refcheck=False)
    if new.size == x.size:
        shape_in_place(x, lambda array: np.ndarray.resize(array, new.shape, refcheck=False))
        return
    is_resized = recorder.memory.is_resized(x)
    if original.base is not None and not is_resized:
        recorder.call(original.resize, shape, {"refcheck": refcheck})
    is_shared = counts_references() and is_held(original, _HOLDERS)
    if refcheck and not is_resized and is_shared:
        recorder.call(_refused, (), {})
    before, in_order = recorder.before(x), original.flags.c_contiguous

    def enter() -> Symbol:
        if before is None or not in_order:
            raise UnrecordedError("its elements are not in row-major order")
        return recorder.reshaped(_cut_or_filled(recorder, before, new.size), new.shape)

    recorder.memory.add_resized(x, original)
    order = new.flags.f_contiguous and not new.flags.c_contiguous
    np.ndarray.__setstate__(x, (1, new.shape, new.dtype, order, new.tobytes("A")))  # pyright: ignore
    recorder.replace_memory(x, "resize", enter)


def shape_in_place(x: RecordedValue, change: Callable[[Any], None]) -> None:
    """Apply `change`, which sets a shape with as many elements, to `x` and to its plain array."""
    recorder = active()
    before = trace_of(x, recorder) if recorder else None
    if before is not None:
        before.plain = x.plain.view()
    change(x.plain)
    change(x)
    if before is not None:
        x.recording_trace = RecordingTrace(
            before.recorder, x.plain, None, before, (Reshape(x.shape),)
        )


def _refused() -> None:
    """Raise NumPy's own refusal to resize an array with another reference, which a list holds."""
    arrays = [np.empty(1)]
    array = arrays[0]
    array.resize(2)


def _cut_or_filled(recorder: Recorder, x: Symbol, size: int) -> Symbol:
    flat = recorder.reshaped(x, (x.size,))
    length: Any = flat.size
    if size <= length:
        return Cut((0,), (size,), (1,)).forward(recorder, flat)
    zeros = recorder.filled(0, (size - length,), x.dtype)
    return recorder.emit(ops.concat, (flat, zeros), axis=0)

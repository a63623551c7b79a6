"""The traces of structured arrays: a trace for each field, and none for the structure.

NumPy computes on fields, and every field of structured memory is an array on part of that memory.
So the fields have symbols, from their first use on, and rows, slices and lists of fields are views
of the fields' memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from graphir.numpy_api.view_layouts import steps_between
from graphir.public import Symbol
from graphir.runtime.recording.values import (
    Array,
    RecordedValue,
    RecordingTrace,
    TracedScalar,
    UnrecordedError,
    Untaken,
    trace_of,
    view_of,
    view_trace,
)

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder

Take: TypeAlias = Callable[[Array], Symbol]
"""A function that returns the symbol of a field at its first use, from its values."""
FieldPath: TypeAlias = tuple[str, ...]


class StructuredTrace(RecordingTrace):
    """The trace of structured memory: `fields` has the traces of the fields so far, by path.

    `take` gives an untouched field its symbol. `is_certain` is whether a run in wide arithmetic
    would have the same values in untouched fields.
    """

    __slots__ = ("fields", "is_certain", "take")

    def __init__(self, recorder: Recorder, plain: Array, take: Take, is_certain: bool) -> None:
        super().__init__(recorder, plain, None)
        self.take, self.is_certain = take, is_certain
        self.fields: dict[FieldPath, RecordingTrace] = {}

    def field_of(self, view: Array) -> RecordingTrace | None:
        """Return the trace of the field of which an array is a view; None without one."""
        for path, part in leaf_fields(self.plain):
            inside = part.dtype == view.dtype and np.may_share_memory(part, view)
            if inside and steps_between(part, view) is not None:
                trace = self.fields.get(path)
                return self.add(path, self._untaken(part)) if trace is None else trace
        return None

    def _untaken(self, part: Array) -> RecordingTrace:
        return RecordingTrace(self.recorder, part, Untaken(None, self._first_symbol))

    def _first_symbol(self, array: Array, _: str | None) -> Symbol:
        return self.take(array)

    def add(self, path: FieldPath, trace: RecordingTrace) -> RecordingTrace:
        """Add the trace of a field, and return it."""
        self.fields[path] = trace
        return trace

    def symbols(self) -> Iterator[Symbol]:
        """Yield the symbols of the fields that the program has used."""
        for trace in self.fields.values():
            if trace.is_used:
                yield trace.read()

    def read(self) -> Symbol:
        """Raise UnrecordedError: the fields have symbols."""
        raise UnrecordedError("a structured array has no symbol; its fields have")

    def write(self, symbol: Symbol | None) -> None:
        """Note that something not recorded wrote to the memory: its fields are as given."""
        self.is_certain, self.take = False, self.recorder.add_unrecorded_input
        for trace in self.fields.values():
            trace.write(None)
        self.version = self.recorder.memory.count_write()

    def view_of_part(self, view: Array) -> RecordingTrace:
        """Return the trace of a view: of a field by that field's; of structured memory, this."""
        if view.dtype.names:
            return self
        field = self.field_of(view)
        if field is None:  # bits of several fields
            symbol = self.recorder.add_unrecorded_input_if_typed(view)
            return RecordingTrace(self.recorder, view, symbol)
        return view_trace(field, view)


def leaf_fields(array: Array) -> Iterator[tuple[FieldPath, Array]]:
    """Yield the fields of structured memory as arrays with their paths, nested ones by theirs."""
    for name in array.dtype.names or ():
        part: Array = array[name]
        if part.dtype.names:
            yield from (((name, *path), leaf) for path, leaf in leaf_fields(part))
        else:
            yield (name,), part


def structured_trace(array: RecordedValue, recorder: Recorder) -> StructuredTrace | None:
    """Return the trace of the structured memory under an array; None of other memory."""
    trace = trace_of(array, recorder)
    root = trace.root or trace
    return root if isinstance(root, StructuredTrace) else None


def used_fields(recorder: Recorder, array: RecordedValue) -> list[RecordedValue]:
    """Return the fields of a structured array that the program has used, as recorded arrays."""
    root = structured_trace(array, recorder)
    leaves = [leaf for _, leaf in leaf_fields(array.plain) if recorder.has(leaf.dtype)]
    traces = [None if root is None else root.field_of(leaf) for leaf in leaves]
    return [
        view_of(array, leaf)
        for leaf, trace in zip(leaves, traces, strict=True)
        if trace is None or trace.is_used
    ]


def zeros_of(recorder: Recorder, real: Array) -> RecordedValue:
    """Return a structured array of zeros with the dtype and shape of another."""
    zeros = np.zeros(real.shape, real.dtype)
    trace = StructuredTrace(recorder, zeros, recorder.constant_array, is_certain=True)
    return recorder.traced(zeros, trace)


def move_structured(
    recorder: Recorder, array: RecordedValue, real: Array, move: Callable[[Any], Any]
) -> RecordedValue:
    """Return a structured array with the elements of another, which NumPy moved.

    `move` moves the elements of a field that the program has used.
    """
    source = structured_trace(array, recorder)
    if source is None:  # the bits of an array of numbers
        take, is_certain = recorder.add_unrecorded_input, False
        return recorder.traced(real, StructuredTrace(recorder, real, take, is_certain))
    new = StructuredTrace(recorder, real, source.take, source.is_certain)
    for (path, leaf), (_, part) in zip(leaf_fields(array.plain), leaf_fields(real), strict=True):
        trace = source.field_of(leaf) if recorder.has(leaf.dtype) else None
        if trace is not None and trace.is_used:
            symbol = trace_of(move(view_of(array, leaf)), recorder).read()
            new.add(path, RecordingTrace(recorder, part, symbol))
    return recorder.traced(real, new)


def parts_of(value: Any, names: tuple[str, ...]) -> Sequence[Any] | None:
    """Return the values that NumPy assigns to the fields of a structured array, by position.

    The answer is None for a value that is not taken apart by fields.
    """
    if isinstance(value, tuple):
        return cast("tuple[Any, ...]", value)
    if isinstance(value, (RecordedValue, TracedScalar)) and value.plain.dtype.names:
        return [cast("Any", value)[name] for name in value.plain.dtype.names]
    return None

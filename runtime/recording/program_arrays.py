"""`ProgramArrays`: the arrays that a recorded program brings along.

They are arguments, captured arrays, and data that the program loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphir.ops.grammar import is_foreign
from graphir.public import Symbol
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.recording.captured import Brought
from graphir.runtime.recording.leaving import is_text
from graphir.runtime.recording.structured import StructuredTrace, Take
from graphir.runtime.recording.structured import used_fields as fields_of
from graphir.runtime.recording.values import (
    Array,
    RecordedValue,
    RecordingTrace,
    Result,
    TracedScalar,
    Untaken,
)

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder


class ProgramArrays:
    """The arrays that a recorded program brings along, each with its one recorded array.

    The graph has an input for each argument, and for each captured array that the program uses.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.data: list[Symbol] = []
        """The inputs of the graph that are arguments of the program, or that it loaded."""
        self.captures: list[Symbol] = []
        """The inputs of the graph that the program captured: its data if it has no others."""
        self.captured = Brought(())
        """The arrays that the program can reach beside its arguments."""
        self._entries: dict[int, tuple[Any, RecordedValue]] = {}
        """The recorded array in place of each array, by the id of the array."""
        self._arguments: dict[int, str | None] = {}
        """The names of the arrays that are arguments, by their ids."""
        self._fields: dict[int, tuple[RecordedValue, Sequence[RecordedValue]]] = {}
        """The used fields of structured results, by the id of the array."""

    def argument_name(self, array: Array) -> str | None:
        """Return the name of an array that is an argument; None for any other."""
        return self._arguments.get(id(array))

    def wrap_argument(self, value: Any, name: str | None) -> Any:
        """Return an argument in the form that the program gets, with an input of the graph.

        One array has one wrapper. A structured array has inputs for the fields that are taken.
        """
        if not self._is_plain(value):
            return value
        is_scalar = isinstance(cast("object", value), np.generic)
        if is_scalar and self._recorder.has(value.dtype):
            return self._recorder.wrapped(value, self.add_data(value, name))
        self._arguments[id(value)] = name
        return self._wrapped(value, self.add_data, lambda real: self.add_data(real, name))

    def wrap_capture(self, value: Any, name: str | None) -> Any:
        """Return an array that the program captures, with an input from its first use on."""
        if isinstance(value, np.generic) or not self._is_plain(value):
            return cast("Any", value)
        return self._wrapped(value, self.add_capture, lambda _: Untaken(name, self.add_capture))

    def _wrapped(
        self,
        value: Result,
        add: Callable[[Array, str | None], Symbol],
        symbol_of: Callable[[Array], Symbol | Untaken],
    ) -> Any:
        """Return an array of the program; `add` adds an input for a field of a structured one."""
        if is_text(value.dtype) and isinstance(value, np.ndarray):
            return self._entry(value, lambda real: RecordingTrace(self._recorder, real, None))
        if value.dtype.names or not self._recorder.has(value.dtype):
            return self._structured(value, lambda field: add(field, None))
        recorder = self._recorder
        return self._entry(value, lambda real: RecordingTrace(recorder, real, symbol_of(real)))

    def add_capture(self, array: Array, name: str | None) -> Symbol:
        """Add an input for an array that the program captured and uses now; return its symbol."""
        return self._add(self.captures, array, name)

    def add_data(self, value: Result, name: str | None) -> Symbol:
        """Add an input for data of the program: an argument, or what it loaded."""
        return self._add(self.data, value, name)

    def wrap_file_content(self, name: str, real: Array) -> Any:
        """Return the content of a file, which the program may have written, as `wrap_data` does."""
        recorder = self._recorder
        if not recorder.leaving.saved or real.dtype.names:
            return self.wrap_data(real)
        symbol, saved = recorder.input(real), tuple(recorder.leaving.saved.values())
        reason = "is taken as given: the program wrote to files before"
        recorder.step(name, reason, (symbol,), saved, exact=True)
        return recorder.wrapped(real, symbol)

    def wrap_data(self, real: Array) -> Any:
        """Return data of the program in the form that the program gets: an argument, a file.

        The fields of a structured array become inputs where the program uses them.
        """
        if real.dtype.names:
            take = partial(self.add_data, name=None)
            return self._recorder.traced(real, StructuredTrace(self._recorder, real, take, True))
        return self._recorder.wrapped(real, self.add_data(real, None))

    def _add(self, inputs: list[Symbol], value: Result, name: str | None) -> Symbol:
        is_free = name not in self._recorder.graph.input_names
        symbol = self._recorder.input(value, name if is_free else None)
        inputs.append(symbol)
        return symbol

    def wrapper_of(self, value: Any) -> Any:
        """Return the recorded array in place of an array of the program; other values unchanged."""
        entry = self._entries.get(id(value))
        return entry[1] if entry is not None and entry[0] is value else value

    def written_arguments(self) -> list[RecordedValue]:
        """Return the arguments whose values the program has changed."""
        input_places = {symbol.index for symbol in (*self.data, *self.captures)}
        entries = [self._entries[key][1] for key in self._arguments if key in self._entries]
        arrays = [field for array in entries for field in self.used_fields(array)]
        symbols = ((array, self._recorder.before(array)) for array in arrays)
        return [array for array, x in symbols if x is not None and x.index not in input_places]

    def used_fields(self, value: Any) -> Sequence[Any]:
        """Return the used fields of a structured array or row; other values as they are."""
        if not value.plain.dtype.names:
            return [value]
        array: RecordedValue = value if isinstance(value, RecordedValue) else value.array
        key = id(array)
        if key not in self._fields:
            self._fields[key] = array, fields_of(self._recorder, array)
        return self._fields[key][1]

    def _is_plain(self, value: Any) -> bool:
        """Whether a value is an array or a scalar to wrap; note a subclass, which stays as it is.

        The file of a memory map is an array like others.
        """
        kind = cast("Any", type(value))
        if isinstance(value, (RecordedValue, TracedScalar)):
            return False
        if not isinstance(value, np.ndarray) or kind in (np.ndarray, np.memmap):
            return isinstance(cast("object", value), (np.ndarray, np.generic))
        name = kind.__name__
        self._unrecorded(f"an array of {name}", f"{name} computes by itself", True)
        return False

    def _structured(self, value: Result, take: Take) -> Any:
        """Return a structured array as the program gets it; note an array of another dtype."""
        if value.dtype.names and isinstance(value, np.ndarray):
            array = cast("Any", value)
            recorder = self._recorder
            return self._entry(array, lambda real: StructuredTrace(recorder, real, take, True))
        why = f"{self._recorder.graph.rules.name!r} has no such dtype"
        if is_foreign(value.dtype):
            why += f"; audit it with as_dtype='{value.dtype}'"
        self._unrecorded(f"an array of {value.dtype}", why, value.dtype.kind in "fcV")
        return value

    def _unrecorded(self, what: str, why: str, hides: bool) -> None:
        """Note a value of the program that the recording leaves as it is.

        With `hides`, an error may hide in what the program computes of the value.
        """
        reason = f"is not recorded: {why}"
        self._recorder.note(what, reason)
        if hides:
            self._recorder.steps.append(OpaqueStep(what, self._recorder.here, reason))

    def _entry(self, value: Any, trace: Callable[[Array], RecordingTrace]) -> RecordedValue:
        """Return the one recorded array of an array that the program brings along."""
        entry = self._entries.get(id(value))
        if entry is None:
            real = value if type(value) is np.ndarray else value.view(np.ndarray)
            entry = self._entries[id(value)] = value, self._recorder.traced(real, trace(real))
        return entry[1]

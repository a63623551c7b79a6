"""The state of a recorder by purpose: the calls that run, the values handed out, the memory.

Each record is changed by its own methods alone; the rest of the recording reads its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

import numpy as np

from graphir.public import Symbol
from graphir.runtime.recording.numpy_.measured_calls import UNDONE, KnownCall, RunningCall
from graphir.runtime.recording.values import Array, RecordedValue, RecordingTrace, TracedScalar

if TYPE_CHECKING:
    from graphir.runtime.recording.notes import NotingBuilder
    from graphir.runtime.recording.recorder import Recorder


class ProgramCalls:
    """The calls of the program that the recorder handles, one inside of another."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.running: RunningCall | None = None
        """The innermost call."""

    def enter(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RunningCall:
        """Add a call inside of the running one, and return it."""
        self.running = RunningCall(args, kwargs, self.running)
        return self.running

    def leave(self, call: RunningCall) -> None:
        """End a call: the one around it runs on."""
        self.running = call.outer

    def name_function(self, name: str) -> None:
        """Note which NumPy function, written in Python, the running call runs; "" when it ends."""
        if self.running is not None:
            self.running.function = name

    def function_name(self, name: str = "") -> str:
        """Return the outermost NumPy function that is written in Python, or `name` outside of one.

        The user called that function, and its own code makes the inner calls.
        """
        call = self.running
        while call is not None:
            name, call = call.function or name, call.outer
        return name

    @property
    def arguments(self) -> list[tuple[Any, Any]]:
        """The arguments of the running calls, the user's call first."""
        return [] if self.running is None else self.running.stack()

    @property
    def target(self) -> Any:
        """The function that the program called, or the array whose method it called."""
        args = self.arguments[0][0] if self.running is not None else ()
        return args[0] if args else None

    def measure(self, name: str) -> None:
        """Note the running call for audits, before NumPy may write to its operands."""
        if self.running is not None:
            self.running.measure(self._recorder, name)

    def measured(self, name: str) -> KnownCall | None:
        """Return the running call for an audit (see `RunningCall.measured`)."""
        return None if self.running is None else self.running.measured(self._recorder, name)

    def place(self, call: KnownCall, real: Any) -> int | None:
        """Return the place of `real` among the results of the running call; None of any other."""
        return call.call.place(real, UNDONE if self.running is None else self.running.result)

    def forget_result(self) -> None:
        """Note that the running call is to come: NumPy's call so far has converted an argument."""
        if self.running is not None:
            self.running.result = UNDONE


class ProgramNumbers:
    """The recorded numbers and bools that the program has got, by which it may go on.

    Before the first of a kind, calls of the program need no look at their arguments for that kind.
    """

    def __init__(self) -> None:
        self.has_any = False
        """Whether the program has got recorded numbers, of NumPy or of Python."""
        self.python_count = 0
        """The number of recorded Python numbers that the program has got."""
        self.has_integers = False
        """Whether the program has got recorded Python integers."""
        self.has_bools = False
        """Whether the program has got NumPy bools of recorded values."""
        self.last_scalar: TracedScalar | None = None
        """The scalar that NumPy has computed last."""
        self._sources: dict[int, tuple[Any, Any]] = {}

    def add_scalar(self, scalar: TracedScalar) -> None:
        """Note a recorded NumPy scalar."""
        self.last_scalar, self.has_any = scalar, True

    def add_float(self) -> None:
        """Note a recorded Python float."""
        self.python_count, self.has_any = self.python_count + 1, True

    def add_integer(self) -> None:
        """Note a recorded Python integer."""
        self.add_float()
        self.has_integers = True

    def add_bool(self) -> None:
        """Note a NumPy bool, which has no symbol."""
        self.has_bools = True

    def add_plain(self, number: Any, source: RecordedValue) -> None:
        """Note a number without a symbol, and the recorded value that it was made from."""
        self._sources[id(number)] = number, source

    def source(self, number: Any) -> Any:
        """Return the recorded value that a plain number was made from; None of any other."""
        known, source = self._sources.get(id(number), (None, None))
        return source if known is number else None


class ProgramObjects:
    """The object arrays that the program has got, which no graph has."""

    def __init__(self) -> None:
        self.has_numbers = False
        """Whether the program has got object arrays of recorded Python numbers."""
        self.makers: list[str] = []
        """The calls with recorded arguments that made objects, as functions of the user do."""

    def add_numbers(self) -> None:
        """Note an object array of recorded Python numbers."""
        self.has_numbers = True

    def add_maker(self, name: str) -> None:
        """Note a call with recorded arguments that made objects."""
        if name not in self.makers:
            self.makers.append(name)

    @property
    def reason(self) -> str:
        """The reason why no op makes an array, if the program has made objects."""
        makers = ", ".join(self.makers) or "what is not recorded"
        return f"it was made of objects, which no graph has, as {makers} makes"


class ArrayMemory:
    """The memory of arrays: who owns it, how often it was written to, and what was replaced."""

    def __init__(self, recorder: NotingBuilder) -> None:
        self._recorder = recorder
        self.writes = 0
        """The number of writes to recorded memory so far."""
        self._owners: dict[int, ref[RecordingTrace]] = {}
        self._outside: dict[int, tuple[Array, Array, Symbol]] = {}
        """Plain arrays of the program with a copy and a symbol of their values, by id."""
        self._resized: dict[int, tuple[RecordedValue, Array]] = {}
        """Arrays whose memory was replaced, by id, with the original plain array."""

    def add_owner(self, real: Array, trace: RecordingTrace) -> None:
        """Note the trace of the recorded array that owns the memory of a plain array."""
        self._owners[id(real)] = ref(trace)

    def owner(self, array: Array) -> RecordingTrace | None:
        """Return the trace of the recorded array that owns the memory of a plain array, or None."""
        base: Any = array
        while base is not None:
            entry = self._owners.get(id(base))
            trace = entry and entry()
            if trace is not None and trace.plain is base:
                return trace
            if isinstance(base, RecordedValue):  # under a view of an array of another class
                trace = base.recording_trace
                if trace is not None and trace.recorder is self._recorder:
                    return trace
                base = cast("Any", np.ndarray).base.__get__(base)
            else:
                base = getattr(base, "base", None)
        return None

    def count_write(self) -> int:
        """Count a write, and return its number."""
        self.writes += 1
        return self.writes

    def outside_symbol(self, array: Array) -> Symbol | None:
        """Return the symbol of a plain array that has the values noted last; None of any other."""
        known, copy, symbol = self._outside.get(id(array), (None, None, None))
        is_same = known is array and copy is not None and copy.tobytes() == array.tobytes()
        return symbol if is_same else None

    def note_plain_write(
        self, array: Array, symbol: Symbol | None, copy: Array | None = None
    ) -> None:
        """Note that a plain array has the values of a symbol, or unknown ones for None.

        `copy` has these values if the caller has one.
        """
        if symbol is None:
            self._outside.pop(id(array), None)
        else:
            self._outside[id(array)] = array, np.array(array) if copy is None else copy, symbol

    def is_resized(self, array: RecordedValue) -> bool:
        """Whether the memory of an array was replaced."""
        return id(array) in self._resized

    def add_resized(self, array: RecordedValue, original: Array) -> None:
        """Note that the memory of an array is replaced; `original` is its plain array before."""
        self._resized.setdefault(id(array), (array, original))

    def copy_back_resized(self) -> None:
        """Copy the final size and values of each resized array to its original array."""
        for array, original in self._resized.values():
            original.resize(array.shape, refcheck=False)
            original[...] = array.plain
            array._plain = original  # pyright: ignore[reportPrivateUsage]

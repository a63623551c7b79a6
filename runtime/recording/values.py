"""Recorded values: arrays and NumPy scalars that have symbols, and traces of array memory.

A write to memory changes the values of all views of it. The trace of the array that owns the memory
counts writes; the trace of a view derives its symbol anew from the owner's after a write.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.numpy_api import view_steps as steps
from graphir.numpy_api.view_layouts import ViewLayout, overlaps, steps_between
from graphir.public import GraphirError, Symbol
from graphir.semantics.library_calls import mapped

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder

Array: TypeAlias = NDArray[Any]
Result: TypeAlias = "Array | np.generic[Any]"
"""A result of NumPy: an array, or a scalar."""


class UnrecordedError(GraphirError):
    """Raised for a result that no op computes; a recording then adds an input with its values."""


class _Active(local):
    recorder: Recorder | None = None


_ACTIVE = _Active()


def active() -> Recorder | None:
    """Return the active recorder of this thread, or None."""
    return _ACTIVE.recorder


def recording() -> Recorder:
    """Return the active recorder of this thread, which must exist."""
    recorder = _ACTIVE.recorder
    assert recorder is not None  # callers check `active()` first
    return recorder


class recording_with:  # noqa: N801 -- a context manager; a class is faster than a generator
    """Context manager: inside the block, this thread records with a recorder, or not for None."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, recorder: Recorder | None) -> None:
        self._inner = recorder

    def __enter__(self) -> None:
        self._outer, _ACTIVE.recorder = _ACTIVE.recorder, self._inner

    def __exit__(self, *_: object) -> None:
        _ACTIVE.recorder = self._outer


class Untaken(NamedTuple):
    """Stands for the symbol of an array that the program has not used yet.

    At its first use, `take(array, name)` returns the symbol.
    """

    name: str | None
    take: Callable[[Array, str | None], Symbol]


class RecordingTrace:
    """The symbol of one array, as long as no write changes the memory of the array.

    An array with memory of its own is the root of its views, and its trace counts the writes. The
    trace of a view stores the steps from its parent to the view, and applies them again after a
    write; with `steps` None no such steps are known, and the view is read from memory alone.
    Compiled code may write unseen, so a root keeps a digest of its memory at the last write in
    `fingerprint`, and compares it at each read.
    """

    __slots__ = (
        "__weakref__",
        "fingerprint",
        "parent",
        "plain",
        "recorder",
        "root",
        "steps",
        "symbol",
        "version",
    )

    def __init__(
        self,
        recorder: Recorder,
        plain: Array,
        symbol: Symbol | Untaken | None,
        parent: RecordingTrace | None = None,
        steps: steps.Steps | None = (),
    ) -> None:
        self.recorder, self.plain, self.symbol = recorder, plain, symbol
        self.parent, self.steps = parent, steps
        self.root: RecordingTrace | None = None if parent is None else parent.root or parent
        self.version: int = -1 if parent else 0
        self.fingerprint = 0 if parent else _fingerprint(plain)

    def read(self) -> Symbol:
        """Return the symbol of the current values.

        Raises UnrecordedError for a dtype that graphs lack.
        """
        root = self.root or self
        if root.fingerprint != _fingerprint(root.plain):
            root.write(None)
        if self.parent is not None and self.version != root.version:
            if self.steps is None:
                self.symbol = self.recorder.bit_view_symbol(self.plain, root)
            else:
                self.symbol = steps.forward(self.steps, self.recorder, self.parent.read())
            self.version = root.version
        return self.symbol if type(self.symbol) is Symbol else self._taken_symbol()

    def view_of_part(self, view: Array) -> RecordingTrace | None:
        """Return the trace of a view of structured memory; None of other memory."""
        return None

    def _taken_symbol(self) -> Symbol:
        """Return the symbol; that of a captured array is an input from its first use on."""
        if self.symbol is None:
            raise UnrecordedError(f"there is no symbol for an array of {self.plain.dtype}")
        if isinstance(self.symbol, Untaken):
            self.symbol = self.symbol.take(self.plain, self.symbol.name)
        return self.symbol

    @property
    def last_symbol(self) -> Symbol | None:
        """The symbol of the array at its last use; None for a dtype that graphs lack."""
        return None if self.symbol is None else self._taken_symbol()

    @property
    def is_used(self) -> bool:
        """Whether the program has read the array, or something has written to it."""
        return not isinstance(self.symbol, Untaken) or self.fingerprint != _fingerprint(self.plain)

    def write(self, symbol: Symbol | None) -> None:
        """Note a write of a symbol's values to the array; None stands for unknown values."""
        root = self.root
        if symbol is not None and _shares_places((root or self).plain):
            symbol = None  # the write changes more elements than those of the symbol
        if root is None or self.parent is None:
            if symbol is None:
                symbol = self.recorder.add_unrecorded_input_if_typed(self.plain, True)
            self.symbol = symbol
            self.version = self.recorder.memory.count_write()
            self.fingerprint = _fingerprint(self.plain)
            return
        # NumPy has written already, so the digest must not take this write for an unseen one.
        root.fingerprint = _fingerprint(root.plain)
        try:
            if symbol is None or self.steps is None:
                raise UnrecordedError("what is written there is known by memory alone")
            whole = steps.backward(self.steps, self.recorder, self.parent.read(), symbol)
        except Exception as error:  # no fault of the recording may stop the program
            self.recorder.add_fault(error)
            self.parent, whole = root, None
            self.steps = None
        self.parent.write(whole)
        if whole is not None:
            self.symbol, self.version = symbol, root.version


def _fingerprint(array: Array) -> int:
    """Return a hash of an array's bytes; of a large array, the hash of a sample of its elements."""
    if array.nbytes <= _WHOLE:
        return hash(array.tobytes())
    flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return hash(flat[:: max(1, array.size // _SAMPLE)].tobytes())


_WHOLE, _SAMPLE = 4096, 256


class RecordedValue(np.ndarray[Any, Any]):
    """An ndarray of a recorded program; `plain` is a plain array on the same memory."""

    __slots__ = ("_plain", "recording_trace", "source")

    recording_trace: RecordingTrace | None
    source: Any
    _plain: Any

    def __array_finalize__(self, source: Array | None) -> None:
        self.recording_trace, self.source, self._plain = None, source, None

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return type(self.plain)

    @property
    def plain(self) -> Array:
        """A plain array on the same memory."""
        if self._plain is None:
            self._plain = np.ndarray.view(self, np.ndarray)
        return self._plain


class TracedScalar:
    """The attributes that NumPy scalars of a recorded program have besides their value.

    A scalar that a call of its class makes has no symbol: `recorder` is None.
    """

    symbol: Symbol
    recorder: Recorder | None = None

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return type(self).__mro__[1]

    @cached_property
    def plain(self) -> Any:
        """The plain scalar."""
        return type(self).__mro__[1](self)


class RecordedNumber:
    """A Python number of a recorded program; `scalar` is the recorded scalar with its symbol."""

    __slots__ = ()

    plain: Any
    scalar: Any


class TracedInt(RecordedNumber, int):
    """A Python integer of a recorded program; `scalar` is the recorded int64 with its symbol."""

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return int


class TracedFloat(RecordedNumber, float):
    """A Python float of a recorded program; `scalar` is the recorded float64 with its symbol."""

    __slots__ = ("plain", "scalar")

    @property
    def __class__(self) -> Any:  # pyright: ignore -- isinstance reads it after the type
        return float


def plain(value: Any) -> Any:
    """Return the plain value of a recorded value; other values as they are."""
    if isinstance(value, (RecordedValue, TracedScalar, RecordedNumber)):
        return value.plain
    return value


def plains(value: Any) -> Any:
    """Return a value with plain values in place of recorded ones, also inside containers."""
    return mapped(plain, value)


def view_of(
    array: RecordedValue, real: Array, trace: RecordingTrace | None = None
) -> RecordedValue:
    """Return a view of a recorded array in the form that the program gets.

    Without `trace`, the trace is derived on first use.
    """
    view = real.view(type(array))
    view._plain, view.source, view.recording_trace = real, array, trace  # pyright: ignore[reportPrivateUsage]
    return view


def trace_of(array: RecordedValue, recorder: Recorder) -> RecordingTrace:
    """Return the trace of an array under a recorder.

    For an array that C code made, the trace is derived from its memory.
    """
    trace = array.recording_trace
    if trace is None or trace.recorder is not recorder:
        trace = array.recording_trace = _derived_trace(array, recorder)
        array.source = None
    return trace


def _derived_trace(array: RecordedValue, recorder: Recorder) -> RecordingTrace:
    """Return the trace of an array that C code made, by what it is a view of."""
    source = array.source
    if isinstance(source, RecordedValue) and (
        not array.size or np.may_share_memory(source.plain, array.plain)
    ):
        parent = trace_of(source, recorder)
        return view_trace(parent, array.plain)
    owner = recorder.memory.owner(array.plain)  # as of a view of an array of another class
    if owner is not None:
        return view_trace(owner, array.plain)
    symbol = recorder.add_unrecorded_input_if_typed(array.plain)
    return RecordingTrace(recorder, array.plain, symbol)


def view_trace(parent: RecordingTrace, view: Array) -> RecordingTrace:
    """Return the trace of a view of an array."""
    whole = (parent.root or parent).view_of_part(view)
    if whole is not None:
        return whole
    while parent.parent is not None and _overlaps(parent.steps):
        parent = parent.parent  # whose elements have one place each
    steps_found = steps_between(parent.plain, view)
    if steps_found is None and parent.root is not None:  # the view exceeds its parent
        parent = parent.root
        steps_found = steps_between(parent.plain, view)
    return RecordingTrace(parent.recorder, view, None, parent, steps_found)


def _overlaps(view_steps: steps.Steps | None) -> bool:
    """Whether steps lead to a view with strides, whose elements may share places in memory."""
    return any(isinstance(step, (steps.AffineView, steps.Broadcast)) for step in view_steps or ())


def _shares_places(array: Array) -> bool:
    """Whether elements of an array share memory, as those of windows do."""
    return not array.flags.c_contiguous and overlaps(ViewLayout(array.shape, array.strides))

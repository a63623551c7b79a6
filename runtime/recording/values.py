"""What a recording program computes with: arrays and NumPy scalars that know their symbols."""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir import GraphirError, Symbol
from graphir.numpy_api.views import steps
from graphir.numpy_api.views.layouts import steps_between

if TYPE_CHECKING:
    from runtime.recording.recorder import Recorder

Array: TypeAlias = NDArray[Any]


class UnrecordedError(GraphirError):
    """A result that no op computes; a recording enters its values as an input."""


class _Active(local):
    recorder: Recorder | None = None


_ACTIVE = _Active()


def active() -> Recorder | None:
    """The recorder of the program that runs on this thread."""
    return _ACTIVE.recorder


def recording() -> Recorder:
    """The same, where there is one."""
    recorder = _ACTIVE.recorder
    assert recorder is not None  # who calls has seen to that
    return recorder


class recording_with:  # noqa: N801 -- a context manager, and one that is quick
    """Inside the block, this thread records with that recorder, or not at all."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, recorder: Recorder | None) -> None:
        self._inner = recorder

    def __enter__(self) -> None:
        self._outer, _ACTIVE.recorder = _ACTIVE.recorder, self._inner

    def __exit__(self, *_: object) -> None:
        _ACTIVE.recorder = self._outer


class RecordingTrace:
    """What the graph knows of one array: its symbol, while its memory has not been written to.

    The trace of an array that has memory of its own, the root of its views, counts the writes. A
    view remembers the steps that lead to it, and follows them again once there was a write; where
    `steps` is None, nothing but memory leads there. Compiled code may write unseen: a root keeps in
    `fingerprint`, a digest of its memory at the last write, and compares it at each read.
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
        symbol: Symbol | None,
        parent: RecordingTrace | None = None,
        steps: steps.Steps | None = (),
    ) -> None:
        self.recorder, self.plain, self.symbol = recorder, plain, symbol
        self.parent, self.steps = parent, steps
        self.root: RecordingTrace | None = None if parent is None else parent.root or parent
        self.version: int = -1 if parent else 0
        self.fingerprint = 0 if parent else _print_of(plain)

    def read(self) -> Symbol:
        """The symbol of the values now; UnrecordedError of a dtype that graphs do not have."""
        root = self.root or self
        if root.fingerprint != _print_of(root.plain):
            root.write(None)
        if self.parent is not None and self.version != root.version:
            if self.steps is None:
                self.symbol = self.recorder.given(self.plain, root.symbol)
            else:
                self.symbol = steps.forward(self.steps, self.recorder, self.parent.read())
            self.version = root.version
        if self.symbol is None:
            raise UnrecordedError(f"there is no symbol for an array of {self.plain.dtype}")
        return self.symbol

    def write(self, symbol: Symbol | None) -> None:
        """Note that these values were written here; None where only memory knows them."""
        root = self.root
        if root is None or self.parent is None:
            self.symbol = self.recorder.retaken(self.plain) if symbol is None else symbol
            self.version = self.recorder.counted()
            self.fingerprint = _print_of(self.plain)
            return
        root.fingerprint = _print_of(root.plain)  # memory is ahead of the symbols
        try:
            if symbol is None or self.steps is None:
                raise UnrecordedError("what is written there is known by memory alone")
            whole = steps.backward(self.steps, self.recorder, self.parent.read(), symbol)
        except Exception as error:  # the program goes on, whatever it is
            self.recorder.failed(error)
            self.parent, whole = root, None
            self.steps = None
        self.parent.write(whole)
        if whole is not None:
            self.symbol, self.version = symbol, root.version


def _print_of(array: Array) -> int:
    """A number that other contents would very likely not have: of all bytes, or of a sample."""
    if array.nbytes <= _WHOLE:
        return hash(array.tobytes())
    flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return hash(flat[:: max(1, array.size // _SAMPLE)].tobytes())


_WHOLE, _SAMPLE = 4096, 256


class RecordedValue(np.ndarray[Any, Any]):
    """An ndarray of a recording program; `plain` is the same memory without its trace."""

    __slots__ = ("_plain", "recording_trace", "source")

    recording_trace: RecordingTrace | None
    source: Any
    _plain: Any

    def __array_finalize__(self, source: Any) -> None:
        self.recording_trace, self.source, self._plain = None, source, None

    @property
    def plain(self) -> Array:
        """The array as plain NumPy has it."""
        if self._plain is None:
            self._plain = self.view(np.ndarray)
        return self._plain


class TracedScalar:
    """What NumPy scalars of a recording program have besides their value."""

    symbol: Symbol
    recorder: Recorder
    plain: Any


def plain(value: Any) -> Any:
    """What plain NumPy would have in the place of a value."""
    return value.plain if isinstance(value, (RecordedValue, TracedScalar)) else value


def plains(value: Any) -> Any:
    """The same of all that lists, tuples and dicts hold."""
    kind = cast("Any", type(value))
    if kind is tuple or kind is list:
        items = cast("list[Any]", value)
        return kind([plains(item) for item in items])  # pyright: ignore
    if kind is dict:
        return {key: plains(item) for key, item in value.items()}
    if kind is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return plain(value)


def view_of(
    array: RecordedValue, real: Array, trace: RecordingTrace | None = None
) -> RecordedValue:
    """A view of an array as the program goes on with it; its trace is found when it is needed."""
    view = real.view(type(array))
    view._plain, view.source, view.recording_trace = real, array, trace  # pyright: ignore[reportPrivateUsage]
    return view


def trace_of(array: RecordedValue, recorder: Recorder) -> RecordingTrace:
    """The trace of an array under a recorder, found from its memory where C code made it."""
    trace = array.recording_trace
    if trace is None or trace.recorder is not recorder:
        trace = array.recording_trace = _found(array, recorder)
        array.source = None
    return trace


def _found(array: RecordedValue, recorder: Recorder) -> RecordingTrace:
    source = array.source
    if isinstance(source, RecordedValue) and (
        not array.size or np.may_share_memory(source.plain, array.plain)
    ):
        parent = trace_of(source, recorder)
        return view_trace(parent, array.plain)
    return RecordingTrace(recorder, array.plain, recorder.retaken(array.plain))


def view_trace(parent: RecordingTrace, view: Array) -> RecordingTrace:
    """The trace of a view of an array."""
    steps_found = steps_between(parent.plain, view)
    if steps_found is None and parent.root is not None:  # of more than its parent shows
        parent = parent.root
        steps_found = steps_between(parent.plain, view)
    return RecordingTrace(parent.recorder, view, None, parent, steps_found)

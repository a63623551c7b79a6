"""The ways in which recorded values leave the recording: as Python numbers, bools and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.public import DType, Symbol
from graphir.runtime.recording.operands import traced_leaves
from graphir.runtime.recording.values import (
    Array,
    RecordedValue,
    Result,
    TracedScalar,
    active,
    plain,
    plains,
)

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder

AS_BYTES = "gives its bytes to what is not recorded"
AS_NUMBER = "is read as a Python number, by which the program may go on"
AS_TEXT = "is read as text, by which the program may go on"
AS_TRUTH = "is read as a bool, by which the program may go on"


class LeavingValues:
    """The values that leave a recorded program beside its results: as text, numbers, files."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.rounds: dict[tuple[Any, ...], dict[Symbol, Array]] = {}
        """The values that left, and of which the program took numbers.

        The values of one key are the rounds of a place: a name, whether they surely leave, the
        dtype and the shape.
        """
        self.saved: dict[int, Symbol] = {}
        """The symbols whose values the program wrote to files, by index."""

    def add(self, value: Any, surely: bool = True, part: int = 0) -> None:
        """Note that a value leaves the program: as text, to a file, or as a Python number.

        Without `surely`, the program may go on by the number. `part` is the position of the value
        among those that one call formats.
        """
        symbol = self._recorder.before(value)
        if symbol is not None:
            self.add_symbol(value, plain(value), symbol, surely, part)

    def add_symbol(self, value: Any, real: Result, symbol: Symbol, surely: bool, part: int) -> None:
        """Note that a value leaves the program, by its plain value and its symbol."""
        key = (
            self._recorder.sites.name_of(value, self._recorder.here, part),
            surely,
            real.dtype,
            real.shape,
        )
        rounds = self.rounds.setdefault(key, {})
        if symbol not in rounds:
            rounds[symbol] = np.array(real)

    def add_saved(self, values: Any) -> None:
        """Note that the program writes values to a file, from which it may load them."""
        for leaf in traced_leaves(values):
            symbol = self._recorder.before(leaf)
            if symbol is not None:
                self.saved[symbol.index] = symbol
                self.add(leaf)

    def hand_out(self, what: str, value: Any, reason: str, part: int = 0) -> bool:
        """Note that numbers, texts or bytes are made of values: these leave, or are read.

        Returns whether they only leave the program. `part` is as for `add`.
        """
        only_leaves = self._recorder.sites.leaves()
        if not only_leaves:
            self._recorder.read(what, self._truncated(value) if what == "int" else value, reason)
        for leaf in traced_leaves(value):
            self.add(leaf, only_leaves, part)
        return only_leaves

    def _truncated(self, value: Any) -> Any:
        """Return the symbol of a float as an integer, which is all that `int` reads of it."""
        real, symbol = plain(value), self._recorder.before(value)
        if symbol is None or np.size(real) != 1 or not symbol.dtype.is_float:
            return value
        return self._recorder.cast(symbol, DType.int64) if abs(float(real)) < 2**62 else value


def reading(name: str, reason: str, truth: bool = False) -> Callable[..., Any]:
    """Return a method that calls NumPy's method on the plain value, and notes that values left.

    `truth` is whether only the truth of the value leaves.
    """

    def method(self: RecordedValue | TracedScalar, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None:
            recorder.locate()
            if reason == AS_BYTES:
                recorder.leaving.hand_out(name, self, reason)
            else:
                recorder.read(name, self, reason, truth)
        return getattr(self.plain, name)(*plains(args), **plains(kwargs))

    method.__name__ = name
    return method


def number_of(name: str, value: Any, number: Any) -> Any:
    """Return the Python number of a recorded value, and note that the value left the recording.

    The graph can contain such a number only as a literal. If the number leaves the program (see
    passes.analysis.value_flows), the recorded value is an output.
    """
    recorder = active()
    if recorder is not None:
        recorder.locate()
        if name == "float" and value.dtype.kind in "iu" and recorder.sites.leaves():
            value = value.astype(np.float64)  # a cast of the graph, which may round
        if recorder.leaving.hand_out(
            name, value, "makes Python numbers, by which the program may go on"
        ):
            return number
        recorder.note(name, "makes Python numbers: they are taken as literals")
        if value.size == 1:
            recorder.numbers.add_plain(number, value)
    return number


def text_of(value: Any, text: str) -> str:
    """Return the text of a recorded value, and note that the value leaves the program.

    If the program may go on by the text, the value is read.
    """
    recorder = active()
    if recorder is not None and recorder.locate():
        recorder.leaving.hand_out("str", value, AS_TEXT)
    return text


class Texts:
    """The methods of recorded arrays and scalars that give texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self, repr(plain(self)))

    def __str__(self) -> str:
        return text_of(self, str(plain(self)))

    def __format__(self, spec: str) -> str:
        return text_of(self, format(plain(self), spec))

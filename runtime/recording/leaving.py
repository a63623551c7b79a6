"""The ways in which recorded values leave the recording: as Python numbers, bools and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.runtime.recording.values import (
    active,
    plain,
    plains,
)

AS_BYTES = "gives its bytes to what is not recorded"
AS_NUMBER = "is read as a Python number, by which the program may go on"
AS_TEXT = "is read as text, by which the program may go on"
AS_TRUTH = "is read as a bool, by which the program may go on"


def reading(name: str, reason: str, truth: bool = False) -> Callable[..., Any]:
    """Return a method that calls NumPy's method on the plain value, and notes that values left.

    `truth` is whether only the truth of the value leaves.
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None:
            recorder.locate()
            if reason == AS_BYTES:
                recorder.hand_out(name, self, reason)
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
        if recorder.hand_out(name, value, "makes Python numbers, by which the program may go on"):
            return number
        recorder.note(name, "makes Python numbers: they are taken as literals")
        if value.size == 1:
            recorder.numbers[id(number)] = number, value
    return number


def text_of(value: Any, text: str) -> str:
    """Return the text of a recorded value, and note that the value leaves the program.

    If the program may go on by the text, the value is read.
    """
    recorder = active()
    if recorder is not None and recorder.locate():
        recorder.hand_out("str", value, AS_TEXT)
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

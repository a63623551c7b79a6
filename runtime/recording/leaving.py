"""How recorded values leave the recording: as Python numbers, bools and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.recording.values import active, plains

AS_BYTES = "gives its bytes to what is not recorded"
AS_NUMBER = "is read as a Python number, by which the program may go on"
AS_TRUTH = "is read as a bool, by which the program may go on"


def reading(name: str, reason: str, truth: bool = False) -> Callable[..., Any]:
    """A method by which values leave the recording: NumPy's, on the plain value."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None:
            recorder.locate()
            recorder.read(name, self, reason, truth)
        return getattr(self.plain, name)(*plains(args), **plains(kwargs))

    method.__name__ = name
    return method


def number_of(name: str, value: Any, number: Any) -> Any:
    """A Python number that a recorded value becomes: literals are all that it can go on as.

    If it is what the program returns, the value is an output.
    """
    recorder = active()
    if recorder is not None:
        recorder.locate()
        recorder.note(name, "makes Python numbers: they are taken as literals")
        recorder.read(name, value, "makes Python numbers, by which the program may go on")
        if value.size == 1:
            recorder.numbers[id(number)] = number, value
    return number

"""Counts the work of a function, the same on every run: no clock is read."""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tests import ROOT

_SCANS = {
    *("casefold", "count", "encode", "decode", "expandtabs", "isidentifier", "isprintable"),
    *("lower", "partition", "replace", "rpartition", "rsplit", "rstrip", "split", "splitlines"),
    *("strip", "translate", "upper", "copy", "reverse", "sort"),
}
"""Methods of texts and containers that look at all of them."""

_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)

_ROOT = ROOT
_OWN = tuple(str(_ROOT / layer) for layer in ("graphir", "passes", "runtime"))


class Work(NamedTuple):
    """Calls of Python functions and of C functions, and the characters and items they handle.

    `handled` adds the length of each text and container that a function of the project returns, the
    first time if it returns the same again, and of each that it calls a scanning method on, and
    what is printed.
    """

    calls: int
    handled: int


class Counter:
    """A profile function that counts; `by_function` has the work of each."""

    def __init__(self) -> None:
        self.by_function: dict[CodeType, list[int]] = {}
        self._returned: dict[int, Any] = {}  # kept alive, so that an id stays that of one object

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count an event of sys.setprofile."""
        code = frame.f_code
        counts = self.by_function.get(code)
        if counts is None:
            counts = self.by_function[code] = [0, 0]
        if event == "call":
            counts[0] += 1
        elif event == "c_call":
            counts[0] += 1
            owner = getattr(argument, "__self__", None)
            if isinstance(owner, _SIZED) and argument.__name__ in _SCANS:
                counts[1] += len(owner)
        elif event == "return" and isinstance(argument, _SIZED):
            counts[1] += self._new(argument)

    def _new(self, result: Any) -> int:
        """The length of a result that no function returned before; short ones are not counted."""
        if len(result) <= 16 or id(result) in self._returned:
            return 0
        self._returned[id(result)] = result
        return len(result)

    def total(self) -> Work:
        """The work of all functions; what is handled, of those of the project."""
        own = (c for code, c in self.by_function.items() if code.co_filename.startswith(_OWN))
        return Work(sum(c[0] for c in self.by_function.values()), sum(c[1] for c in own))


def count_work(function: Callable[[], Any]) -> Work:
    """The work of one call of a function without arguments, whatever the machine is busy with."""
    counter, out = Counter(), io.StringIO()
    gc.collect()  # finalizers of what others left behind are no work of the function
    gc.disable()
    with redirect_stdout(out), redirect_stderr(out):
        sys.setprofile(counter)
        try:
            function()
        finally:
            sys.setprofile(None)
            gc.enable()
    work = counter.total()
    return work._replace(handled=work.handled + len(out.getvalue()))

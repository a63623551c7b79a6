"""Progress reports of long runs: callbacks and a bar on stderr."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any, Literal, TextIO, TypeAlias, TypeVar, cast

T = TypeVar("T")

Watch: TypeAlias = Callable[[int, int], None]
"""A callback with the number of finished units and the total number of units."""


def watcher(progress: bool | Watch, unit: str) -> Watch | None:
    """Return the progress callback: a Bar that counts `unit`s for True, None for False."""
    if isinstance(progress, bool):
        return Bar(unit) if progress else None
    return progress


class Bar:
    """A progress bar on stderr, redrawn at each further percent."""

    WIDTH = 30

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.last_percent = -1

    def __call__(self, count: int, total: int) -> None:
        """Draw the bar for `count` of `total` units."""
        percent = 100 * count // total
        if percent == self.last_percent:
            return
        self.last_percent = percent
        end = "\n" if count >= total else ""
        print(f"\r{self.text(count, total)}", end=end, file=sys.stderr, flush=True)

    def text(self, count: int, total: int) -> str:
        """Return the bar for `count` of `total` units."""
        bar = ("#" * (self.WIDTH * count // total)).ljust(self.WIDTH, ".")
        return f"[{bar}] {100 * count // total:3} %, {count} of {total} {self.unit}"


class Pulse:
    """A line on a terminal's stderr, from the second second of a `with` block on.

    The line has the elapsed time, or a bar once the block reports counts: a Pulse is a Watch. What
    the block prints to stdout or stderr erases the line first. Where stderr is no terminal, nothing
    is shown, and `watch` is False.
    """

    def __init__(self, what: str, unit: str = "units") -> None:
        self._what, self._bar = what, Bar(unit)
        self._counts: tuple[int, int] | None = None
        self._lock, self._end = RLock(), Event()
        self._length, self._at_start = 0, True
        self._streams = sys.stdout, sys.stderr

    @property
    def watch(self) -> Watch | Literal[False]:
        """The callback for runs that count their units; False where nothing is shown."""
        return self if self._streams[1].isatty() else False

    def __call__(self, count: int, total: int) -> None:
        """Note `count` of `total` units; the line shows them when it is drawn next."""
        self._counts = count, total

    def __enter__(self) -> Pulse:
        self._streams = sys.stdout, sys.stderr
        self._start = monotonic()
        if self.watch:
            sys.stdout, sys.stderr = (cast("TextIO", _Erasing(self, x)) for x in self._streams)
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.watch:
            self._end.set()
            self._thread.join()
            self.erase()
            sys.stdout, sys.stderr = self._streams

    def _run(self) -> None:
        if not self._end.wait(1):
            self.draw()
        while not self._end.wait(0.25):
            self.draw()

    def draw(self) -> None:
        """Draw the line anew, unless the cursor stands in a line that the block has begun."""
        text = f"{self._what}: {monotonic() - self._start:.0f} s"
        if self._counts is not None:
            text = self._bar.text(*self._counts)
        with self._lock:
            if self._at_start:
                self.erase()
                text = text[: shutil.get_terminal_size().columns - 1]
                print(text, end="", file=self._streams[1], flush=True)
                self._length = len(text)

    def erase(self, text: str = "\n") -> None:
        """Erase the line, before `text` is printed."""
        with self._lock:
            if self._length:
                blank = " " * self._length
                print(f"\r{blank}\r", end="", file=self._streams[1], flush=True)
            self._length, self._at_start = 0, text.endswith("\n") or (not text and self._at_start)


class _Erasing:
    """A stream whose writes erase the line of a Pulse first."""

    def __init__(self, pulse: Pulse, stream: TextIO) -> None:
        self._pulse, self._stream = pulse, stream

    def write(self, text: str) -> int:
        """Write a text in place of the line."""
        self._pulse.erase(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Count:
    """A counter of finished units that reports each step to a callback."""

    def __init__(self, watch: Watch | None, total: int) -> None:
        self.watch, self.total, self.count = watch, total, 0

    def step(self, number: int = 1) -> None:
        """Count `number` further units as finished."""
        self.count += number
        if self.watch is not None and number:
            self.watch(self.count, self.total)

    def each(self, items: Iterable[T], number: int = 1) -> Iterator[T]:
        """Yield the items; count `number` units as finished for each."""
        for item in items:
            self.step(number)
            yield item

    def finish(self) -> None:
        """Count all remaining units as finished."""
        self.step(self.total - self.count)

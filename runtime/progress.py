"""Progress reports of long runs: callbacks and a bar on stderr."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Literal, TypeAlias, TypeVar

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


class Pulse(Bar):
    """A Bar on a terminal's stderr, from the second second of a `with` block on.

    The end of the block erases the bar. Where stderr is no terminal, nothing is shown, and `watch`
    is False.
    """

    @property
    def watch(self) -> Watch | Literal[False]:
        """The callback for runs that count their units; False where nothing is shown."""
        return self if sys.stderr.isatty() else False

    def __enter__(self) -> Pulse:
        self._start, self._length = monotonic(), 0
        return self

    def __call__(self, count: int, total: int) -> None:
        """Draw the bar for `count` of `total` units over the bar before it."""
        percent = 100 * count // total
        if percent != self.last_percent and monotonic() - self._start > 1:
            self.last_percent = percent
            text = self.text(count, total)[: shutil.get_terminal_size().columns - 1]
            print(f"\r{text}", end="", file=sys.stderr, flush=True)
            self._length = len(text)

    def __exit__(self, *_: object) -> None:
        if self._length:
            print(f"\r{' ' * self._length}\r", end="", file=sys.stderr, flush=True)


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

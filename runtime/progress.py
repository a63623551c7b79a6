"""Progress reports of long runs: callbacks and a bar on stderr."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Watch: TypeAlias = Callable[[int, int], None]
"""A callback with the number of finished units and the total number of units."""


def watcher(progress: bool | Watch, unit: str) -> Watch | None:
    """Return the progress callback: a Bar that counts `unit`s for True, None for False."""
    if isinstance(progress, bool):
        return Bar(unit) if progress else None
    return progress


class Bar:
    """A progress bar on stderr, redrawn at each further percent, `after` so many seconds."""

    WIDTH = 30

    def __init__(self, unit: str, after: float = 0) -> None:
        self._unit, self._after = unit, after
        self._start, self._last_percent = monotonic(), -1

    def __call__(self, count: int, total: int) -> None:
        """Draw the bar for `count` of `total` units."""
        percent = 100 * count // total
        if percent == self._last_percent or monotonic() - self._start < self._after:
            return
        self._last_percent = percent
        bar = ("#" * (self.WIDTH * count // total)).ljust(self.WIDTH, ".")
        text = f"[{bar}] {percent:3} %, {count} of {total} {self._unit}"
        text = text[: shutil.get_terminal_size().columns - 1]
        print(f"\r{text}", end="\n" if count >= total else "", file=sys.stderr, flush=True)


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

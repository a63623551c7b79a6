"""What a long run tells of how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Watch: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""


def watcher(progress: bool | Watch, unit: str) -> Watch | None:
    """Who is told: for True a line on stderr that counts the units, for False nobody."""
    if isinstance(progress, bool):
        return partial(_shown, unit) if progress else None
    return progress


def _shown(unit: str, done: int, total: int) -> None:
    """A line on stderr that is written over."""
    end = "\n" if done >= total else ""
    print(f"\r{done} of {total} {unit}, {100 * done // total} %", end=end, file=sys.stderr)


class Count:
    """What has been done of a total, told to who watches."""

    def __init__(self, watch: Watch | None, total: int) -> None:
        self.watch, self.total, self.done = watch, total, 0

    def step(self, number: int = 1) -> None:
        """So much more has been done."""
        self.done += number
        if self.watch is not None and number:
            self.watch(self.done, self.total)

    def each(self, items: Iterable[T], number: int = 1) -> Iterator[T]:
        """The items, each of which is so much of what there is to do."""
        for item in items:
            self.step(number)
            yield item

    def finish(self) -> None:
        """What is left need not be done."""
        self.step(self.total - self.done)

"""What a long run tells of how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Watch: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is."""


def watcher(progress: bool | Watch, unit: str) -> Watch | None:
    """Who is told: for True a bar on stderr that counts the units, for False nobody."""
    if isinstance(progress, bool):
        return Bar(unit) if progress else None
    return progress


class Bar:
    """A bar on stderr, written over whenever another hundredth is done."""

    WIDTH = 30

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.last_percent = -1

    def __call__(self, count: int, total: int) -> None:
        """Show how much is done of what there is."""
        percent = 100 * count // total
        if percent == self.last_percent:
            return
        self.last_percent = percent
        bar = ("#" * (self.WIDTH * count // total)).ljust(self.WIDTH, ".")
        end = "\n" if count >= total else ""
        line = f"\r[{bar}] {percent:3} %, {count} of {total} {self.unit}"
        print(line, end=end, file=sys.stderr, flush=True)


class Count:
    """What has been done of a total, told to who watches."""

    def __init__(self, watch: Watch | None, total: int) -> None:
        self.watch, self.total, self.count = watch, total, 0

    def step(self, number: int = 1) -> None:
        """So much more has been done."""
        self.count += number
        if self.watch is not None and number:
            self.watch(self.count, self.total)

    def each(self, items: Iterable[T], number: int = 1) -> Iterator[T]:
        """The items, each of which is so much of what there is to do."""
        for item in items:
            self.step(number)
            yield item

    def finish(self) -> None:
        """What is left need not be done."""
        self.step(self.total - self.count)

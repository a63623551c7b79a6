"""The records of jobs, which threads of machine code share."""

from __future__ import annotations

from typing import NamedTuple

RECORDS = 7
"""The word of a job that has the address of the records of its kernel."""

BACKWARD = 8
"""The word that is not 0 if threads take the last ranges of their parts first."""

HEAD, _PART = 16, 8
"""The words of a job before its parts, and of a part."""


class SharedRanges(NamedTuple):
    """The elements of each range that threads take, and the number of threads beside the caller.

    `function` and `pool` are the addresses of `share` and of its workers.
    """

    block: int
    helpers: int
    function: int
    pool: int


NOT_SHARED = SharedRanges(0, 0, 0, 0)
"""All elements are one range of the caller."""


def job(
    address: int, context: int, size: int, shared: SharedRanges, step: int = 0
) -> tuple[int, ...]:
    """Return the words of a job without the address of the records, which are `step` words apart.

    The first two numbers are the addresses of a kernel and of its context. There is a part for each
    thread.
    """
    parts, ranges = shared.helpers + 1, -(-size // max(1, shared.block))
    words = [0, parts, size, shared.block, address, context, step, *[0] * (HEAD - RECORDS)]
    for part in range(parts):
        bounds = ranges * part // parts, ranges * (part + 1) // parts
        words += [*bounds, 0, bounds[0], *[0] * (_PART - 4)]
    return tuple(words)

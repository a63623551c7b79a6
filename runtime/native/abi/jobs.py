"""The memory of jobs: what threads of machine code share, as runtime.native.threads runs it."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

JOB = 9
"""The words of a job; the last is the address of the records of its kernel."""


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


def job(kernel: Any, size: int, block: int, step: int = 0, records: int = 0) -> tuple[int, ...]:
    """Return the words of a job, with the address of records that are `step` words apart.

    `kernel` has an `address` and a `context`.
    """
    context = ctypes.addressof(kernel.context)
    return 0, 0, 0, size, block, kernel.address, context, step, records

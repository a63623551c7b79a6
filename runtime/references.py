"""Ownership by reference counts: whether anything else holds an object, asked in one place.

Results whose memory is used again, lazy values that nobody asks for, arrays that may be written in
place: each is decided by a count beside the count of an object that is held in the same way. Where
counts do not tell, nothing is used again and everything counts as held.
"""

from __future__ import annotations

import sys
from functools import cache


def counts_references() -> bool:
    """Whether the number of references tells who holds an object: with a GIL, and tried once."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)()) and _counts_holders()


@cache
def _counts_holders() -> bool:
    """Whether the count rises by one with each holder, and falls again."""
    item = object()
    alone = sys.getrefcount(item)
    holders = [item, item]
    held = sys.getrefcount(item)
    holders.clear()
    return held == alone + 2 and sys.getrefcount(item) == alone

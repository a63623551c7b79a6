"""Ownership by reference counts: whether any other reference to an object exists.

Three decisions depend on it: reuse of a result's memory, which lazy values to keep, and in-place
writes to arrays. Each compares the object's reference count with the count of a reference
object that is held in the same way. Where counts are unreliable (without a GIL, for example), no
memory is reused and every object counts as held.
"""

from __future__ import annotations

import sys
from functools import cache


def is_held(value: object, holders: int = 0) -> bool:
    """Whether an object has more references than the caller's local variable and `holders`.

    True where counts are unreliable.
    """
    return not counts_references() or _count(value) > _count_of_local() + holders


def _count(value: object) -> int:
    return sys.getrefcount(value)


@cache
def _count_of_local() -> int:
    """Return the count of an object that one local variable references and a call takes.

    It is lower where loads of locals borrow the reference (Python 3.14).
    """
    local = object()
    return _count_in_call(local)


def _count_in_call(value: object) -> int:
    return _count(value)


def counts_references() -> bool:
    """Whether reference counts are reliable: the GIL is on and a one-time experiment succeeds."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)()) and _counts_holders()


@cache
def _counts_holders() -> bool:
    """Whether the count rises by one with each new reference, and falls at each removal."""
    item = object()
    alone = sys.getrefcount(item)
    holders = [item, item]
    count = sys.getrefcount(item)
    holders.clear()
    return count == alone + 2 and sys.getrefcount(item) == alone

"""What is made once for all rows of a report that are alike, as those of a loop are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from graphir import Symbol, ops
from passes.rewriting import given

if TYPE_CHECKING:
    from passes.casts import CastRow

T = TypeVar("T")


class Shared(Generic[T]):
    """A function of a row that is called once for those which are alike.

    Alike are rows of one conversion at one place in one layer, used on operands of the same types:
    all is the same of them but their causes, their damage and what a run saw.
    """

    def __init__(self, make: Callable[[CastRow], T]) -> None:
        self._make = make
        self._known: dict[Hashable, T] = {}

    def __call__(self, row: CastRow) -> T:
        """What is made of a row, now or before."""
        key = _likeness(row)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(row)
        return found


def _likeness(row: CastRow) -> Hashable:
    at, user = row.location, row.user
    place = id(row.conversion), at.place, at.layer, row.symbol.type
    if user is None:
        return place
    return (*place, row.position, user.op, id(user.attrs), *map(_operand, user.args))


def _operand(arg: Symbol) -> Hashable:
    """What the fix and other rule sets' answers take from an operand."""
    found = given(arg)
    return arg.type, found.index if found.op is ops.constant else found.type

"""Questions asked of a graph; ItemSequence is the base of answers that are sequences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class ItemSequence(Sequence[T]):
    """A sequence of the items that the property `_items` holds."""

    @property
    @abstractmethod
    def _items(self) -> tuple[T, ...]: ...

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        return self._items[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

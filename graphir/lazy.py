"""Attributes that are computed when first asked for, without a lock.

functools.cached_property of Python 3.11 has one lock for all objects of a class; a process that
forks while another thread holds it has a child that waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 a decorator
    """A method as an attribute, computed once; perhaps twice by threads at the same time."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self.function.__name__] = self.function(instance)
        return value

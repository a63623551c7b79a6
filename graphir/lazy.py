"""Attributes computed at their first read, without a lock.

functools.cached_property of Python 3.11 has one lock for all objects of a class. If a process forks
while another thread holds that lock, the child process waits for it for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 a decorator
    """Decorator: turn a method into an attribute that is computed once and then stored.

    Two threads that read the attribute for the first time at once may both compute it.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        value = instance.__dict__[self.function.__name__] = self.function(instance)
        return value

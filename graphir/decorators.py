"""Decorators: pause the garbage collector, tell two functions of one name apart, lazy attributes.

CPython starts a collection after a number of allocations. In functions whose allocations all
survive, those collections find no garbage and only cost time.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from graphir.errors import GraphError
from graphir.import_names import is_own_module

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with the cyclic garbage collector paused.

    The collector would walk every symbol of a graph again and again and find no garbage.
    implicit_cast of 60,000 ops takes 110 ms with the collector paused, and 420 ms without the
    pause.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run


# -- Two functions of one name


def refuses(
    other: Callable[[Sequence[Any]], bool], problem: str, fix: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: refuse a call that, by `other` of the arguments, means a function of equal name.

    The GraphError says what this function takes, and in `fix` which function takes the arguments.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            given = (*args, *kwargs.values())
            if other(given):
                kinds = ", ".join(type(x).__name__ for x in given)
                raise GraphError(problem, op=function.__name__, got=kinds, fix=fix)
            return function(*args, **kwargs)

        return run

    return decorate


# -- Attributes computed at their first read, without a lock
#
# functools.cached_property of Python 3.11 has one lock for all objects of a class. If a process
# forks while another thread holds that lock, the child process waits for it for ever.

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


# -- What `dir` lists


class _Listed(type):
    """The class of classes whose `dir` lists public names alone: prompts ask an object's class."""

    public_names: str

    def __dir__(cls) -> list[str]:
        return cls.listed(super().__dir__())

    def listed(cls, names: Iterable[str]) -> list[str]:
        """Return the names that `dir` lists."""
        others = [x for x in cls.__mro__ if not is_own_module(x.__module__)]
        shown = {*cls.public_names.split(), *(name for other in others for name in vars(other))}
        return [name for name in names if name in shown or name.startswith("_")]


class PublicNames(metaclass=_Listed):
    """Base class: `dir`, and so completion at a prompt, lists public names alone.

    They are the names in `public_names`, and those that classes of other projects define.
    """

    public_names = ""

    def __dir__(self) -> list[str]:
        return type(self).listed(super().__dir__())

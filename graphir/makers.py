"""The form `g.scalar[DType.int16](1)`: a method whose dtype may be given in brackets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, ParamSpec, TypeVar, overload

from graphir.dtypes import DTypeLike
from graphir.location import internal, placing

internal(globals())

P = ParamSpec("P")
R = TypeVar("R")


class Maker(Generic[P, R]):
    """A bound method that takes its dtype in brackets or as its argument `dtype`."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function

    def __getitem__(self, dtype: DTypeLike) -> Callable[..., R]:
        function: Callable[..., R] = self._function
        return partial(function, dtype=dtype)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The method itself."""
        return self._function(*args, **kwargs)


class typed(Generic[P, R]):  # noqa: N801 -- a decorator
    """Make a method of a graph a Maker."""

    def __init__(self, method: Callable[..., R]) -> None:
        self._method = placing(method)
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, graph: None, owner: type) -> typed[P, R]: ...
    @overload
    def __get__(self, graph: object, owner: type) -> Maker[..., R]: ...
    def __get__(self, graph: object | None, owner: type) -> typed[P, R] | Maker[..., R]:
        return self if graph is None else Maker(partial(self._method, graph))

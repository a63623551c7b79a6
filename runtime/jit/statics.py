"""Static parameters of jitted functions: Python values that are part of the signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast

import numpy as np

from graphir import GraphError
from graphir.import_names import is_own_module
from graphir.numpy_api.trace import Static, children
from graphir.runtime.jit.loads import is_library_module


class Fixed(Static):
    """A static argument; it equals another if a function cannot distinguish their values."""

    __slots__ = ("_hash", "_key")
    _key: Any
    _hash: int

    def __init__(self, value: Any) -> None:
        hash(value)  # raises TypeError for mutable values such as a list
        key = identity_key(value)
        for name, field in (("value", value), ("_key", key), ("_hash", hash(key))):
            object.__setattr__(self, name, field)

    def __eq__(self, other: object) -> bool:
        return type(other) is Fixed and self._key == other._key

    def __hash__(self) -> int:
        return self._hash


def identity_key(value: Any) -> Any:
    """Return a key that distinguishes equal values: 1 from 1.0 and True, 0.0 from -0.0.

    Equal sets differ by their order, and equal times and decimals by their text.
    """
    kind: Any = cast("object", type(value))
    if kind is str or kind is int:
        return kind, value
    inside = children(value)
    if inside is not None:
        return kind, tuple((identity_key(name), identity_key(item)) for name, item in inside)
    if issubclass(kind, frozenset):
        return kind, tuple(map(identity_key, cast("frozenset[Any]", value)))
    if is_dataclass(value) and cast("Any", value).__dataclass_params__.frozen:
        fields_apart = _of_fields(value)
        return kind, value, id(value) if fields_apart is None else fields_apart
    if _is_equal_by_own_code(kind):
        # The class's own __eq__ may ignore fields that a function reads.
        return kind, value, id(value)
    if issubclass(kind, (float, complex, np.inexact)):
        return kind, repr(value)
    return (kind, value, repr(value)) if _has_equal_values(kind) else (kind, value)


@cache
def _has_equal_values(kind: type) -> bool:
    """Whether values of a library's class can be equal and differ: Decimal("1.0") and "1.00"."""
    if kind.__eq__ is object.__eq__:
        return False
    return not issubclass(kind, (bool, bytes, np.generic, type)) and kind is not type(None)


@cache
def _is_equal_by_own_code(kind: type) -> bool:
    """Whether a user's class, or a class of graphir, defines `__eq__`."""
    if kind.__eq__ is object.__eq__:
        return False
    return not is_library_module(kind.__module__) or is_own_module(kind.__module__)


def _of_fields(value: Any) -> Any:
    """Return the identity keys of a dataclass's fields, or None if a field is not hashable."""
    keys = tuple(identity_key(getattr(value, field.name, None)) for field in fields(value))
    try:
        hash(keys)
    except TypeError:
        return None
    return keys


class Statics:
    """The static parameters of a function, by name and by position."""

    def __init__(self, function: Callable[..., Any], names: str | Sequence[str]) -> None:
        self._what = getattr(function, "__qualname__", "the function")
        self._names = dict.fromkeys((names,) if isinstance(names, str) else names)
        parameters = inspect.signature(function).parameters.values()
        positional = [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]
        missing = self._names.keys() - {parameter.name for parameter in parameters}
        if missing and not any(
            parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters
        ):
            raise GraphError(
                f"{self._what} has no parameter "
                f"{', '.join(map(repr, sorted(missing)))} to be static",
                fix=f"use one of ({', '.join(map(str, parameters))})",
            )
        self._places = [
            (place, name) for place, name in enumerate(positional) if name in self._names
        ]

    def marked(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a call's arguments with static ones as Fixed; GraphError if not hashable."""
        positional = list(args)
        for place, name in self._places:
            if place < len(positional):
                positional[place] = self._fix(name, positional[place])
        return tuple(positional), {
            name: self._fix(name, value) if name in self._names else value
            for name, value in keywords.items()
        }

    def _fix(self, name: str, value: Any) -> Fixed:
        try:
            return Fixed(value)
        except TypeError:
            raise GraphError(
                f"the static argument {name!r} of {self._what} is part of the signature, so it "
                f"must be hashable, and a {type(value).__name__} is not",
                fix="give a tuple for a list, and an array to a parameter that is not static",
            ) from None


_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD

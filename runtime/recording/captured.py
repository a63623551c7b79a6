"""The arrays that a program captures before it runs: in globals, closures, defaults and objects.

Such an array is data of the program; any other unrecorded array comes from an opaque computation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

MOST = 100_000
"""The most objects that the search visits."""

LIBRARIES = sys.stdlib_module_names | {"numpy", "graphir", "passes", "runtime"}
"""Packages that hold no data of the program."""


class Brought:
    """The arrays that exist before the program runs, with digests of their contents.

    `array in brought` asks whether the array, or its base, is such an array and unchanged.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._arrays = {id(array): (array, _digest(array)) for array in arrays}

    def add(self, array: Any) -> None:
        """Add an array that the program loaded."""
        self._arrays[id(array)] = (array, _digest(array))

    def __contains__(self, array: Any) -> bool:
        owner: Any = array
        while owner is not None:
            entry = self._arrays.get(id(owner))
            if entry is not None:
                return entry[1] == _digest(entry[0])
            owner = getattr(owner, "base", None)
        return False


def _digest(array: Any) -> int:
    """Return a hash of all bytes of an array, which other contents very likely change.

    For a subclass the hash covers the arrays among its attributes too, such as a mask. It uses
    ndarray's `tobytes`, because that of a subclass may write, or may mean something else.
    """
    attributes = cast("dict[str, Any]", getattr(array, "__dict__", {})).values()
    arrays: list[Any] = [array, *(x for x in attributes if isinstance(x, np.ndarray))]
    return hash(tuple(map(np.ndarray.tobytes, arrays)))


def brought_arrays(function: Any) -> Iterator[Any]:
    """Yield the existing arrays that a function, and the functions it names, can reach."""
    pending: list[Any] = [(function, frozenset[str]())]
    seen_keys: set[object] = set()
    while pending and len(seen_keys) < MOST:
        value, names = pending.pop()
        if isinstance(value, np.ndarray):
            yield cast("Any", value)
            continue
        key = (id(value), names) if isinstance(value, ModuleType) else id(value)
        if key in seen_keys:
            continue
        seen_keys.add(key)
        pending += _reachable(value, names)


def _reachable(value: Any, names: frozenset[str]) -> Iterable[tuple[Any, frozenset[str]]]:
    """Return the values that a value references, each with the names that the code uses."""
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, MethodType):
        return (value.__func__, names), (value.__self__, names)
    if isinstance(value, partial):
        parts = cast("Any", value)
        return [(part, names) for part in (parts.func, *parts.args, *parts.keywords.values())]
    if isinstance(value, ModuleType):
        variables = vars(value) if _is_user(value.__name__) else {}
        return [(variables[name], names) for name in names if name in variables]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(part, names) for part in cast("list[Any]", value)]
    if isinstance(value, dict):
        return [(part, names) for part in cast("dict[Any, Any]", value).values()]
    variables = getattr(value, "__dict__", {}) if _is_user(getattr(value, "__module__", "")) else {}
    return [(part, names) for part in [*variables.values(), *_class_of(value)]]


def _of_function(function: FunctionType) -> list[tuple[Any, frozenset[str]]]:
    names = frozenset(_names(function.__code__))
    variables = function.__globals__
    values = [variables[name] for name in names if name in variables]
    values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # the cell has no value yet
            continue
    return [(value, names) for value in values]


def _class_of(value: Any) -> list[Any]:
    """Return the class of an object if the program defines it, since it may call its methods."""
    kind = cast("Any", value if isinstance(value, type) else type(value))
    return [kind] if kind is not value and _is_user(str(kind.__module__)) else []


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_user(module: Any) -> bool:
    return str(module).partition(".")[0] not in LIBRARIES or module == "__main__"

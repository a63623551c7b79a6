"""The arrays that a program has before it runs: in globals, closures, defaults and objects."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

MOST = 100_000
"""The most objects that are looked at."""

LIBRARIES = sys.stdlib_module_names | {"numpy", "graphir", "passes", "runtime"}
"""Packages that bring no data of the program along."""


class Brought:
    """Arrays that are there before the program runs, and what they hold then.

    An array, or a view of one, is `in` it while that holds the same.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._arrays = {id(array): (array, _digest(array)) for array in arrays}

    def __contains__(self, array: Any) -> bool:
        owner: Any = array
        while owner is not None:
            entry = self._arrays.get(id(owner))
            if entry is not None:
                return entry[1] == _digest(entry[0])
            owner = getattr(owner, "base", None)
        return False


def _digest(array: Any) -> int:
    """A number that other contents would very likely not have, of all bytes.

    Of a subclass also those of the arrays that it has beside, as a mask; its own `tobytes` may
    write, or mean something else.
    """
    attributes = cast("dict[str, Any]", getattr(array, "__dict__", {})).values()
    arrays: list[Any] = [array, *(x for x in attributes if isinstance(x, np.ndarray))]
    return hash(tuple(map(np.ndarray.tobytes, arrays)))


def brought_arrays(function: Any) -> Iterator[Any]:
    """The arrays that a function, and those it names, can reach without making them."""
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
    """The values that one leads to, each with the names of the code that asks for them."""
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
        except ValueError:  # not assigned yet
            continue
    return [(value, names) for value in values]


def _class_of(value: Any) -> list[Any]:
    """The class of an object of the program, whose methods it may call."""
    kind = cast("Any", value if isinstance(value, type) else type(value))
    return [kind] if kind is not value and _is_user(str(kind.__module__)) else []


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_user(module: Any) -> bool:
    return str(module).partition(".")[0] not in LIBRARIES or module == "__main__"

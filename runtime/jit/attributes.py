"""Attribute look-up by Python's rules, without running descriptors or other user code."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any, cast

from graphir.runtime.jit.guards import Way
from graphir.runtime.jit.loads import Loads, is_library_module

Lookup = tuple[Way, str, Any]
"""(way of loading an attribute, its name, its value or its descriptor)."""


def lookups(owner: Any, loads: Loads) -> Iterator[Lookup]:
    """Yield the attributes of `owner` that code with `loads` may load.

    Also yields an ABSENT entry for each text constant of the code that names no attribute, since
    `getattr(owner, text, default)` depends on the absence.
    """
    if isinstance(owner, type):
        for name, value in _class_variables(cast("Any", owner), loads).items():
            yield from _of_class(name, value)
        return
    own, class_variables = own_variables(owner), _class_variables(cast("Any", type(owner)), loads)
    custom = type(owner).__getattribute__ not in _USUAL
    for name in (loads.attributes | loads.updates) & own.keys():
        if not hasattr(class_variables.get(name), "__set__"):  # a data descriptor has precedence
            class_variables.pop(name, None)
            plain = name.isidentifier() and not keyword.iskeyword(name) and not custom
            yield Way.ATTRIBUTE if plain else Way.OWN, name, own[name]
    for name, value in class_variables.items():
        if custom:
            yield Way.STATIC, name, value
        else:
            yield from _inherited(owner, name, value)
    if own or hasattr(owner, "__dict__"):
        for name in loads.literals - own.keys() - class_variables.keys():
            yield Way.ABSENT, name, False


_USUAL = object.__getattribute__, ModuleType.__getattribute__


def own_variables(owner: Any) -> dict[str, Any]:
    """Return the `__dict__` of an object; an empty dict if it has none."""
    try:
        own: Any = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return cast("dict[str, Any]", own) if isinstance(own, dict) else {}


def _class_variables(kind: type, loads: Loads) -> dict[str, Any]:
    """Return the class variables with names in `loads`, except those of library classes."""
    result: dict[str, Any] = {}
    names = loads.attributes | loads.updates
    for base in reversed(kind.__mro__):
        if not is_library_module(base.__module__):
            variables = vars(base)
            result.update((name, variables[name]) for name in names & variables.keys())
    return result


def _of_class(name: str, value: Any) -> Iterator[Lookup]:
    if isinstance(value, classmethod):
        yield Way.METHOD, name, cast("Any", value).__func__
    elif isinstance(value, staticmethod):
        yield Way.ATTRIBUTE, name, cast("Any", value).__func__
    elif isinstance(value, (FunctionType, property)) or not hasattr(
        cast("Any", type(value)), "__get__"
    ):
        yield Way.ATTRIBUTE, name, value


def _inherited(owner: Any, name: str, value: Any) -> Iterator[Lookup]:
    if isinstance(value, MemberDescriptorType):  # a slot
        if hasattr(owner, name):
            yield Way.ATTRIBUTE, name, getattr(owner, name)
    elif isinstance(value, (FunctionType, classmethod)):
        is_method = isinstance(value, FunctionType)
        yield Way.METHOD, name, value if is_method else cast("Any", value).__func__
    elif isinstance(value, staticmethod):
        yield Way.ATTRIBUTE, name, cast("Any", value).__func__
    elif isinstance(value, (property, cached_property)):
        yield Way.PROPERTY, name, value
    elif _is_descriptor(value):
        yield Way.STATIC, name, value
    else:
        yield Way.ATTRIBUTE, name, value


def _is_descriptor(value: Any) -> bool:
    return hasattr(cast("Any", type(value)), "__get__")

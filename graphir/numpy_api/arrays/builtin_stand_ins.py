"""Stand-ins of builtin functions, and attributes that a traced program does not see.

A symbolic value has attributes that NumPy's value lacks, and another class. The code of a traced
function therefore sees neither: `type`, `hasattr` and `getattr` have stand-ins.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from inspect import getattr_static
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import Any, cast

from graphir.import_names import is_own_module
from graphir.numpy_api.arrays.boundary import at_boundary, attributes_of, numpy_class
from graphir.numpy_api.arrays.memory import TracedValue

# -- attributes that NumPy's values lack

_HIDDEN: dict[str, list[type]] = {}
"""The attributes of symbolic values that no program has asked for yet, with their classes."""


def hide_attributes(kind: type, numpys: type) -> None:
    """Hide the attributes of a class of symbolic values that NumPy's class lacks from programs.

    An attribute is hidden from the first program on whose code names it, because each access then
    takes longer.
    """
    for name in {*dir(kind)} - {*dir(numpys)}:
        if not name.startswith("__"):
            _HIDDEN.setdefault(name, []).append(kind)


def hide_from_program(names: Iterable[str]) -> None:
    """Hide the attributes among the names that the code of a program has."""
    for name in names:
        for kind in _HIDDEN.pop(name, ()):
            setattr(kind, name, _HiddenAttribute(name, getattr_static(kind, name)))


class _HiddenAttribute:
    """An attribute of a symbolic value that only the code of this project sees."""

    def __init__(self, name: str, member: Any) -> None:
        self._name, self._member = name, member

    def __get__(self, value: Any, kind: type | None = None) -> Any:
        self._check(value)
        member: Any = self._member
        return member.__get__(value, kind) if hasattr(member, "__get__") else member

    def __set__(self, value: Any, new: Any) -> None:
        self._check(value)
        self._member.__set__(value, new)

    def _check(self, value: Any) -> None:
        if not is_own_module(str(_getframe(2).f_globals.get("__name__", ""))):
            name = getattr(numpy_class(value), "__name__", "")
            raise AttributeError(f"{name!r} object has no attribute {self._name!r}")


# -- builtin functions, which look at a value's own class


class _Class:
    """The stand-in of a builtin class, of which nothing but calls differs."""

    def __init__(self, original: type, call: Callable[..., Any]) -> None:
        self._original, self._call = original, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self._original)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        return (self._original,)

    def __eq__(self, other: object) -> bool:
        return other is self._original or other is self

    def __hash__(self) -> int:
        return hash(self._original)

    def __or__(self, other: Any) -> Any:
        return self._original | other

    def __ror__(self, other: Any) -> Any:
        return other | self._original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)


def _type(*args: Any, **kwargs: Any) -> Any:
    """Return the class of a value: that of NumPy's value for a traced one."""
    if len(args) == 1 and not kwargs:
        kind: Any = numpy_class(args[0]) or cast("object", type(args[0]))
        stand_in = BUILTIN_STAND_INS.get(kind.__name__)
        return stand_in if stand_in == kind else kind
    return type(*args, **kwargs)


class _OfBuffer(_Class):
    """The stand-in of a class that reads buffers; classes have `__buffer__` since Python 3.12."""

    @at_boundary("the buffer of an array", memoryview)
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], TracedValue):
            args = (cast("Any", args[0]).__buffer__(0), *args[1:])
        return self._call(*args, **kwargs)


def _hasattr(value: Any, name: str, /) -> bool:
    kind = numpy_class(value)
    return hasattr(value, name) if kind is None else name in attributes_of(value)


@at_boundary("getattr", getattr)
def _getattr(value: Any, name: str, /, *default: Any) -> Any:
    if numpy_class(value) is None or name in attributes_of(value):
        return getattr(value, name, *default)
    return default[0] if default else value.__getattr__(name)


BUILTIN_STAND_INS: dict[str, Any] = {
    "type": _Class(type, _type),
    "hasattr": _hasattr,
    "getattr": _getattr,
}
if sys.version_info < (3, 12):
    BUILTIN_STAND_INS.update(
        {kind.__name__: _OfBuffer(kind, kind) for kind in (memoryview, bytearray)}
    )
"""The stand-ins of builtin functions. They know the attributes that NumPy's values lack."""

"""`Interceptor`: puts stand-ins of functions into the modules that hold them, while a block runs.

NumPy's array constructors, and Python's functions of numbers, do not dispatch on the class of an
argument. A trace and a recording therefore put stand-ins in their place, in the namespaces of
modules and as attributes of classes. On a thread without a trace or a recording, a stand-in calls
the original.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple, TypeAlias

Namespace: TypeAlias = "dict[str, Any]"


class _Replacement(NamedTuple):
    """A name in the namespace of a module, or of a class, that holds a stand-in."""

    owner: Namespace | type
    name: str
    original: Any
    stand_in: Any


class Interceptor:
    """Holds stand-ins in modules and classes from the first block to the end of the last one.

    The blocks may run on several threads. A name that the program has bound anew inside a block
    keeps the program's value.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._blocks = 0
        self._replacements: list[_Replacement] = []
        self._additions: dict[tuple[int, str], tuple[Namespace, Any]] = {}
        """The names that modules have inside of blocks alone, by the id of the namespace."""

    @property
    def is_active(self) -> bool:
        """Whether a block runs on any thread."""
        return self._blocks > 0

    @contextmanager
    def block(self, begin: Callable[[], None] | None = None) -> Generator[None]:
        """Context manager: stand-ins stay until the last block ends; `begin` runs in the first."""
        with self._lock:
            self._blocks += 1
        try:
            if begin is not None:
                with self._lock:
                    if self._blocks == 1:
                        begin()
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    self._restore()

    def replace(self, namespace: Namespace, name: str, stand_in: Any) -> None:
        """Put a stand-in in place of the value that a name of a module has."""
        with self._lock:
            self._replacements.append(_Replacement(namespace, name, namespace[name], stand_in))
            namespace[name] = stand_in

    def replace_attribute(self, owner: type, name: str, stand_in: Any) -> None:
        """Put a stand-in in place of an attribute that a class itself has."""
        with self._lock:
            self._replacements.append(_Replacement(owner, name, vars(owner)[name], stand_in))
            setattr(owner, name, stand_in)

    def add(self, namespace: Namespace, name: str, stand_in: Any) -> None:
        """Give a module a name that it lacks, which hides a builtin function from its code."""
        with self._lock:
            namespace[name] = stand_in
            self._additions[id(namespace), name] = namespace, stand_in

    def is_added(self, namespace: Namespace, name: str) -> bool:
        """Whether a module has a name inside of blocks alone."""
        return (id(namespace), name) in self._additions

    def _restore(self) -> None:
        while self._replacements:
            owner, name, original, stand_in = self._replacements.pop()
            is_class = isinstance(owner, type)
            if (vars(owner) if is_class else owner).get(name) is not stand_in:
                continue
            if is_class:
                setattr(owner, name, original)
            else:
                owner[name] = original
        while self._additions:
            (_, name), (namespace, stand_in) = self._additions.popitem()
            if namespace.get(name) is stand_in:
                del namespace[name]

"""The arrays that a program captures before it runs: in globals, closures, defaults and objects.

A slot is a place that holds such an array, or a generator of random numbers, and can hold another
one. While the program runs, a recorded one stands in each slot; afterwards the slots, and all else
that the program can reach, hold plain arrays again. An array outside of slots, as in a set, is data
of the program; any other unrecorded array comes from an opaque computation.
"""

from __future__ import annotations

import operator
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from gc import get_referents
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.recording.values import RecordedNumber

MOST = 100_000
"""The most objects that the search visits."""

LIBRARIES = sys.stdlib_module_names | {"numpy", "graphir"}
"""Packages that hold no data of the program."""

_PLAIN_OBJECTS = {"argparse", "collections", "types"}
"""Modules of the standard library whose objects have attributes of the program."""

INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages, whose lines the user does not write."""

UNDER_TEST: set[str] = set()
"""Packages whose lines are the user's although they are installed."""


class Brought:
    """The arrays that exist before the program runs, with digests of their contents.

    `array in brought` asks whether the array, or its base, is such an array and unchanged.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._arrays = {id(array): (array, _digest(array)) for array in arrays}

    def __contains__(self, array: NDArray[Any]) -> bool:
        owner: Any = array
        while owner is not None:
            entry = self._arrays.get(id(owner))
            if entry is not None:
                return entry[1] == _digest(entry[0])
            owner = getattr(owner, "base", None)
        return False


@lru_cache(maxsize=1)
def arrays_of_numpy(modules: int) -> Mapping[int, Any]:
    """Return the arrays in NumPy's modules and classes by id, as the domains of polynomials.

    `modules` is the number of modules, which imports change.
    """
    names = [name for name in sys.modules if name.partition(".")[0] == "numpy"]
    spaces = [vars(sys.modules[name]) for name in names]
    spaces += [vars(kind) for space in spaces for kind in space.values() if isinstance(kind, type)]
    values = (value for space in spaces for value in space.values())
    arrays = [cast("Any", value) for value in values if isinstance(value, np.ndarray)]
    return {id(array): array for array in arrays}


def _digest(array: NDArray[Any]) -> int:
    """Return a hash of all bytes of an array, which other contents very likely change.

    For a subclass the hash covers the arrays among its attributes too, such as a mask. It uses
    ndarray's `tobytes`, because that of a subclass may write, or may mean something else.
    """
    attributes = cast("dict[str, Any]", getattr(array, "__dict__", {})).values()
    arrays: list[Any] = [array, *(x for x in attributes if isinstance(x, np.ndarray))]
    return hash(tuple(map(np.ndarray.tobytes, arrays)))


class Access(NamedTuple):
    """How a kind of owner reads and writes the values that it holds."""

    read: Callable[[Any, Any], Any]
    write: Callable[[Any, Any, Any], object]


def _write_arguments(owner: Any, _: str, arguments: tuple[Any, ...]) -> None:
    owner.__setstate__((owner.func, arguments, owner.keywords, vars(owner)))


_DICT, _LIST = (Access(kind.__getitem__, kind.__setitem__) for kind in cast("Any", (dict, list)))
ITEM = Access(operator.getitem, operator.setitem)
_ATTRIBUTE = Access(getattr, setattr)
_OWN_ATTRIBUTE = Access(object.__getattribute__, object.__setattr__)
_ARGUMENTS = Access(getattr, _write_arguments)


class ArraySlot(NamedTuple):
    """A value in its owner: an array, a NumPy scalar, or a tuple with arrays or scalars in it.

    Without `access` the owner cannot hold another value.
    """

    value: Any
    owner: Any = None
    key: Any = None
    access: Access | None = None
    variable: str = ""
    """The variable of a closure."""

    @property
    def name(self) -> str | None:
        """The variable, attribute or text key under which the owner has the value."""
        key = self.variable or self.key
        return key if isinstance(key, str) and key.isidentifier() and key[:2] != "__" else None

    def holds(self, value: Any) -> bool:
        """Whether the owner still holds a value."""
        try:
            return self.access is not None and self.access.read(self.owner, self.key) is value
        except (LookupError, AttributeError, ValueError):
            return False

    def store(self, value: Any) -> None:
        """Store a value in the owner."""
        assert self.access is not None  # callers choose slots with access
        self.access.write(self.owner, self.key, value)


class SlotOwner:
    """An owner that knows its slots."""

    def slots(self) -> Iterator[ArraySlot]:
        """Yield the slots of all values that the owner holds."""
        raise NotImplementedError


_Names = frozenset[str]
_NO_NAMES: _Names = frozenset()


_ARRAYS = (np.ndarray, np.generic, np.random.Generator, RecordedNumber)


def slots(
    *roots: Any,
    functions: list[FunctionType] | None = None,
    most: int = MOST,
    kinds: tuple[type, ...] = _ARRAYS,
) -> Iterator[ArraySlot]:
    """Yield the slots of the arrays that values, and the functions that they name, can reach.

    `kinds` are the classes of arrays.

    Appends the functions to `functions`. With `most`, the search visits so many objects at most,
    the nearest first, and passes by functions, classes and modules.
    """
    roots_first = most < MOST
    pending: deque[tuple[ArraySlot, _Names]] = deque(
        (ArraySlot(root), _NO_NAMES) for root in (roots if roots_first else reversed(roots))
    )
    visited: dict[object, Any] = {}
    while pending and len(visited) < most:
        slot, names = pending.popleft() if roots_first else pending.pop()
        value = slot.value
        if isinstance(value, kinds):
            yield slot
            continue
        key = (id(value), names) if isinstance(value, ModuleType) else id(value)
        if isinstance(value, tuple) and _has_arrays(cast("tuple[Any, ...]", value)):
            yield slot  # of each owner, since tuples are replaced
        if key in visited:
            continue
        visited[key] = value
        if functions is not None and isinstance(value, FunctionType):
            functions.append(value)
        parts = [each for each in _parts(value, names) if type(each[0].value) not in _ATOMS]
        if roots_first:
            pending += (each for each in parts if not isinstance(each[0].value, _CODE))
        else:
            pending += reversed(parts)


_CODE = (FunctionType, ModuleType, type)
_ATOMS = frozenset((str, bytes, bool, int, float, complex, type(None), CodeType))


def _has_arrays(values: tuple[Any, ...]) -> bool:
    return any(
        isinstance(x, (np.ndarray, np.generic)) or (isinstance(x, tuple) and _has_arrays(x))  # pyright: ignore
        for x in values
    )


def mapped_tuple(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a value mapped by a function, and a tuple with its parts mapped, of the same class."""
    if not isinstance(value, tuple):
        return function(value)
    parts = cast("tuple[Any, ...]", value)
    new = [mapped_tuple(part, function) for part in parts]
    if all(x is y for x, y in zip(parts, new, strict=True)):
        return parts
    # `tuple.__new__` bypasses the constructor of a subclass, which may ask for other arguments.
    result = cast("Any", tuple).__new__(type(parts), new)
    cast("Any", getattr(result, "__dict__", {})).update(getattr(parts, "__dict__", {}))
    return result


def _parts(value: Any, names: _Names) -> Iterable[tuple[ArraySlot, _Names]]:
    """Return the values that a value references, each with the names that the code uses."""
    if isinstance(value, SlotOwner):
        return [(slot, names) for slot in value.slots()]
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, MethodType):
        return _unowned((value.__func__, value.__self__), names)
    if isinstance(value, partial):
        each = cast("Any", value)
        arguments = ArraySlot(each.args, each, "args", _ARGUMENTS)
        return [(arguments, names), *_unowned((each.func, each.keywords), names)]
    if isinstance(value, (np.vectorize, np.ufunc)):
        return _unowned(user_functions(value), names)
    if isinstance(value, ModuleType):
        return _of_dict(vars(value), names, names) if is_user(value.__name__) else ()
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [(ArraySlot(item, items, at, _LIST), names) for at, item in enumerate(items)]
    if isinstance(value, dict):
        return _of_dict(cast("dict[Any, Any]", value), names)
    if isinstance(value, (tuple, set, frozenset)):
        return _unowned(cast("Iterable[Any]", value), names)
    if isinstance(value, (staticmethod, classmethod)):
        return _unowned((cast("Any", value).__func__,), names)
    if isinstance(value, (property, cached_property)):
        each = cast("Any", value)
        return _unowned((getattr(each, "fget", None), getattr(each, "func", None)), names)
    if isinstance(value, type):
        return _of_class(value, names)
    return _of_object(value, names)


def user_functions(caller: np.ufunc | np.vectorize) -> list[FunctionType]:
    """Return the function that `np.vectorize` or a ufunc of `np.frompyfunc` calls."""
    functions = [caller.pyfunc] if isinstance(caller, np.vectorize) else get_referents(caller)
    return [function for function in functions if isinstance(function, FunctionType)]


def _unowned(values: Iterable[Any], names: _Names) -> list[tuple[ArraySlot, _Names]]:
    return [(ArraySlot(value), names) for value in values]


def _of_dict(
    values: dict[Any, Any], names: _Names, keys: Iterable[Any] | None = None
) -> list[tuple[ArraySlot, _Names]]:
    present: Iterable[Any] = values if keys is None else [key for key in keys if key in values]
    return [(ArraySlot(values[key], values, key, _DICT), names) for key in present]


def _of_function(function: FunctionType) -> list[tuple[ArraySlot, _Names]]:
    """Return what a function refers to; of a library's function the closure, as in decorators."""
    names = frozenset(names_of(function.__code__))
    parts: list[tuple[ArraySlot, _Names]] = []
    if is_user(function.__module__):
        defaults = ArraySlot(function.__defaults__, function, "__defaults__", _ATTRIBUTE)
        parts = [*_of_dict(function.__globals__, names, names), (defaults, names)]
        parts += _unowned((function.__kwdefaults__, vars(function)), names)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            content = ArraySlot(cell.cell_contents, cell, "cell_contents", _ATTRIBUTE, name)
            parts.append((content, names))
        except ValueError:  # the cell has no value yet
            continue
    return parts


def _of_class(kind: type, names: _Names) -> list[tuple[ArraySlot, _Names]]:
    """Return the class variables of a class of the program and of its bases."""
    return [
        (ArraySlot(value, each, name, _ATTRIBUTE), names)
        for each in kind.__mro__
        if is_user(each.__module__)
        for name, value in vars(each).items()
    ]


def _of_object(value: Any, names: _Names) -> list[tuple[ArraySlot, _Names]]:
    """Return the attributes of an object of the program, and its class.

    The arrays in objects of installed packages stay as they are, for the packages' compiled code.
    """
    kind = cast("Any", type(value))
    module = getattr(value, "__module__", "")
    if str(module).partition(".")[0] in LIBRARIES - _PLAIN_OBJECTS and module != "__main__":
        return []
    own: Any = getattr(value, "__dict__", None)
    parts = _of_dict(cast("Any", own), names) if isinstance(own, dict) else []
    if not is_user(module) and module not in _PLAIN_OBJECTS:
        return _unowned((part.value for part, _ in parts), names)
    for name in slot_names(value):
        parts.append((ArraySlot(getattr(value, name), value, name, _OWN_ATTRIBUTE), names))
    return [*parts, (ArraySlot(kind), names)]


def slot_names(value: Any) -> Iterator[str]:
    """Yield the names of the attributes that an object has in `__slots__`."""
    for each in cast("Any", type(value)).__mro__:
        declared = cast("dict[str, Any]", vars(each)).get("__slots__", ())
        for name in (declared,) if isinstance(declared, str) else cast("list[str]", declared):
            if hasattr(value, name):
                yield name


def names_of(code: CodeType) -> Iterator[str]:
    """Yield the global names and attributes that code and its inner functions use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)


def is_user(module: str | None) -> bool:
    """Whether a module is the user's: no library's, and not of an installed package."""
    name = str(module)
    if name == "__main__" or name.partition(".")[0] in UNDER_TEST:
        return True
    file = str(getattr(sys.modules.get(name), "__file__", None) or "")
    return name.partition(".")[0] not in LIBRARIES and not any(x in file for x in INSTALLED)


@contextmanager
def swapped(
    wrap: Callable[[Any, str | None], Any],
    plain: Callable[[Any], Any],
    *roots: Any,
    functions: list[FunctionType] | None = None,
    most: int = MOST,
) -> Generator[Brought]:
    """Context manager: inside the block, `wrap(array, name)` stands in each slot of an array.

    After the block, also of an exception, the slots hold the former arrays again, and what else
    the roots reach, or modules that the block imported, `plain(value)`. The block gets the arrays
    outside of slots, and `functions` the functions that the roots reach. `most`: see `slots`.
    """
    modules = set(sys.modules)
    before = list(slots(*roots, functions=functions, most=most))
    swaps: list[tuple[ArraySlot, Any]] = []
    others: list[Any] = []
    for slot in before:
        new = slot.value
        if slot.access is not None:
            if isinstance(new, tuple):
                new = mapped_tuple(new, lambda value: wrap(value, None))
            else:
                new = wrap(new, slot.name)
        if new is not slot.value:
            slot.store(new)
            swaps.append((slot, new))
        elif isinstance(new, np.ndarray):
            others.append(cast("Any", new))
    try:
        yield Brought(others)
    finally:
        for slot, new in swaps:
            if slot.holds(new):
                slot.store(slot.value)
        imported = [sys.modules[name] for name in sys.modules.keys() - modules if is_user(name)]
        _make_plain(plain, *roots, *(vars(module) for module in imported), most=most)


def _make_plain(plain: Callable[[Any], Any], *roots: Any, most: int) -> None:
    for slot in list(slots(*roots, most=most)):
        new = mapped_tuple(slot.value, plain)
        if new is not slot.value and slot.access is not None:
            slot.store(new)

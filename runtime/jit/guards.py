"""Guards: before a call runs a trace's Program, compare the state that the trace loaded.

A guard consists of a way to load a value (`Way`), the owner to load it from, and the value that the
trace loaded. `Guards` compiles all guards of a trace into one Python expression, so that a call
pays about 20 ns for each guard. `lookups` finds attributes by Python's rules, without running
descriptors or other user code.
"""

from __future__ import annotations

import keyword
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from ctypes import Structure
from enum import Enum
from functools import cache, cached_property
from types import CellType, FunctionType, MemberDescriptorType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.hints import ArrayOrNumber
from graphir.ir.foreign_arrays import to_numpy_array
from graphir.runtime.jit.loads import Loads, is_library_module
from graphir.runtime.jit.signatures import identity_key
from graphir.runtime.program import Program

if TYPE_CHECKING:
    from graphir.runtime.jit.jit import CompiledTrace

_SCALARS = frozenset({bool, int, float, complex, str, bytes, type(None)})


def is_scalar(value: Any) -> bool:
    """Whether guards compare a value by value: an immutable Python or NumPy scalar."""
    return type(value) in _SCALARS or isinstance(value, np.generic)


def alike(a: Any, b: Any) -> bool:
    """Whether traced code cannot distinguish two values.

    Scalars compare by type and value, tuples element by element, other objects by identity.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if is_scalar(a):
        return identity_key(a) == identity_key(b)
    if type(a) is not tuple:
        return False
    several, others = cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b)
    return len(several) == len(others) and all(map(alike, several, others))


# -- ways to load


def _item(owner: Mapping[str, Any], name: str) -> Any:
    return owner[name]


def _is_key(owner: Mapping[str, Any], name: str) -> Any:
    return name in owner


def _cell(owner: CellType, _: str) -> Any:
    return owner.cell_contents


def _own(owner: Any, name: str) -> Any:
    return owner.__dict__[name]


def _is_own(owner: Any, name: str) -> Any:
    return name in owner.__dict__


def _function(owner: Any, name: str) -> Any:
    return getattr(owner, name).__func__


def _of_type(owner: Any, name: str) -> Any:
    return getattr(cast("Any", type(owner)), name)


def _static(owner: Any, name: str) -> Any:
    """Return the raw class variable of an instance's class, without running a descriptor.

    Returns None if the instance's own `__dict__` has the name.
    """
    if name in getattr(owner, "__dict__", ()):
        return None
    return next(vars(base)[name] for base in type(owner).__mro__ if name in vars(base))


class Way(Enum):
    """A way to load a value: a function of (owner, name), and the same load as source text."""

    GLOBAL = _item, "{0}[{1!r}]"
    BUILTIN = _is_key, "({1!r} in {0})"
    CELL = _cell, "{0}.cell_contents"
    ATTRIBUTE = getattr, "{0}.{1}"
    OWN = _own, "{0}.__dict__[{1!r}]"
    ABSENT = _is_own, "({1!r} in {0}.__dict__)"
    METHOD = _function, "{0}.{1}.__func__"
    PROPERTY = _of_type, "type({0}).{1}"
    STATIC = _static, "static({0}, {1!r})"

    def __init__(self, load: Callable[[Any, str], Any], text: str) -> None:
        self.load, self.text = load, text


class Guard(NamedTuple):
    """A value that a trace loaded, with its owner, its name and the way of loading."""

    way: Way
    owner: Any
    name: str
    value: Any

    def holds(self) -> bool:
        """Whether a load now gives an equivalent value."""
        try:
            return alike(self.way.load(self.owner, self.name), self.value)
        except Exception:  # the attribute, key or cell is gone; the exception depends on the owner
            return False


# -- contents of containers and arrays


class Contents:
    """A guard on the elements of a list, dict, set or deque, compared one by one by `alike`."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self._elements = elements(container)

    def holds(self) -> bool:
        """Whether the container has the same elements now."""
        present = elements(self._container)
        return len(present) == len(self._elements) and all(map(alike, present, self._elements))


def elements(container: Any) -> tuple[Any, ...]:
    """Return the elements of a builtin container; for a dict, its keys and then its values.

    The order counts for a set too, since code can iterate over it.
    """
    if isinstance(container, dict):
        table = dict(cast("dict[Any, Any]", container))  # a subclass may iterate otherwise
        return (*table.keys(), *table.values())
    return tuple(cast("list[Any]", container))


CONTAINERS = list, tuple, dict, set, frozenset, deque


def _buffer(value: bytearray | memoryview) -> bytes:
    return memoryview(value).tobytes()


def _present(variable: ContextVar[Any]) -> Any:
    return variable.get(None)


_READERS: dict[type, Callable[[Any], Any]] = {
    bytearray: _buffer,
    memoryview: _buffer,
    cast("Any", Structure).__mro__[1]: _buffer,  # all types of ctypes
    ContextVar: _present,
}


def reader_of(kind: type) -> Callable[[Any], Any] | None:
    """Return the function that reads the value of a compiled mutable type; None for others."""
    return next((read for base, read in _READERS.items() if issubclass(kind, base)), None)


class Reading:
    """A guard on the value that a compiled mutable object holds."""

    def __init__(self, owner: Any, read: Callable[[Any], Any]) -> None:
        self._owner, self._read = owner, read
        self._value = read(owner)

    def holds(self) -> bool:
        """Whether the object holds the same value now."""
        return alike(self._read(self._owner), self._value)


@cache
def is_consumed(kind: type) -> bool:
    """Whether a look at a value of a library's type changes it: an iterator, a file or a queue."""
    step = getattr(kind, "__next__", None)
    if step is None:
        return kind.__module__ in ("queue", "_queue", "multiprocessing.queues")
    return not isinstance(step, FunctionType) or is_library_module(step.__module__)


class ArrayContent:
    """A guard on the dtype, shape and bytes of an array that code may have read during the trace.

    A frozen array is not compared again: the array and all its bases have writeable=False.
    """

    def __init__(self, array: ArrayOrNumber) -> None:
        self.array = array
        self.frozen = _is_frozen(array)
        present = as_numpy(array)
        self._type = present.dtype, present.shape
        self._bytes = b"" if self.frozen else _bytes(present)

    def holds(self) -> bool:
        """Whether the array has the same dtype, shape and bytes now."""
        if self.frozen:
            return _is_frozen(self.array)
        present = as_numpy(self.array)
        if (present.dtype, present.shape) != self._type:
            return False
        if present.flags.c_contiguous and not present.dtype.hasobject and present.size:
            # Compares in place, without a copy of the array.
            return self._bytes.startswith(present.reshape(-1).view(np.uint8))  # pyright: ignore
        return self._bytes == _bytes(present)


def as_numpy(array: ArrayOrNumber) -> NDArray[Any]:
    """Convert an array of any library to a NumPy array."""
    return cast("NDArray[Any]", array) if isinstance(array, np.ndarray) else to_numpy_array(array)


def _bytes(array: NDArray[Any]) -> Any:
    return tuple(map(id, array.ravel().tolist())) if array.dtype.hasobject else array.tobytes()


def _is_frozen(array: ArrayOrNumber) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = cast("Any", base).base
    return base is None or isinstance(base, bytes)


ContentGuard: TypeAlias = Contents | Reading | ArrayContent


# -- the guards of a trace


class Guards:
    """All guards of a trace: if they hold, the trace does the same as its function would do now.

    `lasting` is False for a trace that no later call may use; its guards never hold. One that
    `consumes` may have taken from an iterator, a file or a queue.
    """

    def __init__(
        self,
        loads: Iterable[Guard],
        contents: Iterable[ContentGuard],
        lasting: bool,
        consumes: bool = False,
    ) -> None:
        self._loads, self._contents = tuple(loads), tuple(contents)
        self.lasting, self.consumes = lasting, consumes
        self._check: Callable[[], bool] | None = None

    def __bool__(self) -> bool:
        return bool(self._loads or self._contents) or not self.lasting

    def hold(self) -> bool:
        """Whether all guards hold now."""
        if not self.lasting:
            return False
        check = self._check
        if check is None:
            check = self._check = self._compile()
        try:
            return check()
        except Exception:  # a guarded attribute, key or cell is gone
            return False

    def guarding(
        self, run: Callable[..., Any], otherwise: Callable[..., Any], count: int
    ) -> Callable[..., Any]:
        """Return a function of `count` arguments: `run` if the guards hold, else `otherwise`."""
        text, names = self._expression()
        arguments = ", ".join(f"a{place}" for place in range(count))
        names.update(run=run, otherwise=otherwise)
        exec(_GUARDING.format(arguments=arguments, text=text), names)
        return names["guarding"]

    def direct(
        self,
        program: Program,
        condition: str,
        values: Mapping[str, Any],
        fits: str = "True",
        finish: str | None = "outputs",
    ) -> Callable[..., Any]:
        """Return a function of arguments that are inputs of a Program: its results, or None.

        The answer is None if a guard or the `condition` does not hold, and for arguments of other
        types. Machine code checks that they are contiguous, and the Program's Python function runs
        if `fits`. Both are expressions, with the names of `values`; `fits` has the name `args` too.
        `finish` is the expression of the results, with the name `outputs`.
        """
        text, names = self._expression()
        names |= {"program": program, "attempt": program.attempt, **values}
        text = f"{condition} and {text}"
        exec(_DIRECT.format(text=text, fits=fits, finish=finish), names)
        return names["direct"]

    def _compile(self) -> Callable[[], bool]:
        text, names = self._expression()
        return eval(f"lambda: {text}", names)

    def _expression(self) -> tuple[str, dict[str, Any]]:
        """Return the source of one expression of all guards, and the namespace for it."""
        names: dict[str, Any] = {"__name__": __name__, "alike": alike, "static": _static}
        parts = [] if self.lasting else ["False"]
        for place, (way, owner, name, value) in enumerate(self._loads):
            names[f"o{place}"], names[f"v{place}"] = owner, value
            load = way.text.format(f"o{place}", name)
            parts.append(f"{load} is v{place}")
            if is_scalar(value) or type(value) is tuple:
                parts[-1] = f"({parts[-1]} or alike({load}, v{place}))"
        for place, content in enumerate(self._contents):
            names[f"c{place}"] = content.holds
            parts.append(f"c{place}()")
        return " and ".join(parts) or "True", names


_GUARDING = """
def guarding({arguments}):
    try:
        holds = {text}
    except Exception:
        holds = False
    return run({arguments}) if holds else otherwise({arguments})
"""


_DIRECT = """
def direct(*args):
    try:
        if not ({text}):
            return None
    except Exception:
        return None
    native = program.machine_code
    if native is not None:
        outputs = native(*args)
        if outputs is not None:
            return {finish}
    outputs = attempt(*args) if {fits} else None
    return None if outputs is None else {finish}
"""


_MOST_VARIANTS = 8


class Variants:
    """The latest traces of one signature, each for a different state of the guarded values."""

    def __init__(self) -> None:
        self._traces: tuple[CompiledTrace, ...] = ()

    def __iter__(self) -> Iterator[CompiledTrace]:
        return iter(self._traces)

    def holding(self) -> CompiledTrace | None:
        """Return the latest trace whose guards hold, or None."""
        for trace in self._traces:
            if trace.guards.hold():
                return trace
        return None

    def put(self, new: CompiledTrace) -> None:
        """Add a trace; it replaces an earlier trace with the same Program."""
        others = [trace for trace in self._traces if trace.program is not new.program]
        self._traces = (new, *others[: _MOST_VARIANTS - 1])


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

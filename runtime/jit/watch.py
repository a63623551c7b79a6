"""Watch: record the outside state that user code loads while jit traces a function.

A profile function sees the start of every Python function. For user functions (not of graphir,
NumPy or the standard library) it takes the names that their code loads (`loads_of`), and records
the values of these names: globals, closure cells, and attributes of these and of arguments, to a
depth of two. It looks up each name on every object that the code can reach in this way, whichever
object the code loads the name from. So an alias cannot hide a load, at the price of some guards
that the trace does not need.

`WatchedGraph` is the graph of such a trace, which makes captured arrays inputs.
"""

from __future__ import annotations

import gc
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from threading import get_ident
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, cast

import numpy as np

from graphir.hints import Functions
from graphir.import_names import is_own_module
from graphir.ir.foreign_arrays import is_foreign_array
from graphir.ir.literals import array_of
from graphir.numpy_api.arrays.array import SymbolicArray, SymbolicScalar, SymbolicSelection
from graphir.numpy_api.arrays.makers import is_added, original_of, replace_makers
from graphir.numpy_api.trace import name_of
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.ops.op import Op
from graphir.public import Graph, GraphError, PromotionRules, Symbol, TensorType
from graphir.runtime.jit.guards import (
    CONTAINERS,
    ArrayContent,
    Contents,
    Guard,
    Guards,
    Reading,
    Way,
    is_consumed,
    is_scalar,
    lookups,
    own_variables,
    reader_of,
)
from graphir.runtime.jit.loads import Loads, is_library, is_library_module, loads_of
from graphir.runtime.jit.randomness import GENERATORS, Randomness, draws_entropy, runs_alone
from graphir.runtime.results import is_held

WATCHING: dict[int, list[Watch]] = {}
"""The active traces by thread identifier; inner traces come from jitted calls on arrays."""

_DEPTH = 2
_PARTS = "__code__", "__defaults__", "__kwdefaults__"
"""The parts of a function that a program can replace; its cells are loaded by name."""
_LONGEST = 1000
"""The most elements of a guarded container; a larger container counts as frozen."""


class Watch:
    """The record of the loads of one trace; `guards` returns the guards on them."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.arrays: dict[int, tuple[str, ArrayContent]] = {}
        self._loads: dict[tuple[int, Way, str], Guard] = {}
        self._contents: dict[int, Contents | Reading] = {}
        self._updates: dict[tuple[int, Way, str], Guard] = {}
        self._containers: dict[int, Contents] = {}
        self._functions: dict[int, list[FunctionType]] = {}
        self._new_objects: dict[int, Any] = {}
        self._visited_keys: dict[tuple[int, int, int], Any] = {}
        self._entered_frames: set[tuple[int, int]] = set()
        self._codes: set[int] = set()
        self._code_objects: list[tuple[CodeType, Any]] = []
        """The code of each entered frame, with its globals, whose ids stay theirs meanwhile."""
        self._in_arguments = False
        self._incomplete = self._writes = self._consumes = False
        self._random: Randomness
        self._generators: list[str] = []
        self._outer: Any = None
        self._on = False
        self._profile: Callable[..., Any] | None = None
        while isinstance(function, (partial, MethodType)):
            function = function.func if isinstance(function, partial) else function.__func__
        if isinstance(function, FunctionType):
            self._functions[id(function.__code__)] = [function]

    # -- the profile function

    def start(self) -> None:
        """Start watching this thread; an earlier profile function still receives its events."""
        self._outer = sys.getprofile()
        self._profile = self._profile_function()
        self._on = True
        WATCHING.setdefault(get_ident(), []).append(self)
        self._random = Randomness()
        sys.setprofile(self._profile)

    def stop(self) -> None:
        """Stop watching, and restore the thread's earlier profile function."""
        sys.setprofile(None)
        self._on = False
        self._generators = self._random.advanced_generators()
        WATCHING[get_ident()].pop()
        if not WATCHING[get_ident()]:
            del WATCHING[get_ident()]
        if callable(self._outer):
            sys.setprofile(self._outer)
        elif self._outer is not None:  # a profiler of C, as cProfile is
            self._outer.enable()

    def paused(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that runs no user code, without the cost of the profile function."""
        if not self._on or self._outer is not None:
            return function(*args)
        self._on = False
        sys.setprofile(None)
        try:
            return function(*args)
        finally:
            self._on = True
            sys.setprofile(self._profile)

    def _profile_function(self) -> Callable[[FrameType, str, Any], None]:
        """Return the profile function; a closure, since a method would cost more per event."""
        outer = self._outer if callable(self._outer) else None
        libraries: set[int] = set()  # ids of code objects, which `codes` keeps alive
        codes: list[CodeType] = []

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            if event == "call" and id(code := frame.f_code) not in libraries:
                if draws_entropy(frame):
                    self._random.entropy = True
                elif is_library(frame):
                    libraries.add(id(code))
                    codes.append(code)
                else:
                    self._enter(frame)
            elif event == "c_call":
                self._random.add_function(argument)
            if outer is not None:
                outer(frame, event, argument)

        return profile

    # -- from a frame to the objects that it reaches

    def _enter(self, frame: FrameType) -> None:
        """Record the values that the code of a user's frame may load."""
        code, loads = frame.f_code, loads_of(frame.f_code)
        self._writes |= loads.writes
        self._codes.update(
            id(constant) for constant in code.co_consts if type(constant) is type(code)
        )
        is_first = not self._entered_frames
        if (id(code), id(frame.f_globals)) not in self._entered_frames:
            self._entered_frames.add((id(code), id(frame.f_globals)))
            self._code_objects.append((code, frame.f_globals))
            replace_makers(frame.f_globals, loads.globals, loads.attributes | loads.updates)
            self._enter_module(frame.f_globals, loads)
        if code.co_freevars:
            for function in self._functions_of(frame):
                self._enter_closure(function, loads)
        arguments = list(_arguments(frame))
        if code.co_name == "__init__" and arguments:
            new = arguments.pop(0)[1]
            self._new_objects[id(new)] = new
            self._note_method(type(new), code.co_name, Way.ATTRIBUTE, type(new))
        elif _is_special(code.co_name) and arguments:  # Python calls it without a name in the code
            self._note_special(arguments[0][1], code.co_name)
        # An iterator that the traced code passes on is its own, or has a name where it comes from.
        self._in_arguments = not is_first
        for name, value in arguments:
            self._reach(value, loads, _DEPTH, name)
        self._in_arguments = False

    def _note_special(self, owner: Any, name: str) -> None:
        if id(owner) not in self._new_objects:
            self._note_method(type(owner), name, Way.PROPERTY, owner)

    def _note_method(self, kind: Any, name: str, way: Way, owner: Any) -> None:
        """Record a method that Python calls without a name in the code."""
        method = getattr(kind, name, None)
        if method is not None:
            self._note(way, owner, name, method)
        if isinstance(method, FunctionType):
            self._functions.setdefault(id(method.__code__), []).append(method)

    def _enter_module(self, variables: dict[str, Any], loads: Loads) -> None:
        for name in loads.updates & variables.keys():
            self._note_update(Way.GLOBAL, variables, name, variables[name])
        for name in loads.globals:
            if name in variables and not is_added(variables, name):
                self._load(Way.GLOBAL, variables, name, variables[name], loads, _DEPTH, name)
            else:
                self._note(Way.BUILTIN, variables, name, False)
        package = variables.get("__package__")
        for name in loads.modules:
            for module in (name, f"{package}.{name}"):
                self._reach(sys.modules.get(module), loads, _DEPTH, name)

    def _functions_of(self, frame: FrameType) -> list[FunctionType]:
        """Return the functions from before the trace that a frame may be running."""
        code = frame.f_code
        functions = self._functions.get(id(code))
        if functions is None and id(code) in self._codes:
            return []  # an inner function that the trace made
        if functions is None:
            users = gc.get_referrers(code)
            functions = [
                user for user in users if type(user) is FunctionType and user.__code__ is code
            ]
            self._functions[id(code)] = functions
        return functions

    def _enter_closure(self, function: FunctionType, loads: Loads) -> None:
        names = function.__code__.co_freevars
        cells: tuple[CellType, ...] = function.__closure__ or ()
        for name, cell in zip(names, cells, strict=False):
            if name == "__class__":
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                continue  # not assigned yet
            if name in loads.updates:
                self._note_update(Way.CELL, cell, name, value)
            if name in loads.free:
                self._load(Way.CELL, cell, name, value, loads, _DEPTH, name)

    def _load(
        self, way: Way, owner: Any, name: str, value: Any, loads: Loads, depth: int, label: str
    ) -> None:
        """Record a value that code loads, and the values that the code can reach from it."""
        if type(value) in _OF_TRACE or id(value) in self._new_objects:
            return
        self._note(way, owner, name, value)
        outer, self._in_arguments = self._in_arguments, False
        self._reach(value, loads, depth, label)
        self._in_arguments = outer

    def _note(self, way: Way, owner: Any, name: str, value: Any) -> None:
        guard = Guard(way, owner, name, original_of(value))
        self._loads.setdefault((id(owner), way, name), guard)

    def _note_update(self, way: Way, owner: Any, name: str, value: Any) -> None:
        """Record a value that code only updates, which matters if other code loads it."""
        if type(value) in _OF_TRACE or id(value) in self._new_objects:
            return
        update = Guard(way, owner, name, original_of(value))
        self._updates.setdefault((id(owner), way, name), update)
        if isinstance(value, CONTAINERS) and not isinstance(value, (tuple, frozenset)):
            self._containers.setdefault(id(cast("Any", value)), Contents(value))

    def _is_repeatable(self) -> bool:
        """Whether the trace left all loaded values unchanged, so that later calls may skip it."""
        changed_keys = {key for key, update in self._updates.items() if not update.holds()}
        if changed_keys & self._loads.keys():
            return False
        altered_keys = {key for key, update in self._containers.items() if not update.holds()}
        if altered_keys & self._contents.keys():
            return False
        return all(update.holds() for update in (*self._loads.values(), *self._contents.values()))

    def _reach(self, value: Any, loads: Loads, depth: int, label: str) -> None:
        """Record the values that code can load from a value."""
        kind: Any = cast("object", type(value))
        if is_scalar(value) or kind in _OF_TRACE or id(value) in self._new_objects:
            return
        if is_consumed(kind):
            self._consumes |= not self._in_arguments
            return
        key = id(value), id(loads), depth
        if key in self._visited_keys:
            return
        self._visited_keys[key] = value, loads  # keeps them alive: unique ids
        try:
            self._reach_into(value, kind, loads, depth, label)
        except Exception:  # a look-up on an unusual object failed: no guard covers it
            self._incomplete = True

    def _reach_into(self, value: Any, kind: Any, loads: Loads, depth: int, label: str) -> None:
        if isinstance(value, np.ndarray) or is_foreign_array(kind):
            self._reach_array(value, label)
        elif isinstance(value, GENERATORS):
            self._random.add(value, label)
        elif isinstance(value, CONTAINERS):
            self._reach_elements(value, loads, depth, label)
        elif isinstance(value, (BuiltinFunctionType, MethodWrapperType)):
            self._random.add_function(value)
            self._reach(value.__self__, loads, depth, label)
        elif isinstance(value, (property, cached_property)):
            getter = value.fget if isinstance(value, property) else cast("Any", value).func
            self._reach(getter, loads, depth, label)
        elif (read := reader_of(kind)) is not None:
            self._contents.setdefault(id(value), Reading(value, read))
        elif isinstance(value, MethodType):
            self._reach(value.__func__, loads, depth, label)
            self._reach(value.__self__, loads, depth, label)
        elif isinstance(value, partial):
            call = cast("partial[Any]", value)
            for part in (call.func, call.args, call.keywords):
                self._reach(part, loads, depth, label)
        else:
            if isinstance(value, FunctionType):
                self._functions.setdefault(id(value.__code__), []).append(value)
            self._reach_attributes(value, loads, depth, label)

    def _reach_array(self, array: Any, label: str) -> None:
        if id(array) not in self.arrays:
            self.arrays[id(array)] = label, ArrayContent(array)

    def _reach_elements(self, container: Any, loads: Loads, depth: int, label: str) -> None:
        if len(container) > _LONGEST:
            return
        table: Any = cast("Any", container) if isinstance(container, dict) else None
        values: list[Any] = list(cast("Any", container) if table is None else table.values())
        if not isinstance(container, (tuple, frozenset)) and not _has_symbols(values):
            self._contents.setdefault(id(cast("Any", container)), Contents(container))
        names: Iterable[Any] = range(len(values)) if table is None else table
        for name, value in zip(names, values, strict=True):
            self._reach(value, loads, depth, f"{label}[{name!r}]")

    def _reach_attributes(self, owner: Any, loads: Loads, depth: int, label: str) -> None:
        is_module = isinstance(owner, ModuleType)
        if is_module:
            self._random.add_module(owner, loads.attributes)
        module: str = owner.__name__ if is_module else type(owner).__module__
        # Decorators set __wrapped__, jit included.
        wrapped_function = own_variables(owner).get("__wrapped__")
        if wrapped_function is not None:
            self._reach(wrapped_function, loads, depth, label)
        if not depth or (is_library_module(module) if is_module else is_own_module(module)):
            return
        for base in type(owner).__mro__:
            if not is_library_module(base.__module__):
                for name, method in vars(base).items():
                    if _is_special(name) and isinstance(method, FunctionType):
                        self._functions.setdefault(id(method.__code__), []).append(method)
        for way, name, value in lookups(owner, loads):
            if name in loads.updates:
                self._note_update(way, owner, name, value)
            if name in loads.attributes:
                self._load(way, owner, name, value, loads, depth - 1, f"{label}.{name}")

    def _note_parts(self) -> None:
        """Record the code and the defaults of the functions that the trace has called."""
        codes = {id(code): code for code, _ in self._code_objects if id(code) not in self._codes}
        unknown = [code for key, code in codes.items() if not self._functions.get(key)]
        if unknown:  # called by compiled code, say
            for user in gc.get_referrers(*unknown):
                if type(user) is FunctionType and id(user.__code__) in codes:
                    self._functions.setdefault(id(user.__code__), []).append(user)
        for key in codes:
            for function in self._functions.get(key, ()):
                for name in _PARTS:
                    part = getattr(function, name)
                    if part is not None:
                        self._note(Way.ATTRIBUTE, function, name, part)
                    if isinstance(part, dict):
                        self._contents.setdefault(id(cast("Any", part)), Contents(part))

    # -- the guards of the trace

    def guards(self, constants: Iterable[ArrayContent]) -> Guards:
        """Return the guards on the loaded state and on `constants`.

        Raises GraphError if the trace drew random numbers or wrote to an outside array, since later
        calls would not repeat these effects.
        """
        if self._generators:
            raise GraphError(
                f"jit: {self.name} draws random numbers as it is traced, which later calls would "
                "repeat",
                got=f"draws from {', '.join(self._generators)}",
                fix="draw outside, and pass the numbers in as an argument",
            )
        changed_arrays = [label for label, array in self.arrays.values() if not array.holds()]
        if changed_arrays and (self._writes or runs_alone()):
            raise GraphError(
                f"jit: {self.name} writes to {', '.join(changed_arrays)} as it is traced, which "
                "later calls would not repeat",
                fix="return the new array, and assign it outside",
            )
        self._note_parts()
        loads = list(self._loads.values())
        contents = list(self._contents.values())
        # Arrays that this code does not write to are those of another thread; the trace may have
        # read them before or after the write.
        is_fixed = not (self._incomplete or self._consumes or changed_arrays)
        lasting = is_fixed and self._is_repeatable()
        arrays = [array for _, array in self.arrays.values()]
        return Guards(loads, [*contents, *arrays, *constants], lasting, self._consumes)


def unwatched(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that runs no user code; pause the watch if this thread is in a trace."""
    traces = WATCHING.get(get_ident())
    return traces[-1].paused(function, *args) if traces else function(*args)


def _arguments(frame: FrameType) -> list[tuple[str, Any]]:
    """Return the parameters of a starting frame, with their values."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    if not count:
        return []
    values = frame.f_locals
    return [(name, values[name]) for name in code.co_varnames[:count] if name in values]


def _is_special(name: str) -> bool:
    """Whether a method name is special: Python calls such methods for operators and protocols."""
    return name.startswith("__") and name.endswith("__")


def _has_symbols(values: list[Any]) -> bool:
    return any(type(value) in _OF_TRACE for value in values)


_OF_TRACE = Symbol, TracedNumber, SymbolicArray, SymbolicScalar, SymbolicSelection


class WatchedGraph(Graph):
    """A Graph under trace; an array that user code loads by name becomes an input of the graph."""

    def __init__(
        self,
        function: Callable[..., Any],
        rules: PromotionRules,
        functions: Functions = "numpy",
    ) -> None:
        super().__init__(name_of(function), rules=rules, functions=functions)
        self.watch = Watch(self.name, function)
        self.captures: dict[int, tuple[Any, Symbol]] = {}
        self._constants: dict[int, Any] = {}

    def __enter__(self) -> Graph:
        self.watch.start()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.watch.stop()

    def apply(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols, arrays and literals of this graph."""
        return self.watch.paused(super().apply, op, operands, attrs)

    def emit(self, op: Op, args: tuple[Symbol, ...], attrs: Mapping[str, Any]) -> Symbol:
        """Add an op on symbols of this graph."""
        return self.watch.paused(super().emit, op, args, attrs)

    def numpy_call(self, call: Callable[..., Any], *args: Any) -> Any:
        """Run a NumPy function's call on symbols of this graph."""
        return self.watch.paused(super().numpy_call, call, *args)

    def entering(self, array: Any) -> Symbol:
        """Return the symbol of an array operand: an input if code loads the array by name.

        A 0-d array stays a constant, since its value may count in promotion.
        """
        entry = self.watch.arrays.get(id(array))
        if entry is None or not np.ndim(array):
            symbol = super().entering(array)
            if entry is None:
                self._constants[id(array)] = array
            return symbol
        if id(array) not in self.captures:
            dtype, values = array_of(array, None)
            symbol = self.input(TensorType(dtype, values.shape), name=self._free_name(entry[0]))
            self.captures[id(array)] = array, symbol
        return self.captures[id(array)][1]

    def _free_name(self, label: str) -> str:
        name = re.sub(r"\W+", "_", label).strip("_") or "array"
        name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
        while name in self.input_names:
            name += "_"
        return name

    def finish(self) -> tuple[list[tuple[int, Any]], Guards]:
        """Return the captured arrays with their input positions, and the guards of the trace.

        The method turns this object into a plain Graph.
        """
        places = {id(symbol): place for place, symbol in enumerate(self.inputs)}
        captures = [(places[id(symbol)], array) for array, symbol in self.captures.values()]
        guards = self.watch.guards(_outliving(self._constants))
        del self.watch, self.captures, self._constants
        self.__class__ = cast("Any", Graph)
        return captures, guards


def same_graph(a: Graph, b: Graph) -> bool:
    """Whether two graphs have the same symbols, so that the Program of one serves the other."""
    if len(a) != len(b) or a.input_names != b.input_names or a.rules is not b.rules:
        return False
    if [symbol.index for symbol in a.outputs] != [symbol.index for symbol in b.outputs]:
        return False
    return all(map(_same_symbol, a.symbols, b.symbols))


def _same_symbol(a: Symbol, b: Symbol) -> bool:
    if a.op is not b.op or a.type != b.type:
        return False
    if [arg.index for arg in a.args] != [arg.index for arg in b.args]:
        return False
    return a.attrs is b.attrs or a.attrs.content == b.attrs.content


# -- constants


def _outliving(constants: dict[int, Any]) -> Iterator[ArrayContent]:
    """Yield guards on the constants whose arrays outlive the trace, so that code may write to them.

    A graph copies its constants. So an array that the trace created has no reference except the
    one in `constants`, and its owner has references only from such arrays.
    """
    groups: dict[int, list[Any]] = {}
    for key in constants:
        array = constants[key]
        groups.setdefault(id(_owner(array)), []).append(array)
        del array  # this local reference would count
    for arrays in groups.values():
        owner = _owner(arrays[0])
        is_owner = any(array is owner for array in arrays)
        inside = 2 if is_owner else 0  # the local variable and the group's entry
        inside += sum(array is not owner and array.base is owner for array in arrays)
        if not isinstance(owner, np.ndarray) or is_held(cast("object", owner), inside):
            yield from map(ArrayContent, arrays)


def _owner(array: Any) -> Any:
    """Return the object that owns the memory of an array."""
    owner = array
    while isinstance(owner, np.ndarray) and (base := cast("Any", owner).base) is not None:
        owner = base
    return cast("Any", owner)

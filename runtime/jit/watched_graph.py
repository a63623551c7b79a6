"""WatchedGraph: the graph of a jit trace, which makes captured arrays inputs."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from graphir import Graph, PromotionRules, Symbol, TensorType
from graphir.hints import Functions
from graphir.ir.literals import array_of
from graphir.numpy_api.trace import name_of
from graphir.ops.op import Op
from graphir.runtime.jit.guards import ArrayContent, Guards
from graphir.runtime.jit.watch import Watch
from graphir.runtime.references import is_held


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
        is_owner = any(each is owner for each in arrays)
        inside = 2 if is_owner else 0  # the local variable and the group's entry
        inside += sum(each is not owner and each.base is owner for each in arrays)
        if not isinstance(owner, np.ndarray) or is_held(cast("object", owner), inside):
            yield from map(ArrayContent, arrays)


def _owner(array: Any) -> Any:
    """Return the object that owns the memory of an array."""
    owner = array
    while isinstance(owner, np.ndarray) and (base := cast("Any", owner).base) is not None:
        owner = base
    return cast("Any", owner)

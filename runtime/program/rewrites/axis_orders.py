"""Graphs over arrays as they lie in memory, whose axes have another order than the program's.

NumPy computes elementwise functions along memory, and gives the result the layout of its operands.
A graph whose inputs are column-major therefore computes on the transposed inputs, which are
row-major, and gives the transposed outputs. A permutation of axes in the graph costs nothing until
an op needs the program's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from graphir.ops.attribute_record import AttributeRecord
from graphir.public import Graph, Symbol, TensorType, ops

Axes: TypeAlias = tuple[int, ...]
"""The order of axes of an array in memory: the place in memory of each axis of the program."""

_ELEMENTWISE = ("elementwise", "cast")


def in_memory_order(
    graph: Graph, inputs: Mapping[int, Axes], outputs: Mapping[int, Axes]
) -> Graph | None:
    """Return the graph with inputs and outputs as they lie in memory, by their positions.

    Other inputs and outputs stay. The result is None if no op computes along memory then.
    """
    if not inputs and not outputs:
        return None
    orders = _Orders(graph)
    new = orders.rewritten(inputs, outputs)
    return new if orders.computes_along_memory else None


def inverse(axes: Axes) -> Axes:
    """Return the axis of the program at each place in memory."""
    return tuple([axes.index(i) for i in range(len(axes))])


def _permuted(values: Sequence[Any], axes: Axes) -> tuple[Any, ...]:
    """Return what belongs to each axis in memory, for values by the axes of the program."""
    return tuple([values[axis] for axis in inverse(axes)])


def _in_memory(places: Sequence[int], axes: Axes) -> tuple[int, ...]:
    """Return axes of the program by their places in memory, in ascending order."""
    return tuple(sorted([axes[place] for place in places]))


class _Orders:
    """A new graph under construction: for each old symbol, a value and its order of axes."""

    def __init__(self, old: Graph) -> None:
        self.old, self.new = old, old.like()
        self._values: list[tuple[Symbol, Axes]] = []
        self._permutations: dict[tuple[int, Axes], Symbol] = {}
        self.computes_along_memory = False

    def rewritten(self, inputs: Mapping[int, Axes], outputs: Mapping[int, Axes]) -> Graph:
        """Return the new graph."""
        places = {symbol.index: place for place, symbol in enumerate(self.old.inputs)}
        for symbol in self.old.symbols:
            with self.new.at(symbol.location):
                if symbol.index in places and places[symbol.index] in inputs:
                    axes = inputs[places[symbol.index]]
                    attrs = {**symbol.attrs, "shape": _permuted(symbol.shape, axes)}
                    self._values.append((self._emitted(symbol, (), axes, attrs), axes))
                else:
                    self._values.append(self._rewritten(symbol))
        new = self.new
        inputs_new = [self._values[symbol.index][0] for symbol in self.old.inputs]
        outputs_new = [
            self._moved_to(symbol.index, outputs.get(i, tuple(range(symbol.rank))))
            for i, symbol in enumerate(self.old.outputs)
        ]
        new.set_interface(inputs_new, self.old.input_names, outputs_new)
        return new

    def _rewritten(self, symbol: Symbol) -> tuple[Symbol, Axes]:
        """Return the new value of a symbol, and its order of axes."""
        op = symbol.op
        if type(symbol.type) is not TensorType:  # a tuple, or a value of another library
            return self._emitted(symbol, self._in_program_order(symbol.args), ()), ()
        plain = tuple(range(symbol.rank))
        axes = self._values[symbol.args[0].index][1] if symbol.args else ()
        if op is ops.permute or op is ops.transpose:
            order = list(range(symbol.rank))
            if op is ops.permute:
                order = symbol.attrs["dims"]
            else:
                a, b = symbol.attrs["axis1"], symbol.attrs["axis2"]
                order[a], order[b] = b, a
            return self._values[symbol.args[0].index][0], tuple([axes[i] for i in order])
        if op.kind in _ELEMENTWISE:
            axes = self._common(symbol)
            args = tuple([self._operand(arg, axes) for arg in symbol.args])
            self.computes_along_memory |= axes != plain
            return self._emitted(symbol, args, axes), axes
        if axes != tuple(range(len(axes))):
            if op is ops.slice:
                attrs = {name: _permuted(value, axes) for name, value in symbol.attrs.items()}
                return self._on_memory(symbol, axes, attrs), axes
            if op is ops.flip:
                attrs = {"axis": _in_memory(symbol.attrs["axis"], axes)}
                return self._on_memory(symbol, axes, attrs), axes
            if op in _ORDERLESS:
                return self._reduced(symbol, axes)
        return self._emitted(symbol, self._in_program_order(symbol.args), plain), plain

    def _in_program_order(self, args: Sequence[Symbol]) -> tuple[Symbol, ...]:
        """Return the new values of operands with the program's order of axes."""
        indices = [arg.index for arg in args]
        return tuple([self._moved_to(i, tuple(sorted(self._values[i][1]))) for i in indices])

    def _common(self, symbol: Symbol) -> Axes:
        """Return the order of axes that the operands of a result share, else the program's."""
        plain = tuple(range(symbol.rank))
        orders = {
            self._values[arg.index][1]
            for arg in symbol.args
            if arg.shape == symbol.shape and arg.op is not ops.constant
        }
        return orders.pop() if len(orders) == 1 else plain

    def _operand(self, arg: Symbol, axes: Axes) -> Symbol:
        """Return an operand of an elementwise op on values with this order of axes."""
        missing = len(axes) - arg.rank
        if not arg.rank or (missing and axes == tuple(range(len(axes)))):
            return self._moved_to(arg.index, tuple(range(arg.rank)))
        if not missing:
            return self._moved_to(arg.index, axes)
        value = self._moved_to(arg.index, tuple(range(arg.rank)))
        wide = self.new.emit(ops.reshape, (value,), {"shape": (1,) * missing + arg.shape})
        return self.new.emit(ops.permute, (wide,), {"dims": inverse(axes)})

    def _moved_to(self, index: int, axes: Axes) -> Symbol:
        """Return the new value of an old symbol with this order of axes."""
        value, order = self._values[index]
        if order == axes:
            return value
        key = value.index, (dims := tuple([order[i] for i in inverse(axes)]))
        if key not in self._permutations:
            self._permutations[key] = self.new.emit(ops.permute, (value,), {"dims": dims})
        return self._permutations[key]

    def _on_memory(self, symbol: Symbol, axes: Axes, attrs: Mapping[str, Any]) -> Symbol:
        return self._emitted(symbol, (self._values[symbol.args[0].index][0],), axes, attrs)

    def _reduced(self, symbol: Symbol, axes: Axes) -> tuple[Symbol, Axes]:
        """Return a reduction whose result does not depend on the order of elements."""
        reduced = _in_memory(symbol.attrs["axis"], axes)
        attrs = {**symbol.attrs, "axis": reduced}
        if not symbol.attrs["keepdims"]:
            places = [place for place in range(len(axes)) if place not in reduced]
            axes = tuple([places.index(place) for place in axes if place in places])
        return self._on_memory(symbol, axes, attrs), axes

    def _emitted(
        self,
        symbol: Symbol,
        args: tuple[Symbol, ...],
        axes: Axes,
        attrs: Mapping[str, Any] | None = None,
    ) -> Symbol:
        """Add a symbol like an old one, whose result has this order of axes."""
        type_ = symbol.type
        if axes:
            type_ = TensorType(symbol.dtype, _permuted(symbol.shape, axes))
        record = symbol.attrs if attrs is None else AttributeRecord.of(dict(attrs))
        new = Symbol(self.new, symbol.op, args, record, type_, symbol.source, len(self.new.symbols))
        self.new.symbols.append(new)
        return new


_ORDERLESS = frozenset((ops.max, ops.min, ops.any, ops.all))
"""The reductions that give the same result in every order of elements."""

"""The partition of a lowered graph into steps: fused regions, and calls of kernels on whole arrays.

The partition gives each symbol a level. A symbol has the level of its elementwise operands of the
same shape, and a level above that of all other operands. All elementwise symbols of one level and
shape form a region, which needs no result of its own level from outside.

A `call` may bind dims. A symbol that needs such a dim has a level above the call's.

An update of an array has at least the level of all symbols before it that read the array or a view
of it. The readers are then done before the update, which may write in place (see updates.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from graphir.ir.liveness import binders_of, binders_used, last_uses
from graphir.ops.dims import Shape
from graphir.public import Graph, Symbol, TensorType, ops
from graphir.runtime.program.rows import sums_by_halves
from graphir.semantics.evaluation import computes_narrowly


@dataclass(slots=True)
class Region:
    """A fused region: elementwise symbols of one shape, and row-wise symbols over its last axes.

    The program computes the symbols of a region together, block by block. `rows` are reductions,
    sorts and other row-wise symbols. Their first operand has the shape of the region, its last
    `axes` axes make up a row, and each row is independent of the other rows.
    """

    shape: Shape
    symbols: list[Symbol] = field(default_factory=list[Symbol])
    rows: list[Symbol] = field(default_factory=list[Symbol])
    axes: int = 0


@dataclass(slots=True)
class Call:
    """A step that computes one symbol by its kernel on whole arrays.

    The symbol may be elementwise: a `pow` that may refuse its exponent is a call.
    """

    symbol: Symbol


StepOf: TypeAlias = "Region | Call"

_ELEMENTWISE = ("elementwise", "cast")
_ADDING = frozenset({"sum", "mean", "var", "std", "softmax", "logsoftmax", "layer_norm"})
_SOURCES = (ops.input, ops.constant, ops.full)

ACCUMULATIONS = frozenset({ops.cumulative_sum, ops.cumulative_prod})
"""The ops each of whose results is that of the element before, and one more."""

_WHOLE = frozenset({ops.searchsorted, ops.numpy_sum, ops.index_add, *ACCUMULATIONS})
"""The ops over axes that are calls on whole arrays: most depend on more than one row."""

UPDATES = frozenset({ops.slice_update, ops.index_update, ops.index_add})
"""The ops that write into their first operand, or into a copy of it."""

VIEWS = frozenset(
    {
        *(ops.reshape, ops.rebind, ops.transpose, ops.permute, ops.squeeze, ops.unsqueeze),
        *(ops.slice, ops.flip, ops.broadcast_to, ops.affine_view),
    }
)
"""The ops whose results may share memory with their operand, and with nothing else."""


class _Readers:
    """The latest level that reads each array, by the root of the array's views and updates."""

    def __init__(self) -> None:
        self._roots: dict[int, int] = {}
        self._levels: dict[int, int] = {}

    def enter(self, symbol: Symbol, level: int) -> None:
        """Note that a symbol of some level reads its operands."""
        roots, levels = self._roots, self._levels
        for arg in symbol.args:
            root = roots.get(arg.index, arg.index)
            if levels.get(root, -1) < level:
                levels[root] = level
        if symbol.op in VIEWS or symbol.op in UPDATES:
            source = symbol.args[0].index
            roots[symbol.index] = roots.get(source, source)

    def level(self, array: Symbol) -> int:
        """Return the latest level so far of the readers of an array and of its views."""
        return self._levels.get(self._roots.get(array.index, array.index), 0)


def cut(graph: Graph) -> list[StepOf]:
    """Return the steps that compute the live symbols of a lowered graph, in topological order.

    Each symbol has a level above the levels of its operands; elementwise operands of the symbol's
    own shape share its level. A step of one level therefore never reads a result of a later level,
    and all elementwise symbols of one level and shape form one region.
    """
    last = last_uses(graph)
    levels, inner = [-1] * len(last), [False] * len(last)
    regions: dict[tuple[int, Shape], Region] = {}
    latest: dict[TensorType, tuple[int, Region]] = {}
    calls: list[tuple[int, Call]] = []
    binders = binders_of(graph)
    readers = _Readers() if any(symbol.op in UPDATES for symbol in graph.symbols) else None
    for symbol in graph.symbols:
        index, op, type_ = symbol.index, symbol.op, symbol.type
        bound = binders_used(symbol, binders) if binders else ()
        least = max([levels[call.index] + 1 for call in bound], default=0)
        if last[index] < 0 or (op in _SOURCES and not bound) or op is ops.input:
            continue
        if op.kind not in _ELEMENTWISE or (op is ops.pow and _is_whole_call(symbol)):
            if readers and op in UPDATES:
                least = max(least, readers.level(symbol.args[0]))
            levels[index] = _add(symbol, levels, inner, regions, calls, least)
            if readers:
                readers.enter(symbol, levels[index])
            continue
        level, shape = least, type_.shape
        for arg in symbol.args:
            source = arg if arg.op is not ops.broadcast_to else source_of(arg)
            below = levels[source.index]
            if not inner[source.index] or (source.type is not type_ and source.type.shape != shape):
                below += 1
            if below > level:
                level = below
        levels[index], inner[index] = level, True
        if readers:
            readers.enter(symbol, level)
        entry = latest.get(type_)  # a chain of symbols of one type looks up one region repeatedly
        if entry is None or entry[0] != level:
            region = regions.get((level, shape))
            if region is None:
                region = regions[level, shape] = Region(shape)
            entry = latest[type_] = level, region
        entry[1].symbols.append(symbol)
    if len(regions) > 1 and not readers:  # an update in place may not overtake a reader
        _sink(graph, list(regions.values()))
    steps: list[tuple[int, StepOf]] = [
        (level, region_)
        for (level, _), region_ in regions.items()
        if region_.symbols or region_.rows
    ]
    steps += calls
    return [step for _, step in sorted(steps, key=lambda step: step[0])]


def _sink(graph: Graph, regions: Sequence[Region]) -> None:
    """Move symbols to the later region of the same shape that alone uses them.

    Their values then need no memory between the regions. A symbol stays if its own region computes
    an operand for other symbols too, since the operand would need memory instead.
    """
    homes = {
        symbol.index: region for region in regions for symbol in (*region.symbols, *region.rows)
    }
    rows = {symbol.index for region in regions for symbol in region.rows}
    users: dict[int, list[int]] = {symbol.index: [-1] for symbol in graph.outputs}
    for symbol in graph.symbols:
        for k, arg in enumerate(symbol.args):
            # A row-wise symbol reads its further operands from memory.
            in_region = k == 0 or symbol.index not in rows
            users.setdefault(arg.index, []).append(symbol.index if in_region else -1)
    sunk: dict[int, Region] = {}
    for region in reversed(regions):
        for symbol in reversed(region.symbols):
            (target, *others) = {
                id(homes.get(user)): homes.get(user) for user in users[symbol.index]
            }.values()
            if others or target is None or target is region or target.shape != region.shape:
                continue
            inner = [arg.index for arg in symbol.args if homes.get(arg.index) is region]
            if all(set(users[index]) == {symbol.index} for index in inner):
                homes[symbol.index] = sunk[symbol.index] = target
    for region in regions if sunk else ():
        both = [symbol for symbol in region.symbols if symbol.index not in sunk]
        both += [graph.symbols[index] for index, target in sunk.items() if target is region]
        region.symbols[:] = sorted(both, key=lambda symbol: symbol.index)


def _is_whole_call(power: Symbol) -> bool:
    """Whether a `pow` is a call: its exponent may be a negative integer, or it is of scalars.

    The error for a negative exponent concerns the whole array. Scalars have other bits.
    """
    if not power.rank and power.dtype.is_float:
        return True
    exponent = source_of(power.args[1])
    exponent_value = exponent.attrs["value"] if exponent.op in (ops.constant, ops.full) else -1
    return exponent.dtype.family == "int" and bool(np.less(exponent_value, 0).any())


def _add(
    symbol: Symbol,
    levels: list[int],
    inner: list[bool],
    regions: dict[tuple[int, Shape], Region],
    calls: list[tuple[int, Call]],
    least: int,
) -> int:
    """Add a non-elementwise symbol to the region of its rows, or as a call; return its level.

    The level of a call is at least `least`.
    """
    axes = row_axes(symbol)
    if not axes:
        level = max([least, *[levels[arg.index] + 1 for arg in symbol.args]])
        calls.append((level, Call(symbol)))
        return level
    source = source_of(symbol.args[0])
    shape = symbol.args[0].shape
    level = max([least, *[levels[arg.index] + 1 for arg in symbol.args[1:]]])
    joins = inner[source.index] and source.shape == shape
    level = max(level, levels[source.index] + (not joins))
    region = regions.setdefault((level, shape), Region(shape))
    if region.axes not in (0, axes):  # the region has rows of another length: use whole arrays
        level = max(level, levels[symbol.args[0].index] + 1)
        calls.append((level, Call(symbol)))
        return level
    region.axes = axes
    region.rows.append(symbol)
    return level


def source_of(symbol: Symbol) -> Symbol:
    """Return the operand of an explicit broadcast, or the symbol itself.

    A region broadcasts its operands on load, so it need not materialize a `broadcast_to`.
    """
    while symbol.op is ops.broadcast_to:
        symbol = symbol.args[0]
    return symbol


def row_axes(symbol: Symbol) -> int:
    """Return the number of last axes of the first operand that make up one row of a symbol.

    The answer is 0 if the symbol is not row-wise, if its axes are not the last ones, or if the
    symbol adds floats and this NumPy does not add rows pairwise (see `sums_by_halves`).
    """
    if symbol.op.kind not in ("reduction", "rowwise") or symbol.op in _WHOLE:
        return 0
    if computes_narrowly(symbol.op, symbol.attrs, [symbol.args[0].dtype]):
        return 0
    if symbol.op.name in _ADDING and symbol.dtype.format and not sums_by_halves():
        return 0
    rank = symbol.args[0].rank
    axis: Any = symbol.attrs.get("axis", rank - 1)
    last = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return len(last) if last == tuple(range(rank - len(last), rank)) else 0

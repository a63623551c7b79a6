"""Cutting a lowered graph into steps: regions of elementwise ops, and calls of whole kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphir import Graph, Symbol, ops
from graphir.dims import Shape
from runtime.interpreter import last_uses


@dataclass(slots=True)
class Region:
    """Elementwise symbols of one shape, and those that take the last `axes` of it as rows.

    They are computed together, block by block. `rows` are reductions, sorts and the like, whose
    first operand is of this shape, and of which each row is independent of the others.
    """

    shape: Shape
    symbols: list[Symbol] = field(default_factory=list[Symbol])
    rows: list[Symbol] = field(default_factory=list[Symbol])
    axes: int = 0


@dataclass(slots=True)
class Call:
    """One symbol, computed by its kernel on whole arrays."""

    symbol: Symbol


StepOf: TypeAlias = "Region | Call"

_ELEMENTWISE = ("elementwise", "cast")
_GIVEN = (ops.input, ops.constant, ops.full)


def cut(graph: Graph) -> list[StepOf]:
    """The steps that compute what the outputs of a lowered graph need, in order.

    Each symbol has a level above those of its operands, but the same level as elementwise operands
    of its own shape: so what lies between two levels never needs what comes after it, and all
    elementwise symbols of one level and shape are one region.
    """
    last = last_uses(graph)
    levels = [-1] * len(graph.symbols)
    regions: dict[tuple[int, Shape], Region] = {}
    calls: list[tuple[int, Call]] = []
    for symbol in graph.symbols:
        if last[symbol.index] < 0 or symbol.op in _GIVEN:
            continue
        inner = symbol.op.kind in _ELEMENTWISE
        axes = 0 if inner else row_axes(symbol)
        shape = symbol.shape if inner else symbol.args[0].shape if axes else None
        level = 0
        for position, arg in enumerate(symbol.args):
            if shape is not None:
                arg = source_of(arg)
            same = arg.op.kind in _ELEMENTWISE and arg.shape == shape
            joins = same and (inner or position == 0)
            level = max(level, levels[arg.index] + (not joins))
        if not inner and axes and shape is not None:
            region = regions.setdefault((level, shape), Region(shape))
            if region.axes in (0, axes):
                region.axes = axes
                region.rows.append(symbol)
                levels[symbol.index] = level
                continue
            level += 1
        levels[symbol.index] = level
        if inner:
            regions.setdefault((level, symbol.shape), Region(symbol.shape)).symbols.append(symbol)
        else:
            calls.append((level, Call(symbol)))
    steps: list[tuple[int, StepOf]] = [(level, one) for (level, _), one in regions.items()]
    steps = [(level, one) for level, one in steps if isinstance(one, Region) and _used(one)]
    steps += calls
    return [step for _, step in sorted(steps, key=lambda step: step[0])]


def _used(region: Region) -> bool:
    return bool(region.symbols or region.rows)


def source_of(symbol: Symbol) -> Symbol:
    """What a symbol repeats: regions broadcast by themselves."""
    while symbol.op is ops.broadcast_to:
        symbol = symbol.args[0]
    return symbol


def row_axes(symbol: Symbol) -> int:
    """How many last axes of its first operand make up a row to a symbol; 0 where none do."""
    if symbol.op.kind not in ("reduction", "rowwise") or symbol.op is ops.searchsorted:
        return 0
    rank = symbol.args[0].rank
    axis: Any = symbol.attrs.get("axis", rank - 1)
    last = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return len(last) if last == tuple(range(rank - len(last), rank)) else 0

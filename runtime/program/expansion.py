"""Ops over rows written out: those whose kernels are made of other ops become these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from graphir import Graph, Op, Symbol, ops
from graphir.ops.attributes import constant
from passes.rewriter import Rewriter
from runtime.program.cutting import row_axes

Make: TypeAlias = Callable[..., Symbol]


def expanded(graph: Graph) -> Graph:
    """A lowered graph with the same results, to the bit, whose rows are read as often as they must.

    So what is computed of a row, and for each of its elements after that, are regions like others.
    """
    if not any(map(_is_expanded, graph.symbols)):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        if _is_expanded(symbol):
            args = [rewriter.values[arg.index] for arg in symbol.args]
            rewriter.replace(_EXPANSIONS[symbol.op](_maker(rewriter.new, symbol), symbol, *args))
        else:
            rewriter.copy(symbol)
    return rewriter.finish()


def _is_expanded(symbol: Symbol) -> bool:
    """Whether its kernel is what its expansion is: NumPy adds rows alike, and none is complex."""
    return (
        symbol.op in _EXPANSIONS
        and symbol.args[0].dtype is symbol.dtype
        and not symbol.attrs.get("correction")
        and row_axes(symbol) > 0
    )


def _maker(graph: Graph, symbol: Symbol) -> Make:
    """What makes symbols in place of another one."""

    def make(op: Op, *args: Symbol, **attrs: Any) -> Symbol:
        found = graph.infer(op, args, attrs)
        return graph.append(op, args, found.attrs, found.type, symbol.source)

    return make


def _centred(make: Make, x: Symbol, axis: Any) -> Symbol:
    return make(ops.subtract, x, make(ops.mean, x, axis=axis, keepdims=True))


def _var(make: Make, symbol: Symbol, x: Symbol) -> Symbol:
    centred = _centred(make, x, symbol.attrs["axis"])
    attrs = {name: symbol.attrs[name] for name in ("axis", "keepdims")}
    return make(ops.mean, make(ops.multiply, centred, centred), **attrs)


def _std(make: Make, symbol: Symbol, x: Symbol) -> Symbol:
    return make(ops.sqrt, _var(make, symbol, x))


def _layer_norm(make: Make, symbol: Symbol, x: Symbol, scale: Symbol, shift: Symbol) -> Symbol:
    centred = _centred(make, x, x.rank - 1)
    squares = make(ops.multiply, centred, centred)
    variance = make(ops.mean, squares, axis=x.rank - 1, keepdims=True)
    epsilon = np.asarray(symbol.attrs["epsilon"], x.dtype.storage)
    known = make(ops.constant, dtype=x.dtype, value=constant(epsilon), literal=None)
    spread = make(ops.sqrt, make(ops.add, variance, known))
    scaled = make(ops.multiply, make(ops.divide, centred, spread), scale)
    return make(ops.add, scaled, shift)


_EXPANSIONS: dict[Op, Callable[..., Symbol]] = {
    ops.var: _var,
    ops.std: _std,
    ops.layer_norm: _layer_norm,
}

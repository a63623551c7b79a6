"""Variances and layer norms as ops that read rows: those whose kernels are the decomposition."""

from __future__ import annotations

from graphir import Graph, Symbol, ops
from passes import decompose
from runtime.program.cutting import row_axes


def expanded(graph: Graph) -> Graph:
    """A lowered graph with the same results, to the bit, whose rows are read as often as they must.

    So what is computed of a row, and for each of its elements after that, are regions like others.
    """
    return decompose(graph, keep=_UNTOUCHED_OPS, where=_is_expanded)


_EXPANDED = frozenset({"var", "std", "layer_norm"})
_UNTOUCHED_OPS = frozenset(ops.CATALOGUE) - _EXPANDED


def _is_expanded(symbol: Symbol) -> bool:
    """Whether its kernel is what its expansion is: NumPy adds rows alike, and none is complex."""
    return (
        symbol.op.name in _EXPANDED
        and symbol.args[0].dtype is symbol.dtype
        and not symbol.attrs.get("correction")
        and row_axes(symbol) > 0
    )

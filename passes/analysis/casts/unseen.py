"""The parts of a program that its graph does not show, and that may cast: calls, folded values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any, cast

from graphir import DType, Graph, Symbol, ops
from graphir.ir.liveness import live_mask
from graphir.ops.control import Callee, bodies
from graphir.passes.analysis.casts.measured import Unseen


def parts_unseen(graph: Graph) -> list[Unseen]:
    """Return what a graph does not show of its program and may cast, each at its first place.

    These are live calls of other libraries' functions, and the values that a source made as it
    traced the program.
    """
    calls = (
        Unseen(
            call.attrs["callee"].name, call.location, f"is not entered, and {inside}", casts=True
        )
        for call in _live_calls(graph)
        if (inside := casts_inside(call.attrs["callee"], call.args, call.type))
    )
    folded = (Unseen(*part, casts=True) for part in graph.provenance.unseen)
    return unique_parts([*folded, *calls])


def _live_calls(graph: Graph) -> Iterator[Symbol]:
    """Yield the live calls of a graph, and of the graphs of its control flow."""
    for symbol in compress(graph.symbols, live_mask(graph, graph.outputs)):
        if symbol.op is ops.control.call:
            yield symbol
        elif graph.has_bodies:
            for body in bodies(symbol.attrs):
                yield from _live_calls(cast("Graph", body))


def casts_inside(callee: Callee, operands: Iterable[Any], results: Any) -> str:
    """Return what a call may cast inside, as text; "" if its graph shows all of its casts.

    A function of a library says it by the property `inside`. A function of NumPy promotes its
    operands, and computes in the dtype of its result.
    """
    if callee.function is None:
        return "its text has a name alone"
    inside = getattr(callee.function, "inside", None)
    if inside is None and callee.name.startswith("numpy."):
        return conversion_inside([x.type.dtype for x in operands], [x.dtype for x in results.parts])
    return inside or ""


def conversion_inside(operands: Iterable[DType], results: Iterable[DType]) -> str:
    """Return the conversion that a function of NumPy makes inside, as text; "" for none.

    Operands of several dtypes are promoted. Floats that a function makes of others are computed in
    their dtype; booleans and indices are not.
    """
    parts = dict.fromkeys(x.part for x in operands if x is not DType.bool)
    floats = dict.fromkeys(x.part for x in results if x.is_inexact)
    dtypes = [*parts, *(x for x in floats if x not in parts)]
    return f"converts between {' and '.join(map(str, dtypes))}" if parts and len(dtypes) > 1 else ""


def unique_parts(entries: Iterable[Unseen]) -> list[Unseen]:
    """Return entries with one for each thing and place, which hides all that they hide."""
    by_place: dict[tuple[str, str], Unseen] = {}
    for entry in entries:
        key = entry.what, str(entry.location)
        first = by_place.get(key)
        by_place[key] = entry if first is None else first.merge(entry)
    return list(by_place.values())

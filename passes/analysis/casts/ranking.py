"""The order of an audited report: the sites by what each did to the outputs, the cause first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from graphir.ops import dtype_rules as signatures
from graphir.passes.analysis.casts.measured import OutputError
from graphir.passes.analysis.casts.sites import CastSite, CastSites
from graphir.passes.analysis.explanations.causes import DtypeCause, LossCause
from graphir.passes.rewriter import is_conversion
from graphir.public import Graph

LARGE = 0.01
"""The relative error of an output, in the norm of its elements, from which it is explained."""


def ranked(
    sites: CastSites, causes: Sequence[LossCause], dtypes: Sequence[DtypeCause]
) -> Mapping[int, int]:
    """Return the rank of each row, by its `place`: that of its site.

    The sites of causes come first, then the steps that made outputs wide. The others stand by their
    scores (see `score`), sites of equal scores by their static damage.
    """
    order = sorted(sites, key=lambda x: (*score(x), x.row.damage), reverse=True)
    places = {row.symbol.index: site for site in sites for row in site.rows}
    first = [places.get(x.index) for cause in causes for x in cause.steps]
    steps = [(x.step.op.name, x.place.place) for x in dtypes if x.outputs]
    numbers = {id(x): [steps.index(i) for i in _steps(x) & {*steps}] for x in order if steps}
    wide = sorted((x for x in order if numbers.get(id(x))), key=lambda x: min(numbers[id(x)]))
    order = dict.fromkeys([*(x for x in first if x is not None), *wide, *order])
    return {row.place: rank for rank, site in enumerate(order) for row in site.rows}


def is_modular(graph: Graph, wraps: Set[int]) -> bool:
    """Whether integers that wrap go to bitwise ops, moved or cast at most: then by intention."""
    places = set(wraps)
    for symbol in graph.symbols:
        if places.isdisjoint(x.index for x in symbol.args):
            continue
        if symbol.op.signature in (signatures.BITWISE, signatures.SHIFT):
            return True
        if is_conversion(symbol) or symbol.op.kind == "movement":
            places.add(symbol.index)
    return False


def size_of(error: OutputError) -> float:
    """Return the size of an output's error: that of the norm; over 1 if elements broke."""
    if error.broken:
        return 1.0 + error.broken / error.elements
    if error.dtype == "bool":
        return (error.differing or 0) / error.elements
    return math.inf if error.norm is None else error.norm


def _steps(site: CastSite) -> set[tuple[str, tuple[str, int, int, int, int]]]:
    """Return the op and the place of each implicit cast of a site, as causes have them."""
    rows = [x for x in site.rows if x.kind == "implicit"]
    return {(name, x.location.place) for x in rows for name in (x.op, "cast")}


def _part(site: CastSite) -> float:
    """Return a site's share of an output's error, at most 1."""
    return min(site.share or 0.0, 1.0)


def score(site: CastSite) -> tuple[bool, float]:
    """Return whether a site reached an output, and how much of its error the site explains.

    That is the site's share of the error, times the part of the dtype's bits that the site lost: a
    difference of nearly equal operands passes the whole error on, but may add little to it. If the
    share is unknown, the second is the part of the site's own elements that lost, times the
    greatest relative error among them, at most 1; and 1 more if the program does not ask for it.
    """
    measured, share = site.measured, site.share
    weight = 1.0 if measured is None else measured.weight
    if share is None:
        if measured is None or not measured.elements:
            return False, 0.0
        broken = measured.overflowed or measured.nan_made
        most = 1.0 if broken else min(measured.relative, 1.0)
        part = measured.changed / measured.elements * most
        return False, part + 1.0 if part and not site.row.conversion.on_request else part
    return share > 0, _part(site) * weight

"""The order of an audited report: the sites by what each did to the outputs, the cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphir.ops import dtype_rules as signatures
from graphir.passes.analysis.casts.behind_casts import uncast
from graphir.passes.analysis.casts.measured import OutputError
from graphir.passes.analysis.casts.sites import CastSite, CastSites
from graphir.passes.analysis.explanations.causes import Cause
from graphir.public import DType

NEAR = 0.9
"""A site whose share is at least this part of the largest share may be the cause."""
MOST = 0.5
"""The cause lost at least this part of the bits that the site of the highest score lost."""
_PASSED_ON = ("cancellation", "invalid")
"""The kinds of losses whose error is that of their operands."""


LARGE = 0.01
"""The relative error of an output, in the norm of its elements, from which it is explained."""


def ranked(
    sites: CastSites, outputs: Sequence[OutputError], causes: Sequence[Cause]
) -> Mapping[int, int]:
    """Return the rank of each row, by its `place`: that of its site.

    The sites stand by their scores (see `score`), sites of equal scores by their static damage. The
    first is the cause: the highest score, or the first site in the program that explains about as
    much of the error by what it lost itself; the error of the others passes through them. The steps
    that made outputs wide come next, or first if no output has a large error.
    """
    scores = {id(site): score(site) for site in sites}
    order = sorted(sites, key=lambda x: (scores[id(x)], x.row.damage), reverse=True)
    cause = _cause(order, {key: part for key, (reached, part) in scores.items() if reached})
    if cause is not None:
        order.remove(cause)
        order.insert(0, cause)
    steps = [(x.step.op.name, x.place.place) for x in causes if x.outputs]
    numbers = {id(x): [steps.index(i) for i in _steps(x) & {*steps}] for x in order if steps}
    wide = sorted((x for x in order if numbers.get(id(x))), key=lambda x: min(numbers[id(x)]))
    if wide:
        first = [x for x in order[:1] if is_cause(x, outputs)]
        order = list(dict.fromkeys([*first, *wide, *order]))
    return {row.place: rank for rank, site in enumerate(order) for row in site.rows}


def _cause(order: Sequence[CastSite], scores: Mapping[int, float]) -> CastSite | None:
    """Return the site that is the cause of an output's error; None without a known error."""
    reaching = [site for site in order if id(site) in scores]
    if not reaching:
        return None
    least_share = NEAR * max(_part(site) for site in reaching)
    least_score = MOST * scores[id(reaching[0])]
    near = [
        site
        for site in reaching
        if site.row.kind not in _PASSED_ON
        and _part(site) >= least_share
        and scores[id(site)] >= least_score
    ]
    return min(near, key=lambda site: site.row.symbol.index, default=None)


def is_cause(site: CastSite, outputs: Sequence[OutputError], number: int | None = None) -> bool:
    """Whether a site has a share in a large error, or in the error of integers.

    Integers have errors where integers wrapped, or became floats. With `number`, that output alone
    counts.
    """
    errors = [
        error
        for i, (error, share) in enumerate(zip(outputs, site.shares or (), strict=False))
        if share and number in (None, i)
    ]
    if not errors or is_modular(site):
        return False
    if site.row.kind == "wrap" or any(map(_is_large, errors)):
        return True
    row = site.row
    became_floats = row.kind == "implicit" and row.source.is_integer and row.target.is_float
    return became_floats and any(x.differing and DType(x.dtype).is_integer for x in errors)


def is_modular(site: CastSite) -> bool:
    """Whether integers wrap on their way to bitwise ops, as in hash functions, by intention."""
    if site.row.kind != "wrap":
        return False
    steps = {row.symbol.index for row in site.rows}
    return any(
        symbol.op.signature in (signatures.BITWISE, signatures.SHIFT)
        and not steps.isdisjoint(uncast(arg).index for arg in symbol.args)
        for symbol in site.row.symbol.graph.symbols
    )


def _is_large(error: OutputError) -> bool:
    """Whether an output has lost elements altogether, or has a large error in the norm."""
    if error.broken:
        return True
    if error.dtype == "bool" and error.differing:
        return error.differing >= LARGE * error.elements
    return error.norm is not None and error.norm >= LARGE


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

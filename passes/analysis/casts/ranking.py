"""The order of an audited report: the sites by what each did to the outputs, the cause first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passes.analysis.casts.sites import CastSite, CastSites

NEAR = 0.9
"""A site whose share is at least this part of the largest share may be the cause."""
MOST = 0.5
"""The cause lost at least this part of the bits that the site of the highest score lost."""
_PASSED_ON = ("cancellation", "invalid")
"""The kinds of losses whose error is that of their operands."""


def ranked(sites: CastSites) -> Mapping[int, int]:
    """Return the rank of each row, by its `place`: that of its site.

    The sites stand by their scores (see `score`), sites of equal scores by their static damage. The
    first is the cause: the highest score, or the first site in the program that explains about as
    much of the error by what it lost itself; the error of the others passes through them.
    """
    scores = {id(site): score(site) for site in sites}
    order = sorted(sites, key=lambda x: (scores[id(x)], x.row.damage), reverse=True)
    cause = _cause(order, {key: part for key, (reached, part) in scores.items() if reached})
    if cause is not None:
        order.remove(cause)
        order.insert(0, cause)
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


def _part(site: CastSite) -> float:
    """Return a site's share of an output's error, at most 1."""
    return min(site.share or 0.0, 1.0)


def score(site: CastSite) -> tuple[bool, float]:
    """Return whether a site reached an output, and how much of its error the site explains.

    That is the site's share of the error, times the part of the dtype's bits that the site lost: a
    difference of nearly equal operands passes the whole error on, but may add little to it. If the
    share is unknown, the second is the part of the site's own elements that lost.
    """
    measured, share = site.measured, site.share
    weight = 1.0 if measured is None else measured.weight
    if share is None:
        part = measured.changed / measured.elements if measured and measured.elements else 0.0
        return False, part * weight
    return share > 0, _part(site) * weight

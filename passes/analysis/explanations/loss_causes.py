"""The causes of wrong values that an audit reports, and their edits.

Trials find the causes of the errors of outputs (see runtime.audit.trials). Beside them stand causes
whose effect on the outputs no trial has measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from graphir.ir.liveness import live_mask
from graphir.passes.analysis.casts.behind_casts import uncast
from graphir.passes.analysis.casts.conversion import StepLoss
from graphir.passes.analysis.casts.sites import is_modular, overflows
from graphir.passes.analysis.explanations.causes import LossCause, Remedy
from graphir.passes.analysis.explanations.dtype_walk import ProgramFacts
from graphir.passes.analysis.explanations.edits import Edit, UncastOp, operands_edit
from graphir.passes.analysis.explanations.fixes import maker_edit, number_edit, source_edit, wider
from graphir.promotion import PromotionRules
from graphir.public import DType, ops

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import CastReport
    from graphir.passes.analysis.casts.rows import CastRow
    from graphir.passes.analysis.casts.sites import CastSite


def explained_losses(report: CastReport) -> tuple[LossCause, ...]:
    """Return the causes of an audited report with their edits: those of outputs, then the others.

    Trials explain the errors of outputs. Causes without outputs are casts that make integers 0, the
    first op whose floats overflow, and, if a part of the program hides errors, the first site that
    lost more than roundings and is behind no output whose error is known.
    """
    causes = list(report.loss_causes)
    if any(part.hides for part in report.unseen):
        pairs = zip(report.explicit.outputs, report.outputs, strict=True)
        judged = live_mask(report.explicit, [x for x, error in pairs if error.is_known])
        unjudged = (x for x in report.sites if not judged[x.row.symbol.index])
        gross = next(filter(_is_gross, unjudged), None)
        if gross and not is_modular(report.explicit, {row.symbol.index for row in gross.rows}):
            causes.append(_cause(gross.row))
    causes = [replace(x, fix=loss_remedy(report, x)) for x in causes]
    if any(row.measured is not None and row.measured.underflowed for row in report.rows):
        causes += [_cause(site.row) for site in report.sites if _truncates_all(site)]
    first = first_overflow(report)
    if first is not None and report.graph.provenance.library:
        explained = {step.index for cause in causes for step in cause.steps}
        same = [x for x in report.losses if x.kind == "overflow" and x.location == first.location]
        same += [first] if first.kind == "literal" else []
        if explained.isdisjoint(x.symbol.index for x in same):
            causes.append(_cause(first))
    return tuple(causes)


def _cause(row: CastRow) -> LossCause:
    return LossCause(outputs=(), lossy=(row.symbol,))


def first_overflow(report: CastReport) -> CastRow | None:
    """Return the first cast or step whose values overflow its float dtype, if any does."""
    rows = [row for row in (*report.rows, *report.losses) if row.measured is not None]
    rows = [row for row in rows if overflows(row)]
    return min(rows, key=lambda row: row.symbol.index, default=None)


def _is_gross(site: CastSite) -> bool:
    """Whether values lost whole units, or left their range, and nobody asked for it."""
    row, measured = site.row, site.row.measured
    if row.kind in ("wrap", "overflow"):
        return True
    if measured is None or row.in_library or row.kind not in ("implicit", "assignment"):
        return False
    before, after = measured.worst or (0.0, 0.0)
    is_rounded = measured.changed > 0 and (row.source.is_integer or abs(before - after) >= 1)
    return is_rounded or measured.overflowed > 0


def _truncates_all(site: CastSite) -> bool:
    """Whether a cast that the program writes makes integers 0 of almost all floats."""
    row, measured = site.row, site.row.measured
    if measured is None or row.kind != "explicit" or not row.target.is_integer:
        return False
    return measured.elements >= _FEW and measured.underflowed >= 0.9 * measured.elements


_FEW = 8
"""The elements from which a cast that makes all of them 0 is no choice of the program."""


def loss_remedy(report: CastReport, cause: LossCause) -> Remedy | None:
    """Return the edits of the steps of a cause that lost values, not yet tried; None without any.

    A step of the same line that lost values alike is mended with it. A step without a row stores to
    an array, which gets the dtype that the values of the first step need.
    """
    sites = {row.symbol.index: site for site in report.sites for row in site.rows}
    worst = sites.get(cause.step.index)
    edits: list[Edit | None] = []
    for step in cause.steps:
        site = sites.get(step.index)
        if site is not None:
            edits += _site_edits(report, site)
        elif worst is not None and worst.row.kind in _LOSSES:
            dtype = wider(worst.row)
            edits.append(None if dtype is None else maker_edit(step.args[0], dtype))
    parts = tuple(dict.fromkeys(x for x in edits if x is not None))
    return Remedy(parts) if parts else None


def line_remedy(cause: LossCause) -> Remedy | None:
    """Return the edits that compute the line of a cause in float64, from its operands on."""
    step = cause.step
    line, graph = step.location.place[:2], step.graph
    wide = DType.complex128 if step.dtype.is_complex else DType.float64
    rules = PromotionRules.find(graph.rules_before or graph.rules.name)
    parts: dict[Edit, None] = {}
    facts = ProgramFacts(graph, ())
    for x in graph.symbols:
        if x.location.place[:2] != line or x.op is ops.cast or x.location.compound:
            continue
        if graph.provenance.library and facts.is_function(x):
            continue  # its operands are not those of the call
        values = [uncast(arg) for arg in x.args]
        outside = [i for i, y in enumerate(values) if y.location.place[:2] != line]
        casts = {i: wide for i in outside if values[i].type.dtype.is_inexact}
        edit = operands_edit(UncastOp(rules, x.op, values), x.location, casts)
        if edit is not None:
            parts.setdefault(edit)
    is_possible = step.dtype.is_inexact and step.dtype is not wide and step.op is not ops.index_add
    return Remedy(tuple(parts)) if parts and is_possible else None


def _site_edits(report: CastReport, site: CastSite) -> Sequence[Edit | None]:
    row = site.row
    if row.kind in ("implicit", "assignment") and str(row.target) in row.fix:
        return ()  # a cast to the same dtype would lose the same values
    near = [x.row for x in report.sites if x.row.kind == row.kind and row.kind in _LOSSES]
    near = [x for x in near if x.location.place[:2] == row.location.place[:2]]
    edits = [x.edit for x in (row, *near) if x.edit is not None]
    return edits or [number_edit(row) or source_edit(row)]


_LOSSES = get_args(StepLoss)

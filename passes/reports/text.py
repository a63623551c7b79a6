"""The plain text writers of cast reports: a table, and details with source lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from graphir.drawing.loss_levels import Level
from graphir.escape import printable
from graphir.gc_pause import uncollected
from graphir.passes.reports import words
from graphir.passes.reports.fitting import fitted, terminal_width, wrapped
from graphir.passes.reports.places import line_of, region

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow
    from graphir.passes.analysis.casts.sites import Cascade, CastSite

DETAILS = 20
"""The default number of cascades in the detailed report."""

FOLLOWING = 4
"""The most consequences of a cast that its details list."""

Role: TypeAlias = Level | Literal["", "faint", "strong"]
"""The role of a piece of text, which determines its colour."""

Line: TypeAlias = Sequence[tuple[str, Role]]
"""A line as a sequence of (text, role) pieces."""

_HEADER = ("where", "operand", "from", "to", "kind", "rule and path", "loss", "bytes")
_AUDIT_HEADER = ("changed", "error", "share")


@uncollected
def report_text(report: CastReport, width: int | None = None) -> str:
    """Return a headline and a table with a line for each cast, with measurements after an audit.

    Casts of one location, such as the iterations of a loop, share a line with their count. `width`
    is the most characters of a line; None is no limit.
    """
    head = [*words.unseen(report), words.headline(report), *map(words.output, report.outputs)]
    head = [part for line in (*head, *report.sentences) for part in wrapped(line, width)]
    tail = ["", *fitted(layers, width)] if (layers := words.layers(report)) else []
    tail += ["", *comparison] if (comparison := words.against(report)) else []
    if not report.sites:
        return "\n".join([*head, *tail])
    has_audit, has_times = report.audited, report.sites.repeat
    header = (*_HEADER, *_AUDIT_HEADER * has_audit, *("times",) * has_times)
    lines = [
        (*_cells(site), *_audit_cells(site) * has_audit, *(str(site.times),) * has_times)
        for site in report.sites.user_first
    ]
    table = fitted([header, *lines], width)
    if 0 < (count := report.sites.in_library) < len(lines):
        table.insert(1 + len(lines) - count, words.LIBRARY)
    return "\n".join([*head, *table, *tail])


def terminal_text(report: CastReport) -> str:
    """Return `report_text`; if stdout is a terminal, lines that fit its width."""
    return report_text(report, terminal_width(sys.stdout))


@uncollected
def report_details(report: CastReport, most: int = DETAILS) -> str:
    """Return the first cast of each cascade: source line, loss, measurements and fix."""
    return "\n".join("".join(text for text, _ in line) for line in detailed(report, most))


def detailed(report: CastReport, most: int = DETAILS) -> Iterator[Line]:
    """Yield the lines of `report_details` as (text, role) pieces."""
    for line in (*words.unseen(report), words.headline(report)):
        yield ((line, "strong"),)
    for error in report.outputs:
        yield ((words.output(error), ""),)
    for sentence in report.sentences:
        yield ((sentence, "strong"),)
    cascades = report.sites.cascades()
    is_mixed = 0 < report.sites.in_library < len(report.sites)
    for cascade in cascades[:most]:
        yield ()
        if is_mixed and cascade.site.row.in_library:
            yield ((words.LIBRARY, "strong"),)
            is_mixed = False
        yield from _detail(cascade, report)
    if len(cascades) > most:
        yield ()
        yield ((f"... and {len(cascades) - most} more", "faint"),)
    if layers := words.layers(report):
        for line in ("", *fitted(layers, None)):
            yield ((line, ""),)
    for text_line in ["", *lines] if (lines := words.against(report)) else []:
        yield ((text_line, ""),)


def _cells(site: CastSite) -> tuple[str, ...]:
    row = site.row
    if row.kind in words.VERBS:
        place = printable(row.location.layered)
        dtype = str(row.source)
        return (place, f"result of {row.op}", dtype, dtype, row.kind, "", words.loss(site), "")
    return (
        printable(row.location.layered),
        f"{row.operand} of {row.op}",
        str(row.source),
        str(row.target),
        row.kind,
        f"{printable(row.rule)}: {words.path(row)}",
        words.witness(site),
        f"{row.bytes_before} -> {row.bytes_after}",
    )


def _audit_cells(site: CastSite) -> tuple[str, str, str]:
    """Return the changed elements, the largest relative error, and the share of output error."""
    measure, share = site.measured, words.share(site)
    return (
        ("", "", share)
        if measure is None
        else (str(measure.changed), f"{measure.relative:.2g}", share)
    )


def _detail(cascade: Cascade, report: CastReport) -> Iterator[Line]:
    row = cascade.site.row
    worst = words.level(row)
    title = f": {words.conversion(row)} {words.why(row)}"
    yield (worst, worst), (title, "strong")
    place = region(row)
    margin = " " * len(str(place.line))
    at = f"{printable(row.location.layered)}, {words.what(row)}"
    yield (f"{margin}--> ", "faint"), (at, "")
    text = printable(line_of(place))
    if text.strip():
        yield from _source(row, text, margin)
    for name, value in _facts(cascade, report):
        yield (f"{margin} = {name:10}", "faint"), (value, "")


def _source(row: CastRow, text: str, margin: str) -> Iterator[Line]:
    """Yield the source line of the operand, with carets under the operand."""
    place = region(row)
    start, end = place.columns(place.line, text)
    bar: tuple[str, Role] = (f"{margin} |", "faint")
    yield (bar,)
    yield (f"{place.line} |", "faint"), (f" {text}", "")
    if place.is_known and end > start:
        yield bar, (f" {' ' * start}{'^' * (end - start)}", words.level(row))


def _facts(cascade: Cascade, report: CastReport) -> Iterator[tuple[str, str]]:
    site, following = cascade
    row = site.row
    if site.times > 1:
        yield "times", words.uses(site)
    yield "loss", words.loss(site)
    if bytes_text := words.widths(site):
        yield "bytes", bytes_text
    for name, phrases in (
        ("measured", words.measured(site)),
        ("share", words.shares(site, report)),
    ):
        if phrases:
            yield name, ", ".join(phrases)
    if others := words.elsewhere(row):
        yield "elsewhere", others
    if row.cause is not None:
        yield "follows", f"from {words.conversion(row.cause)} at {_place(row.cause)}"
    yield from _cascade(following)
    if fix := row.fix:
        yield "fix", printable(fix)


def _cascade(rows: Sequence[CastRow]) -> Iterator[tuple[str, str]]:
    """Yield the consequences of a cast, the most damaging first; equal ones share a line."""
    counts: dict[str, int] = {}
    for row in sorted(rows, key=attrgetter("damage"), reverse=True):
        suffix = "" if row.exact else f": {row.loss}"
        text = f"{words.conversion(row)} at {_place(row)}{suffix}"
        counts[text] = counts.get(text, 0) + 1
    for text, count in list(counts.items())[:FOLLOWING]:
        yield "cascade", f"{text} ({count} times)" if count > 1 else text
    if len(counts) > FOLLOWING:
        yield "", f"... and {sum(list(counts.values())[FOLLOWING:])} more follow from it"


def _place(row: CastRow) -> str:
    return printable(row.location.layered)

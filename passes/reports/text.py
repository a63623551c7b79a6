"""The text writers of cast reports: a table, and details with source lines, colour optional."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from graphir.decorators import uncollected
from graphir.drawing.loss_levels import Level
from graphir.escape import printable
from graphir.passes.reports import phrases
from graphir.passes.reports.phrases import line_of, region
from graphir.passes.reports.terminal import fitted, on_screen, terminal_width, wrapped

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
    head = [*phrases.unseen(report), phrases.headline(report), *map(phrases.output, report.outputs)]
    head = [part for line in (*head, *report.sentences) for part in wrapped(line, width)]
    tail = ["", *fitted(layers, width)] if (layers := phrases.layers(report)) else []
    tail += ["", *comparison] if (comparison := phrases.against(report)) else []
    if not report.sites:
        return "\n".join([*head, *tail])
    rows = casts_table(report)
    table = fitted(rows, width)
    if 0 < (count := report.sites.in_library) < len(rows) - 1:
        table.insert(len(rows) - count, phrases.LIBRARY)
    return "\n".join([*head, *table, *tail])


def casts_table(report: CastReport) -> list[tuple[str, ...]]:
    """Return the table of a report's sites, those of the user first, below a row of titles."""
    has_audit, has_times = report.audited, report.sites.repeat
    header = (*_HEADER, *_AUDIT_HEADER * has_audit, *("times",) * has_times)
    rows = (
        (*_cells(site), *_audit_cells(site) * has_audit, *(str(site.times),) * has_times)
        for site in report.sites.user_first
    )
    return [header, *rows]


def terminal_text(report: CastReport) -> str:
    """Return `report_text`; if stdout is a terminal, lines that fit its width."""
    return report_text(report, terminal_width(sys.stdout))


@uncollected
def report_details(report: CastReport, most: int = DETAILS) -> str:
    """Return the first cast of each cascade: source line, loss, measurements and fix."""
    return "\n".join("".join(text for text, _ in line) for line in detailed(report, most))


def detailed(report: CastReport, most: int = DETAILS) -> Iterator[Line]:
    """Yield the lines of `report_details` as (text, role) pieces."""
    for line in (*phrases.unseen(report), phrases.headline(report)):
        yield ((line, "strong"),)
    for error in report.outputs:
        yield ((phrases.output(error), ""),)
    for sentence in report.sentences:
        yield ((sentence, "strong"),)
    cascades = report.sites.cascades()
    is_mixed = 0 < report.sites.in_library < len(report.sites)
    for cascade in cascades[:most]:
        yield ()
        if is_mixed and cascade.site.row.in_library:
            yield ((phrases.LIBRARY, "strong"),)
            is_mixed = False
        yield from _detail(cascade, report)
    if len(cascades) > most:
        yield ()
        yield ((f"... and {len(cascades) - most} more", "faint"),)
    if layers := phrases.layers(report):
        for line in ("", *fitted(layers, None)):
            yield ((line, ""),)
    for text_line in ["", *lines] if (lines := phrases.against(report)) else []:
        yield ((text_line, ""),)


def _cells(site: CastSite) -> tuple[str, ...]:
    row = site.row
    if row.kind in phrases.VERBS:
        place = printable(row.location.layered)
        dtype = str(row.source)
        return (place, f"result of {row.op}", dtype, dtype, row.kind, "", phrases.loss(site), "")
    return (
        printable(row.location.layered),
        f"{row.operand} of {row.op}",
        str(row.source),
        str(row.target),
        row.kind,
        f"{printable(row.rule)}: {phrases.path(row)}",
        phrases.witness(site),
        f"{row.bytes_before} -> {row.bytes_after}",
    )


def _audit_cells(site: CastSite) -> tuple[str, str, str]:
    """Return the changed elements, the largest relative error, and the share of output error."""
    measure, share = site.measured, phrases.share(site)
    return (
        ("", "", share)
        if measure is None
        else (str(measure.changed), f"{measure.relative:.2g}", share)
    )


def _detail(cascade: Cascade, report: CastReport) -> Iterator[Line]:
    row = cascade.site.row
    worst = phrases.level(row)
    title = f": {phrases.conversion(row)} {phrases.why(row)}"
    yield (worst, worst), (title, "strong")
    place = region(row)
    margin = " " * len(str(place.line))
    at = f"{printable(row.location.layered)}, {phrases.what(row)}"
    yield (f"{margin}--> ", "faint"), (at, "")
    text = printable(line_of(place))
    if text.strip():
        yield from _source(row, text, margin)
    for name, value in facts(cascade, report):
        yield (f"{margin} = {name:10}", "faint"), (value, "")


def _source(row: CastRow, text: str, margin: str) -> Iterator[Line]:
    """Yield the source line of the operand, with carets under the operand."""
    place = region(row)
    start, end = place.columns(place.line, text)
    bar: tuple[str, Role] = (f"{margin} |", "faint")
    yield (bar,)
    yield (f"{place.line} |", "faint"), (f" {text}", "")
    if place.is_known and end > start:
        yield bar, (f" {' ' * start}{'^' * (end - start)}", phrases.level(row))


def facts(cascade: Cascade, report: CastReport) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of what is to be said of a cascade; a name may be empty."""
    site, following = cascade
    yield from site_facts(site, report)
    if (cause := site.row.cause) is not None:
        yield "follows", f"from {phrases.conversion(cause)} at {_place(cause)}"
    yield from _cascade(following)
    if fix := site.row.fix:
        yield "fix", printable(fix)


def site_facts(site: CastSite, report: CastReport) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of what is to be said of a site without its cascade."""
    if site.times > 1:
        yield "times", phrases.uses(site)
    texts = {
        "loss": phrases.loss(site),
        "bytes": phrases.widths(site),
        "measured": ", ".join(phrases.measured(site)),
        "share": ", ".join(phrases.shares(site, report)),
        "elsewhere": phrases.elsewhere(site.row),
    }
    yield from ((name, text) for name, text in texts.items() if text)


def _cascade(rows: Sequence[CastRow]) -> Iterator[tuple[str, str]]:
    """Yield the consequences of a cast, the most damaging first; equal ones share a line."""
    counts: dict[str, int] = {}
    for row in sorted(rows, key=attrgetter("damage"), reverse=True):
        suffix = "" if row.exact else f": {row.loss}"
        text = f"{phrases.conversion(row)} at {_place(row)}{suffix}"
        counts[text] = counts.get(text, 0) + 1
    for text, count in list(counts.items())[:FOLLOWING]:
        yield "cascade", f"{text} ({count} times)" if count > 1 else text
    if len(counts) > FOLLOWING:
        yield "", f"... and {sum(list(counts.values())[FOLLOWING:])} more follow from it"


def _place(row: CastRow) -> str:
    return printable(row.location.layered)


STYLES: dict[Role, str] = {
    "value": "bold magenta",
    "range": "bold red",
    "precision": "bold yellow",
    "exact": "bold green",
    "faint": "dim",
    "strong": "bold",
    "": "",
}
"""The rich style of each role of a piece of text."""


def show(report: CastReport, stream: TextIO, most: int = DETAILS) -> None:
    """Write the detailed report to a stream, in colour if it is a terminal and rich is installed.

    Writes plain text if the environment has NO_COLOR. `most` is the number of detailed cascades.
    """
    if not (stream.isatty() and find_spec("rich")) or os.environ.get("NO_COLOR"):
        stream.write(on_screen(report_details(report, most), stream) + "\n")
        return
    # The project's environment lacks rich: a static import would not type-check there.
    console = import_module("rich.console").Console(file=stream, highlight=False)
    assemble = import_module("rich.text").Text.assemble
    for line in detailed(report, most):
        console.print(assemble(*((text, STYLES[role]) for text, role in line)))

"""The Markdown writer of cast reports, for comments in code review."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphir.decorators import uncollected
from graphir.escape import printable
from graphir.passes.reports import words
from graphir.passes.reports.places import line_of, region

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow, OutputError
    from graphir.passes.analysis.casts.sites import Cascade, CastSite

ROWS = 50
DETAILS = 10
"""The most table rows and detailed cascades: code hosts accept about 65,000 characters."""


@uncollected
def report_markdown(report: CastReport, most: int = ROWS, details: int = DETAILS) -> str:
    """Return a table of the `most` worst casts, then `details` cascades; count the omitted rest."""
    first, *steps = words.unseen(report) or [""]
    title = f"### {escaped(first)}" if first else f"### Casts of {code(report.graph.name)}"
    parts = [title, *(["\n".join(f"- {escaped(step)}" for step in steps)] if steps else [])]
    parts.append(_summary(report))
    if report.outputs:
        parts.append("\n".join(_outputs(report.outputs)))
    parts += [escaped(sentence) for sentence in report.sentences]
    if report.sites:
        parts.append("\n".join(_table(report, most)))
        cascades = report.sites.cascades()
        parts += [_detail(cascade, report) for cascade in cascades[:details]]
        if len(cascades) > details:
            parts.append(f"*... and {len(cascades) - details} more*")
    if layers := words.layers(report):
        parts.append("\n".join(_layers(layers)))
    if lines := words.against(report):
        parts.append("\n".join(_block(lines, most)))
    return "\n\n".join(parts) + "\n"


def code(text: str, most: int = 500) -> str:
    """Return any text as inline code that is valid inside a table, at most `most` characters."""
    line = printable(text, most).replace("|", "\\|") or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if fence != "`" or line.strip() == "" else ""
    return f"{fence}{space}{line}{space}{fence}"


def escaped(text: str) -> str:
    """Return a text with all Markdown markup escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text, 1000))


def _block(lines: Sequence[str], most: int) -> Sequence[str]:
    """Return lines as a fenced block; the fence is longer than any run of backticks in them."""
    body = [*lines[:most], *([f"... and {len(lines) - most} more"] if len(lines) > most else [])]
    fence = "`" * max(3, 1 + max(len(run) for run in re.findall("`*", "\n".join(body))))
    return [fence, *body, fence]


def _layers(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for i, (layer, *cells) in enumerate(rows):
        yield f"| {code(layer) if i else layer} | {' | '.join(cells)} |"
        if not i:
            yield f"|{'---|' * len(rows[0])}"


def _summary(report: CastReport) -> str:
    steps = f" {words.steps(report)}." if report.losses else ""
    if not report.rows:
        none = f"none of {report.of} uses of casts" if report.of else words.no_casts(report)
        return f"{none.capitalize()}.{steps}"
    counts = ", ".join(f"{count} {level}" for level, count in words.levels(report).items())
    sentence = f"{words.use_count(report)}: {counts}."
    bytes_text = code(words.size_text(words.added(report)))
    return f"{sentence} They make {bytes_text} bytes of arrays.{steps}"


def _outputs(outputs: Sequence[OutputError]) -> Iterator[str]:
    yield "| output | dtype | elements that differ | largest error | relative | rms |"
    yield "|---|---|---|---|---|---|"
    for output in outputs:
        head = f"{code(output.name)} | {code(output.dtype)}"
        if output.differing is None:
            yield f"| {head} | unknown of {output.elements} | unknown | unknown | unknown |"
            continue
        errors = f"{output.largest:.3g} | {output.relative:.2g} | {output.rms:.3g}"
        yield f"| {head} | {output.differing} of {output.elements} | {errors} |"


def _table(report: CastReport, most: int) -> Iterator[str]:
    has_audit, sites = report.audited, report.sites
    has_times = sites.repeat
    head = [
        "kind of loss",
        "where",
        "operand",
        "cast",
        "loss",
        *(["changed", "share"] if has_audit else []),
        *(["times"] if has_times else []),
    ]
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    first = len(sites) - sites.in_library
    for i, site in enumerate(sites.user_first[:most]):
        if i == first > 0:
            yield f"| | *{words.LIBRARY}* |{' |' * (len(head) - 2)}"
        times = [str(site.times)] if has_times else []
        yield f"| {' | '.join([*_cells(site, has_audit), *times])} |"
    if len(sites) > most:
        rest = f"... and {len(sites) - most} more"
        yield f"| | *{rest}* |{' |' * (len(head) - 2)}"


def _cells(site: CastSite, has_audit: bool) -> list[str]:
    row = site.row
    cells = [
        words.level(row),
        _place(row),
        code(row.text or words.what(row)),
        code(words.conversion(row)),
        words.loss(site),
    ]
    if has_audit:
        measure = site.measured
        ratio = "" if measure is None else f"{measure.changed} of {measure.elements}"
        cells += [ratio, words.share(site)]
    return cells


def _place(row: CastRow) -> str:
    return code(str(row.location)) + (f" in {code(row.layer)}" if row.layer else "")


def _detail(cascade: Cascade, report: CastReport) -> str:
    """Return a heading, the source line and a list of facts for a cascade."""
    row = cascade.site.row
    place = region(row)
    line = printable(line_of(place)).strip()
    title = f"#### {words.level(row).capitalize()}: {code(words.conversion(row))} at {_place(row)}"
    parts = [title, *([code(line)] if line else []), "\n".join(_items(cascade, report))]
    return "\n\n".join(parts)


def _items(cascade: Cascade, report: CastReport) -> Iterator[str]:
    site, following = cascade
    row = site.row
    if site.times > 1:
        yield f"- times: {code(words.uses(site))}"
    yield f"- {words.what(row)}, {code(words.why(row))}"
    yield f"- loss: {words.loss(site)}"
    if bytes_text := words.widths(site):
        yield f"- bytes: {code(bytes_text)}"
    if facts := words.measured(site):
        yield f"- measured: {', '.join(facts)}"
    if shares := words.shares(site, report):
        yield f"- share: {code(', '.join(shares))}"
    if others := words.elsewhere(row):
        yield f"- elsewhere: {code(others)}"
    if following:
        lossy = sum(not row_.exact for row_ in following) or "none"
        yield f"- casts that follow from it: {len(following)}; {lossy} can lose something"
    if fix := row.fix:
        yield f"- write {code(fix)}"

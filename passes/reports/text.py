"""The text writers of cast reports: a table, details, several dtypes compared; Markdown."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from graphir.decorators import uncollected
from graphir.display import count_text, printable
from graphir.passes.reports import phrases
from graphir.passes.reports.phrases import line_of, region
from graphir.passes.reports.sentences import Sentence
from graphir.rule_reports.terminal import fitted, terminal_width, wrapped

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow, OutputError
    from graphir.passes.analysis.casts.sites import Cascade, CastSite, LayerTotals

DETAILS = 20
"""The default number of cascades in the detailed report."""

FOLLOWING = 4
"""The most consequences of a cast that its details list."""

_HEADER = ("where", "operand", "from", "to", "kind", "rule and path", "loss", "bytes")
_AUDIT_HEADER = ("changed", "error", "share")


SCREEN = 24
"""The lines of a report on a screen."""

_LEAST_ROWS, _MOST_ANSWERS = 4, 9
"""The rows for which sentences and layers on a screen leave room, and the lines of answers."""


@uncollected
def report_text(
    report: CastReport, width: int | None = None, verbose: bool = False, screen: int | None = None
) -> str:
    """Return the answers, then what was not seen, counts, and a table with a line for each cast.

    Equal casts of one line, and those of the iterations of a loop, share a line with their count.
    `width` is the most characters of a line, edits apart, and `screen` the number of lines that the
    text should have; None is no limit. With `verbose`, each part that was not seen has a line.
    """
    if screen is not None and report.against is None:
        return "\n".join(_on_screen(report, width, screen))
    head = [*_answers(report, width), *_head(report, width, verbose)]
    return "\n".join([*head, *_table(report, width), *_tail(report, width)])


def _on_screen(report: CastReport, width: int | None, lines: int) -> list[str]:
    """Return the report in so many lines: the first answers and casts, and layers with room."""
    head = _first_answers(report, width) + _head(report, width, False, brief=True)
    room = max(lines - len(head), _LEAST_ROWS + 2)
    count = len(report.lines)
    tail = [*_tail(report, width)]
    tail = tail if len(tail) + min(count, _LEAST_ROWS) + 2 <= room else []
    while len(table := _table(report, width, count)) + len(tail) > room and count > 1:
        count -= min(len(table) + len(tail) - room, count - 1)
    return [*head, *table, *tail]


def _table(report: CastReport, width: int | None, most: int | None = None) -> list[str]:
    """Return the lines of the table of a report, with its first `most` casts; [] without any."""
    if not report.lines:
        return []
    rows = casts_table(report)
    first = rows[: len(rows) if most is None else most + 1]
    user = len(rows) - report.lines.in_library
    headings = {user: phrases.LIBRARY} if 1 < user < len(first) else {}
    return fitted(first, width, len(rows) - len(first), headings)


def answers_text(report: CastReport, width: int | None = None) -> str:
    """Return the answers of a report alone; without one, the notes of its graph and its counts."""
    others = (*phrases.notes(report), phrases.headline(report))
    lines = _answers(report, width) or [x for each in others for x in wrapped(each, width)]
    return "\n".join(lines)


def _answers(report: CastReport, width: int | None) -> list[str]:
    return [line for answer in report.answers for line in _answer_lines(answer, width)]


def _first_answers(report: CastReport, width: int | None) -> list[str]:
    """Return the lines of the first answers, of one at least, and the number of the others."""
    lines: list[str] = []
    for place, answer in enumerate(report.answers):
        own = _answer_lines(answer, width)
        if lines and len(lines) + len(own) > _MOST_ANSWERS:
            others = count_text(len(report.answers) - place, "other answer")
            return [*lines, f"... and {others} (-v)"]
        lines += own
    return lines


def _head(report: CastReport, width: int | None, verbose: bool, brief: bool = False) -> list[str]:
    """Return the lines between the answers and a table or details."""
    room = width if brief else None
    unseen, outputs = [phrases.unseen(report, room)], phrases.outputs(report, room)
    if verbose:
        every_unseen, outputs = phrases.every_unseen(report), [*map(phrases.output, report.outputs)]
        unseen += every_unseen if len(every_unseen) > 1 else ()
    unused = map(str, report.unused)
    head = (*unseen, *phrases.notes(report), *unused, phrases.headline(report), *outputs)
    return [part for line in head if line for part in wrapped(printable(line, 2000), width)]


def _tail(report: CastReport, width: int | None) -> Iterator[str]:
    """Yield the lines below: the layers, and what other rules change."""
    for lines in (fitted(phrases.layers(report), width), phrases.against(report)):
        if lines:
            yield from ("", *(part for line in lines for part in wrapped(line, width)))


def casts_table(report: CastReport) -> list[tuple[str, ...]]:
    """Return the table of a report's sites, those of the user first, below a row of titles."""
    has_audit, has_times = report.audited, report.lines.repeat
    codes = ["" if site.row.exact else site.row.code for site in report.lines.user_first]
    has_codes = any(codes)
    ends = *("code",) * has_codes, *_AUDIT_HEADER * has_audit, *("times",) * has_times
    rows = (
        (
            *_cells(site),
            *(code,) * has_codes,
            *_audit_cells(site) * has_audit,
            *(str(site.times),) * has_times,
        )
        for site, code in zip(report.lines.user_first, codes, strict=True)
    )
    return [(*_HEADER, *ends), *rows]


def terminal_text(report: CastReport) -> str:
    """Return `report_text`; if stdout is a terminal, lines that fit its width."""
    return report_text(report, terminal_width(sys.stdout))


@uncollected
def report_details(report: CastReport, most: int = DETAILS, width: int | None = None) -> str:
    """Return the first cast of each cascade: source line, loss, measurements and fix.

    All parts that were not seen come before, after the answers.
    """
    head = [*_answers(report, width), *_head(report, width, True)]
    return "\n".join([*head, *cascades_text(report, most, width), *_tail(report, width)])


def cascades_text(report: CastReport, most: int, width: int | None = None) -> Iterator[str]:
    """Yield the lines of the first cascades, a blank line before each."""
    cascades = report.lines.cascades()
    is_mixed = 0 < report.lines.in_library < len(report.lines)
    for cascade in cascades[:most]:
        yield ""
        if is_mixed and cascade.site.row.in_library:
            yield phrases.LIBRARY
            is_mixed = False
        for line in _detail(cascade, report):
            yield from wrapped(line, width)
        if fix := cascade.site.row.fix:
            yield f"{_margin(cascade.site.row)} = {'fix':10}{printable(fix, None)}"
    if len(cascades) > most:
        yield from ("", f"... and {len(cascades) - most} more")


def _cells(site: CastSite) -> tuple[str, ...]:
    row = site.row
    place = phrases.place(site)
    if row.kind in phrases.VERBS:
        dtype = str(row.source)
        return (place, f"result of {row.op}", dtype, dtype, row.kind, "", phrases.loss(site), "")
    return (
        place,
        phrases.operands(site),
        str(row.source),
        str(row.target),
        row.kind,
        f"{printable(row.rule)}: {phrases.path(row)}",
        phrases.short_witness(site),
        f"{row.bytes_before} -> {row.bytes_after}",
    )


def _audit_cells(site: CastSite) -> tuple[str, str, str]:
    """Return the changed elements, the largest relative error, and the share of output error."""
    measure = site.measured
    changed, error = ("", "") if measure is None else (measure.changed, f"{measure.relative:.2g}")
    return str(changed), error, phrases.share(site)


def _margin(row: CastRow) -> str:
    return " " * len(str(region(row).line))


def _detail(cascade: Cascade, report: CastReport) -> Iterator[str]:
    row = cascade.site.row
    yield f"{row.code}: {phrases.conversion(row)} {phrases.why(row)}"
    place = region(row)
    margin = _margin(row)
    yield f"{margin}--> {printable(row.location.layered)}, {phrases.what(row)}"
    text = printable(line_of(place))
    if text.strip():
        start, end = place.columns(place.line, text)
        yield f"{margin} |"
        yield f"{place.line} | {text}"
        if place.is_known and end > start:
            yield f"{margin} | {' ' * start}{'^' * (end - start)}"
    for name, value in facts(cascade, report):
        if name != "fix":
            yield f"{margin} = {name:10}{value}"


def facts(cascade: Cascade, report: CastReport) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of what is to be said of a cascade; a name may be empty."""
    site, following = cascade
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
    if (cause := site.row.cause) is not None:
        yield "follows", f"from {phrases.conversion_at(cause)}"
    yield from _cascade(following)
    if fix := site.row.fix:
        yield "fix", printable(fix)


def _cascade(rows: Sequence[CastRow]) -> Iterator[tuple[str, str]]:
    """Yield the consequences of a cast, the most damaging first; equal ones share a line."""
    worst_first = sorted(rows, key=attrgetter("damage"), reverse=True)
    counts = Counter(
        f"{phrases.conversion_at(row)}{'' if row.exact else f': {row.loss}'}" for row in worst_first
    )
    first = list(counts.items())[:FOLLOWING]
    for text, count in first:
        yield "cascade", f"{text} ({count} times)" if count > 1 else text
    if more := len(rows) - sum(count for _, count in first):
        yield "", f"... and {more} more follow from it"


# -- audits of one program in several dtypes


def dtypes_text(reports: Mapping[str, CastReport]) -> str:
    """Return the answers of each report, what was not seen, and a table with a column a dtype."""
    width = terminal_width(sys.stdout)
    lines: list[str] = []
    for name, report in reports.items():
        for answer in report.answers:
            named = answer._replace(text=f"{name}: {answer.text}")
            lines += _answer_lines(named, width)
    unseen = (phrases.unseen(report) for report in reports.values())
    notes = (printable(note, 2000) for report in reports.values() for note in report.graph.notes)
    heads = filter(None, dict.fromkeys([*unseen, *notes]))
    lines += (part for head in heads for part in wrapped(head, width))
    table = fitted([("layer", *reports), *_outputs(reports), *_layers(reports)], width)
    return "\n".join([*lines, *table])


def _outputs(reports: Mapping[str, CastReport]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each output."""
    for errors in zip(*(report.outputs for report in reports.values()), strict=True):
        yield printable(errors[0].name), *map(_error, errors)


def _error(error: OutputError) -> str:
    """Return the error of an output in the norm, or its elements that are not finite."""
    if not error.is_known:
        return phrases.UNKNOWN_ERROR
    if error.broken or error.norm is None:
        return phrases.wrongness(error)
    return f"relative error {error.norm:.2g}"


def _layers(reports: Mapping[str, CastReport]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each layer: the part of the error that arises there, and what overflows."""
    totals = [{each.layer: each for each in report.layers} for report in reports.values()]
    for layer in dict.fromkeys(layer for layers in totals for layer in layers):
        name = printable(layer) or phrases.OUTSIDE
        yield name, *(_cell(layers.get(layer)) for layers in totals)


def _cell(layer: LayerTotals | None) -> str:
    """Return the loss of a layer: its part of the error, and the elements that overflow."""
    if layer is None:
        return ""
    percent = phrases.UNKNOWN_ERROR if layer.share is None else phrases.percent(layer.share)
    share = f"{percent} of the error"
    return f"overflows in {layer.overflowed:,}, {share}" if layer.overflowed else share


# -- Markdown, for comments in code review


MARKDOWN_ROWS, _CASCADES, _LINES = 50, 10, 200
"""The most table rows, cascades and their lines: code hosts accept about 65,000 characters."""

_AS_CODE = {"where", "operand", "rule and path", "loss", "bytes", "layer"}
"""The columns whose cells have names of the program, or signs of Markdown."""


@uncollected
def report_markdown(report: CastReport, most: int = MARKDOWN_ROWS, details: int = _CASCADES) -> str:
    """Return the answers, a table of the `most` worst casts, then `details` cascades as text."""
    parts = [f"### Casts of {code(report.graph.name)}", *map(_answer, report.answers)]
    unused = map(str, report.unused)
    lines = phrases.unseen(report), *phrases.notes(report), *unused, phrases.counts(report)
    parts += map(escaped, lines)
    parts.append("\n".join(f"- {code(line)}" for line in phrases.outputs(report)))
    if report.lines:
        parts.append(_casts(report, most))
        parts.append("\n".join(_block([*cascades_text(report, details)][1:], _LINES)))
    if layers := phrases.layers(report):
        parts.append("\n".join(_markdown_table(layers[0], layers[1:])))
    if lines := phrases.against(report):
        parts.append("\n".join(_block(lines, most)))
    return "\n\n".join(filter(None, parts)) + "\n"


def code(text: str, most: int = 500) -> str:
    """Return any text as inline code that is valid inside a table, at most `most` characters."""
    line = printable(text, most).replace("|", "\\|") or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if fence != "`" or line.strip() == "" else ""
    return f"{fence}{space}{line}{space}{fence}"


def escaped(text: str) -> str:
    """Return a text with all Markdown markup escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(text, 2000))


def _answer(answer: Sentence) -> str:
    """Return an answer, with its edits as a list."""
    edits = (f"- {escaped(lead)} {code(text, 2000)}" for lead, text in answer.instructions)
    grade = f" ({escaped(answer.grade)})" if answer.grade else ""
    return "\n".join([escaped(answer.text), *edits]) + grade


def _block(lines: Sequence[str], most: int) -> Sequence[str]:
    """Return lines as a fenced block; the fence is longer than any run of backticks in them."""
    body = [*lines[:most], *([f"... and {len(lines) - most} more"] if len(lines) > most else [])]
    fence = "`" * max(3, 1 + max(len(run) for run in re.findall("`*", "\n".join(body))))
    return [fence, *body, fence]


def _markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        cells = zip(titles, row, strict=True)
        texts = (code(x) if x and title in _AS_CODE else escaped(x) for title, x in cells)
        yield f"| {' | '.join(texts)} |"


def _casts(report: CastReport, most: int) -> str:
    titles, *rows = casts_table(report)
    lines = [*_markdown_table(titles, rows[:most])]
    note = "| *{}* |" + " |" * (len(titles) - 1)
    user = len(rows) - report.lines.in_library
    if 0 < user < min(len(rows), most):
        lines.insert(2 + user, note.format(phrases.LIBRARY))
    if len(rows) > most:
        lines.append(note.format(f"... and {len(rows) - most} more"))
    return "\n".join(lines)


def _answer_lines(answer: Sentence, width: int | None) -> list[str]:
    """Return the lines of an answer; each edit has a line of its own, whole in any width."""
    if width is None or not answer.edits or len(answer.lines[-1]) <= width:
        return [part for line in answer.lines for part in wrapped(line, width)]
    grade = [f"    {answer.grade}"] if answer.grade else []
    plain = answer._replace(grade="")
    return [*(part for line in plain.lines for part in wrapped(line, width)), *grade]

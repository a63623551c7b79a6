"""The Markdown writer of cast reports, for comments in code review: the text report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from graphir.decorators import uncollected
from graphir.display import printable
from graphir.passes.reports import phrases
from graphir.passes.reports.sentences import Sentence, answers
from graphir.passes.reports.text import cascades_text, casts_table

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport

ROWS, DETAILS, LINES = 50, 10, 200
"""The most table rows, cascades and their lines: code hosts accept about 65,000 characters."""

_AS_CODE = {"where", "operand", "rule and path", "loss", "bytes", "layer"}
"""The columns whose cells have names of the program, or signs of Markdown."""


@uncollected
def report_markdown(report: CastReport, most: int = ROWS, details: int = DETAILS) -> str:
    """Return the answers, a table of the `most` worst casts, then `details` cascades as text."""
    parts = [f"### Casts of {code(report.graph.name)}", *map(_answer, answers(report))]
    lines = phrases.unseen(report), *report.graph.notes, phrases.counts(report)
    parts += map(escaped, lines)
    parts.append("\n".join(f"- {code(line)}" for line in phrases.outputs(report)))
    if report.lines:
        parts.append(_casts(report, most))
        parts.append("\n".join(_block([*cascades_text(report, details)][1:], LINES)))
    if layers := phrases.layers(report):
        parts.append("\n".join(_lines(layers[0], layers[1:])))
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


def _lines(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        cells = zip(titles, row, strict=True)
        texts = (code(x) if x and title in _AS_CODE else escaped(x) for title, x in cells)
        yield f"| {' | '.join(texts)} |"


def _casts(report: CastReport, most: int) -> str:
    titles, *rows = casts_table(report)
    lines = [*_lines(titles, rows[:most])]
    note = "| *{}* |" + " |" * (len(titles) - 1)
    user = len(rows) - report.lines.in_library
    if 0 < user < min(len(rows), most):
        lines.insert(2 + user, note.format(phrases.LIBRARY))
    if len(rows) > most:
        lines.append(note.format(f"... and {len(rows) - most} more"))
    return "\n".join(lines)

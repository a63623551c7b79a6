"""`annotate`: the source of a program with the dtype of each expression: text, HTML, JSON, SVG."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from textwrap import wrap
from typing import Any, Protocol
from unicodedata import combining, east_asian_width

from graphir.display import brief, fragment, printable, verbatim
from graphir.drawing.loss_levels import LEVELS
from graphir.drawing.svg import FAINT, FAMILY, PAPER, SHADES, STYLE, escaped
from graphir.ops.dims import Shape
from graphir.passes.analysis.annotation import (
    UNKNOWN,
    AnnotatedFile,
    Annotation,
    Span,
    Types,
    annotated_files,
)
from graphir.passes.analysis.casts import CastReport, CastRow, cast_report
from graphir.passes.analysis.casts.rows import size_json
from graphir.passes.analysis.expressions import statement
from graphir.passes.reports import phrases, writer
from graphir.passes.reports.json_ import json_array
from graphir.passes.reports.json_ import text as encoded
from graphir.passes.reports.phrases import SourceRegion
from graphir.public import Graph, TensorType
from graphir.rule_reports.tables import aligned
from graphir.rule_reports.terminal import terminal_width

ROWS = 400
"""The most rows of a text in a notebook."""


class Reported(Protocol):
    """A recorded program, such as a Recording."""

    def report(self) -> CastReport:
        """Return the report of the program's casts."""
        ...


class Annotated:
    """The source of a program with the dtype and shape of each expression, and its casts.

    `str()` gives text that fits the terminal if stdout is one, `.to_json()` the data for editors
    (see annotated.schema.json). `files` has the annotations by file.
    """

    def __init__(self, report: CastReport) -> None:
        self.report, self.files = report, annotated_files(report)
        by_file = {file.file: file for file in self.files}
        uses: dict[object, list[CastRow]] = {}
        for row in (*report.in_order(), *report.losses):
            conversion = row.kind, row.source, row.target, row.in_library and row.op
            uses.setdefault((phrases.region(row), *conversion), []).append(row)
        for rows in uses.values():
            place = phrases.region(rows[0])
            if place.is_known and place.file in by_file:
                file = by_file[place.file]
                annotation = file.at(_without_parentheses(place))
                annotation.casts.append((rows[0], len(rows)))
                if file.lines and below(annotation, file):
                    file.lines.add(place.line)

    def to_json(self) -> str:
        """Return the annotations as a JSON document."""
        return annotated_json(self)

    def __str__(self) -> str:
        return annotated_text(self, terminal_width(sys.stdout))

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        """Return the annotated lines for notebooks."""
        return fragment(verbatim(annotated_text(self).split("\n"), ROWS))


def _without_parentheses(place: SourceRegion) -> Span:
    """Return the span of a region without the parentheses around its expression."""
    _, line, column, end_line, end_column, _ = place
    source = phrases.line_of(place)[column - 1 : end_column - 1]
    node = statement(source) if line == end_line and source.isascii() else None
    if isinstance(node, ast.Expr):
        value = node.value
        column, end_column = column + value.col_offset, column + (value.end_col_offset or 0)
    return line, column, end_line, end_column


def annotate(program: Graph | CastReport | Reported) -> Annotated:
    """Return the source of a program, a graph's or a recording's, with the dtypes of expressions.

    The expressions are those of the files and notebook cells that the graph's locations name. An
    expression in a loop has each type that it had. What the program computes without the graph's
    library has none, such as Python's own numbers.
    """
    if isinstance(program, Graph):
        program = cast_report(program)
    return Annotated(program if isinstance(program, CastReport) else program.report())


# -- words


def types_text(types: Types) -> str:
    """Return types in the order of the run; those of a loop that differ in sizes alone are one."""
    rows = [type_.parts for type_ in types]
    if rows and {len(row) for row in rows} == {len(rows[0])} != {1}:
        return ", ".join(types_text(dict.fromkeys(column)) for column in zip(*rows, strict=True))
    groups: dict[object, list[TensorType]] = {}
    for type_ in (part for row in rows for part in row):
        key = None if type_ is UNKNOWN else (type_.dtype, type_.rank)
        groups.setdefault(key, []).append(type_)
    return " then ".join(
        f"{group[0].dtype}[{_sizes([x.shape for x in group])}]" if key else "?"
        for key, group in groups.items()
    )


def _sizes(shapes: Sequence[Shape]) -> str:
    return ", ".join(str(dim[0]) if len({*dim}) == 1 else "*" for dim in zip(*shapes, strict=True))


def value_text(annotation: Annotation) -> str:
    """Return the types of a value, after the name of a variable."""
    types = types_text(annotation.types)
    return f"{printable(annotation.name)}: {types}" if annotation.name else types


def cast_text(row: CastRow, count: int, runs: int) -> str:
    """Return a cast and what it can lose: `float64 -> int32, can lose value`."""
    level = phrases.level(row)
    parts = [phrases.conversion(row)]
    parts += [f"can lose {level}"] if level != "exact" else []
    parts += [f"{count} of {runs} times"] if 0 < count < runs else []
    return ", ".join(parts)


def below(annotation: Annotation, file: AnnotatedFile) -> list[str]:
    """Return what stands below an expression: its casts, else its types if it is marked.

    Left out are roundings of Python numbers, and exact casts inside of a library's functions.
    """
    texts: dict[str, None] = {}
    inside: dict[str, None] = {}
    for row, count in annotation.casts:
        is_inside, level = row.in_library or row.location.compound, phrases.level(row)
        is_rounding = row.kind != "literal" or level in ("exact", "precision")
        if (is_inside and level == "exact") or (row.source.weak and is_rounding):
            continue
        text = cast_text(row, count, file.runs.get(row.location.place[1:], 0))
        (inside if is_inside else texts)[text] = None
    if not (texts or inside) and annotation in file.marked:
        texts[types_text(annotation.types)] = None
    return [*texts, *([f"inside: {'; '.join(inside)}"] if inside else [])]


# -- text

WIDTH = 100
"""The columns of a text that is for no terminal."""

GAP = 3
"""The most lines between annotated lines that are shown too."""


def annotated_text(annotated: Annotated, width: int | None = None) -> str:
    """Return the annotated lines, in at most `width` columns."""
    lines = [line for file in annotated.files for line in _file_text(file, width or WIDTH)]
    name = printable(annotated.report.graph.name)
    return "\n".join(lines) if lines else f"graph {name}: no expression of a source file is known"


def _file_text(file: AnnotatedFile, width: int) -> Iterator[str]:
    yield printable(file.file) + ("" if file.lines else ", whose lines cannot be read")
    if not file.lines:
        annotations = sorted(file.annotations.values(), key=attrgetter("span"))
        rows = [
            (f"{x.span[0]}:{x.span[1]}", types_text(x.types), "; ".join(below(x, file)))
            for x in annotations
        ]
        yield from aligned([("place", "dtype", "casts"), *rows])
        return
    margin = len(str(max(file.lines)))
    room = max(width - margin - 3, 20)
    for block in blocks(file):
        yield from [f"{'':{margin}} ..."] if block[0].number > min(file.lines) else []
        column = _column([line for line in block if line.note], room)
        for line in block:
            head = f"{line.number:>{margin}} | "
            for row in line.rows(column, room):
                yield f"{head}{row}".rstrip()
                head = f"{'':{margin}} | "


def blocks(file: AnnotatedFile) -> list[list[SourceLine]]:
    """Return the lines to show; between two blocks lines are left out."""
    by_line: dict[int, list[Annotation]] = {}
    for annotation in file.annotations.values():
        for number in range(annotation.span[0], annotation.span[2] + 1):
            if annotation.types or annotation.casts:
                by_line.setdefault(number, []).append(annotation)
    shown: list[list[SourceLine]] = []
    for number in sorted(file.lines):
        first = shown[-1][-1].number + 1 if shown else -GAP
        if number - first > GAP:
            shown, first = [*shown, []], number
        numbers = range(first, number + 1)
        shown[-1] += (SourceLine(file, x, by_line.get(x, ())) for x in numbers)
    return shown


def _column(lines: Sequence[SourceLine], room: int) -> int:
    """Return the column at which the notes of most lines can stand."""
    fits = {
        start.cells: sum(x.cells <= start.cells <= room - 2 - cells(x.note) for x in lines)
        for start in lines
    }
    return max(fits, key=lambda start: (fits[start], -start), default=0) + 2


class SourceLine:
    """A line of a file with its annotations: a note at its end, marks below expressions."""

    def __init__(self, file: AnnotatedFile, number: int, annotations: Sequence[Annotation]) -> None:
        self.annotations = annotations
        self.number, self.source = number, phrases.line_at(file.source, number)
        self.text = _display(self.source)
        self.cells = cells(self.text)
        self.indent = len(self.text) - len(self.text.lstrip())
        values = ", ".join(map(value_text, file.values.get(number, ())))
        self.note = f"# {values}" if values else ""
        self.marks = sorted(
            (*self.columns(x), label)
            for x in annotations
            if x.span[0] == number
            for label in below(x, file)
        )

    def columns(self, annotation: Annotation) -> tuple[int, int]:
        """Return the part of the line that an expression has, as offsets in its source."""
        return SourceRegion("", *annotation.span).columns(self.number, self.source)

    def rows(self, column: int, room: int) -> Iterator[str]:
        """Yield the line and what stands below it; its note starts at `column` if it fits there."""
        note = self.note
        for first, last, indent in self._pieces(room):
            row = " " * indent + self.text[first:last]
            starts = (max(x, cells(row) + 2) for x in (column, 0))
            start = next((x for x in starts if x + cells(note) <= room), None)
            if note and last == len(self.text) and start is not None:
                row, note = row + " " * (start - cells(row)) + note, ""
            yield row
            yield from self._marks_below(first, last, indent, room)
        indent = " " * min(self.indent, room // 2)
        yield from (f"{indent}# {part}" for part in wrap(note[2:], room - len(indent) - 2))

    def _pieces(self, room: int) -> list[tuple[int, int, int]]:
        """Return the parts of the line that fit, as (start, end, indent): broken at spaces."""
        pieces, first, indent = list[tuple[int, int, int]](), 0, 0
        for last in range(len(self.text)):
            if cells(self.text[first : last + 1]) > room - indent:
                end = self.text.rfind(" ", first + room // 2, last) + 1 or last
                pieces.append((first, end, indent))
                first, indent = end, min(self.indent + 8, room // 2)
        return [*pieces, (first, len(self.text), indent)]

    def _marks_below(self, first: int, last: int, indent: int, room: int) -> Iterator[str]:
        """Yield the marks below the part of the line that starts at `first`, as rows."""
        rows: list[str] = []
        for start, end, label in self.marks:
            start, end = (len(_display(self.source[:at])) for at in (start, end))
            if not first <= start < last:
                continue
            at = indent + cells(self.text[first:start])
            carets = "^" * cells(self.text[start : min(end, last)].rstrip())
            pieces = [(at, f"{carets} {label}")]
            if at + cells(pieces[0][1]) > room:
                pieces = [(at - len(label) - 1, f"{label} {carets}")]
            if pieces[0][0] < 0:
                lines = wrap(label, room)
                left = min(at, room - max(map(len, lines)))
                pieces = [(at, carets), *((left, line) for line in lines)]
            begin = pieces[0][0] if len(pieces) == 1 else 0
            place = next((i for i, row in enumerate(rows) if len(row) + 2 <= begin), len(rows))
            rows += [""] * (place + len(pieces) - len(rows))
            for number, (column, piece) in enumerate(pieces, place):
                rows[number] = rows[number].ljust(column) + piece
        yield from rows


def _display(text: str) -> str:
    return printable(text.expandtabs(4), None)


def cells(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for a wide character."""
    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


# -- SVG, for pages


def annotated_svg(annotated: Annotated) -> str:
    """Return a picture of the annotated lines: notes faint, casts in the colour of their loss."""
    rows = annotated_text(annotated).split("\n")
    width, height = 9 * max(map(cells, rows)) + 32, 20 * len(rows) + 24
    texts = (f'<text x="16" y="{20 * i + 28}">{_colored(x)}</text>' for i, x in enumerate(rows))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="graphir" width="{width}" '
            f'viewBox="0 0 {width} {height}" font-family="{FAMILY}" font-size="14">',
            f"<style>{STYLE}</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
            *texts,
            "</svg>",
        ]
    )


def _colored(row: str) -> str:
    """Return a row as SVG text, where spaces would collapse: code, then a note or marks."""
    at = row.find("^") if "^" in row else row.rfind("  # ")
    code, rest = (escaped(x).replace(" ", "&#160;") for x in (row[:at], row[at:]))
    if at < 0:
        return code + rest
    color = FAINT
    if "^" in row:
        color = next((SHADES[x][1] for x in LEVELS if f"can lose {x}" in row), SHADES["exact"][1])
    return f'{code}<tspan fill="{color}">{rest}</tspan>'


# -- JSON

VERSION = 1
"""The version of the format; an incompatible change increments it."""


def annotated_json(annotated: Annotated) -> str:
    """Return a JSON document, with one line for each annotated expression or variable."""
    graph = annotated.report.graph
    head = {"version": VERSION, "graph": graph.name, "rules": graph.rules.name}
    fields = [f"{encoded(name)}: {encoded(value)}" for name, value in head.items()]
    hints = (encoded(hint) for file in annotated.files for hint in _hints(file))
    return "{\n  " + ",\n  ".join([*fields, f'"expressions": {json_array(hints)}']) + "\n}"


def _hints(file: AnnotatedFile) -> Iterator[dict[str, Any]]:
    for annotation in sorted(file.annotations.values(), key=lambda x: x.span):
        if not annotation.types and not annotation.casts:
            continue
        line, column, end_line, end_column = annotation.span
        yield {
            "file": file.file,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "kind": annotation.kind,
            "name": annotation.name or None,
            "label": types_text(annotation.types),
            "types": [[_type_json(part) for part in type_.parts] for type_ in annotation.types],
            "casts": [_cast_json(row, count) for row, count in annotation.casts],
        }


def _type_json(type_: TensorType) -> dict[str, Any] | None:
    if type_ is UNKNOWN:
        return None
    return {"dtype": str(type_.dtype), "shape": list(map(size_json, type_.shape))}


def _cast_json(row: CastRow, count: int) -> dict[str, Any]:
    return {
        "from": str(row.source),
        "to": str(row.target),
        "loss": phrases.level(row),
        "loses": None if row.exact else str(row.loss),
        "kind": row.kind,
        "times": count,
    }


ANNOTATED_FORMATS: Mapping[str, Callable[[Annotated], str]] = {
    "text": annotated_text,
    "html": writer("html", "annotated_html"),
    "json": annotated_json,
    "svg": annotated_svg,
}
"""The writer of each format."""

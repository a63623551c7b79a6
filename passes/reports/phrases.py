"""The phrases and the source regions of a report row, which all output formats share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, get_args

from graphir.display import count_text, printable
from graphir.drawing.loss_levels import Level
from graphir.drawing.loss_levels import level as gravity
from graphir.ir.operators.in_place import SIGNS
from graphir.location import Location
from graphir.ops.dims import Size
from graphir.passes.analysis.casts.conversion import Kind
from graphir.rule_reports.tables import aligned
from graphir.source_text import source_line

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow, OutputError, Unseen
    from graphir.passes.analysis.casts.sites import CastSite

MEANINGS: dict[Level, str] = {
    "value": "values wrap, or lose their sign or fraction",
    "range": "values too great become inf or NaN",
    "precision": "values are rounded",
    "exact": "every value survives",
}
"""The meaning of each level of loss, the gravest first."""


def level(row: CastRow) -> Level:
    """Return the level of a row's loss."""
    conversion = row.conversion
    return gravity(conversion.loss, conversion.source, conversion.target)


def levels(rows: Iterable[CastRow]) -> dict[Level, int]:
    """Return the number of rows of each level that occurs, the gravest first."""
    counts = Counter(map(level, rows))
    return {level_: counts[level_] for level_ in MEANINGS if level_ in counts}


def headline(report: CastReport) -> str:
    """Return the line with a graph's name and its counts."""
    return f"graph {printable(report.graph.name)}: {counts(report)}"


def counts(report: CastReport) -> str:
    """Return the numbers of casts, of lossy casts and of lossy steps."""
    losing = sum(_is_loss(site.row) for site in report.sites)
    losses = f"; {count_text(losing, 'step')} of arithmetic lost values" if losing else ""
    hidden = Counter(row.is_number for row in report.sites.rows)
    hidden.subtract(row.is_number for row in report.lines.rows)
    kinds = (True, "exact literal"), (False, "cast to the same dtype")
    left_out = [count_text(hidden[kind], what) for kind, what in kinds if hidden[kind]]
    if left_out:
        losses += f"; {' and '.join(left_out)} not shown: --all"
    losses += f"; {accepted(report)}" if report.accepted else ""
    if not report.rows:
        # Where a part that may cast was not seen, there are none but those.
        none = "no casts seen" if any(part.casts for part in report.unseen) else "no casts"
        return f"none of {report.of} uses of casts{losses}" if report.of else f"{none}{losses}"
    lossy = sum(not row.exact for row in report)
    count = "1 use of a cast" if len(report) == 1 else f"{len(report)} uses of casts"
    return f"{count}, {lossy} can lose something{losses}"


def accepted(report: CastReport) -> str:
    """Return how many lines of the program accept what is found there."""
    lines = {place[:2] for place in report.accepted}
    return f"{count_text(len(lines), 'line')} accepted by graphir: ignore"


def _is_loss(row: CastRow) -> bool:
    return row.kind in VERBS


_LOSSES: dict[str, tuple[str, str]] = {
    "wrap": ("wrapped", "wraps {}"),
    "overflow": ("overflowed", "overflows in {}"),
    "underflow": ("became 0", "underflows to 0 in {}"),
    "invalid": ("became NaN", "makes NaN in {}"),
    "cancellation": ("are mostly the errors of the operands", "cancels most digits of {}"),
    "absorption": ("lost half of the smaller operand or more", "absorbs the smaller operand in {}"),
    "accumulation": ("carry the roundings of many steps", "accumulates roundings in {}"),
    "rounding": ("were rounded", "rounds {}"),
}
VERBS = {kind: verb for kind, (verb, _) in _LOSSES.items()}
"""What happened to the elements of a step that lost values, by the kind of loss."""
ACTS = {kind: act for kind, (_, act) in _LOSSES.items()}
"""What a step does to a number of its elements, by the kind of loss."""


def wrongness(error: OutputError) -> str:
    """Return how wrong an output is: `is wrong by 52 %`, `has 3 elements that are not finite`."""
    if error.broken:
        return f"has {count_text(error.broken, 'element')} no longer finite"
    small = error.norm is not None and error.norm < 0.01
    if error.norm is None or error.dtype == "bool" or (small and error.is_integer):
        return f"differs in {error.differing} of {count_text(error.elements, 'element')}"
    return f"is wrong by {percent(error.norm)}" if error.norm < 10 else "is wrong altogether"


def loss(site: CastSite) -> str:
    """Return what a cast can lose, or what a step of arithmetic did to its worst element."""
    row, measured = site.row, site.measured
    if not _is_loss(row):
        return str(row.loss)
    if measured is None or measured.worst is None:
        return row.kind
    operation = _operation(row.op, [number_text(x) for x in measured.operands])
    change = became(*measured.worst)
    if measured.received:
        change += f", beside {measured.received:.2g} received"
    return f"{operation} = {change}" if operation else change


def became(before: complex, after: complex) -> str:
    """Return a change of a number in so many digits that both differ."""
    texts = number_text(before), number_text(after)
    return " became ".join(texts if texts[0] != texts[1] else map(str, (before, after)))


def witness(site: CastSite) -> str:
    """Return what a cast loses in a few characters: `exact`, `loses 2049`."""
    return "exact" if site.row.exact else f"loses {site.row.witness}"


def short_witness(site: CastSite) -> str:
    """Return what a cast loses in the characters of a narrow column: `loses 2**53 + 1`."""
    value = site.row.witness
    for rest, text in ((0, ""), (1, " + 1")):
        if isinstance(value, int) and value > 10**10 and (value - rest).bit_count() == 1:
            return f"loses 2**{value.bit_length() - 1}{text}"
    return witness(site)


_WITH_SIGNS = ("add", "subtract", "multiply", "divide", "pow", "left_shift")


def _operation(op: str, operands: Sequence[str]) -> str:
    """Return an op on numbers as source text; "" without operands."""
    if not operands:
        return ""
    if (op in _WITH_SIGNS or op == "index_add") and len(operands) == 2:
        return f" {SIGNS.get(op, '+')} ".join(operands)
    return f"{op}({', '.join(operands)})"


def notes(report: CastReport) -> list[str]:
    """Return the notes of a report's graph; equal ones of several lines are one."""
    lines: dict[str, list[str]] = {}
    for note in report.graph.notes:
        match = _OF_LINE.match(note)
        numbers = lines.setdefault(note[match.end() :] if match else note, [])
        numbers += match.groups() if match else ()
    heads = {text: f"line{'s' * (len(x) > 1)} {', '.join(x)}: " for text, x in lines.items() if x}
    return [f"{heads.get(text, '')}{text}" for text in lines]


_OF_LINE = re.compile(r"line (\d+): ")


def unseen(report: CastReport, width: int | None = None) -> str:
    """Return the line about what was not seen, by kind with its first place; "" for nothing.

    An unseen step takes its operands as they are: so their errors are in no output's error. Where
    reasons and places have no room in a `width`, the line has numbers.
    """
    steps = [step for step in report.unseen if step.hides or step.casts or not step.decides]
    hides_errors = any(step.hides for step in steps)
    unknown_count = sum(not output.is_known for output in report.outputs)
    means = "errors may be hidden" if hides_errors else "no error is hidden"
    if unknown_count:
        of = f"{unknown_count} of {count_text(len(report.outputs), 'output')}"
        means = f"the error of {of} is unknown"
    if any(step.casts for step in steps):
        means = f"{means}, and casts may be missing" if hides_errors else "casts may be missing"
    decisions = [x for x in _parts(report) if x not in steps]
    groups = {f"not seen ({means})": steps, "decided by values": decisions}
    groups["not recorded"] = _given(report)
    kinds = {kind: group for kind, group in groups.items() if group}
    for more, texts in ("", first_of), (" (-v)", _first_place), (" (-v)", len):
        line = "; ".join(f"{kind}: {texts(group)}" for kind, group in kinds.items())
        line += more if line else ""
        if width is None or len(line) <= width:
            break
    return line


def first_of(steps: Sequence[Unseen]) -> str:
    """Return the first of some steps, and the number of the others, or why it was not seen."""
    if len(steps) > 1:
        return _first_place(steps)
    return f"{step_place(steps[0])} {printable(steps[0].reason)}"


def _first_place(steps: Sequence[Unseen]) -> str:
    """Return the first of some steps, and the number of the others."""
    others = f" and {count_text(len(steps) - 1, 'other')}" if len(steps) > 1 else ""
    return f"{step_place(steps[0])}{others}"


def _parts(report: CastReport) -> list[Unseen]:
    """Return what was not seen, without harmless choices inside of functions of NumPy."""
    shows_choices = bool(report.graph.provenance.library)
    unseen = report.unseen
    return [x for x in unseen if x.hides or x.casts or shows_choices or not x.location.compound]


def _given(report: CastReport) -> list[Unseen]:
    """Return what was not recorded that no unseen step names."""
    steps = {(step.what, str(step.location)) for step in report.unseen}
    return [x for x in report.given if (x.what, str(x.location)) not in steps]


def every_unseen(report: CastReport) -> list[str]:
    """Return a line for each part of the program that was not seen."""
    given = _given(report)
    return [
        *(f"not seen: {step_text(step)}" for step in _parts(report)),
        *(f"not recorded: {step_place(x)} {printable(x.reason, 500)}" for x in given),
    ]


def step_place(step: Unseen) -> str:
    """Return the name and the location of an unseen step."""
    return f"{printable(step.what)} at {printable(step.location.layered)}"


def step_text(step: Unseen) -> str:
    """Return an unseen step's location, its reason, and what it may hide."""
    if step.decides and not (step.hides or step.casts):
        return f"{step_place(step)} {printable(step.reason, 500)}"
    means = "may hide an error" if step.hides else "has operands without error"
    if step.casts:
        means = f"{means} and casts" if step.hides else "may hide casts"
    return f"{step_place(step)} {printable(step.reason, 500)}; it {means}"


def outputs(report: CastReport, width: int | None = None) -> list[str]:
    """Return a line for each output; of many, for the first that are most wrong, or unknown.

    In a `width` a line has the greatest error alone, and a long name is cut.
    """
    worst = sorted(report.outputs, key=lambda x: (x.is_known, not x.broken, -(x.norm or 0.0)))
    first = [error for error in report.outputs if error in worst[:MAX_OUTPUTS]]
    others = len(report.outputs) - len(first)
    more = [f"... and {count_text(others, 'other output')}"] if others else []
    return [*(output(x) if width is None else _output_within(x, width) for x in first), *more]


MAX_OUTPUTS = 4
"""The most outputs that have a line each."""


def output(error: OutputError) -> str:
    """Return the phrase for an output's error against the run in wide arithmetic."""
    name = printable(f"{error.name}: {error.dtype}")
    if error.differing is None:
        return f"{name}, {count_text(error.elements, 'element')}: error unknown"
    parts = [f"{error.differing} of {error.elements} differ from wide arithmetic"]
    if error.broken:
        parts.append(f"{error.broken} are no longer finite")
    if error.differing:
        most, mean = f"{error.largest:.3g}", f"{error.rms:.3g}"
        parts.append(f"by {most} at most (relative {error.relative:.2g}), rms {mean}")
    if error.rounds > 1 and error.differing:
        parts.append(f"first in round {error.first_round} of {error.rounds}")
    if error.overlaps:
        parts.append(OVERLAP)
    return f"{name}, {', '.join(parts)}"


def _output_within(error: OutputError, width: int) -> str:
    """Return the phrase for an output's greatest error, with as much of its name as has room."""
    facts = [f", {count_text(error.elements, 'element')}: error unknown"]
    if error.differing is not None:
        facts = [f", {error.differing} of {error.elements} differ"]
        facts += [f", {error.broken} not finite"] if error.broken else []
        facts += [f", by {error.largest:.3g} at most", f" (relative {error.relative:.2g})"]
        facts = facts if error.differing else facts[:1]
    name, line, number = printable(error.name).rpartition(" in line ")
    while True:
        text = f"{line}{number}: {error.dtype}{''.join(facts)}"
        room = width - len(text)
        if room >= min(len(name), _LEAST_NAME) or len(facts) < 2:
            break
        facts.pop()
    name = (
        name if len(name) <= max(room, 1) else f"{name[: max(room, 1) - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
    return name + text


_LEAST_NAME = 16
"""The characters of an output's name that count for more than its relative error."""

OVERLAP = "shares overlap: errors cancel one another, or pass through a cancellation"
"""The phrase for shares outside of [0, 1]."""


def conversion(row: CastRow) -> str:
    """Return the dtypes of a cast: `int16 -> float16`; of a step its dtype and op: `uint8 add`."""
    if _is_loss(row):
        return f"{row.source} {row.op}"
    return f"{row.source} -> {row.target}"


def conversion_at(row: CastRow) -> str:
    """Return the conversion of a row and its place."""
    return f"{conversion(row)} at {printable(row.location.layered)}"


def path(row: CastRow) -> str:
    """Return the path up the lattice in short dtype names: `i16 -> i32 -> f32`."""
    return " -> ".join(dtype.short for dtype in row.path)


def place(site: CastSite) -> str:
    """Return the place of a site and its layer: `a.py:3:5`, or the columns of all of its uses."""
    at, file_and_line = site.row.location, site.row.location.place[:2]
    spans = [x.location for x in site.rows if x.location.place[:2] == file_and_line]
    first = min(x.column for x in spans)
    if not at.file or not at.line or max(x.column for x in spans) == first:
        return printable(at.layered)
    last = max(x.end_column - 1 if x.end_line == x.line else x.column for x in spans)
    layer = f" [{printable(at.layer)}]" if at.layer else ""
    return f"{printable(at.file)}:{at.line}:{first}-{last}{layer}"


def why(row: CastRow) -> str:
    """Return the phrase for the origin of the cast: a rule set and path, the program, a store."""
    if row.kind in _WRITERS:
        return _WRITERS[row.kind]
    if row.kind == "exporter":
        return f"inserted by {printable(row.op)}"
    if _is_loss(row):
        return f"lost values: {row.kind}"
    cause = row.demanding
    place = "" if cause is None else f", as {cause.op.name} at {printable(cause.location.layered)}"
    return f"under {printable(row.rule)} ({path(row)}){place}"


_WRITERS: dict[str, str] = {
    "explicit": "written by the program",
    "legalization": "no machine computes in it",
    "autocast": "inserted by autocast",
    "assignment": "written to an array of that dtype",
}
"""The origins of casts that no rule set inserts, by the kind of cast."""


def operands(site: CastSite) -> str:
    """Return the operands of a site's op: `lhs, rhs of divide`."""
    row = site.row
    names = dict.fromkeys(x.operand for x in site.rows if x.op == row.op)
    return f"{', '.join(names)} of {row.op}"


def what(row: CastRow) -> str:
    """Return the phrase for the cast operand: `rhs of add`, with a note for a literal."""
    return f"{row.operand} of {row.op}" + (", a number" if row.kind == "literal" else "")


def widths(site: CastSite) -> str:
    """Return the bytes of an element before and after, and the total bytes of the cast arrays.

    Returns "" for a step of arithmetic.
    """
    row = site.row
    if _is_loss(row):
        return ""
    return (
        f"{row.bytes_before} -> {row.bytes_after} an element, {size_text(site.bytes_added)} in all"
    )


def elsewhere(row: CastRow) -> str:
    """Return the other rule sets' answers: `float32: numpy, jax; refuse: max_strict`."""
    names: dict[str, list[str]] = {}
    for name, answer in row.others.items():
        text = "refuse" if isinstance(answer, str) else str(answer)
        names.setdefault(text, []).append(printable(name))
    dtypes_first = sorted(names.items(), key=lambda item: item[0] == "refuse")
    return "; ".join(f"{answer}: {', '.join(each)}" for answer, each in dtypes_first)


def measured(site: CastSite) -> list[str]:
    """Return phrases for the measurements of a site's casts; an empty list without a run."""
    measure = site.measured
    if measure is None:
        return []
    verb = VERBS.get(site.row.kind, "changed")
    phrases = [f"{measure.changed} of {count_text(measure.elements, 'element')} {verb}"]
    if _is_loss(site.row):
        return [*phrases, f"at worst {loss(site)}, relative error {measure.relative:.2g}"]
    for name in ("overflowed", "underflowed", "nan_made"):
        if count := getattr(measure, name):
            phrases.append(f"{count} {'made NaN' if name == 'nan_made' else name}")
    if measure.worst is not None and measure.changed:
        before, after = (number_text(number) for number in measure.worst)
        phrases.append(f"at worst {before} -> {after}")
    if measure.changed:
        phrases.append(f"relative error {measure.relative:.2g}, {measure.ulps:.3g} ulp")
    return phrases


def shares(site: CastSite, report: CastReport) -> list[str]:
    """Return phrases for the nonzero shares of each output's error that a site's casts explain."""
    if not report.outputs:
        return []
    if site.shares is None:
        return [UNKNOWN_ERROR]
    pairs = zip(report.outputs, site.shares, strict=False)
    return [f"{percent(share)} of the error of {printable(x.name)}" for x, share in pairs if share]


MAX_PLACES = 4
"""The most further places that the uses of a site list."""


def uses(site: CastSite) -> str:
    """Return the number of uses, and the places besides the site's own: `3, also at a.py:7:5`."""
    _, *further = site.places
    places = [printable(place.layered) for place in further[:MAX_PLACES]]
    if len(further) > MAX_PLACES:
        places.append(count_text(len(further) - MAX_PLACES, "other place"))
    return f"{site.times}, also at {', '.join(places)}" if places else str(site.times)


def layers(report: CastReport) -> list[tuple[str, ...]]:
    """Return the table of layers, its titles first; [] for a graph that no source made.

    The columns of kinds that do not occur are left out, and so are those of an audit without one.
    """
    totals = report.layers
    if not report.graph.provenance.library or len(report.unfiltered.layers) < 2:
        return []
    kinds = [kind for kind in get_args(Kind) if any(each.kinds.get(kind) for each in totals)]
    is_audit = bool(report.outputs)
    head = ("layer", "casts", "can lose", *kinds, "bytes", *("overflowed", "share") * is_audit)
    rows: list[tuple[str, ...]] = [head]
    for each in totals:
        sizes = size_text(each.bytes_before), size_text(each.bytes_after)
        bytes_text = " -> ".join(sizes) if each.casts else ""
        facts = [str(each.casts), str(each.lossy), *(str(each.kinds.get(x, 0)) for x in kinds)]
        share_text = UNKNOWN_ERROR if each.share is None else percent(each.share)
        run = (str(each.overflowed), share_text) * is_audit
        rows.append((printable(each.layer) or OUTSIDE, *facts, bytes_text, *run))
    return rows


OUTSIDE = "(no layer)"
"""The name of the part of a program that is in no layer."""


LIBRARY = "inside functions of libraries:"
"""The line above the rows of casts that library functions make of values of their own."""


UNKNOWN_ERROR = "unknown"
"""The text of a share that the audit did not attribute."""


def share(site: CastSite) -> str:
    """Return a site's largest share of an output's error, with its sign; "" without a run.

    Instead of no share, the answer says why the site's changes are in no output.
    """
    if site.vanished and not site.share:
        return vanishing(site.row)
    if site.share is None:
        return UNKNOWN_ERROR
    if not site.shares:
        return ""
    return percent(max(site.shares, key=abs))


def vanishing(row: CastRow) -> str:
    """Return why the changes of a row are in no output: the program truncates, or loses them."""
    truncates = row.source.is_inexact and row.target.is_integer
    return "as asked" if truncates and row.conversion.on_request else "none differs"


def percent(share: float) -> str:
    """Format a share as a percentage: `62 %`, `< 1 %`."""
    if 0 < abs(share) < 0.01:
        return "< 1 %"
    return f"{share:.0%}".replace("%", " %")


def number_text(number: complex) -> str:
    """Format a number in 9 significant digits, which distinguish neighbouring float32 values."""
    return str(number) if isinstance(number, (int, complex)) else f"{number:.9g}"


def size_text(size: Size) -> str:
    """Format a size: digits in groups of three, or an expression of symbolic dims."""
    return f"{size:,}" if isinstance(size, int) else str(size)


def against(report: CastReport) -> list[str]:
    """Return the lines of the comparison with other rules; none without a comparison."""
    diff = report.against
    if diff is None:
        return []
    rows = [[printable(cell) for cell in row] for row in diff.table()]
    table = aligned(rows) if len(rows) > 1 else []
    errors = (printable(line, 500) for line in diff.errors())
    sentences = (line for answer in diff.answers for line in answer.lines)
    return [printable(diff.headline()), *sentences, *table, *errors]


# -- source regions


class SourceRegion(NamedTuple):
    """A region of a source file; lines and columns count from 1, in characters, end exclusive.

    `source` is the path of the readable source file, or "" without one.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    source: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the region is known: it holds at least one character."""
        return (self.line, self.column) < (self.end_line, self.end_column)

    def columns(self, line: int, text: str) -> tuple[int, int]:
        """Return the region's part of a line, as (start, end) offsets in the line's `text`."""
        start = self.column - 1 if line == self.line else len(text) - len(text.lstrip())
        end = self.end_column - 1 if line == self.end_line else len(text)
        return min(start, len(text)), min(end, len(text))


def whole(location: Location) -> SourceRegion:
    """Return the region of the whole expression at a location."""
    ends = location.end_line, location.end_column
    return SourceRegion(location.file, location.line, location.column, *ends, location.source)


def region(row: CastRow) -> SourceRegion:
    """Return the region of the cast operand, or of the expression if the operand's is unknown."""
    expression, (start, end), location = row.expression, row.span, row.location
    if expression is None or start == end:
        return whole(location)
    first, last = (_advance(location, expression.text[:at]) for at in (start, end))
    return SourceRegion(location.file, *first, *last, location.source)


def line_of(place: SourceRegion) -> str:
    """Return the first line of a region without its line break; "" if there is no source."""
    return line_at(place.source, place.line)


def line_at(source: str, number: int) -> str:
    """Return a line of a source file without its line break; "" if there is no source."""
    return source_line(source, number).rstrip("\r\n")


def _advance(location: Location, text: str) -> tuple[int, int]:
    """Return the (line, column) after a text that begins at a location."""
    breaks = text.count("\n")
    if not breaks:
        return location.line, location.column + len(text)
    return location.line + breaks, len(text) - text.rfind("\n")

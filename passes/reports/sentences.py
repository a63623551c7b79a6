"""The sentences above a report's table: why a result is wide, and which line lost its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphir.display import count_text, printable
from graphir.ir.op_builder import infer
from graphir.ops.types import NoTensorType
from graphir.passes.analysis.casts.behind_casts import (
    in_call,
    next_values,
    stores,
    uncast,
)
from graphir.passes.analysis.casts.sites import overflows
from graphir.passes.analysis.explanations.causes import Cause, DtypeCause, LossCause
from graphir.passes.analysis.explanations.dtype_walk import is_update
from graphir.passes.analysis.explanations.edits import UncastOp, operand_name, wide_argument
from graphir.passes.analysis.explanations.loss_causes import first_overflow
from graphir.passes.analysis.expressions import (
    CastSyntax,
    buffer_line,
    default_dtype,
    expression,
    named_dtype,
    syntax_of,
)
from graphir.passes.analysis.rebuild import is_literal
from graphir.passes.reports import phrases
from graphir.passes.rewriter import is_conversion, origins_of
from graphir.public import DType, GraphirError, Location, Symbol, ops
from graphir.source_text import is_cell

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import CastReport
    from graphir.passes.analysis.casts.rows import CastRow
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.diff import Change, GraphDiff


class Sentence(NamedTuple):
    """A sentence of a report, with what to write instead; `cause` is None of a note of a run.

    An edit is the place of its line, "" for that of the sentence, and the text to write there.
    """

    text: str
    cause: Cause | None = None
    edits: tuple[tuple[str, str], ...] = ()
    grade: str = ""

    @property
    def advice(self) -> str:
        """The edits in one line: `write x and y in line 4`."""
        edits = " and ".join(f"{text} in {line}" if line else text for line, text in self.edits)
        return f"write {printable(edits, 1000)}" if edits else ""

    @property
    def instructions(self) -> list[tuple[str, str]]:
        """Each edit, after what leads to it: `write in line 4:`."""
        leads = [f" in {line}:" if line else ":" for line, _ in self.edits]
        verbs = ["write", *["and"] * len(leads)]
        texts = (printable(text, None) for _, text in self.edits)
        return [(verb + lead, text) for verb, lead, text in zip(verbs, leads, texts, strict=False)]

    @property
    def lines(self) -> list[str]:
        """The sentence, and each edit as a line, the last one before the grade."""
        edits = (f"  {lead} {text}" for lead, text in self.instructions)
        *lines, last = self.text, *edits
        return [*lines, f"{last}{' ' * 6}{self.grade}".rstrip()]

    def __str__(self) -> str:
        grade = f" ({self.grade})" if self.grade else ""
        return f"{self.text}; {self.advice}{grade}" if self.edits else self.text


def answers_of(report: CastReport) -> list[Sentence]:
    """Return what a report explains, the gravest answer first; `report.answers` keeps them.

    A wide result is graver than an error of a few roundings.
    """
    lossy, roundings = list[Sentence](), list[Sentence]()
    for cause in report.loss_causes:
        (roundings if _is_rounding(report, cause) else lossy).append(_loss(report, cause))
    widened = [x for x in report.dtype_causes if x.outputs]
    inner = [x for x in report.dtype_causes if not x.outputs]
    most = [x for x in inner if x.following >= inner[0].following / 2][:_MOST_INNER]
    wide, inside = ([_dtype_cause(report, x) for x in causes] for causes in (widened, most))
    by_text = {str(x): x for x in reversed((*lossy, *wide, *roundings, *inside))}
    return [x._replace(text=printable(x.text, _LONGEST)) for x in by_text.values()][::-1]


def _is_rounding(report: CastReport, cause: LossCause) -> bool:
    """Whether the error that a cause makes is one of roundings to float32 at most."""
    errors = [report.outputs[x] for x in cause.outputs]
    return bool(errors) and all(x.norm is not None and x.norm < 2**-20 for x in errors)


def answers_of_rows(report: CastReport) -> list[Sentence]:
    """Return what a report explains by causes, of a filtered one those at places of its rows."""
    causes = [x for x in report.answers if x.cause is not None]
    if report is report.unfiltered:
        return causes
    places = {row.location.place for site in report.sites for row in site.rows}
    return [x for x in causes if x.cause and any(y.location.place in places for y in x.cause.steps)]


def sentences(report: CastReport) -> list[str]:
    """Return the answers of a report, then the notes of its graph, each once."""
    texts = dict.fromkeys(map(str, (*report.answers, *report.graph.notes)))
    return [printable(text, _LONGEST) for text in texts]  # names are the program's


def _first_overflow(report: CastReport, row: CastRow) -> str:
    """Return what overflows in a step or a cast, and how far."""
    measured = row.measured
    assert measured is not None  # of a row that overflows
    greatest = measured.greatest
    if row.kind == "overflow" and measured.worst is not None:
        greatest = abs(measured.worst[0])
    layer = f" [{printable(row.layer)}]" if row.layer else ""
    what = f"`{printable(row.text)}`" if row.text else phrases.what(row)
    limit = phrases.number_text(float(row.target.max))
    reach = f"reaches {phrases.number_text(greatest)}, beyond {limit}," if greatest else "overflows"
    count = f"{overflows(row):,} of {count_text(measured.elements, 'element')}"
    place = f"{_place(report, row.location)}{layer}"
    return f"{row.target} overflows first in {place}: {what} {reach} in {count}"


def differences(diff: GraphDiff) -> list[Sentence]:
    """Return the notes of the graph, and a sentence for each output of different dtypes.

    A sentence names the first cause, and the line to type so that both make the dtype of the first.
    """
    changes = {change.symbol.index: change for change in diff}
    sentences_by_text = {x: Sentence(printable(x, _LONGEST)) for x in diff.graph.notes}
    for number, output in enumerate(diff.view.outputs):
        change = cause = changes.get(output.index)
        while cause is not None and cause.causes:
            cause = changes.get(cause.causes[0].index)
        if change is None or cause is None or change.errors or cause.errors:
            continue
        name = f"output{number}" if len(diff.view.outputs) > 1 else "the result"
        dtypes = f"{change.after} under {diff.after.name} and {change.before} under "
        location, source = cause.symbol.location, expression(cause.symbol.location)
        text = f": {printable(source.brief)}" if source else ""
        place = _line(location) if location.file else location.layered
        why = f"because {place} is {cause.after}, not {cause.before}{text}"
        text = f"{name} is {dtypes}{diff.before.name}, {why}"
        edit = _alike(diff, cause) if diff.advises else ""
        edits = (("", edit),) if edit else ()
        sentences_by_text.setdefault(text, Sentence(printable(text, _LONGEST), None, edits))
    return [*sentences_by_text.values()]


def _alike(diff: GraphDiff, cause: Change) -> str:
    """Return the text that casts the operands so that both rule sets make one dtype; else ""."""
    symbol, dtype = cause.symbol, cause.before
    if not isinstance(dtype, DType) or dtype.weak or symbol.location.compound:
        return ""
    positions = symbol.op.signature.promoted or range(len(symbol.args))
    casts = {i: dtype for i in positions if not is_literal(symbol.args[i])}
    if not casts:
        return ""
    types = [x.type.cast(casts.get(i, x.dtype)) for i, x in enumerate(symbol.args)]
    try:
        result = infer(diff.after, symbol.op, tuple(types), symbol.attrs).type
    except GraphirError:
        return ""
    edit = UncastOp(diff.after, symbol.op, symbol.args).edit(symbol.location, casts)
    return edit.text if result.dtype is dtype and edit else ""


def _loss(report: CastReport, cause: LossCause) -> Sentence:
    """Return the sentence about the cause of an output's error."""
    first = None if cause.outputs else first_overflow(report)
    if first is not None and first.symbol.index == cause.step.index:
        return Sentence(_first_overflow(report, first), cause, *_advice(report, cause))
    sites = {row.symbol.index: site for site in report.sites for row in site.rows}
    steps = [(sites.get(step.index), step) for step in cause.steps]
    texts = [lossy_step(report, *pair) for pair in steps[:_MOST_STEPS]]
    if len(steps) > _MOST_STEPS:
        texts.append(count_text(len(steps) - _MOST_STEPS, "other step"))
    places = " and ".join(texts)
    advice = _advice(report, cause)
    if not cause.outputs:
        return Sentence(f"{places}; what it does to the result is unknown", cause, *advice)
    number = cause.outputs[0]
    error = report.outputs[number]
    name = printable(error.name) if len(report.outputs) > 1 else "the result"
    effect = "" if cause.is_measured else ", by estimate"
    if cause.is_measured and cause.after >= _VISIBLE:
        effect = f"; without that, it would be wrong by {100 * cause.after:.2g} %"
    named = [_place(report, step.location) for step in cause.steps]
    others = dict.fromkeys(_place(report, step.location) for step in cause.others)
    also = [place for place in others if place not in named][:_MOST_STEPS]
    also = f"; exact values in {' or '.join(also)} would do as well" if also else ""
    undone = _undone(report, cause)
    text = f"{name} {phrases.wrongness(error)} because {places}{undone}{effect}{also}"
    return Sentence(text, cause, *advice)


def _undone(report: CastReport, cause: LossCause) -> str:
    """Return where a promotion undoes the cast that is a cause; "" without one."""
    cast = report.undone_casts.get(cause.step.index) if is_conversion(cause.step) else None
    if cast is None:
        return ""
    source = origins_of(cast)[0].location
    return f", and {_place(report, source)} promotes {cast.args[0].dtype} back to {cast.dtype}"


_VISIBLE = 1e-3
"""The error that is left without a cause, from which its sentence names it."""

_MOST_STEPS = 2
"""The most steps of a cause that a sentence describes."""


def lossy_step(report: CastReport, site: CastSite | None, step: Symbol) -> str:
    """Return what a step did: that of its site, or a store to an array of its dtype."""
    if site is None:
        return f"{_place(report, step.location)} stores {step.dtype}"
    row, measured = site.row, site.measured
    operand = _operand_of_many(report, site, step)
    if operand:
        row = next(x for x in site.rows if x.symbol.index == step.index)
        measured = row.measured
    count = "" if measured is None else f"{measured.changed:,} of {measured.elements:,} elements"
    count += operand
    act = phrases.ACTS.get(row.kind, "changes {} by " + phrases.conversion(row)).format(count)
    what = f"{row.source} {row.op}" if row.kind in phrases.VERBS else phrases.what(row)
    worst = phrases.loss(site)
    if row.kind not in phrases.VERBS and measured is not None and measured.worst is not None:
        worst = phrases.became(*measured.worst)
    source = f" in `{printable(row.expression.brief)}`" if row.expression else f" in {what}"
    source = source + _argument_inside(row) if row.location.line else ""
    return f"{_place(report, row.location)} {act} ({what}: {worst}){source}"


def _argument_inside(row: CastRow) -> str:
    """Return `, by line 62: image[ids]` for the line inside of a call that makes its dtype."""
    place, steps = row.location.place, row.symbol.graph.symbols
    _, first, _, last, _ = place
    if last == first:
        return ""
    values = (uncast(x) for step in steps if step.location.place == place for x in step.args)
    lines = (x for x in values if x.location.file == place[0] and first < x.location.line <= last)
    dtypes = ((x, None if isinstance(x.type, NoTensorType) else x.dtype) for x in lines)
    argument = next((x.location for x, dtype in dtypes if dtype is row.target), None)
    source = None if argument is None else expression(argument)
    return f", by {_line(argument)}: {printable(source.brief)}" if argument and source else ""


def _operand_of_many(report: CastReport, site: CastSite, step: Symbol) -> str:
    """Return ` of w` for the operand of a step, if its expression casts several values; else "".

    The value has the name of an input, or the line that made it: `model.to(dtype)` casts them all.
    """
    rows = [row.symbol for row in site.rows if row.symbol.args]
    values = [uncast(x.args[0]) for x in rows]
    operands = {x.index if x.op is ops.input else x.location for x in values}
    if len(operands) < 2 or site.row.kind != "explicit" or all(x.index != step.index for x in rows):
        return ""
    value = uncast(step.args[0])
    if value.op is ops.input:
        names = zip(value.graph.inputs, value.graph.input_names, strict=True)
        return f" of {next(printable(name) for x, name in names if x is value)}"
    source = expression(value.location)
    text = f", `{printable(source.brief)}`," if source else ""
    line = buffer_line(value.location)
    text += f" a buffer since line {line}," if line else ""
    return f" of the value of {_place(report, value.location)}{text}"


_MOST_INNER = 3
"""The greatest number of sentences about values that are wide within the program."""

_LONGEST = 2000
"""The most characters of a sentence."""


def _dtype_cause(report: CastReport, cause: DtypeCause) -> Sentence:
    """Return the sentence about a step by which values are wider than the data."""
    text = f"{_what_is_wide(report, cause)} because {_why_wide(report, cause)}"
    step, position = cause.step, cause.operand
    if position is not None and next_values(step.args[position]):
        start = _start(uncast(step.args[position]), cause.before, syntax_of(report.graph))
        return Sentence(f"{text}; start {step.args[position].op.name} with {start}", cause)
    return Sentence(text, cause, *_advice(report, cause))


def _why_wide(report: CastReport, cause: DtypeCause) -> str:
    """Return what the step of a cause does, and since which line its operand is wide."""
    step, position, entry = cause.step, cause.operand, cause.entries[0]
    values = [uncast(x) for x in step.args]
    head = _place(report, step.location)
    source = expression(step.location)
    text = f": {printable(source.brief)}" if source else ""
    origin = f" of {_place(report, cause.birth.location)}" if cause.birth is not None else ""
    birth = step if entry.birth is None else entry.birth
    named = named_dtype(birth.location, cause.after)
    origin += f", {printable(str(named))}" if named else ""
    if step.op is ops.cast and source is not None and (span := default_dtype(source.text)):
        rule = f"is {cause.after} under {report.graph.rules.name}"
        return f"{head} converts {cause.before} to `{source.text[slice(*span)]}`, which {rule}"
    if step.op is ops.input:
        names = zip(step.graph.inputs, step.graph.input_names, strict=True)
        name = next(name for x, name in names if x is step)
        return f"the argument `{printable(name)}` is {cause.after}"
    if stores(step) or is_update(step):
        return f"{head} stores {cause.before} in {_article(str(cause.after))}{origin}{text}"
    if step.op is ops.cast and not in_call(step):
        return f"{head} converts {values[0].dtype} to {cause.after}{text}{origin}"
    wide = None if entry.argument is None else wide_argument(step)
    if entry.argument is not None and wide is not None:
        name = f"`{printable(wide.text)}`, {_article(str(entry.argument.dtype))}{origin}"
        return f"{head} has {step.origins[0].op} of {name}"
    if position is None or values[position].dtype is not cause.after:
        dtypes = " and ".join(dict.fromkeys(_dtype_of(x) for x in values))
        origin = origin and f", {_article(str(values[position or 0].dtype))}{origin}"
        return f"{head} promotes {dtypes} to {cause.after}{text}{origin}"
    operand = printable(source.operand(position)) if source and not step.location.compound else ""
    name = printable(operand_name(step.op, values[position], position))
    operand = f"`{' '.join(operand.split())}`" if operand else name
    verb = _VERBS.get(step.op.name, f"has {step.op.name} of")
    return f"{head} {verb} {operand}, {_article(str(cause.after))}{origin}"


def _dtype_of(value: Symbol) -> str:
    """Return the dtype of a value, of a Python number its type."""
    return f"a Python {value.dtype.family}" if value.dtype.weak else str(value.dtype)


def _what_is_wide(report: CastReport, cause: DtypeCause) -> str:
    """Return what a cause makes wide: the outputs, or the steps of other lines."""
    if not cause.outputs:
        steps = "a step" if cause.following == 1 else f"{cause.following} steps"
        return f"{cause.before} becomes {cause.after}, for {steps} after it,"
    outputs = report.explicit.outputs
    dtype = report.explicit.concrete_dtype(outputs[cause.outputs[0]].dtype)
    if len(outputs) == 1:
        return f"the result is {dtype}"
    names = [printable(report.output_name(i)) for i in cause.outputs[:2]]
    more = len(cause.outputs) - 1
    names[1:] = [f"{more} other outputs"] if more > 1 else names[1:]
    return f"{' and '.join(names)} {'are' if more else 'is'} {dtype}"


def _advice(report: CastReport, cause: Cause) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return a cause's edits (see Sentence), and their grade; empty without a fix."""
    fix = cause.fix
    if fix is None:
        return (), ""
    line = cause.place.place[:2]
    elsewhere = [x.is_code and x.place.place[:2] != line for x in fix.edits]
    edits = tuple(
        (_place(report, x.place) if is_elsewhere else "", x.text)
        for x, is_elsewhere in zip(fix.edits, elsewhere, strict=True)
    )
    facts = [] if fix.wanted is None else [str(fix.wanted)]
    facts += [] if fix.error is None else [f"error {fix.error:.2g}"]
    facts += [] if fix.loses is None else [f"loses {phrases.number_text(fix.loses)}"]
    is_code = all(x.is_code for x in fix.edits)
    grade = f"{fix.grade}: {', '.join(facts)}" if fix.grade else "not tried" * is_code
    return edits, grade


def _start(value: Symbol, narrow: DType | None, syntax: CastSyntax) -> str:
    """Return the narrow value with which a loop is to start."""
    number = ""
    if narrow is not None and value.op is ops.constant and not value.rank:
        number = syntax.number_of(repr(value.attrs["value"].item()), narrow)
    return number or f"its value as {narrow or 'a narrower dtype'}"


_VERBS = {
    "add": "adds",
    "subtract": "subtracts",
    "multiply": "multiplies by",
    "divide": "divides by",
    "matmul": "multiplies by",
    "concat": "joins",
    "stack": "joins",
}


def _place(report: CastReport, location: Location) -> str:
    """Return a line of the program: `line 20`, with its file if the report names several.

    A node of a model has its name.
    """
    files = {row.location.file for row in (*report.rows, *report.losses)} | {location.file}
    if not location.file:
        return location.layered
    if len(files) == 1 or not location.line or is_cell(location.file):
        return _line(location)
    return f"{_line(location)} of {printable(location.file)}"


def _line(location: Location) -> str:
    """Return a line, in a notebook with its cell, or a node by its name."""
    if not location.line:
        return f"`{printable(location.file)}`"
    cell = f" of {printable(location.file)}" if is_cell(location.file) else ""
    return f"line {location.line}{cell}"


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"

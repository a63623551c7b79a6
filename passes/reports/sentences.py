"""The sentences above a report's table: why a result is wide, and which line lost its values."""

from __future__ import annotations

from collections.abc import Iterator, Set
from inspect import signature
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from graphir.display import count_text, printable
from graphir.ir.op_builder import infer
from graphir.location import NUMPY
from graphir.passes.analysis.casts.behind_casts import in_call, next_values, uncast
from graphir.passes.analysis.casts.ranking import LossCause, is_modular
from graphir.passes.analysis.casts.report import LossRow
from graphir.passes.analysis.casts.sites import overflows
from graphir.passes.analysis.explanations.edits import Edit, UncastOp, operand_name
from graphir.passes.analysis.explanations.fixes import maker_edit, number_edit, source_edit, wider
from graphir.passes.analysis.expressions import (
    CastSyntax,
    call_argument,
    default_dtype,
    expression,
    syntax_of,
    whole_expression,
)
from graphir.passes.analysis.rebuild import is_literal
from graphir.passes.reports import phrases
from graphir.public import DType, Graph, GraphirError, Location, Symbol, ops
from graphir.source_text import is_cell

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import CastReport
    from graphir.passes.analysis.casts.sites import CastSite
    from graphir.passes.analysis.diff import Change, GraphDiff
    from graphir.passes.analysis.explanations.causes import Cause
    from graphir.passes.analysis.explanations.entries import Entry


def sentences(report: CastReport) -> list[str]:
    """Return the sentences of a report, the gravest first; none if nothing is to be explained."""
    causes = list(_causes(report))
    lossy = dict.fromkeys(_loss(report, cause) for cause in causes)
    overflow = _overflow(report, {step.index for cause in causes for step in cause.steps})
    widened = [x for x in report.dtype_causes if x.outputs]
    inner = [x for x in report.dtype_causes if not x.outputs]
    most = [x for x in inner if x.following >= inner[0].following / 2][:_MOST_INNER]
    dtypes = dict.fromkeys(_dtype_cause(report, x) for x in (*widened, *most))
    texts = [*report.graph.notes, *lossy, *overflow, *dtypes]
    return [printable(text, _LONGEST) for text in texts]  # names come from the program


def _overflow(report: CastReport, causes: Set[int]) -> list[str]:
    """Return the sentence about the first op whose values overflow its float dtype, if any does.

    Returns none if it is among the causes that other sentences are about.
    """
    rows = [row for row in (*report.rows, *report.losses) if overflows(row)]
    if not rows or not report.graph.provenance.library:
        return []
    row = min(rows, key=lambda row: row.symbol.index)
    same = [x for x in report.losses if x.kind == "overflow" and x.location == row.location]
    if any(x.symbol.index in causes for x in same):
        return []
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
    return [f"{row.target} overflows first in {place}: {what} {reach} in {count}"]


def differences(diff: GraphDiff) -> list[str]:
    """Return the notes of the graph, and a sentence for each output of different dtypes.

    A sentence names the first cause, and the line to type so that both make the dtype of the first.
    """
    changes = {change.symbol.index: change for change in diff}
    texts: dict[str, None] = {}
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
        why = f"because {place} is {cause.after}, not {cause.before}{text}{_alike(diff, cause)}"
        texts.setdefault(f"{name} is {dtypes}{diff.before.name}, {why}")
    return [*(printable(text, _LONGEST) for text in diff.graph.notes), *texts]


def _alike(diff: GraphDiff, cause: Change) -> str:
    """Return the advice to cast the operands so that both rule sets make one dtype; else ""."""
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
    return f"; write {printable(edit.text)}" if result.dtype is dtype and edit else ""


def _causes(report: CastReport) -> Iterator[LossCause]:
    """Yield the causes of the errors of outputs, those of the same steps once.

    If all errors are unknown, the cause is the first site if its integers wrapped, with number -1.
    """
    causes: dict[tuple[int, ...], LossCause] = {}
    for cause in report.loss_causes:
        causes.setdefault(tuple(step.index for step in cause.steps), cause)
    yield from causes.values()
    first = next(iter(report.sites), None)
    if first is not None and first.row.kind == "wrap":
        is_unknown = not any(error.is_known for error in report.outputs)
        places = {row.symbol.index for row in first.rows}
        if is_unknown and not is_modular(report.explicit, places):
            yield LossCause(-1, (first.row.symbol,), (), 0.0, 0.0, is_measured=False)


def _loss(report: CastReport, cause: LossCause) -> str:
    """Return the sentence about the cause of an output's error."""
    sites = {row.symbol.index: site for site in report.sites for row in site.rows}
    steps = [(sites.get(step.index), step) for step in cause.steps]
    texts = [_lossy_step(report, *pair) for pair in steps[:_MOST_STEPS]]
    if len(steps) > _MOST_STEPS:
        texts.append(count_text(len(steps) - _MOST_STEPS, "other step"))
    places = " and ".join(texts)
    lossy = steps[0][0]
    edits = [edit for pair in steps for edit in _edits(report, *pair, lossy)]
    place = steps[0][1].location
    fixes = dict.fromkeys(edit.seen_from(place) for edit in edits if edit is not None)
    fix = f"; write {printable(' and '.join(fixes), 1000)}" if fixes else ""
    number = cause.output
    if number < 0:
        return f"{places}; what it does to the result is unknown{fix}"
    error = report.outputs[number]
    name = printable(error.name) if len(report.outputs) > 1 else "the result"
    effect = "" if cause.is_measured else ", by estimate"
    if cause.is_measured and cause.after >= _VISIBLE:
        effect = f"; without that, it would be wrong by {100 * cause.after:.2g} %"
    return f"{name} {phrases.wrongness(error)} because {places}{effect}{fix}"


_VISIBLE = 1e-3
"""The error that is left without a cause, from which its sentence names it."""

_MOST_STEPS = 2
"""The most steps of a cause that a sentence describes."""


def _lossy_step(report: CastReport, site: CastSite | None, step: Symbol) -> str:
    """Return what a step did: that of its site, or a store to an array of its dtype."""
    if site is None:
        return f"{_place(report, step.location)} stores {step.dtype}"
    row, measured = site.row, site.measured
    count = "" if measured is None else f"{measured.changed:,} of {measured.elements:,} elements"
    act = phrases.ACTS.get(row.kind, "changes {} by " + phrases.conversion(row)).format(count)
    what = f"{row.source} {row.op}" if row.kind in phrases.VERBS else phrases.what(row)
    worst = phrases.loss(site)
    if row.kind not in phrases.VERBS and measured is not None and measured.worst is not None:
        worst = phrases.became(*measured.worst)
    source = f" in `{printable(row.expression.brief)}`" if row.expression else f" in {what}"
    source = source if row.location.line else ""
    return f"{_place(report, row.location)} {act} ({what}: {worst}){source}"


def _edits(
    report: CastReport, site: CastSite | None, step: Symbol, lossy: CastSite | None
) -> Iterator[Edit | None]:
    """Yield the edits of a site, and of the steps of its line that lost values alike.

    Without a site, the step stores to an array, which gets the dtype that the values of `lossy`
    need.
    """
    if site is None:
        dtype = wider(lossy.row) if lossy is not None and isinstance(lossy.row, LossRow) else None
        if lossy is not None and dtype is not None:
            yield maker_edit(step.args[0], dtype)
        return
    row = site.row
    if row.kind in ("implicit", "assignment") and str(row.target) in row.fix:
        return  # a cast to the same dtype would lose the same values
    alike = [x.row for x in report.sites if x.row.kind == row.kind and row.kind in phrases.VERBS]
    near = [x for x in alike if x.location.place[:2] == row.location.place[:2]]
    edits = [x.edit for x in (row, *near) if x.edit is not None]
    yield from edits or [number_edit(row) or source_edit(row)]


_MOST_INNER = 3
"""The greatest number of sentences about values that are wide within the program."""

_LONGEST = 2000
"""The most characters of a sentence."""


def _dtype_cause(report: CastReport, cause: Cause) -> str:
    """Return the sentence about a step by which values are wider than the data."""
    step, position, entry = cause.step, cause.operand, cause.entries[0]
    values = [uncast(x) for x in step.args]
    effect = _what_is_wide(report, cause)
    head = f"{effect} because {_place(report, step.location)}"
    source = expression(step.location)
    text = f": {printable(source.brief)}" if source else ""
    origin = f" of {_place(report, cause.birth.location)}" if cause.birth is not None else ""
    fix = _fix_text(report, cause)
    if step.op is ops.cast and source is not None and (span := default_dtype(source.text)):
        name = source.text[slice(*span)]
        rule = f"`{name}`, which is {cause.after} under {report.graph.rules.name}"
        return f"{head} converts {cause.before} to {rule}{fix}"
    if step.op is ops.input:
        names = zip(step.graph.inputs, step.graph.input_names, strict=True)
        name = next(name for x, name in names if x is step)
        return f"{effect} because the argument `{printable(name)}` is {cause.after}"
    if step.op is ops.cast and not in_call(step):
        return f"{head} converts {values[0].dtype} to {cause.after}{text}{fix}"
    call = None if entry.argument is None else _argument(report, entry, entry.argument)
    if entry.argument is not None and call is not None:
        wide = _article(str(entry.argument.dtype))
        return f"{head} has {step.origins[0].op} of {call[0]}, {wide}{origin}{call[1]}"
    if position is None or values[position].dtype is not cause.after:
        dtypes = " and ".join(dict.fromkeys(str(x.dtype) for x in values))
        origin = origin and f", {_article(str(values[position or 0].dtype))}{origin}"
        return f"{head} promotes {dtypes} to {cause.after}{text}{origin}{fix}"
    operand = printable(source.operand(position)) if source and not step.location.compound else ""
    name = printable(operand_name(step.op, values[position], position))
    operand = f"`{' '.join(operand.split())}`" if operand else name
    verb = _VERBS.get(step.op.name, f"has {step.op.name} of")
    if next_values(step.args[position]):
        syntax = syntax_of(report.graph)
        start = _start(values[position], cause.before, syntax)
        fix = f"; start {step.args[position].op.name} with {start}"
    return f"{head} {verb} {operand}, {_article(str(cause.after))}{origin}{fix}"


def _what_is_wide(report: CastReport, cause: Cause) -> str:
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


def _fix_text(report: CastReport, cause: Cause) -> str:
    """Return the advice to write a cause's edits, with its grade and what it loses."""
    if cause.fix is None:
        return ""
    line = cause.place.place[:2]
    edits = [
        f"{x.text} in {_place(report, x.place)}" if x.place.place[:2] != line else x.text
        for x in cause.fix.edits
    ]
    grade = f"{cause.fix.grade}: {cause.fix.wanted}"
    if cause.fix.loses is not None:
        grade += f", loses {phrases.number_text(cause.fix.loses)}"
    return f"; write {printable(' and '.join(edits), 1000)} ({grade})"


def _start(value: Symbol, narrow: DType | None, syntax: CastSyntax) -> str:
    """Return the narrow value with which a loop is to start."""
    number = ""
    if narrow is not None and value.op is ops.constant and not value.rank:
        number = syntax.number_of(repr(value.attrs["value"].item()), narrow)
    return number or f"its value as {narrow or 'a narrower dtype'}"


def _argument(report: CastReport, entry: Entry, argument: Symbol) -> tuple[str, str] | None:
    """Return the wide argument of a NumPy function as text, and the advice to cast it.

    Returns None unless the function makes a narrow result of the narrow argument.
    """
    step, origin = entry.step, entry.step.origins[0]
    source, function = whole_expression(step.location), origin.op.removeprefix(NUMPY)
    casts = [
        x
        for x in step.graph.symbols
        if in_call(x) and x.location == step.location and x.origins[0].op == origin.op
    ]
    types = {x.origins[0].operand: uncast(x.args[0]).type for x in casts}
    cast_names = {x.origins[0].operand for x in casts if x.args[0].dtype is not x.dtype}
    try:
        call = attrgetter(function)(np)
        parameters = list(signature(call).parameters)
    except (AttributeError, ValueError):  # an older NumPy
        return None
    position = call_argument(step.location, parameters, cast_names)
    if position < 0 or source is None:
        return None
    narrow = step.args[0].dtype
    types[parameters[position]] = argument.type.cast(narrow)
    probe = Graph("probe", rules=report.graph.rules)
    try:
        result = call(**{name: probe.input(type_) for name, type_ in types.items()})
    except (GraphirError, TypeError):
        return None
    if not isinstance(result, Symbol) or result.dtype is not narrow:
        return None
    text = " ".join(source.operand(position).split())
    cast = syntax_of(report.graph).cast_of(text, narrow)
    advice = " ".join(source.replaced({position: cast}).split())
    return f"`{printable(text)}`", f"; write {printable(advice)} (inferred: {narrow})"


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

"""The search for the causes of dtypes: the entries of one walk, those of one birth together.

A fix is an edit at the birth or, where that changes other outputs or is refused, at the entries. It
is offered if the graph, inferred with the edit, has the dtypes that the outputs have without the
entries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphir.location import Location
from graphir.ops.types import NoTensorType
from graphir.passes.analysis.casts.behind_casts import uncast
from graphir.passes.analysis.explanations.causes import DtypeCause, Remedy
from graphir.passes.analysis.explanations.dtype_walk import ProgramFacts
from graphir.passes.analysis.explanations.edits import (
    Edit,
    UncastOp,
    argument_edit,
    birth_edit,
    call_edit,
    dtype_edit,
    operands_edit,
    value_edit,
)
from graphir.passes.analysis.explanations.entries import Entry, EntryWalk, is_narrower
from graphir.passes.analysis.expressions import expression
from graphir.passes.analysis.rebuild import is_literal, own_dtype
from graphir.promotion.scalars import survives
from graphir.public import DType, Graph, Symbol, ops


def dtype_causes(
    graph: Graph, data: Sequence[Symbol], keep: DType | None = None
) -> list[DtypeCause]:
    """Return the causes of the dtypes of a graph with inline control flow, for inputs of `data`.

    Those of outputs come first, in the order of the program. `keep` is as for EntryWalk.
    """
    walk = EntryWalk(ProgramFacts(graph, data), keep)
    return _Search(walk).causes() if walk.entries or walk.mixed else []


def made_narrow(graph: Graph) -> list[Symbol]:
    """Return the values without operands whose floats are narrower than the rules' own."""
    own = own_dtype(graph.rules, 1.0)
    values = (x for x in graph.symbols if not x.args and not isinstance(x.type, NoTensorType))
    return [x for x in values if own is not None and is_narrower(x.type.dtype, own)]


class _Search:
    """The causes of one graph: its walk, and the trials of fixes."""

    def __init__(self, walk: EntryWalk) -> None:
        self.walk, self.graph = walk, walk.graph

    def causes(self) -> list[DtypeCause]:
        walk, reached = self.walk, dict[int, list[int]]()
        for number, output in enumerate(self.graph.outputs):
            for entry in walk.entries_of(output) if walk.is_changed(output) else ():
                reached.setdefault(entry.step.index, []).append(number)
        following = self._following()
        groups: dict[tuple[bool, object], list[Entry]] = {}
        first = [entry for entry in walk.mixed if entry.step.index in following]
        for entry in (*walk.entries, *first):
            key = entry.step.index in reached, _key(entry)
            groups.setdefault(key, []).append(entry)
        causes: list[DtypeCause] = []
        for (is_output, key), entries in groups.items():
            if (not is_output and (True, key) in groups) or _is_needed(entries[0]):
                continue
            steps = 0 if is_output else sum(following.get(x.step.index, 0) for x in entries)
            if is_output or (steps and not _is_written(entries[0])):
                numbers = sorted({i for x in entries for i in reached.get(x.step.index, ())})
                found, outputs = tuple(entries), tuple(numbers)
                causes.append(DtypeCause(entries=found, outputs=outputs, following=steps))
        causes.sort(key=lambda x: (not x.outputs, -x.following, x.step.index))
        return list(_together(list(self._with_fixes(causes))))

    def _with_fixes(self, causes: Sequence[DtypeCause]) -> Iterator[DtypeCause]:
        """Yield the causes, those that sentences tell with their fixes.

        Each trial infers the graph: so many keep the work in proportion to its size.
        """
        counts = Counter(x.outputs for x in causes)
        of_outputs = [x for x in causes if x.outputs and counts[x.outputs] <= MOST]
        inner = [x for x in causes if not x.outputs]
        tried = {id(x) for x in [*of_outputs, *inner[:MOST]][:TRIALS]}
        for cause in causes:
            fix = self._fix(cause.entries) if id(cause) in tried else None
            yield replace(cause, fix=fix)

    def _following(self) -> dict[int, int]:
        """Return the number of steps of other lines that compute with what each entry widened."""
        walk, symbols = self.walk, self.graph.symbols
        own = {entry.step.index for entry in walk.entries}
        mixed = {entry.step.index for entry in walk.mixed}
        causes: dict[int, int] = {}
        counts: dict[int, int] = {}
        for symbol in symbols:
            cause = symbol.index if symbol.index in own else None
            if cause is None and not isinstance(symbol.type, NoTensorType):
                alike = (x for x in symbol.args if x.index in causes and symbol.op is not ops.cast)
                steps = (causes[x.index] for x in alike if x.type.dtype is symbol.type.dtype)
                cause = next((i for i in steps if i in mixed or walk.is_changed(symbol)), None)
            if cause is None and symbol.index in mixed:
                cause = symbol.index
            if cause is not None:
                causes[symbol.index] = cause
                if symbol.op.computes and _line(symbol.location) != _line(symbols[cause].location):
                    counts[cause] = counts.get(cause, 0) + 1
        return counts

    # -- fixes

    def _fix(self, entries: Sequence[Entry]) -> Remedy | None:
        """Return the first fix that works; none that rounds integers below SINGLE unasked."""
        is_asked = self.walk.keep is not None
        for fix in self._working(entries):
            is_single = entries[0].wanted.part.precision >= SINGLE
            return fix if is_asked or is_single or fix.loses is None else None
        return None

    def _working(self, entries: Sequence[Entry]) -> Iterator[Remedy]:
        """Yield the fixes whose trials give the outputs the dtypes of the walk."""
        first = entries[0]
        birth, wanted = first.birth, first.wanted
        if birth is not None and birth.location.place != first.step.location.place:
            edit = birth_edit(birth, wanted)
            alike = [x for x in self.graph.symbols if _is_same(x, birth)]
            if edit and self._holds(entries, {x.index: wanted for x in alike}, {}):
                yield Remedy((edit,), "inferred", wanted, self._loss(alike, wanted))
        if first.argument is not None:
            edit = argument_edit(self.walk.rules, first.step, first.argument, wanted)
            if edit is not None:
                yield Remedy((edit,), "inferred", wanted, self._loss([first.argument], wanted))
        defaults = {x.step.index: x.wanted for x in entries if x.step.op is ops.cast}
        casts = {(x.step.index, i): x.wanted for x in entries for i in self._operands(x)}
        edits = dict.fromkeys(filter(None, map(self._operand_edit, entries)))
        complete = {x.place.place for x in edits} >= {x.step.location.place for x in entries}
        if edits and complete and len(edits) <= MOST and self._holds(entries, defaults, casts):
            steps = [(self.graph.symbols[at], i) for at, i in casts]
            operands = [uncast(x.args[i]) for x, i in steps if not _is_kept_number(x, i, wanted)]
            yield Remedy(tuple(edits), "inferred", wanted, self._loss(operands, wanted))
        if self.walk.keep is not None and first.step.args:
            values = {x.step.index: x.wanted for x in entries}
            edits = dict.fromkeys(filter(None, (value_edit(x.step, x.wanted) for x in entries)))
            if edits and len(edits) <= MOST and self._holds(entries, values, {}):
                yield Remedy(tuple(edits), "inferred", wanted)

    def _operand_edit(self, entry: Entry) -> Edit | None:
        step = entry.step
        if step.op is ops.cast:
            return dtype_edit(step, entry.wanted)
        if self.walk.facts.is_function(step):
            return None
        place, casts = step.location, dict.fromkeys(self._operands(entry), entry.wanted)
        source = None if place.compound else expression(place)
        if source is None or not casts:
            return None
        values = [uncast(x) for x in step.args]
        edit = operands_edit(UncastOp(self.walk.rules, step.op, values), place, casts)
        is_join = source.text.startswith(JOINS) and (edit is None or len(casts) == 1)
        return call_edit(step, entry.wanted, always=True) if is_join else edit

    def _operands(self, entry: Entry) -> list[int]:
        """Return the positions of the operands of an entry that are to be mended."""
        if entry.step.op is ops.cast:
            return []
        if entry.position is not None:
            return [entry.position]
        positions = entry.step.op.signature.promoted or range(len(entry.step.args))
        dtypes = {i: self.walk.dtypes[uncast(entry.step.args[i]).index] for i in positions}
        is_mixed = entry.wanted.is_inexact
        return [i for i, x in dtypes.items() if is_mixed and x is not None and x.is_integer]

    def _holds(
        self,
        entries: Sequence[Entry],
        edits: Mapping[int, DType],
        casts: Mapping[tuple[int, int], DType],
    ) -> bool:
        """Whether the graph with edits has the outputs of the walk, and all entries but these."""
        walk, outputs = self.walk, self.graph.outputs
        trial = EntryWalk(walk.facts, walk.keep, edits, casts)
        if any(x is entries[0] for x in walk.mixed):
            return trial.refused <= walk.refused and len(trial.mixed) < len(walk.mixed)
        rest = {x.step.index for x in walk.entries} - {x.step.index for x in entries}
        return (
            trial.refused <= walk.refused
            and {x.step.index for x in trial.entries} <= rest
            and all(trial.dtypes[x.index] is walk.dtypes[x.index] for x in outputs)
        )

    def _loss(self, symbols: Sequence[Symbol], wanted: DType) -> complex | None:
        """Return the first value that symbols lose as they become integers, or narrower ones.

        Floats are rounded to the dtype that the program computes in.
        """
        losses = (_first_lost(x, wanted) for x in symbols if x.type.dtype.is_integer)
        return next((x for x in losses if x is not None), None)


JOINS = tuple(
    f"{module}.{name}("
    for module in ("np", "numpy")
    for name in ("concatenate", "stack", "vstack", "hstack")
)
"""The functions of NumPy that join arrays, and take the dtype of the whole."""
MOST = 3
"""The most lines that one fix edits."""
SINGLE = DType.float32.precision
"""The bits to which a fix rounds integers unasked: floats of fewer hold few of them."""
TRIALS = 8
"""The most causes whose fixes are tried."""


def _together(causes: Sequence[DtypeCause]) -> Iterator[DtypeCause]:
    """Yield the causes; the first of those that one output has takes the fixes of all of them."""
    led: set[tuple[int, ...]] = set()
    groups: dict[tuple[int, ...], list[DtypeCause]] = {}
    for cause in causes:
        groups.setdefault(cause.outputs, []).append(cause)
    for cause in causes:
        alike = groups[cause.outputs] if cause.outputs else [cause]
        fixes = [x.fix for x in alike if x.fix is not None]
        if len(alike) == 1:
            yield cause
        elif cause.outputs in led or len(fixes) < len(alike) or len(fixes) > MOST:
            yield replace(cause, fix=None)
        else:
            parts = tuple(dict.fromkeys(edit for x in fixes for edit in x.parts))
            loses = next((x.loses for x in fixes if x.loses is not None), None)
            yield replace(cause, fix=fixes[0]._replace(parts=parts, loses=loses))
        led.add(cause.outputs)


def _is_kept_number(step: Symbol, position: int, wanted: DType) -> bool:
    """Whether an operand is written as a number that a dtype holds: no other run has another."""
    value, source = uncast(step.args[position]), expression(step.location)
    is_written = source is not None and source.is_number(position) and is_literal(value)
    return is_written and survives(value.attrs["value"].item(), wanted)


def _is_needed(entry: Entry) -> bool:
    """Whether a wider integer is born where the program writes it, or one that needs the bits."""
    birth, wanted = entry.birth, entry.wanted
    if birth is None or not (wanted.is_integer and birth.type.dtype.is_integer):
        return False
    source = expression(birth.location)
    if source is not None and re.search(rf"\b{birth.type.dtype}\b", source.text):
        return True
    while birth.op.kind == "movement" and birth.args:
        birth = uncast(birth.args[0])
    return birth.op is ops.constant and _first_lost(birth, wanted) is not None


def _first_lost(symbol: Symbol, wanted: DType) -> complex | None:
    while symbol.op.kind == "movement" and symbol.args:
        symbol = uncast(symbol.args[0])
    dtype, attrs = symbol.type.dtype, symbol.attrs
    value = attrs["value"] if symbol.op is ops.constant else None
    if symbol.op is ops.range and all(isinstance(attrs[x], int) for x in ("start", "step")):
        size = symbol.type.shape[0]
        value = attrs["start"] + attrs["step"] * np.arange(size) if isinstance(size, int) else None
    if value is None or (symbol.op is ops.constant and dtype.weak):
        return None if dtype.exact_in(wanted) else dtype.witness(wanted)
    kept = np.asarray(value).astype(wanted.storage)
    lost = kept.astype(np.float64) != np.asarray(value).astype(np.float64)
    return np.asarray(value)[lost].flat[0].item() if lost.any() else None


def _is_same(symbol: Symbol, birth: Symbol) -> bool:
    """Whether a symbol is an execution of the expression of another one."""
    if symbol is birth or isinstance(symbol.type, NoTensorType):
        return symbol is birth
    is_part = symbol.op is birth.op or birth.location.compound
    is_alike = is_part and symbol.type.dtype is birth.type.dtype
    return is_alike and symbol.location.place == birth.location.place


def _is_written(entry: Entry) -> bool:
    """Whether the wide operand of an entry is a cast that the program writes."""
    birth = entry.birth
    return birth is not None and birth.op is ops.cast and not birth.origins


def _key(entry: Entry) -> object:
    """Return the source expression that the entries of one cause share."""
    birth = entry.birth
    place = entry.step.location if birth is None else birth.location
    is_use = birth is not None and birth.op in (ops.constant, ops.input)
    return (entry.step.location.place if is_use and not place.line else place.place), place.layer


def _line(location: Location) -> tuple[str, int]:
    return location.file, location.line

"""Fixes that an audit has run: the graph with the edits, on the inputs of the audit.

A fix of wrong values is good if it removes their error, a fix of a dtype if the outputs have the
dtype, and all other outputs their bits. What a run cannot show, as of a step outside of the graph,
keeps the grade that it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.passes.analysis.casts import CastReport, OutputError
from graphir.passes.analysis.casts.sites import LARGE, size_of
from graphir.passes.analysis.explanations.causes import DtypeCause, LossCause, Remedy
from graphir.passes.analysis.explanations.dtype_walk import DtypeWalk, ProgramFacts
from graphir.passes.analysis.explanations.edits import Edit
from graphir.passes.analysis.explanations.loss_causes import line_remedy
from graphir.passes.analysis.rebuild import Rebuilding
from graphir.passes.rewriter import bodies_of
from graphir.public import DType, Graph, GraphirError, Symbol, ops
from graphir.runtime.audit.trials import eps, most_left
from graphir.runtime.audit.wide_run import RecordedRun
from graphir.runtime.binding import bind

if TYPE_CHECKING:
    from graphir.runtime.audit.audit import AuditState

LONGEST = 50_000
"""The most symbols of a program that is run again with its fixes."""
MOST = 3
"""The most fixes of wrong values that one audit runs; those of dtypes are run together."""


def with_measured_fixes(state: AuditState, report: CastReport) -> CastReport:
    """Return a report whose fixes are measured, if the graph can be run, without bad ones.

    A report of a program that is too long says so.
    """
    size, graph = len(state.subject.graph.symbols), report.graph
    if size > LONGEST:
        note = f"fixes were not run: the program has {size:,} steps, more than {LONGEST:,}"
        graph.describe(notes=tuple(dict.fromkeys((*graph.notes, note))))
        return report
    losses = list(report.loss_causes)
    for i, cause in enumerate(losses[:MOST]):
        if not cause.outputs:
            continue
        fix, errors = cause.fix, None if cause.fix is None else _errors(state, cause.fix.parts)
        if fix is not None and errors is not None:
            fix = _mending(state, cause, fix, errors)
        if fix is None and (whole := line_remedy(cause)) is not None:
            fix = _mending(state, cause, whole, _errors(state, whole.parts) or [])
        losses[i] = replace(cause, fix=fix)
    return report.with_fixes(losses, _measured_dtypes(state, report.dtype_causes))


def _mending(
    state: AuditState, cause: LossCause, fix: Remedy, errors: Sequence[OutputError]
) -> Remedy | None:
    """Return a fix with the errors that outputs have with it; None if it does not mend them."""
    if not errors:
        return None
    others = [i for i in range(len(errors)) if i not in cause.outputs]
    if not all(_is_kept(state, errors, i) for i in others):
        return None
    for i in cause.outputs:
        if size_of(errors[i]) > most_left(size_of(state.errors[i]), state.outputs[i].dtype):
            return None
    error = max((size_of(errors[i]) for i in cause.outputs), default=None)
    return fix._replace(grade="measured", error=error)


def _measured_dtypes(
    state: AuditState, causes: Sequence[DtypeCause]
) -> dict[tuple[Edit, ...], Remedy | None]:
    """Return the fixes of dtypes, run together: an output may need those of several causes."""
    fixes = [(cause, cause.fix) for cause in causes if cause.fix is not None]
    parts = tuple(dict.fromkeys(edit for _, fix in fixes for edit in fix.parts))
    errors = _errors(state, parts) if parts else None
    if errors is None:
        return {}
    unfixed = {i for cause in causes if cause.fix is None for i in cause.outputs}
    mended = {i for cause, _ in fixes for i in cause.outputs}
    others = [i for i in range(len(errors)) if i not in mended]
    is_kept = bool(errors) and all(_is_kept(state, errors, i) for i in others)
    graded: dict[tuple[Edit, ...], Remedy | None] = {}
    for cause, fix in fixes:
        sizes = [size_of(errors[i]) for i in cause.outputs] if errors else []
        before = max((size_of(state.errors[i]) for i in cause.outputs), default=0.0)
        has_dtype = bool(errors) and all(
            errors[i].dtype == str(fix.wanted) for i in cause.outputs if i not in unfixed
        )
        error = max(sizes, default=0.0)
        is_right = is_kept and has_dtype and error < max(LARGE, before)
        measured = fix._replace(grade="measured", error=error)
        graded[fix.parts] = (measured if cause.outputs else fix) if is_right else None
    return graded


def _is_kept(state: AuditState, errors: Sequence[OutputError], number: int) -> bool:
    """Whether an output that a fix does not mend has its dtype, and no more than a rounding."""
    dtype = state.outputs[number].dtype
    before, after = state.errors[number], errors[number]
    return after.dtype == str(dtype) and size_of(after) <= max(size_of(before), eps(dtype))


def _errors(state: AuditState, edits: Sequence[Edit]) -> list[OutputError] | None:
    """Return the errors of outputs after edits; none if the rules refuse them, None if unknown."""
    program = state.subject.program
    assert program is not None
    if not all(x.is_code and (x.casts or x.dtype) for x in edits):
        return None
    graph, facts = program.graph, program.facts
    casts, dtypes = _changes(graph, edits)
    edited = {*dtypes, *(at for at, _ in casts)}
    program_facts = ProgramFacts(graph, (graph.symbols[i] for i in edited))
    special = [*facts.pins.values(), *facts.masks, *facts.observed, *facts.calls]
    special += [x for step in facts.steps for x in step.operands or ()]
    if not edited or any(x.index in program_facts.data for x in special):
        return None
    walk = DtypeWalk(program_facts, dtypes, casts)
    walk.run()
    new = _Editing(walk).run()
    refused = [graph.symbols[i] for i in walk.refused] + [x.symbol for x in new.all_refusals()]
    if refused:  # of another place: steps that the source has not, as of gradients, may differ
        places = {x.place.place for x in edits}
        return [] if any(x.location.place in places for x in refused) else None
    twins = {i: x for i, x in enumerate(new.twins) if x is not None}
    try:
        kept = facts.remap([twins[x.index] for x in facts.symbols()])
        run = RecordedRun(new.graph, *bind(new.graph, program.inputs, program.keywords), kept)
        for _ in run.walk():
            pass
        results = run.outputs()
    except GraphirError:
        return None
    after = [new.graph.concrete_dtype(x.dtype) for x in new.graph.outputs]
    return [
        output._replace(real=np.ascontiguousarray(array), dtype=dtype).error()
        for output, array, dtype in zip(state.outputs, results, after, strict=True)
    ]


def _changes(
    graph: Graph, edits: Sequence[Edit]
) -> tuple[dict[tuple[int, int], DType], dict[int, DType]]:
    """Return the casts of operands that edits make, and the dtypes of values, as for DtypeWalk."""
    by_place: dict[tuple[str, int, int, int, int], list[Edit]] = {}
    for edit in edits:
        by_place.setdefault(edit.place.place, []).append(edit)
    casts: dict[tuple[int, int], DType] = {}
    dtypes: dict[int, DType] = {}
    for x in graph.symbols:
        for edit in by_place.get(x.location.place, ()):
            if edit.dtype is None:
                casts |= {(x.index, i): to for i, to in edit.casts if i < len(x.args)}
            elif x.op is ops.cast or not x.args:
                dtypes[x.index] = edit.dtype
            else:
                positions = x.op.signature.promoted or range(len(x.args))
                outside = [i for i in positions if x.args[i].location.place != edit.place.place]
                casts |= {(x.index, i): edit.dtype for i in outside}
    return casts, dtypes


class _Editing(Rebuilding):
    """The rebuild of a graph in which symbols have the dtypes of a walk with edits."""

    def __init__(self, walk: DtypeWalk) -> None:
        graph = walk.graph
        super().__init__(graph, graph.rules, graph.symbols, f"{graph.name}_edited")
        self.walk = walk
        self._kept_literals: dict[int, Symbol] = {}

    def add(self, symbol: Symbol) -> None:
        """Append the twin of the next symbol, in the dtype of the walk."""
        super().add(symbol)
        twin, to = self.twins[-1], self.walk.dtypes[symbol.index]
        if twin is not None and not symbol.args and to is not None:
            self.twins[-1] = self._cast(twin, to)

    def _cast(self, value: Symbol, to: DType) -> Symbol:
        if value.dtype is to or value.dtype.family == "bool" or to.weak:
            return value
        return self.converted(value, to, value.location)

    def _copied(self, symbol: Symbol) -> Symbol | None:
        """Return a copy of a symbol with the operands and the type that it had; None of others."""
        walk = self.walk
        if walk.is_changed(symbol) or bodies_of(symbol):
            return None
        args: list[Symbol] = []
        for i, arg in enumerate(symbol.args):
            twin = self.twins[arg.index]
            if twin is None:
                twin = self._kept_literals.get(arg.index)
            if twin is None:
                twin = self.new.append(arg.op, (), arg.attrs, arg.type, arg.source)
                self._kept_literals[arg.index] = twin
            if twin.type is not arg.type or (symbol.index, i) in walk.casts:
                return None
            args.append(twin)
        return self.new.append(symbol.op, tuple(args), symbol.attrs, symbol.type, symbol.source)

    def _reapply(self, symbol: Symbol) -> Symbol:
        copied = self._copied(symbol)
        if copied is not None:
            return copied
        if symbol.op is not ops.cast or not self.walk.is_changed(symbol):
            return super()._reapply(symbol)
        return self._cast(self._map(symbol.args[0]), self.walk.dtype_of(symbol))

    def _operands(self, symbol: Symbol) -> list[Any]:
        operands, walk = super()._operands(symbol), self.walk
        for i, arg in enumerate(symbol.args):
            leader = walk.leader_of(symbol, arg)
            followed = None if leader is None else walk.dtype_of(leader)
            to = walk.casts.get((symbol.index, i), followed)
            if to is not None and isinstance(operands[i], Symbol):
                operands[i] = self._cast(operands[i], to)
        return operands

    def _attrs(self, symbol: Symbol) -> Mapping[str, Any]:
        attrs, named = super()._attrs(symbol), symbol.attrs.get("dtype")
        is_followed = named is not None and symbol.args and symbol.op is not ops.cast
        if is_followed and self.walk.is_changed(symbol):
            return {**attrs, "dtype": self.walk.dtype_of(symbol)}
        return attrs

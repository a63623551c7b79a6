"""The reports of a recording, and the notes on errors of a program that is recorded.

Most recordings ask for neither: `recording` imports this module at the first question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any, cast
from warnings import catch_warnings, simplefilter

import numpy as np

from graphir.dtypes import DTypeLike
from graphir.ir.liveness import live_mask
from graphir.ops.grammar import is_foreign
from graphir.passes import CastReport, cast_report
from graphir.passes.analysis.casts import ProgramInterface, Unseen
from graphir.passes.analysis.expressions import expression
from graphir.passes.reports.sentences import lossy_step
from graphir.public import ExecutionError, Location, Symbol
from graphir.runtime.audit.audit import AuditState, audit_graph, audit_program, run_passes
from graphir.runtime.audit.blocked_run import as_floats
from graphir.runtime.audit.exact_arrays import wide_dtype
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.audit.subject import AuditedProgram, AuditOptions, subject_of
from graphir.runtime.error_notes import MOST_AUDITED, ProgramValues, grave_losses, note_error
from graphir.runtime.recording.builder import IS_DATA, IS_WRITTEN, Note
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.recording import Recording, record, recording_fields
from graphir.runtime.recording.results import described
from graphir.runtime.recording.values import (
    Array,
    RecordedNumber,
    RecordedValue,
    TracedScalar,
    recording_with,
)
from graphir.semantics.library_calls import mapped


def static_report(recording: Recording) -> CastReport:
    """Return the report of the casts in the graph of a recording, the worst first."""
    report = cast_report(recording.graph)
    twins = dict(zip(recording.graph.inputs, report.explicit.inputs, strict=True))
    arguments = tuple(twins[x] for x in recording.beyond.arguments or ())
    step_results = tuple(twins[x] for x in recording.beyond.step_results)
    program = ProgramInterface(arguments, step_results, recording.names)
    return _with_given(recording, report.of_program(program, _unseen(recording)))


def _with_given(recording: Recording, report: CastReport) -> CastReport:
    """Return the report with what the program has that this run did not record, data apart."""
    others = (IS_DATA, IS_WRITTEN)
    notes = (x for x in recording.notes if x.reason not in others and not x.in_numpy)
    report.given = tuple(Unseen(x.what, x.location, x.reason) for x in notes)
    return report


def _unseen(recording: Recording) -> Iterator[Unseen]:
    """Yield the parts of the program that may cast, and that the graph of this run lacks."""
    for step in recording.beyond.steps:
        if step.casts_inside:
            yield Unseen(step.what, step.location, step.reason, casts=True)
        elif step.truth and step.steers:
            reason = "decides by a value what runs, and another branch did not run"
            yield Unseen(step.what, step.location, reason, casts=True)
    if not recording.outputs:
        place = Location.at(recording.graph.name, 0)
        yield Unseen("the result", place, "has nothing that was recorded", casts=True)


def measured_report(
    recording: Recording, blame: bool, memory: int, as_dtype: DTypeLike | None
) -> CastReport:
    """Return the audit of a recording: see `Recording.audit`."""
    if not recording.outputs:
        steps_text = "".join(
            f"; {x.what} at {x.location} {x.reason}" for x in _first_unrecorded(recording)
        )
        raise ExecutionError(
            f"audit: nothing that was recorded reached the result of {recording.graph.name!r}",
            got=f"{described(recording.result)}{steps_text}",
            fix="return arrays of numbers that NumPy computes from the arguments",
        )
    options = AuditOptions(blame, memory, as_dtype)
    if recording.graph.provenance.library:  # the outputs are those of the graph
        return audit_graph(
            AuditedProgram(
                recording.graph,
                recording.inputs,
                recording.beyond,
                names=recording.names,
                rounds=recording.rounds,
            ),
            options,
        )
    program = AuditedProgram(
        recording.graph,
        recording.inputs,
        recording.beyond,
        recording.outputs,
        recording.names,
        recording.rounds,
    )
    return _with_given(recording, audit_program(program, options))


def _first_unrecorded(recording: Recording) -> Sequence[Note | OpaqueStep]:
    """Return the first five notes and steps, which may say where values left the recording."""
    return [*recording.notes, *recording.beyond.steps][:5]


def audit_function(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    keywords: Mapping[str, Any],
    options: AuditOptions,
) -> CastReport:
    """Record a function and audit the recording: see runtime.audit.audit.

    With `as_dtype`, arrays of the dtypes of ml_dtypes, which NumPy's rules lack, run as float32.
    """
    if options.as_dtype is not None:
        arrays = [_in_numpy_dtype(x) for x in arrays]
        keywords = {name: _in_numpy_dtype(x) for name, x in keywords.items()}
    return record(function, *arrays, **keywords).audit(*options)


def _in_numpy_dtype(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    return value.astype(np.float32) if isinstance(dtype, np.dtype) and is_foreign(dtype) else value  # pyright: ignore


# -- notes on errors


def note_error_of(error: Exception, recorder: Recorder, arguments: Set[int]) -> None:
    """Add a note to an error of a program: the dtypes and values behind its line.

    `arguments` are the indices of the symbols that the program has from its caller.
    """
    note_error(error, _RecordedValues(recorder, arguments))


class _RecordedValues(ProgramValues):
    """The values of a NumPy program that a recorder knows."""

    def __init__(self, recorder: Recorder, arguments: Set[int]) -> None:
        self._recorder, self._arguments = recorder, arguments

    def is_traced(self, value: Any) -> bool:
        """Whether a value is recorded, and has a symbol."""
        is_recorded = isinstance(value, (RecordedValue, TracedScalar, RecordedNumber))
        return is_recorded and self._recorder.before(value) is not None

    def symbols(self, values: Sequence[Any]) -> list[Symbol]:
        """Return the symbols of recorded values."""
        return [symbol for x in values if (symbol := self._recorder.before(x)) is not None]

    def is_given(self, symbol: Symbol) -> bool:
        """Whether a symbol is an argument, or an array that the program captured."""
        captures = self._recorder.program_arrays.captures
        return symbol.index in self._arguments or any(x is symbol for x in captures)

    def losses(
        self,
        values: Mapping[str, Any],
        conditions: Sequence[Location],
        frames: Sequence[FrameType],
    ) -> list[str]:
        """Return the sentences of an audit of the recording so far, whose results are values.

        The values by which the program went on are those of the run: its way is not in question,
        but for the conditions around the line that raised an error.
        """
        recorder = self._recorder
        names: dict[Symbol, str] = {}
        for name, value in values.items():
            names.setdefault(self.symbols([value])[0], name)
        for step in recorder.steps:
            if any(_is_within(step.location, x) for x in conditions):
                source = expression(step.location)
                names.update(dict.fromkeys(step.operands or (), source.brief if source else ""))
        if sum(live_mask(recorder.graph, [*names])) > MOST_AUDITED:
            return []
        with recording_with(None), catch_warnings():
            simplefilter("ignore")
            state = self._audit(names)
            report = run_passes(state)
            grave = grave_losses(report, [*names.values()])
            return grave or self._exact_call(state, report, names, frames)

    def _audit(self, names: Mapping[Symbol, str]) -> AuditState:
        recorder = self._recorder
        recorder.steps = [replace(x, steers=False) for x in recorder.steps if x.results]
        fields = recording_fields(recorder, None, [(x, None, name, 1) for x, name in names.items()])
        program = AuditedProgram(
            recorder.graph, fields["inputs"], fields["beyond"], names=fields["names"]
        )
        options = AuditOptions(memory=MEMORY_AUDITED)
        return AuditState(subject_of(program, None), options)

    def _exact_call(
        self,
        state: AuditState,
        report: CastReport,
        names: Mapping[Symbol, str],
        frames: Sequence[FrameType],
    ) -> list[str]:
        """Return the step that lost most behind a call of NumPy that takes the exact values."""
        exact = {symbol: x.wide for symbol, x in zip(names, state.outputs, strict=True)}
        variables = (x.f_locals for x in frames)  # of 3.13 on, `keys()` of these is a list
        call = next((x for x in variables if _CALL.issubset(x)), None)
        lossy = [site for site in report.sites if site.row.kind in LOSSES_OF_DIGITS]
        if call is None or not lossy:
            return []

        def widened(value: Any) -> Any:
            wide = exact.get(self.symbols([value])[0]) if self.is_traced(value) else None
            if wide is not None:
                return as_floats(wide, wide_dtype(wide))
            return np.array(cast("Array", value)) if isinstance(value, np.ndarray) else value

        args, keywords = mapped(widened, [[*call["args"]], dict(call["kwargs"])])
        with suppress(Exception):
            call["function"](*args, **keywords)
            name = getattr(call["function"], "__name__", "the call")
            step = lossy_step(report, lossy[0], lossy[0].row.symbol)
            return [f"{name} does not raise for exact values; {step}"]
        return []


_CALL = {"function", "args", "kwargs"}
"""The variables of the handlers that call a function of NumPy."""
LOSSES_OF_DIGITS = ("absorption", "cancellation", "accumulation")
"""The losses of steps whose results a function may refuse, however small they are."""


def _is_within(place: Location, other: Location) -> bool:
    return place.file == other.file and other.line <= place.line <= other.end_line


MEMORY_AUDITED = 1 << 28
"""The bytes that such an audit may hold."""

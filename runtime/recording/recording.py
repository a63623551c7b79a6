"""`record`: run an ordinary NumPy function, and keep the graph of its operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from graphir import DType, ExecutionError, Graph, GraphError, PromotionRules, Symbol, TensorType
from graphir import rules as rules_named
from graphir.promotion.numpy_ import DTYPES
from passes import CastReport, cast_report
from runtime.audit.audit import audit_recorded
from runtime.audit.opaque import Beyond, OpaqueStep
from runtime.progress import Watch
from runtime.recording.arrays import ArrayRecorder
from runtime.recording.captured import swapped
from runtime.recording.notes import Note
from runtime.recording.numpy_.creation import makers_recorded
from runtime.recording.recorder import Recorder
from runtime.recording.results import (
    as_returned,
    described,
    leaves,
    plain_result,
)
from runtime.recording.sites import CallSites
from runtime.recording.values import Array, active, plain, recording_with


@dataclass(frozen=True)
class Recording:
    """A recorded run of a NumPy function: its result, and the graph of its operations.

    `result` is the result that plain NumPy returns. `graph` computes `outputs` from `inputs`, which
    are copies. The inputs are the argument arrays as they were before the call, and arrays that the
    function took from elsewhere. The outputs are the recorded arrays and scalars in the result,
    then the arguments that the program wrote to, and the recorded arrays in the object whose method
    the function is. `notes` has an entry for each thing that could not be recorded, and `beyond`
    has the same facts in the form that an audit needs.
    """

    result: Any
    graph: Graph
    inputs: tuple[Array, ...]
    outputs: tuple[Any, ...]
    notes: tuple[Note, ...]
    beyond: Beyond = field(default=Beyond(), repr=False)

    def report(self) -> CastReport:
        """Return the report of the casts in the graph, the worst first."""
        report = cast_report(self.graph)
        twins = dict(zip(self.graph.inputs, report.explicit.inputs, strict=True))
        report.arguments = tuple(twins[x] for x in self.beyond.arguments or ())
        report.step_results = tuple(twins[x] for x in self.beyond.step_results)
        return report

    def audit(self, blame: bool = True, progress: bool | Watch = False) -> CastReport:
        """Return the casts with their effect on the data (see runtime.audit).

        `blame` is whether to attribute the error of the outputs to casts, and `progress` is whether
        and how to report progress. Raises ExecutionError if no recorded value reached the result.
        """
        if not self.outputs:
            steps_text = "".join(
                f"; {step.what} at {step.location} {step.reason}" for step in self._met()
            )
            raise ExecutionError(
                f"audit: nothing that was recorded reached the result of {self.graph.name!r}",
                got=f"{described(self.result)}{steps_text}",
                fix="return arrays of numbers that NumPy computes from the arguments",
            )
        return audit_recorded(
            self.graph, self.inputs, self.outputs, self.beyond, blame=blame, progress=progress
        )

    def _met(self) -> Sequence[Note | OpaqueStep]:
        """Return the first five notes and steps, which may say where values left the recording."""
        return [*self.notes, *self.beyond.steps][:5]


def record(
    function: Callable[..., Any],
    /,
    *arrays: Any,
    rules: str | PromotionRules = "numpy",
    **keywords: Any,
) -> Recording:
    """Run `function(*arrays, **keywords)`, an ordinary NumPy program, and record its graph.

    Arrays and NumPy scalars among the arguments become inputs of the graph, also inside lists,
    tuples and dicts; the function gets other arguments unchanged. NumPy computes every value, so
    the results, and the writes to arguments, are those of a plain run. Each op and each implicit
    cast has its location in the program's source. The result of compiled code, and a result whose
    shape depends on values, becomes an input of the graph, with a note. Exceptions and warnings of
    the program pass to the caller. Only this thread is recorded.

    `rules` must promote as the installed NumPy does. Raises GraphError if they do not, and if this
    thread is already recording.
    """
    rule_set = rules_named(rules)
    _require_numpy(rule_set)
    if active() is not None:
        raise GraphError(
            "a recording within a recording has no graph of its own", fix="call the function itself"
        )
    recorder = ArrayRecorder(Graph(_name(function), rules=rule_set), CallSites(record.__code__))
    recorder.enter()
    names = _names(function, arrays)
    arguments = {next(names) or place: value for place, value in enumerate(arrays)}
    with _records(recorder, arguments, keywords, function):
        result = function(*arguments.values(), **keywords)
        if isinstance(result, Iterator):
            recorder.note(f"a {_name(result)}", "runs when nothing records; return a list")
        left = recorder.written_arguments(), getattr(function, "__self__", None)
        outputs = list(leaves(result, left, recorder))
        symbols = [recorder.before(leaf) for leaf in outputs]
    return _recording(recorder, result, zip(symbols, outputs, strict=True))


@contextmanager
def _records(
    recorder: Recorder, arguments: dict[Any, Any], keywords: dict[str, Any], *captures: Any
) -> Generator[None]:
    """Context manager: inside the block, this thread records the arrays that objects hold.

    Arrays in `arguments` and `keywords` are data of the program; those that it reaches through
    `captures` it captures.
    """
    with ExitStack() as stack:
        stack.enter_context(makers_recorded())
        stack.enter_context(swapped(recorder.argument, plain, arguments, keywords))
        arrays_outside = stack.enter_context(swapped(recorder.captured, plain, *captures))
        recorder.captured_arrays = arrays_outside
        stack.enter_context(recording_with(recorder))
        stack.callback(recorder.moved_back)
        yield


def _recording(
    recorder: Recorder, result: Any, outputs: Iterable[tuple[Symbol | None, Any]]
) -> Recording:
    """Return the Recording of a finished run, with outputs of which each has its symbol."""
    pairs = [(symbol, as_returned(leaf)) for symbol, leaf in outputs if symbol is not None]
    recorder.graph.outputs = tuple(symbol for symbol, _ in pairs)
    return Recording(
        plain_result(result),
        recorder.graph,
        tuple(recorder.inputs),
        tuple(value for _, value in pairs),
        tuple(recorder.notes.values()),
        Beyond(
            tuple(recorder.steps),
            {pin.index: pin for pin in recorder.pins},
            recorder.masks,
            recorder.observed,
            tuple(recorder.data),
        ),
    )


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _names(function: Any, arrays: tuple[Any, ...]) -> Iterator[str | None]:
    """Yield the names of the positional parameters, then None, for which the graph finds a name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain_kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in plain_kinds]
    yield from names[: len(arrays)]
    while True:
        yield None


def _require_numpy(rules: PromotionRules) -> None:
    differs = _difference(rules)
    if differs:
        raise GraphError(
            f"a recording tells what NumPy did, and {rules.name!r} is not what NumPy "
            f"{np.__version__} does: {differs}",
            fix="record under rules='numpy', then ask passes.diff(recording.graph, "
            f"{rules.name!r})",
        )


@cache
def _difference(rules: PromotionRules) -> str:
    """Return, as text, the first pair of operands that rules promote differently from NumPy.

    The text is empty if there is no such pair.
    """
    arrays = [TensorType(dtype, (2,)) for dtype in DTYPES]
    zeros = [TensorType(dtype) for dtype in DTYPES]
    for a in arrays:
        for b in (*arrays, *zeros, 1, 1.0, 1j):
            there = np.result_type(_example(a), _example(b))
            here = rules.answer(a, b)
            if here is not DType.from_numpy(there):
                return f"{a} and {b} give {here or 'an error'}, there {there}"
    return ""


def _example(operand: Any) -> Any:
    if isinstance(operand, TensorType):
        return np.ones(operand.shape, operand.dtype.storage)  # pyright: ignore
    return operand

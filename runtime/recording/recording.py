"""record: run an ordinary NumPy function, and keep the graph of what it did."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np

from graphir import DType, ExecutionError, Graph, GraphError, PromotionRules, TensorType
from graphir import rules as rules_named
from graphir.promotion.numpy_ import DTYPES
from passes import CastReport, cast_report
from runtime.audit.audit import audit_recorded
from runtime.audit.opaque import Beyond, OpaqueStep
from runtime.progress import Watch
from runtime.recording.arrays import ArrayRecorder
from runtime.recording.captured import Brought, brought_arrays
from runtime.recording.notes import Note
from runtime.recording.numpy_.creation import makers_recorded
from runtime.recording.recorder import Recorder
from runtime.recording.results import (
    as_returned,
    described,
    leaves,
    plain_again,
    plain_result,
)
from runtime.recording.sites import CallSites
from runtime.recording.values import Array, active, recording_with


@dataclass(frozen=True)
class Recording:
    """A run of a NumPy function: what it returned, and the graph of what it did.

    `result` is what plain NumPy returns. `graph` computes the arrays and scalars in it that were
    recorded, `outputs`, from `inputs`: the arrays that the function was called on, as they were,
    and those it took from elsewhere. All of these are copies. Arguments that the program wrote to,
    and arrays in the object whose method it is, are outputs too, after those of the result. `notes`
    say what could not be recorded, each thing once, and `beyond` has it as an audit needs it.
    """

    result: Any
    graph: Graph
    inputs: tuple[Array, ...]
    outputs: tuple[Any, ...]
    notes: tuple[Note, ...]
    beyond: Beyond = field(default=Beyond(), repr=False)

    def report(self) -> CastReport:
        """What casts there were, the worst first."""
        return cast_report(self.graph)

    def audit(self, blame: bool = True, progress: bool | Watch = False) -> CastReport:
        """What they did to the data (see runtime.audit); ExecutionError where nothing is left."""
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
        """The first notes and steps, which may say where values went."""
        return [*self.notes, *self.beyond.steps][:5]


def record(
    function: Callable[..., Any],
    /,
    *arrays: Any,
    rules: str | PromotionRules = "numpy",
    **keywords: Any,
) -> Recording:
    """Run `function(*arrays, **keywords)`, an ordinary NumPy program, and record its graph.

    Arrays and NumPy scalars among the arguments, also in lists, tuples and dicts, become inputs;
    other arguments are as they are. NumPy computes every value, so that the results are those of a
    plain run, and what the program writes to its arguments it writes. Each op, and each silent
    cast, is located in the program's source. What is compiled, or depends on values, is taken as
    given, with a note. Exceptions and warnings of the program pass. Only this thread is recorded.

    `rules` must promote as the NumPy that is installed. Raises GraphError where they do not, and
    where this thread records already.
    """
    rule_set = rules_named(rules)
    _require_numpy(rule_set)
    if active() is not None:
        raise GraphError(
            "a recording within a recording has no graph of its own", fix="call the function itself"
        )
    recorder = ArrayRecorder(Graph(_name(function), rules=rule_set), CallSites(_run.__code__))
    recorder.brought = Brought(brought_arrays(function))
    names = _names(function, arrays)
    with makers_recorded(), recording_with(recorder), plain_again(recorder.containers):
        result = _run(recorder, function, names, arrays, keywords)
        if isinstance(result, Iterator):
            recorder.note(f"a {_name(result)}", "runs when nothing records; return a list")
        left = recorder.written_arguments(), getattr(function, "__self__", None)
        leaves_found = list(leaves(result, left, recorder))
        symbols = [recorder.before(leaf) for leaf in leaves_found]
    plain_result(left)  # the attributes of an object may be set by its method
    rule_set = [(s, leaf) for s, leaf in zip(symbols, leaves_found, strict=True) if s is not None]
    outputs = [(symbol, as_returned(leaf)) for symbol, leaf in rule_set]
    recorder.graph.outputs = tuple(symbol for symbol, _ in outputs)
    return Recording(
        plain_result(result),
        recorder.graph,
        tuple(recorder.inputs),
        tuple(value for _, value in outputs),
        tuple(recorder.notes.values()),
        Beyond(
            tuple(recorder.steps),
            {pin.index: pin for pin in recorder.pins},
            recorder.masks,
        ),
    )


def _run(
    recorder: Recorder,
    function: Callable[..., Any],
    names: Iterator[str | None],
    arrays: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """Call the function on recorded arguments; the frame above which nothing is the program's."""
    recorder.enter()
    positional = [_argument(recorder, value, next(names)) for value in arrays]
    keywords_ = {name: _argument(recorder, value, name) for name, value in keywords.items()}
    try:
        return function(*positional, **keywords_)
    finally:
        recorder.moved_back()


def _argument(recorder: Recorder, value: Any, name: str | None) -> Any:
    """An argument as the program gets it; arrays in lists, tuples and dicts are recorded too."""
    kind: Any = cast("object", type(value))
    if kind is dict:
        pairs = cast("dict[Any, Any]", value)
        mapping = {
            key: _argument(recorder, value_, _key_name(key)) for key, value_ in pairs.items()
        }
        recorder.containers.append((pairs, mapping))
        return mapping
    if kind is list or kind is tuple:
        items = [_argument(recorder, value_, None) for value_ in cast("list[Any]", value)]
        if kind is tuple:
            return tuple(items)
        recorder.containers.append((cast("list[Any]", value), items))
        return items
    if type(value) is not np.ndarray and not isinstance(value, np.generic):
        return value
    value = cast("Any", value)
    if name in recorder.graph.input_names:
        name = None
    if not recorder.has(value.dtype):
        recorder.note(
            f"an argument of {value.dtype}",
            f"is not recorded: {recorder.graph.rules.name!r} has no such dtype",
        )
        return value
    return recorder.argument(value, name)


def _key_name(key: Any) -> str | None:
    return key if isinstance(key, str) and key.isidentifier() else None


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _names(function: Any, arrays: tuple[Any, ...]) -> Iterator[str | None]:
    """The parameters' names, those of a variadic one left to the graph."""
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
    """The first pair of operands that rules promote otherwise than NumPy; empty for none."""
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

"""`record`: run an ordinary NumPy function, and keep the graph of its operations.

A recording of its own costs milliseconds before the first step: it replaces NumPy's constructors
in all modules, and finds the arrays that the program can reach. A `RecordingSession` does both
once, for many calls in a process that ends with it, and never undoes them. Between its calls
nothing records; what it left behind computes as plain arrays do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from graphir.display import code, count_text, fragment, paragraphs, printable, table, text
from graphir.dtypes import DTypeLike
from graphir.promotion import RulesLike
from graphir.promotion.numpy_ import DTYPES
from graphir.public import (
    DType,
    Graph,
    GraphError,
    GraphirError,
    PromotionRules,
    Symbol,
    TensorType,
)
from graphir.public import rules as rules_named
from graphir.runtime.audit.opaque import RecordedFacts
from graphir.runtime.progress import Progress, stage
from graphir.runtime.recording.arrays import ArrayRecorder
from graphir.runtime.recording.builder import Note
from graphir.runtime.recording.captured import ArraySlot, swapped
from graphir.runtime.recording.flat_code import (
    CodeCell,
    Script,
    is_computed,
    variable_outputs,
    variables_at,
)
from graphir.runtime.recording.numpy_.interception import MakerPlaces, makers_recorded
from graphir.runtime.recording.numpy_.outside_data import random_data
from graphir.runtime.recording.numpy_.watched_code import calls_recorded
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.results import (
    as_returned,
    described,
    output_names,
    plain_result,
    result_leaves,
    unread_values,
    values_leaving,
)
from graphir.runtime.recording.sites import CallSites
from graphir.runtime.recording.values import (
    Array,
    active,
    plain,
    recording_with,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from graphir.passes import CastReport

    Result = TypeVar("Result", default=Any)
else:
    Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class Recording(Generic[Result]):
    """A recorded run of a NumPy function: its result, and the graph of its operations.

    `result` is the result that plain NumPy returns. `graph` computes `outputs` from `inputs`, which
    are copies. The inputs are the argument arrays as they were before the call, and arrays that the
    function took from elsewhere. The outputs are the recorded arrays and scalars in the result,
    then the arguments that the program wrote to, and the recorded arrays in the object whose method
    the function is. `notes` has an entry for each thing that could not be recorded, and `beyond`
    has the same facts in the form that an audit needs.
    """

    result: Result
    graph: Graph
    inputs: tuple[Array, ...]
    outputs: tuple[Any, ...]
    notes: tuple[Note, ...]
    beyond: RecordedFacts = field(default=RecordedFacts(), repr=False)
    names: tuple[str, ...] = ()
    """The names of the outputs: variables of a script or a cell, else `output0`, ..."""

    rounds: tuple[int, ...] = ()
    """The numbers of rounds of the outputs: an output that left in several has an axis of them."""

    def __repr__(self) -> str:
        return f"<Recording {printable(self.graph.name)}: {', '.join(self._sizes)}>"

    @property
    def _sizes(self) -> Sequence[str]:
        parts = {"input": self.inputs, "output": self.outputs, "note": self.notes}
        counts = {"symbol": len(self.graph)} | {unit: len(part) for unit, part in parts.items()}
        return [count_text(count, unit) for unit, count in counts.items()]

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: inputs, outputs, and the steps that were not recorded."""
        sides = [
            *(("input", *pair) for pair in zip(self.graph.input_names, self.inputs, strict=True)),
            *(("output", *pair) for pair in zip(self.names, self.outputs, strict=True)),
        ]
        rows = ((side, code(name, 80), text(described(value), 200)) for side, name, value in sides)
        head = f"Recording of {self.graph.name}: {', '.join(self._sizes)}"
        return fragment(
            paragraphs([head, *map(str, self.notes[:5])]),
            table(("", "name", "value"), rows, len(sides), 10),
        )

    def report(self) -> CastReport:
        """Return the report of the casts in the graph, the worst first."""
        from graphir.runtime.recording.reports import static_report

        return static_report(self)

    def audit(
        self, blame: bool = True, memory: int = 1 << 30, as_dtype: DTypeLike | None = None
    ) -> CastReport:
        """Return the casts with their effect on the data (see runtime.audit).

        `blame` is whether to attribute the error of the outputs to casts. With `as_dtype`, the
        report is that of the same program with all its floats of that dtype. Raises ExecutionError
        if no recorded value reached the result.
        """
        from graphir.runtime.recording.reports import measured_report

        return measured_report(self, blame, memory, as_dtype)


def record(
    function: Callable[..., Result], /, *arrays: Any, rules: RulesLike = "numpy", **keywords: Any
) -> Recording[Result]:
    """Run `function(*arrays, **keywords)`, an ordinary NumPy program, and record its graph.

    Arrays and NumPy scalars among the arguments become inputs of the graph, also inside containers
    and objects, and so do arrays that the function captures, once it uses them; the function gets
    other arguments unchanged. NumPy computes every value, so the results, and the writes to
    arguments, are those of a plain run. Each op and each implicit cast has its location in the
    program's source. The result of compiled code, and a result whose shape depends on values,
    becomes an input of the graph, with a note. Exceptions and warnings of the program pass to the
    caller. Only this thread is recorded. The outputs of a program that returns no arrays are the
    values that it prints.

    `rules` must promote as the installed NumPy does. Raises GraphError if they do not, and if this
    thread is already recording.
    """
    recorder = new_recorder(_name(function), rules, record.__code__)
    names = _names(function, arrays)
    arguments = {next(names) or place: value for place, value in enumerate(arrays)}
    with _records(recorder, arguments, keywords, function):
        given = {x.index for x in recorder.graph.inputs}
        result: Any = None
        try:
            with stage(partial(_progress, recorder)) as run:
                result = function(*arguments.values(), **keywords)
        except Exception as error:
            _note_error(error, recorder, given)
            raise
        if isinstance(cast("object", result), Iterator):
            recorder.note(f"a {_name(result)}", "runs when nothing records; return a list")
        if run.interrupt is not None:
            recorder.note(_name(function), "was interrupted: what comes after was not seen")
            result = variables_at(run.interrupt)
        if isinstance(function, (Script, CodeCell)) or run.interrupt is not None:
            recorder.steps = recorder.settled_steps()
            results = variable_outputs(recorder, result)
        else:
            own = result_leaves(None, getattr(function, "__self__", None), recorder)
            changed = (
                recorder.program_arrays.written_arguments(),
                [x for x in own if is_computed(recorder, x)],
            )
            results = list(result_leaves(result, changed, recorder, True))
        outputs = _outputs(recorder, result, results)
        is_flat = isinstance(function, (Script, CodeCell)) or result is None
        leaves = any(is_computed(recorder, x) for x in results) or recorder.leaving.surely
        if is_flat and not leaves:
            outputs += _unread(recorder, [x for x, *_ in outputs])
    return Recording(**recording_fields(recorder, result, outputs))


def _progress(recorder: Recorder) -> Progress:
    """Return how far the program of a recorder is."""
    graph = recorder.graph
    place = f", the last at {graph.symbols[-1].location}" if graph.symbols else ""
    done = f"{printable(graph.name)} runs: {count_text(len(graph), 'recorded step')}{place}"
    return Progress(done, "what comes after was not seen")


def _note_error(error: Exception, recorder: Recorder, given: Set[int]) -> None:
    with recording_with(None):  # a module that is imported makes arrays
        from graphir.runtime.recording.reports import note_error_of
    note_error_of(error, recorder, given)


def new_recorder(name: str, rules: RulesLike, top: CodeType) -> Recorder:
    """Return the recorder of a new recording; `top` is the code that calls the program."""
    rule_set = rules_named(rules)
    _require_numpy(rule_set)
    if active() is not None:
        raise GraphError(
            "a recording within a recording has no graph of its own", fix="call the function itself"
        )
    import_module("numpy.ma")  # NumPy imports it late: within a step, the step would lose its place
    recorder = ArrayRecorder(Graph(name, rules=rule_set), CallSites(top))
    recorder.enter()
    return recorder


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
        functions: list[FunctionType] = []
        arrays = recorder.program_arrays
        argument, captured = (
            partial(recorded_slot, wrap) for wrap in (arrays.wrap_argument, arrays.wrap_capture)
        )
        of_data = swapped(argument, plain, arguments, keywords, functions=functions)
        of_captures = swapped(captured, plain, *captures, functions=functions)
        stack.enter_context(of_data)
        arrays.captured = stack.enter_context(of_captures)
        stack.enter_context(calls_recorded(functions))
        stack.enter_context(recording_with(recorder))
        stack.callback(recorder.memory.copy_back_resized)
        yield


def recorded_slot(wrap: Callable[[Any, Any], Any], value: Any, name: str | None) -> Any:
    """Return an array as `wrap` does, and a generator of random numbers whose arrays are data."""
    return random_data(value) if isinstance(value, np.random.Generator) else wrap(value, name)


def _outputs(
    recorder: Recorder, result: Any, results: Sequence[Any]
) -> list[tuple[Symbol, Any, str, int]]:
    """Return the outputs: results that have symbols, and values that left the program.

    Each has its symbol, its value, its name and the number of rounds in which it left.
    """
    leaving = values_leaving(recorder, results)
    rounds = {id(x.value): x.rounds for x in leaving}
    values = [*results, *(x.value for x in leaving)]
    names = output_names(result, values, recorder, leaving)
    return [
        (symbol, value, name, rounds.get(id(value), 1))
        for value, name in zip(values, names, strict=True)
        if (symbol := recorder.before(value)) is not None
    ]


def _unread(recorder: Recorder, outputs: Sequence[Symbol]) -> list[tuple[Symbol, Any, str, int]]:
    """Return the outputs of a program out of which no value leaves, and note that in its graph.

    Their values are those of a run of the graph: the program has dropped its own.
    """
    from graphir.runtime.interpreter import interpret

    graph, known = recorder.graph, {x.index for x in outputs}
    pairs = [(x, name) for x, name in unread_values(recorder) if x.index not in known]
    if not pairs:
        return []
    graph.set_interface(outputs=(x for x, _ in pairs))
    try:
        with recording_with(None):
            values = interpret(graph, *recorder.inputs)
    except GraphirError as error:  # no fault of the recording may stop the program
        recorder.add_fault(error)
        return []
    text = (
        "the program saves, prints and returns no recorded value: arrays that it never uses count"
    )
    graph.describe(notes=[*graph.notes, text])
    values = values if len(pairs) > 1 else (values,)
    return [(x, value, name, 1) for (x, name), value in zip(pairs, values, strict=True)]


def recording_fields(
    recorder: Recorder, result: Any, pairs: Sequence[tuple[Symbol, Any, str, int]]
) -> dict[str, Any]:
    """Return the fields of the Recording of a finished run with its outputs (see `_outputs`)."""
    recorder.graph.set_interface(outputs=(symbol for symbol, *_ in pairs))
    if recorder.sites.compiler is not None:
        library, recorder.here = recorder.sites.compiler
        recorder.note(library, "computes outside of NumPy: audit SCRIPT.py:FUNCTION of it alone")
    beyond = RecordedFacts(
        tuple(recorder.steps),
        {pin.index: pin for pin in recorder.pins},
        recorder.masks,
        recorder.observed,
        tuple(recorder.program_arrays.data or recorder.program_arrays.captures),
        {},
    )
    return {
        "result": plain_result(result),
        "graph": recorder.graph,
        "inputs": tuple(recorder.inputs),
        "outputs": tuple(as_returned(leaf) for _, leaf, *_ in pairs),
        "notes": tuple(recorder.notes.values()),
        "beyond": beyond,
        "names": tuple(name or f"output{i}" for i, (_, _, name, _) in enumerate(pairs)),
        "rounds": tuple(rounds for *_, rounds in pairs),
    }


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _names(function: Callable[..., Any], arrays: tuple[Any, ...]) -> Iterator[str | None]:
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


def _example(operand: TensorType | complex) -> Any:
    if isinstance(operand, TensorType):
        return np.ones(operand.shape, operand.dtype.storage)  # pyright: ignore
    return operand


# -- recordings of many calls

MOST_VISITS = 400
"""The most objects among the arguments of a call in which a session looks for arrays."""


class RecordingSession:
    """Records calls in one graph.

    `slots` hold the arrays that the program captures, `places` the constructors (maker_places).
    The code of the program must have its calls watched already (see watched_code.watch_calls).
    """

    def __init__(self, name: str, slots: Iterable[ArraySlot], places: MakerPlaces) -> None:
        self.recorder: Recorder = new_recorder(name, "numpy", RecordingSession.call.__code__)
        for namespace, key, maker in places:
            namespace[key] = maker
        for slot in slots:
            if slot.holds(slot.value):
                wrap = self.recorder.program_arrays.wrap_capture
                new = recorded_slot(wrap, slot.value, slot.name)
                if new is not slot.value:
                    slot.store(new)

    @property
    def graph(self) -> Graph:
        """The graph of all calls so far."""
        return self.recorder.graph

    def call(
        self, function: Callable[..., Any], args: Iterable[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """Return the plain result of a call, whose steps are added to the graph."""
        recorder, positional, by_name = self.recorder, dict(enumerate(args)), dict(keywords)
        roots = getattr(function, "__self__", None), positional, by_name
        recorder.enter()
        with (
            swapped(partial(recorded_slot, self._wrap), plain, *roots, most=MOST_VISITS),
            recording_with(recorder),
        ):
            result: Any = function(*positional.values(), **by_name)
        return plain_result(result)

    def _wrap(self, value: Any, name: str | None) -> Any:
        """Return a recorded scalar, or a recorded array that is an input from its first use on."""
        arrays = self.recorder.program_arrays
        wrap = arrays.wrap_argument if isinstance(value, np.generic) else arrays.wrap_capture
        return wrap(value, name)

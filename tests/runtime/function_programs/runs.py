"""Run a drawn program with NumPy and with a front end, and compare each call."""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.runtime.function_programs.arguments import evaluate_arguments, owner
from tests.runtime.function_programs.comparison import (
    Difference,
    array_leaves,
    bits_differ,
    find_difference,
    with_scalars_as_arrays,
)
from tests.runtime.function_programs.drawing import call_program
from tests.runtime.function_programs.programs import Call, Program, unload

TIME_LIMIT = 20.0  # seconds of one program
# Programs whose graph, or whose results, other values of the arguments do not determine
STATEFUL = frozenset({"iterators", "aliased arguments", "random", "error state"})


class TimeLimitError(BaseException):
    """The program took longer than its time limit; no program catches it by `Exception`."""


@dataclass(frozen=True)
class Outcome:
    status: str  # "equal", "refused", "differ", "crashed"
    kind: str = ""
    detail: str = ""
    call: int = 0  # of the program's calls, the one that decided the status
    raises: bool = False  # NumPy raises in that call, or in any call of an equal program
    names_line: bool = True  # a refusal names the program's file
    noted: bool = False  # a recording has notes, so that no replay was compared


@dataclass(frozen=True)
class Answer:
    """What a call gave: a result or an exception, and for a recording what its replay showed."""

    result: Any = None
    error: BaseException | None = None
    noted: bool = False
    replay: Outcome | None = None


Runner = Callable[[Call, dict[str, Any]], Answer]


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)  # again, where a program catches it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _numpy_runner(program: Program, namespace: Mapping[str, Any]) -> Runner:
    function = namespace["program"]
    return lambda call, values: Answer(call_program(function, call, values))


def _jit_runner(program: Program, namespace: Mapping[str, Any]) -> Runner:
    from graphir.runtime import jit

    function = jit(namespace["program"])
    return lambda call, values: Answer(call_program(function, call, values))


def _record_runner(program: Program, namespace: Mapping[str, Any]) -> Runner:
    from graphir.runtime import record

    def run(call: Call, values: dict[str, Any]) -> Answer:
        recording = record(namespace["program"], *values.values())
        if recording.notes:
            return Answer(recording.result, noted=True)
        replay = _replay(recording)
        is_stateless = not program.value_dependent and not STATEFUL.intersection(program.tags)
        if call is program.calls[0] and is_stateless and not replay:
            replay = _replay_other_values(program, recording)
        return Answer(recording.result, replay=replay)

    return run


RUNNERS: dict[str, Callable[[Program, Mapping[str, Any]], Runner]] = {
    "numpy": _numpy_runner,
    "jit": _jit_runner,
    "record": _record_runner,
}


def _loose(make: Callable[[Program, Mapping[str, Any]], Runner]) -> Any:
    """A front end whose results have 0-d arrays in place of scalars."""

    def make_loose(program: Program, namespace: Mapping[str, Any]) -> Runner:
        runner = make(program, namespace)

        def run(call: Call, values: dict[str, Any]) -> Answer:
            answer = runner(call, values)
            return replace(answer, result=with_scalars_as_arrays(answer.result))

        return run

    return make_loose


RUNNERS |= {f"{name}-loose": _loose(make) for name, make in RUNNERS.items()}


def _fresh(program: Program, place: int, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the call, where call 1 has the literals of call 0."""
    first = program.calls[0].arguments
    literals = {name: argument for name, argument in first.items() if argument.shape is None}
    arguments = {**program.calls[place].arguments, **literals}
    return evaluate_arguments(arguments, namespace)


def _execute(recording: Any, inputs: Any) -> Any:
    from graphir import GraphirError, runtime

    try:
        results = runtime.execute(recording.graph, *inputs)
        return results if isinstance(results, tuple) else (results,)
    except GraphirError as error:
        return Outcome("refused", f"replay: {type(error).__name__}", str(error))
    except Exception as error:
        return Outcome("crashed", f"replay raises {type(error).__name__}", str(error))


def _compare_leaves(expected: Any, actual: Any, kind: str) -> Outcome | None:
    for place, (one, two) in enumerate(zip(expected, actual, strict=False)):
        one, two = np.asarray(one), np.asarray(two)
        if one.dtype != two.dtype or one.shape != two.shape:
            shown = f"NumPy {one.dtype}{list(one.shape)}, here {two.dtype}{list(two.shape)}"
            return Outcome("differ", f"{kind}: type", f"output {place}: {shown}")
        if difference := bits_differ(one, two, f"output {place}"):
            return Outcome("differ", f"{kind}: bits", str(difference))
    return None


def _replay(recording: Any) -> Outcome | None:
    """What the graph gives on the recorded inputs, against what the program computed."""
    if not recording.outputs:
        return None
    results = _execute(recording, recording.inputs)
    if isinstance(results, Outcome):
        return results
    if len(results) != len(recording.outputs):
        shown = f"{len(results)}, not {len(recording.outputs)}"
        return Outcome("differ", "replay: number of outputs", shown)
    return _compare_leaves(recording.outputs, results, "replay")


def _are_equal(expected: list[Any], actual: Any) -> bool:
    return len(expected) <= len(actual) and not _compare_leaves(expected, actual, "")


def _replay_other_values(program: Program, recording: Any) -> Outcome | None:
    """The graph on call 1's values, against NumPy; None too where they are not comparable."""
    if len(program.calls) < 2 or program.calls[1].changes or recording.notes:
        return None
    namespace = program.load()
    try:
        inputs = list(array_leaves(list(_fresh(program, 0, namespace).values())))
        first = list(array_leaves(recording.result))
        is_mapped = len(inputs) == len(recording.inputs) and _are_equal(inputs, recording.inputs)
        if not first or not is_mapped or not _are_equal(first, recording.outputs):
            return None
        values = _fresh(program, 1, namespace)
        others = list(array_leaves(list(_fresh(program, 1, namespace).values())))
        if [(x.dtype, x.shape) for x in others] != [(x.dtype, x.shape) for x in inputs]:
            return None
        try:
            expected = list(array_leaves(namespace["program"](*values.values())))
        except Exception:
            return None
    finally:
        unload(namespace)
    if [x.shape for x in expected] != [x.shape for x in first]:
        return None
    results = _execute(recording, others)
    if isinstance(results, Outcome):
        return replace(results, kind=results.kind.replace("replay", "replay of other values"))
    return _compare_leaves(expected, results, "replay of other values")


def _answer(runner: Runner, call: Call, values: dict[str, Any]) -> Answer:
    try:
        with np.errstate(all="ignore"):
            return runner(call, values)
    except Exception as error:
        return Answer(error=error)


def _argument_difference(expected: Any, actual: Any, path: str) -> Difference | None:
    """The arguments after the call, with the memory around a strided one."""
    if isinstance(expected, np.ndarray):
        difference = find_difference(expected, actual, path)
        whole = owner(expected), owner(actual)
        if not difference and whole[0].dtype == expected.dtype:
            difference = bits_differ(*whole, path)
        return difference
    return find_difference(expected, actual, path)


def _compare_errors(expected: Answer, actual: Answer, path: str) -> Outcome | None:
    """The outcome where a call raised, or None if neither did."""
    from graphir import GraphirError

    error, raised = actual.error, expected.error
    if error is None and raised is None:
        return None
    if error is None:
        shown = f"NumPy raises {type(raised).__name__}: {raised}; here {str(actual.result)[:80]}"
        return Outcome("differ", f"no exception (NumPy: {type(raised).__name__})", shown)
    if raised is not None and isinstance(error, type(raised)):
        return Outcome("equal")
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, GraphirError):
        notes = "\n".join(getattr(error, "__notes__", ()))
        return Outcome("refused", type(error).__name__, text, names_line=path in text + notes)
    if raised is not None:
        kind = f"raises {type(error).__name__} (NumPy: {type(raised).__name__})"
        return Outcome("differ", kind, f"{text}; NumPy: {raised}")
    return Outcome("crashed", f"raises {type(error).__name__} (NumPy: none)", text)


def _compare_answers(
    expected: Answer, actual: Answer, before: dict[str, Any], after: dict[str, Any], path: str
) -> Outcome:
    if outcome := _compare_errors(expected, actual, path):
        return replace(outcome, raises=expected.error is not None)
    difference = find_difference(expected.result, actual.result)
    if difference:
        return Outcome("differ", difference.kind, str(difference))
    for name in before:
        difference = _argument_difference(before[name], after[name], f"argument {name}")
        if difference:
            return Outcome("differ", f"argument: {difference.kind}", str(difference))
    return replace(actual.replay or Outcome("equal"), noted=actual.noted)


def _is_dead(program: Program, error: Any, path: str) -> bool:
    """Answer whether NumPy raised in a statement whose variables nothing uses later.

    docs/functions.md: code without an effect on the results does not run, nor does it raise.
    """
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path and trace.tb_frame.f_code.co_name == "program":
            line = trace.tb_lineno
        trace = trace.tb_next
    lines = program.source().splitlines()
    if not 0 < line <= len(lines):
        return False
    target = lines[line - 1].strip().partition(" = ")[0]
    return target.isidentifier() and not any(target in later for later in lines[line:])


def _run_calls(
    program: Program, front_end: str, reference: dict[str, Any], subject: dict[str, Any]
) -> Outcome:
    is_loose = front_end.endswith("-loose")
    expected_runner = RUNNERS["numpy-loose" if is_loose else "numpy"](program, reference)
    actual_runner = RUNNERS[front_end](program, subject)
    raises = noted = False
    for place, call in enumerate(program.calls):
        for change in call.changes:
            exec(change, reference)
            exec(change, subject)
        before = evaluate_arguments(call.arguments, reference)
        after = evaluate_arguments(call.arguments, subject)
        expected = _answer(expected_runner, call, before)
        actual = _answer(actual_runner, call, after)
        outcome = _compare_answers(expected, actual, before, after, subject["__file__"])
        raises |= expected.error is not None
        noted |= outcome.noted
        is_unraised = expected.error is not None and outcome.kind.startswith("no exception")
        if is_unraised and _is_dead(program, expected.error, reference["__file__"]):
            continue
        if outcome.status != "equal":
            return replace(outcome, call=place)
    return Outcome("equal", raises=raises, noted=noted)


def run_program(program: Program, front_end: str, seconds: float = TIME_LIMIT) -> Outcome:
    """Compare all calls of a program under a front end with NumPy's."""
    loaded: list[dict[str, Any]] = []
    try:
        with _time_limit(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = [program.load(), program.load()]
            return _run_calls(program, front_end, *loaded)
    except TimeLimitError:
        return Outcome("crashed", "time limit", f"more than {seconds:g} s")
    finally:
        for namespace in loaded:
            unload(namespace)

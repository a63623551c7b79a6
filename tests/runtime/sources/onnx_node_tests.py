"""The node tests that the onnx package generates, imported and interpreted.

Tests give axes and shapes as inputs of the model. With `states_values` these are constants, as in
models of users; without it such nodes are calls, since the types of their results are unknown.
`python -m tests.runtime.sources.onnx_node_tests [PART OF A NAME]` runs them all and prints a table.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from graphir import Graph, GraphirError
from graphir.ops.control import bodies
from graphir.runtime import from_onnx, interpret
from graphir.runtime.sources.onnx_.source import text_of_points


class Verdict(NamedTuple):
    """The outcome of a test: the graph, if it was imported, and the problem, if there is one."""

    name: str
    ops: str
    graph: Graph | None
    problem: str

    @property
    def has_calls(self) -> bool:
        """Whether the graph has a `call`."""
        return self.graph is not None and has_calls(self.graph)


def has_calls(graph: Graph) -> bool:
    """Whether a graph, or a body in it, has a `call`."""
    return any(_calls(graph))


def _calls(graph: Graph) -> Any:
    for symbol in graph.symbols:
        yield symbol.op.name == "call"
        for body in bodies(symbol.attrs):
            yield from _calls(body)


def generated_cases() -> list[Any]:
    """Return the test cases of nodes, with their expansions to function bodies."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of casts that overflow
        return collect_testcases(None)


def judge(case: Any, states_values: bool = True) -> Verdict:
    """Import and run one test case, and compare its outputs as onnx's own runner does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the reference evaluator
        return _judged(case, states_values)


def _judged(case: Any, states_values: bool) -> Verdict:
    from onnx.backend.test.runner import Runner

    ops = "+".join(dict.fromkeys(node.op_type for node in case.model.graph.node))
    graph = None
    try:
        for place, (_, expected) in enumerate(case.data_sets):
            graph, feeds = imported(case, states_values, place)
            results = interpret(graph, *feeds)
            results = results if isinstance(results, tuple) else (results,)
            targets = [*map(_array, expected)]
            pairs = [_comparable(*pair) for pair in zip(targets, results, strict=True)]
            if is_random(case):
                assert [x.shape for x, _ in pairs] == [y.shape for _, y in pairs]
                continue
            narrow = any(x.dtype == "bfloat16" for x in targets)
            rtol = max(case.rtol, 2**-6) if narrow else case.rtol  # as onnx's runner
            compare: Any = Runner.assert_similar_outputs
            compare([x for x, _ in pairs], [y for _, y in pairs], rtol, case.atol)
    except (GraphirError, AssertionError, TypeError, AttributeError) as error:
        return Verdict(case.name, ops, graph, f"{type(error).__name__}: {error}")
    return Verdict(case.name, ops, graph, "")


def imported(case: Any, states_values: bool = True, place: int = 0) -> tuple[Graph, list[Any]]:
    """Return the graph of a test case, and its inputs in one of the case's sets of data."""
    names = [info.name for info in case.model.graph.input]
    feeds = dict(zip(names, map(_array, case.data_sets[place][0]), strict=True))
    static = {name: feeds.pop(name) for name in _static_names(case.model) if states_values}
    return from_onnx(case.model, **static), [*map(_points, feeds.values())]


def _points(x: Any) -> Any:
    """Return text as the numbers of its characters, and another array itself."""
    is_text = isinstance(x, np.ndarray) and x.dtype.kind == "O"
    return np.asarray(x, "U")[..., None].view(np.uint32) if is_text else x


def is_random(case: Any) -> bool:
    """Whether a test case has random values."""
    return any(name in case.name for name in RANDOM)


_SHAPING = "shape axes axis repeats starts ends steps k K depth split pads sizes size num_samples"
SHAPING = frozenset(_SHAPING.split(" "))
"""The formal parameters of ops that decide the shapes of results, or by which axes they compute."""


def _static_names(model: Any) -> list[str]:
    """Return the inputs of a model that nodes use as parameters of the names in SHAPING alone."""
    from onnx import defs

    inputs = {info.name for info in model.graph.input}
    shaping: set[str] = set()
    others: set[str] = set()
    for node in model.graph.node:
        version = next((o.version for o in model.opset_import if o.domain == node.domain), 1)
        formals = defs.get_schema(node.op_type, version, node.domain).inputs
        for i, name in enumerate(node.input):
            formal = formals[min(i, len(formals) - 1)].name
            (shaping if formal in SHAPING else others).add(name)
    return sorted(inputs & (shaping - others))


RANDOM = ("bernoulli", "training_dropout")
"""Parts of the names of tests whose values are random."""


def _array(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _comparable(expected: Any, actual: Any) -> tuple[Any, Any]:
    """Return arrays whose dtypes NumPy compares: those of ml_dtypes as float32, if they agree."""
    if expected.dtype.kind == "O":
        return expected, text_of_points(actual)[0]
    assert expected.dtype == actual.dtype, f"{actual.dtype}, expected {expected.dtype}"
    if expected.dtype.isbuiltin == 1:
        return expected, actual
    return expected.astype(np.float32), actual.astype(np.float32)


def main(part: str) -> None:
    """Run the tests whose names have a part, and print what failed and how many passed."""
    cases = [case for case in generated_cases() if part in case.name]
    for states_values in (False, True):
        report([judge(case, states_values) for case in cases])


def report(verdicts: list[Verdict]) -> None:
    """Print what failed, how many passed, and the ops of those that passed with calls."""
    for verdict in verdicts:
        if verdict.problem:
            print(f"{verdict.name} [{verdict.ops}]: {' '.join(verdict.problem.split())[:230]}")
    passed = [verdict for verdict in verdicts if not verdict.problem]
    called = [verdict for verdict in passed if verdict.has_calls]
    print(Counter(verdict.ops for verdict in called).most_common(80))
    print(f"{len(passed)} of {len(verdicts)} passed, {len(called)} of them with calls")


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])

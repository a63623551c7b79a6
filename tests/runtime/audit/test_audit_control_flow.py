"""Audits of graphs with control flow: a run is a straight graph of the same values and lines."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from graphir import DType, ExecutionError, Graph, PromotionError, Symbol, TensorType, ops
from graphir import control as cf
from graphir.ops.control import Callee
from graphir.ops.types import OpaqueType, TupleType
from graphir.passes import cast_report
from graphir.runtime import audit, interpret
from graphir.runtime.audit.unrolling import unrolled
from graphir.runtime.binding import bind
from tests.support.control_flow import flow_programs
from tests.support.drawing import Program
from tests.support.evaluator import agree, outcome
from tests.support.tables import every, sampled


def run_of(graph: Graph, *inputs: Any, most: int = 50_000) -> Graph:
    arrays, sizes = bind(graph, inputs, {})
    return unrolled(graph, arrays, sizes, most).graph


@settings(deadline=None)
@given(flow_programs())
def test_a_run_is_a_straight_graph_of_the_same_values(program: Program) -> None:
    graph, inputs = program.graph, program.inputs
    meaning = outcome(interpret, graph, *inputs)
    if meaning is ExecutionError or has_weak_arrays(graph):
        return
    try:
        straight = run_of(graph, *inputs).verify()
    except PromotionError as refusal:  # rows of a scan are slices, which rules may not have of int2
        assert str(refusal).startswith("slice: it is not defined for")
        return
    assert not any(symbol.op.kind == "control" for symbol in straight)
    assert agree(outcome(interpret, straight, *inputs), meaning)
    cast_report(straight)


def has_weak_arrays(graph: Graph) -> bool:
    """Whether a scan of arrays of numbers without a dtype may be refused, as below."""
    parts = [part for symbol in graph for part in symbol.type.parts]
    return any(type(part) is TensorType and part.shape and part.dtype.weak for part in parts)


@settings(deadline=None, max_examples=15)
@given(flow_programs(steps=2))
def test_audits_of_drawn_programs_have_their_results(program: Program) -> None:
    meaning = outcome(interpret, program.graph, *program.inputs)
    if meaning is not ExecutionError and not has_weak_arrays(program.graph):
        assert agree(audit(program.graph, *program.inputs).results, meaning)


def test_rows_of_weak_arrays_are_refused_where_the_rules_make_them_strong() -> None:
    for rules, refuses in (("torch", True), ("python", False)):
        graph = Graph("weak", rules=rules)
        x = graph.input("weak_float", ("n",))
        _, rows = cf.scan(lambda total, row: (total, row), 0.0, x)
        graph.output(rows)
        if refuses:
            with pytest.raises(ExecutionError, match=r"weak_float\[2\].*make the input float64"):
                audit(graph, np.array([0.1, 1e300]))
        else:
            assert agree(audit(graph, np.array([0.1])).results, (np.array([0.1]),))


def rounding(rules: str = "numpy") -> Graph:
    g = Graph("rounding", rules=rules)
    x = g.input(DType.float32, ("n",), name="x")
    k = g.input(DType.int32, (), name="k")

    def body(state: Any) -> Any:
        i, v = state
        return i + 1, cf.cond(i > 0, lambda: v * x, lambda: v.cast("float16").cast("float32"))

    _, y = cf.while_loop(lambda s: s[0] < k, body, (k - k, x))
    total, _ = cf.scan(lambda c, r: (c + r, ()), np.float32(0), y)
    g.output(y, total)
    return g


X = np.array([0.1, 0.7, 1.3], np.float32)


@every("rules", ["numpy", "jax", "jax_x32", "torch", "max", "tensorflow"])
def test_the_cast_in_a_branch_has_the_error(rules: str) -> None:
    report = audit(rounding(rules), X, np.int32(4))
    first = report.sites[0]
    assert first.row.layer == "body of while_loop/false branch of cond"
    assert first.times == 1 and first.measured is not None and first.measured.changed == 3
    assert first.share == pytest.approx(1, abs=0.02)
    results = interpret(rounding(rules), X, np.int32(4))
    assert all((a == b).all() for a, b in zip(report.results, results, strict=True))


def test_a_scan_has_the_sites_of_the_loop_in_python() -> None:
    def step(c: Symbol, r: Symbol) -> Symbol:
        return c + r.cast("float16")

    def sites(loop: bool) -> list[tuple[Any, ...]]:
        g = Graph("p", rules="numpy")
        x = g.input(DType.float32, (100,), name="x")
        total: Any = g.constant(np.float16(0))
        if loop:
            total, _ = cf.scan(lambda c, r: (step(c, r), ()), total, x)
        else:
            for i in range(100):
                total = step(total, x[i])
        g.output(total)
        report = audit(g, np.full(100, 0.1, np.float32))
        layers = {"body of scan"} if loop else {""}
        assert {site.row.layer for site in report.sites} == layers
        return [(x.row.kind, x.row.location.line, x.times, x.share) for x in report.sites]

    assert sites(True) == sites(False)
    assert {kind for kind, *_ in sites(True)} == {"explicit", "accumulation"}


def test_branches_that_do_not_run_are_not_in_the_report() -> None:
    report = audit(rounding(), X, np.int32(1))
    assert not any("true branch" in row.layer for row in report)


def test_the_error_is_unknown_where_rounding_chose_the_branch() -> None:
    g = Graph("p", rules="numpy")
    x = g.input(DType.float32, (), name="x")
    y = cf.cond(x.cast("float16") > 2048, lambda: x, lambda: -x)
    g.output(y)
    report = audit(g, np.float32(2048.9))
    assert not report.outputs[0].is_known and report.unseen[0].what == "cond"
    assert audit(g, np.float32(3)).outputs[0].is_known


def test_a_call_is_named_and_its_error_unknown() -> None:
    def halved(x: Any, *_: Any) -> Sequence[Any]:
        return (x / 2, object())

    g = Graph("p", rules="numpy")
    x = g.input(DType.float32, (3,), name="x")
    types = TupleType([TensorType(DType.float32, (3,)), OpaqueType("key")])

    def body(v: Symbol) -> Symbol:
        step = ops.control.call([v * 1.1], callee=Callee("lib.halved", halved), types=types)
        again = ops.control.call(
            [ops.control.part(step, 0), ops.control.part(step, 1)],
            callee=Callee("lib.halved", halved),
            types=types,
        )
        return ops.control.part(again, 0)

    g.output(cf.while_loop(lambda v: v.sum() > 1, body, x))
    report = audit(g, X)
    assert not report.outputs[0].is_known
    assert {step.what for step in report.unseen} >= {"lib.halved"}
    assert (report.results[0] == interpret(g, X)).all()


@every("dtype", ["float16", "bfloat16"])
def test_as_dtype(dtype: str) -> None:
    report = audit(rounding(), X, np.int32(3), as_dtype=dtype)
    assert str(report.results[0].dtype) == dtype
    assert any(row.layer.startswith("body of while_loop") for row in [*report, *report.losses])


def test_long_loops_are_refused_with_a_way_round() -> None:
    with pytest.raises(ExecutionError, match=r"too many ops .* more than 50 .* run fewer steps"):
        run_of(rounding(), X, np.int32(100), most=50)
    g = Graph("endless", rules="numpy")
    x = g.input(DType.bool, (), name="x")
    g.output(cf.while_loop(lambda v: v, lambda v: v, x))
    with pytest.raises(ExecutionError, match="too many ops"):
        run_of(g, np.bool_(True), most=50)


FUNCTIONS: dict[str, Callable[[Symbol, Symbol], Any]] = {
    "cond": lambda x, n: cf.cond(n > 0, lambda: x + 1, lambda: x * 2),
    "switch": lambda x, n: cf.switch(n, [lambda: x, lambda: x * x, lambda: x - x]),
    "while_loop": lambda x, n: cf.while_loop(
        lambda s: s[0].sum() < 9, lambda s: (s[0] * x, s[1] + n), (x, n)
    ),
    "fori_loop": lambda x, n: cf.fori_loop(0, n, lambda i, v: v * x, x),
    "scan": lambda x, n: cf.scan(lambda c, r: (c + r, c * r), x[0], x),
    "map": lambda x, n: cf.map(lambda r: r * r, x),
}

RULES = ["numpy", "jax", "jax_x32", "torch", "max", "array_api", "tensorflow", "python", "explicit"]


@sampled(2)
@every("rules", RULES)
@every("function", FUNCTIONS)
def test_functions_under_rules(function: str, rules: str) -> None:
    g = Graph("t", rules=rules)
    is_python = rules == "python"
    x = g.input(DType.weak_float if is_python else DType.float32, (3,), name="x")
    n = g.input(DType.weak_int if is_python else DType.int32, (), name="n")
    with g:
        results = FUNCTIONS[function](x, n)
    g.output(*(results if isinstance(results, tuple) else (results,)))
    arrays = [x.astype(np.float64 if is_python else np.float32) for x in (X + 1,)]
    inputs = (*arrays, np.array(2, np.int64 if is_python else np.int32))
    assert cast_report(g).graph is g
    assert agree(audit(g, *inputs).results, outcome(interpret, g, *inputs))

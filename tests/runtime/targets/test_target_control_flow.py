"""Control flow on other engines: random graphs with nested bodies, and each case of each op."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

from graphir import DType, Graph, GraphirError, Symbol, control, ops
from graphir.ops.types import TupleType
from graphir.passes import lower
from graphir.runtime import interpret, targets
from graphir.runtime.binding import sizes_of
from graphir.runtime.targets.emission import TargetError, dtypes_of, live_arrays
from graphir.runtime.targets.onnx_.target import NO_DTYPE
from tests.runtime.targets.target_engines import ENGINES, listed
from tests.runtime.targets.target_table import TARGETS, installed
from tests.support.control_flow import flow_programs
from tests.support.drawing import DTYPES, Program
from tests.support.engines import settled
from tests.support.evaluator import same
from tests.support.strategies import STRONG
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore")

Array = Any
Engine = Callable[[Graph, Sequence[Array]], Sequence[Array]]


def _python(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    return ENGINES["python"].load(graph)(*inputs)


def _jax(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    return ENGINES["jax"].load(graph)(*inputs)


def _jitted(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    import jax

    with jax.enable_x64(True):
        return listed(jax.device_get(jax.jit(targets.jax(graph))(*inputs)))


def _hlo(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    import jax

    from tests.runtime.targets import hlo

    with jax.enable_x64(True):
        return hlo.compiled(_hlo_text(graph, inputs))(inputs)


def _hlo_reference(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    from tests.runtime.targets import hlo

    dtypes = [x.dtype.storage for x in lower(graph).outputs]
    return hlo.interpreted(_hlo_text(graph, inputs), inputs, dtypes)


def _hlo_text(graph: Graph, inputs: Sequence[Array]) -> str:
    return targets.stablehlo(graph, sizes_of(graph, inputs))


def _onnx(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    from tests.runtime.targets import onnx_models

    run = onnx_models.Run(targets.onnx(graph))
    return run(*inputs) if run.session else _by_reference(run, inputs)


def _onnx_reference(graph: Graph, inputs: Sequence[Array]) -> Sequence[Array]:
    from tests.runtime.targets import onnx_models

    return _by_reference(onnx_models.reference(targets.onnx(graph)), inputs)


def _by_reference(run: Any, inputs: Sequence[Array]) -> Sequence[Array]:
    """The outputs by ONNX's reference evaluator, without scans of no rows, or reversed."""
    try:
        return run(*inputs)
    except (ValueError, RuntimeError) as error:
        if re.search("need at least one array|other output input_direction", str(error)):
            raise UnrunLoopError from None
        raise


class UnrunLoopError(Exception):
    """A loop that ONNX's reference evaluator does not run."""


RUNS: dict[str, Engine] = {
    "python": _python,
    "jax": _jax,
    "jax.jit": _jitted,
    "stablehlo": _hlo,
    "stablehlo reference": _hlo_reference,
    "onnx": _onnx,
    "onnx reference": _onnx_reference,
}
HERE = [
    name
    for name in RUNS
    if find_spec(
        "jax" if name[:3] in ("jax", "sta") else "onnxruntime" if name[0] == "o" else "numpy"
    )
]


# -- each case


def checked(graph: Graph, *inputs: Any, but: Sequence[str] = ()) -> None:
    """Every engine gives the bits of `interpret`, but where ONNX's evaluator lacks the loop."""
    inputs = tuple(map(np.asarray, inputs))
    ours = listed(interpret(graph, *inputs))
    for name in HERE:
        if name in but:
            continue
        try:
            theirs = RUNS[name](graph, inputs)
        except UnrunLoopError:
            continue
        for expected, result in zip(ours, theirs, strict=True):
            assert same(expected, np.asarray(result)), (name, expected, result)


@every("index", [-9, -1, 0, 1, 2, 3, 100])
@every("dtype", ["int8", "int64", "uint8", "uint64"])
def test_an_index_is_clamped(dtype: str, index: int) -> None:
    graph = Graph("clamped", rules="numpy")
    place, x = graph.input(dtype, (), name="place"), graph.input("int32", (2,), name="x")
    branches: Any = [lambda n=n: x * np.int32(n) for n in (3, 5, 7)]
    graph.output(control.switch(place, branches))
    checked(graph, np.array(index).astype(dtype), np.arange(2, dtype=np.int32))


def test_an_index_beyond_int32_is_clamped() -> None:
    graph = Graph("clamped", rules="numpy")
    place = graph.input("uint64", (), name="place")
    graph.output(control.switch(place, [lambda n=n: graph.scalar(n, "int32") for n in (1, 2)]))
    checked(graph, np.array(2**63 + 2**32, np.uint64))


def test_more_branches_than_the_index_has_values() -> None:
    graph = Graph("many", rules="jax")
    place, truth = graph.input("int4", (), name="place"), graph.input("bool", (), name="truth")
    branches: Any = [lambda n=n: graph.scalar(n, "int32") for n in range(12)]
    one = control.switch(place, branches)
    other = ops.control.cond([truth], branches=ops_of(one).attrs["branches"])
    graph.output(one, ops.control.part(other, 0))
    for value in (-8, 0, 7):
        checked(graph, np.array(value).astype(DType.int4.storage), np.array(value > 0))


def ops_of(part: Symbol) -> Symbol:
    """The op of control flow that a part is of."""
    return part.args[0]


def test_branches_may_give_what_they_take() -> None:
    graph = Graph("chosen", rules="numpy")
    truth = graph.input("bool", (), name="truth")
    x, y = (graph.input("float32", ("n",), name=name) for name in "xy")
    pair = control.cond(truth, lambda a, b: (a, b), lambda a, b: (b, b), x, y)
    graph.output(*pair, control.switch(graph.scalar(0, "int64"), [lambda: x]))
    for value in (True, False):
        checked(graph, np.array(value), np.float32([1, 2, -0.0]), np.float32([3, np.nan, 5]))


@every("size", [0, 1, 3])
@every("reverse", [False, True])
@every("dtype", ["int32", "bfloat16", "bool", "float8_e8m0fnu", "int4"])
def test_scans_of_named_lengths(dtype: str, reverse: bool, size: int) -> None:
    """Rows, carries passed through, captured values, and a carry among the results."""
    graph = Graph("scanned", rules="jax")
    x, y = graph.input(dtype, ("n", "m"), name="x"), graph.input(dtype, ("n",), name="y")
    k = graph.input(dtype, ("m",), name="k")

    def step(carry: Any, rows: Any) -> Any:
        count, kept, last = carry
        row, value = rows
        return (count + 1, kept, row), (value, last, k, count)

    init = graph.scalar(0, "int32"), k, k
    counts, rows = control.scan(step, init, (x, y), None, reverse)
    graph.output(*counts, *rows)
    values = np.resize([1, 0, 2, 4, -1], (size, 2)).astype(DType(dtype).storage)
    checked(graph, values, values[:, 0].copy(), np.array([1, 4]).astype(values.dtype))


@every("reverse", [False, True])
@every("size", [0, 2])
def test_scans_of_constant_lengths(size: int, reverse: bool) -> None:
    graph = Graph("scanned", rules="numpy")
    x = graph.input("int16", (size, 3), name="x")
    ys = control.scan(lambda c, row: (c + row, c), x.sum(0), x, None, reverse)
    counted = control.scan(lambda c, _: (c * c, c), x.sum(), None, size, reverse)
    graph.output(*ys, *counted)
    checked(graph, np.arange(3 * size, dtype=np.int16).reshape(size, 3))


@every("size", [1, 2])
def test_scans_of_computed_lengths_without_rows(size: int) -> None:
    graph = Graph("counted", rules="numpy")
    x = graph.input("int32", ("n",), name="x")
    graph.output(*control.scan(lambda c, _: (c + x, c), x, None, "2*n-2"))
    checked(graph, np.arange(size, dtype=np.int32))


def test_sizes_computed_in_a_branch_are_not_used_outside() -> None:
    graph = Graph("sizes", rules="numpy")
    truth = graph.input("bool", (), name="truth")
    x = graph.input("int32", ("n",), name="x")
    branches = [lambda: x.sum(), lambda: x.broadcast_to((3, "n")).sum()]
    graph.output(control.switch(truth.cast("int32"), branches), x.broadcast_to((3, "n")))
    for value in (True, False):
        checked(graph, np.array(value), np.arange(4, dtype=np.int32))


def test_loops_in_loops() -> None:
    """Bodies three deep, captured through two, and a large constant within."""
    graph = Graph("nested", rules="numpy")
    x = graph.input("int64", ("n", 3), name="x")
    table = np.arange(300).reshape(100, 3)

    def inner(row: Any, i: Any, value: Any) -> Any:
        def added(v: Symbol) -> Symbol:
            return v + row + v.graph.constant(table, "int64")[7]

        return control.cond(i > 1, added, lambda v: v * x.sum(0), value)

    def row_of(row: Any) -> Any:
        return control.fori_loop(0, 3, lambda i, value: inner(row, i, value), row)

    graph.output(control.map(row_of, x), control.map(row_of, x))
    checked(graph, np.arange(6).reshape(2, 3))


def test_a_loop_without_turns_gives_its_initial_values() -> None:
    graph = Graph("still", rules="numpy")
    x = graph.input("float64", ("n",), name="x")
    turns = graph.input("int32", (), name="turns")
    graph.output(control.fori_loop(graph.scalar(0, "int32"), turns, lambda i, v: v + i, x))
    for count in (-1, 0, 2):
        checked(graph, np.array([0.5, -0.0]), np.array(count, np.int32))


@every("dtype", STRONG)
def test_values_of_every_dtype_enter_and_leave(dtype: DType) -> None:
    graph = Graph("passed", rules="explicit")
    x, truth = graph.input(dtype, (2, 3), name="x"), graph.input("bool", (), name="truth")
    kept = control.cond(truth, lambda a: a, lambda a: x, x)
    last, rows = control.scan(lambda c, row: (row, c), x[0], kept)
    ends, turned = control.while_loop(lambda s: s[0], lambda s: (~s[0], s[1]), (truth, rows))
    graph.output(kept, last, rows, ends, turned)
    values = np.resize([1, 0, 2, -1], (2, 3)).astype(dtype.storage)
    refusing = [name for name in HERE if refuses(name, dtype)]
    for name in refusing:
        with pytest.raises(TargetError):
            RUNS[name](graph, [values, np.array(True)])
    without = ["stablehlo"] if dtype.bits == 6 else []  # XLA has no floats of 6 bits
    checked(graph, values, np.array(True), but=[*refusing, *without])


def refuses(engine: str, dtype: DType) -> bool:
    """Whether a target has no arrays of a dtype."""
    if engine[:3] == "jax":
        return dtype.bits == 6
    return engine[:4] == "onnx" and dtype in NO_DTYPE


@every("target", TARGETS)
def test_calls_of_other_libraries_are_refused(target: str) -> None:
    if not installed(target):
        pytest.skip(f"{TARGETS[target].package} is not installed: nothing is written")

    def called(x: Symbol) -> Symbol:
        types = TupleType([x.type])
        return ops.control.part(ops.control.call([x], callee="other.f", types=types), 0)

    graph = Graph("calling", rules="numpy")
    x = graph.input("float32", (3,), name="x")
    graph.output(control.cond(x[0] > 0, lambda: called(x), lambda: x))
    with pytest.raises(TargetError, match=r'call\(.*cannot call "other.f"'):
        TARGETS[target].emit(graph)


def test_jax_runs_calls_of_its_own_functions() -> None:
    """Also in bodies, and of opaque values such as keys; a graph read from text has no function."""
    jax = pytest.importorskip("jax", reason="JAX is not installed, so that nothing calls it")
    from graphir.runtime import from_jax

    def function(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            value = jax.lax.cond(row > 0, lambda: jax.lax.digamma(row), lambda: row)
            return carry + jax.lax.lgamma(row), value

        keys = jax.random.key(x.sum().astype(np.int32))
        return *jax.lax.scan(step, x[0], x), jax.random.bits(keys, (3,), np.uint32)

    x = np.float32([3, -0.5, 7])
    graph = from_jax(function, x)
    expected = jax.jit(function)(x)
    for theirs in (targets.jax(graph)(x), jax.jit(targets.jax(graph))(x)):
        assert all(map(np.array_equal, theirs, expected))
    with pytest.raises(TargetError, match=r'cannot call "jax\.'):
        targets.jax(Graph.parse(str(graph)))
    with pytest.raises(TargetError, match=r'cannot call "jax\.'):
        targets.python(graph)


@every("name", [name for name in HERE if name[:3] in ("jax", "sta")])
def test_xla_rounds_a_product_and_a_sum_once_in_a_body(name: str) -> None:
    """Also where JAX runs the other ops one by one, and so rounds both."""
    graph = Graph("fused", rules="numpy")
    x = graph.input("float32", (1,), name="x")
    graph.output(
        x * x - 1.00048828125, control.cond(x[0] > 0, lambda: x * x - 1.00048828125, lambda: x)
    )
    outside, inside = RUNS[name](graph, [np.float32([1.000244140625])])
    once, twice = np.float32([2.0**-24]), np.float32([0])
    assert same(np.asarray(outside), twice if name in ("jax", "stablehlo reference") else once)
    assert same(np.asarray(inside), twice if name == "stablehlo reference" else once)


def test_weak_carries_under_rules_without_64_bits() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed, so that nothing runs")
    graph = Graph("weak", rules="jax_x32")
    x = graph.input("bfloat16", ("n",), name="x")
    last, (totals, rows) = control.scan(lambda c, row: (c * 0.5 + row, (c, row)), 0.0, x)
    with graph:
        count, power = control.while_loop(
            lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * 2), (0, 1)
        )
    choice = control.switch(count, [lambda: x * 2, lambda: x, lambda: x + 1])
    graph.output(last, totals, rows, count, power, choice)
    values = np.array([0.5, -1.25, 3]).astype(DType.bfloat16.storage)
    checked(graph, values)
    with jax.enable_x64(False):
        theirs = targets.jax(graph)(values)
    for expected, result in zip(interpret(graph, values), theirs, strict=True):
        assert same(np.asarray(expected), np.asarray(result))


def lines_of(nodes: Any) -> Any:
    """The source lines of nodes, those of subgraphs first."""
    for node in nodes:
        for attribute in node.attribute:
            yield from lines_of(attribute.g.node)
        yield {each.key: each.value for each in node.metadata_props}["graphir.location"]


def test_lines_in_bodies_have_their_places() -> None:
    graph = Graph("placed", rules="jax")
    x = graph.input("int16", (4,), name="x")
    inner = lambda row: control.cond(row > 0, lambda: row + 1.5, lambda: row * 2.5)  # noqa: E731
    graph.output(control.map(inner, x))
    place = re.escape(Path(__file__).name) + rf"\"?:{inner.__code__.co_firstlineno}"
    assert len(re.findall(rf"# .* of (?:add|multiply) at .*{place}", targets.python(graph))) == 2
    text = targets.stablehlo(graph)
    assert all(
        re.search(rf'loc\("(?:x|lhs) of {op}, .*{place}', text) for op in ("add", "multiply")
    )
    if "onnx" in HERE:
        lines = [*lines_of(targets.onnx(graph).graph.node)]
        assert all(Path(__file__).name in line for line in lines), lines
        assert sum(bool(re.search(place, line)) for line in lines) > 3, lines


def test_refusals_in_bodies_name_the_line() -> None:
    pytest.importorskip("onnx", reason="ONNX is not installed, so no model is made")
    graph = Graph("refused", rules="numpy")
    x = graph.input("complex64", (4,), name="x")
    graph.output(control.map(lambda row: row * row, x))
    with pytest.raises(TargetError, match=r"control_flow.py:\d+:\d+: multiply.*moves complex"):
        targets.onnx(graph)


def test_named_dims_get_their_sizes_in_bodies() -> None:
    graph = Graph("sized", rules="numpy")
    x = graph.input("int32", ("n", "m"), name="x")
    grown = control.scan(lambda c, row: (c + row, row.broadcast_to(("n", "m"))), x[0], x)
    graph.output(*grown)
    text = targets.stablehlo(graph, {"n": 2, "m": 3})
    assert "tensor<2x2x3xi32>" in text
    with pytest.raises(TargetError, match="needs the sizes of m"):
        targets.stablehlo(graph, {"n": 2})
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    checked(graph, values)
    if "onnx" in HERE:
        from tests.runtime.targets.onnx_models import Run

        theirs = Run(targets.onnx(graph, {"n": 2, "m": 3}))(values)
        assert all(map(same, theirs, interpret(graph, values)))


def test_python_refuses_more_blocks_than_it_can_nest() -> None:
    def nested(depth: int, x: Any) -> Any:
        if not depth:
            return x + x
        return control.fori_loop(0, 2, lambda i, value: nested(depth - 1, value), x)

    for depth in (20, 21):
        graph = Graph("deep", rules="numpy")
        graph.output(nested(depth, graph.input("int64", (), name="x")))
        if depth == 20:
            compile(targets.python(graph), "<target>", "exec")
            continue
        with pytest.raises(TargetError, match=r"while_loop.*nests at most 20 blocks"):
            targets.python(graph)


def test_slices_of_0d_values_are_written() -> None:
    graph = Graph("written", rules="numpy")
    x, y = (graph.input("int8", (), name=name) for name in "xy")
    update = ops.CATALOGUE["slice_update"]
    graph.output(update(x + x, y, start=(), stop=(), step=()))
    checked(graph, np.int8(1), np.int8(5))


# -- random graphs


EXACT = tuple(
    op
    for name, op in ops.CATALOGUE.items()
    if name not in ("input", "pow", "numpy_sum", "searchsorted")
    and op.kind in ("elementwise", "cast", "creation", "movement", "reduction")
)
INTEGERS = [x for x in STRONG if x is DType.bool or x.is_integer]


def is_exact(symbol: Symbol) -> bool:
    """Whether every engine computes an op to the bit: one of integers, or movement."""
    if not (symbol.op.computes or symbol.op is ops.cast):
        return True
    return all(x.dtype in INTEGERS for x in (symbol, *symbol.args))


@pytest.mark.parametrize("name", HERE)
@given(data=st.data())
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],  # compiling is slow, so nothing is shrunk
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_random_graphs_give_the_same_values(name: str, data: st.DataObject) -> None:
    if name == "python":
        agree(name, data.draw(flow_programs()))
        return
    rules = data.draw(st.sampled_from(("max", "numpy", "jax", "torch")))
    dtypes = [*(x for x in DTYPES[rules] if x in INTEGERS), DType.float32]
    exact = flow_programs(rules=[rules], dtypes=dtypes, catalogue=EXACT, steps=2)
    agree(name, data.draw(exact))


def agree(name: str, program: Program) -> None:
    """The same bits, or a refusal where the target or `interpret` refuses."""
    graph, inputs = program
    note(str(lower(graph)))
    if name != "python":
        assume(all(map(is_exact, live_arrays(lower(graph)))))
        assume(not any(x.bits == 6 for x in dtypes_of(lower(graph))))
    try:
        ours = listed(interpret(graph, *inputs))
    except GraphirError:
        assume(False)
    try:
        theirs = RUNS[name](graph, inputs)
    except (TargetError, UnrunLoopError):
        return
    for expected, result in zip(ours, theirs, strict=True):
        if name != "python":
            expected, result = settled(expected), settled(result)
        assert same(expected, result), (expected, result)

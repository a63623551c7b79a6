"""Graphs with `functions="rounded"`: results, and the setting on its way through the project."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, GraphError, ops, trace
from graphir.control import while_loop
from graphir.conversions import convert
from graphir.passes import implicit_cast, lower
from graphir.runtime import Program, execute, interpret, jit, targets
from graphir.runtime.targets.emission import TargetError
from graphir.semantics.evaluation import machine_of
from graphir.semantics.rounded_functions import ROUNDED_FUNCTIONS

pytest.importorskip("mpmath", reason="mpmath is not installed, so the truth is not known")

from tests.graphir.semantics.exhaustive_rounded import MODES, wrong_results
from tests.graphir.semantics.rounded_reference import FUNCTIONS, differs, reference
from tests.support.tables import every

NAMES = [*ROUNDED_FUNCTIONS]
COMPOSITES = [ops.softmax, ops.logsoftmax, ops.silu, ops.softplus, ops.gelu]
HARD = {
    # Inputs whose exact result is within 0.01 ulp of float64 of the middle between two neighbours,
    # or that another way to compute rounds wrong.
    "exp": [-(2.0**-25), 2.0**-24, -17.328680038452148],
    "log": [
        0.011794382706284523,
        9.472636222839355,
        58037908,
        1.2783783694984994e23,
        5.498306075456329e28,
    ],
    "sigmoid": [-0.001117885229177773, *(k * 2.0**-23 for k in range(-64, 65))],
    "cos": [
        float.fromhex("0x1.3170fp+63"),
        float.fromhex("0x1.2b9622p+67"),
        *(k * 2.0**-12 for k in range(1, 8)),
    ],
    "expm1": [2.0**-23, -(2.0**-24)],
    "log1p": [
        2.0**-24,
        2.0**-29,
        -1 + 2.0**-24,
        *[
            7.152559078349441e-07,
            8.583093404013198e-06,
            0.4951299726963043,
            8.472636222839355,
            1.2783783694984994e23,
            5.498306075456329e28,
            -7.152555667744309e-07,
            -8.583044291299302e-06,
            -0.0021787146106362343,
        ],
    ],
    "sin": [float.fromhex("0x1.33333p+13"), np.pi, 2.0**127, 16367173.0 * 2.0**72, 1.5 * 2.0**100],
}


def graph_of(op: Any, dtype: Any = "float32", shape: Any = ("n",), rules: str = "max") -> Graph:
    graph = Graph("one", rules=rules, functions="rounded")
    graph.output(op(graph.input(dtype, shape, name="x")))
    return graph


@every("name", NAMES)
def test_drawn_inputs_are_correctly_rounded_in_every_tier(name: str) -> None:
    """Every 9973rd of the 2**32 inputs; exhaustive_rounded.py runs all of them."""
    assert set(wrong_results(name, 9973).values()) == {0}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_more_inputs_are_correctly_rounded_in_every_tier(name: str) -> None:
    assert set(wrong_results(name, 257).values()) == {0}


@every("name", NAMES)
def test_inputs_at_the_edges(name: str) -> None:
    powers = 2.0 ** np.arange(-149, 128)
    edges = np.float32(
        [0, np.inf, np.nan, 1, 0.78539816, 88.722839, 103.97208, 17.32868, 3.9192059]
    )
    edges = np.concatenate([edges, powers.astype(np.float32), np.float32(HARD.get(name, []))])
    x = np.concatenate([np.nextafter(edges, np.float32(way * np.inf)) for way in (1, -1)] + [edges])
    x = np.concatenate([x, -x])
    assert not differs(interpret(graph_of(getattr(ops, name)), x), reference(name, x)).any()


@every("name", NAMES)
def test_values_that_are_exact(name: str) -> None:
    function = graph_of(getattr(ops, name), shape=())
    zeros, ones = [(0.0, 0.0), (-0.0, -0.0)], [(np.inf, 1.0), (-np.inf, -1.0)]
    exact: dict[str, list[tuple[float, float]]] = {
        "exp": [(0.0, 1.0), (-0.0, 1.0), (np.inf, np.inf), (-np.inf, 0.0)],
        "expm1": [*zeros, (np.inf, np.inf), (-np.inf, -1.0)],
        "log": [(1.0, 0.0), (0.0, -np.inf), (-0.0, -np.inf), (np.inf, np.inf), (-1.0, np.nan)],
        "log1p": [*zeros, (-1.0, -np.inf), (np.inf, np.inf), (-2.0, np.nan)],
        "log2": [*((2.0**k, float(k)) for k in range(-149, 128)), (-np.inf, np.nan)],
        "sin": [*zeros, (np.inf, np.nan)],
        "cos": [(0.0, 1.0), (-0.0, 1.0), (-np.inf, np.nan)],
        "tanh": [*zeros, *ones],
        "erf": [*zeros, *ones],
        "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (np.inf, 1.0), (-np.inf, 0.0)],
    }
    for x, y in [*exact[name], (np.nan, np.nan)]:
        for run in (interpret, execute):
            result = np.asarray(run(function, np.float32(x)))
            assert not differs(result.reshape(1), np.float32([y])).any(), (x, result)


@every("name", NAMES)
@every("dtype", [DType.float16, DType.bfloat16])
def test_all_halves_are_correctly_rounded(name: str, dtype: DType) -> None:
    """No exact result lies within 64 ulps of float64 of the middle, so float64 rounds right."""
    storage = np.dtype(np.float16 if dtype is DType.float16 else ml_dtypes.bfloat16)
    x = np.arange(1 << 16, dtype=np.uint16).view(storage)
    graph = graph_of(getattr(ops, name), dtype)
    with np.errstate(all="ignore"):
        wide = FUNCTIONS[name][0](x.astype(np.float64))
        bounds = [
            convert(wide * (1 + way * 2.0**-47), DType.float64, dtype).view(np.uint16)
            for way in (-1, 1)
        ]
    number = ~np.isnan(wide)
    assert (bounds[0] == bounds[1])[number].all()
    for native in MODES:
        result = Program(graph, native=native)(x)
        assert (result.view(np.uint16) == bounds[0])[number].all()
        assert np.isnan(result.astype(np.float32))[~number].all()
    assert not differs(interpret(graph, x), result).any()


def test_rounding_twice_would_be_wrong() -> None:
    """The reason why narrow floats compute in float64."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    once = interpret(graph_of(ops.exp, "float16"), x)
    with np.errstate(all="ignore"):
        twice = interpret(graph_of(ops.exp), x.astype(np.float32)).astype(np.float16)
    assert differs(twice, once).any()
    assert machine_of(ops.exp, DType.float16, "rounded") is DType.float64
    assert machine_of(ops.exp, DType.float16, "numpy") is DType.float32
    assert machine_of(ops.add, DType.float16, "rounded") is DType.float32


@every("name", NAMES)
def test_other_dtypes_keep_numpys_results(name: str) -> None:
    x = np.linspace(-3, 3, 1001)
    dtypes = ["float64"] if name in ("erf", "sigmoid") else ["float64", "complex128"]
    for dtype in dtypes:
        graph = graph_of(getattr(ops, name), dtype)
        plain = Graph("plain")
        plain.output(getattr(ops, name)(plain.input(dtype, ("n",), name="x")))
        values = x.astype(dtype)
        assert interpret(graph, values).tobytes() == interpret(plain, values).tobytes()


@st.composite
def programs(draw: Any) -> Graph:
    """A graph of functions, composite ops, reductions and arithmetic on rows."""
    graph = Graph("drawn", functions="rounded")
    dtype = draw(st.sampled_from(["float32", "float32", "float16", "bfloat16", "float64"]))
    shape = draw(st.sampled_from([("n", "m"), ("m",), ()]))
    values = [graph.input(dtype, shape, name="x")]
    for _ in range(draw(st.integers(1, 5))):
        x = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["function", "function", "composite", "binary", "reduction"]))
        if kind == "function":
            values.append(getattr(ops, draw(st.sampled_from(NAMES)))(x))
        elif kind == "composite":
            op = draw(st.sampled_from(COMPOSITES))
            values.append(op(x) if x.rank or op not in COMPOSITES[:2] else ops.silu(x))
        elif kind == "binary":
            values.append(
                draw(st.sampled_from([ops.add, ops.multiply]))(x, draw(st.sampled_from(values)))
            )
        elif x.rank:
            values.append(x - ops.max(x, axis=-1, keepdims=True))
    graph.output(*dict.fromkeys(values[1:][-2:] or [ops.exp(values[0])]))
    return graph


@given(programs(), st.integers(0, 2**32), st.sampled_from([1, 7, 33, 100]))
def test_drawn_programs_have_the_bits_of_interpret(graph: Graph, seed: int, size: int) -> None:
    x = graph.inputs[0]
    sizes = {"n": 3, "m": size}
    shape = [sizes[str(dim)] for dim in x.shape]
    values = (np.random.default_rng(seed).standard_normal(shape) * 3).astype(x.dtype.storage)
    expected = interpret(graph, values)
    for native in MODES:
        for threads in (1, 2):
            results = Program(graph, native=native, threads=threads)(values)
            for a, b in zip(_tuple(results), _tuple(expected), strict=True):
                assert not differs(np.atleast_1d(a), np.atleast_1d(b)).any()


def _tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


@every("native", MODES)
def test_two_threads_and_strides(native: Any) -> None:
    graph = graph_of(ops.tanh)
    x = np.random.default_rng(0).standard_normal(1_200_000).astype(np.float32)
    program = Program(graph, threads=2, native=native)
    expected = interpret(graph, x)
    assert not differs(program(x), expected).any()
    assert not differs(program(x[::-3]), expected[::-3].copy()).any()


def test_composites_call_the_rounded_functions() -> None:
    x = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
    powers = interpret(graph_of(ops.exp, shape=(50, 64)), x - x.max(-1, keepdims=True))
    softmax = powers / powers.sum(-1, keepdims=True)
    assert interpret(graph_of(ops.softmax, shape=(50, 64)), x).tobytes() == softmax.tobytes()
    plain = Graph("plain")
    plain.output(ops.softmax(plain.input("float32", (50, 64), name="x")))
    assert (interpret(plain, x) != softmax).any()
    tanh = graph_of(lambda x: ops.gelu(x, approximate="tanh"), shape=(50, 64))
    assert not differs(execute(tanh, x), interpret(tanh, x)).any()


def test_the_setting_survives() -> None:
    graph = graph_of(ops.exp)
    assert "rules=max functions=rounded (" in str(graph)
    for copy in (
        Graph.parse(str(graph)),
        Graph.parse(str(lower(graph))),
        pickle.loads(pickle.dumps(graph)),
        implicit_cast(graph),
        lower(graph),
        graph.like(),
    ):
        assert copy.functions == "rounded"
    assert Graph.parse(str(graph).replace(" functions=rounded", "")).functions == "numpy"
    assert "rounded functions" in Program(graph).explain()
    assert "rounded" not in Program(graph_of_numpy()).explain()


def graph_of_numpy() -> Graph:
    graph = Graph("numpy")
    graph.output(ops.exp(graph.input("float32", ("n",), name="x")))
    return graph


def test_folding_keeps_the_setting() -> None:
    values = np.linspace(-5, 5, 1000, dtype=np.float32)
    graph = Graph("folded", functions="rounded")
    graph.output(ops.exp(graph.constant(values)))
    assert not differs(execute(graph), reference("exp", values)).any()


def test_bodies_have_the_setting_of_the_graph_around_them() -> None:
    graph = Graph("loop", functions="rounded")
    x = graph.input("float32", ("n",), name="x")
    _, last = while_loop(
        lambda state: state[0] < 3,
        lambda state: (state[0] + 1, ops.tanh(state[1])),
        (graph.scalar(0, "int64"), x),
    )
    graph.output(last)
    values = np.random.default_rng(0).standard_normal(10_000).astype(np.float32)
    expected = values
    for _ in range(3):
        expected = reference("tanh", expected)
    for run in (interpret, execute):
        assert not differs(run(graph, values), expected).any()
    (loop,) = [symbol for symbol in graph.symbols if symbol.op.kind == "control" and symbol.args][
        :1
    ]
    body = loop.attrs["body"]
    assert body.functions == "rounded"
    body.functions = "numpy"
    with pytest.raises(GraphError, match="must have the same functions"):
        graph.verify()


def test_trace_and_jit_take_the_setting() -> None:
    x = np.linspace(-5, 5, 1000, dtype=np.float32)
    assert trace(np.exp, x, functions="rounded").graph.functions == "rounded"
    rounded = jit(lambda x: np.exp(x), functions="rounded")
    assert not differs(rounded(x), reference("exp", x)).any()
    assert jit(lambda x: np.exp(x))(x).tobytes() == np.exp(x).tobytes()
    with pytest.raises(GraphError, match="'numpy', 'rounded'"):
        trace(np.exp, x, functions="exact")  # pyright: ignore[reportArgumentType]


@every("op", [ops.exp, ops.sigmoid, ops.softmax, ops.silu])
def test_targets_refuse_the_functions(op: Any) -> None:
    for target in (targets.python, targets.stablehlo):
        with pytest.raises(TargetError, match="no correctly rounded functions"):
            target(graph_of(op, shape=(3, 4)))
        target(graph_of(op, "float64", (3, 4)))
        target(graph_of(ops.square, shape=(3, 4)))

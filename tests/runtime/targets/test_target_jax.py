"""The JAX target: under strict promotion, with and without jit, against `interpret`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing is run by it")

import jax

from graphir import DType, ExecutionError, Graph, Symbol, ops
from graphir.runtime import interpret, targets
from graphir.runtime.targets import TargetError
from graphir.runtime.targets.jax_ import COMPOSITES, function_of, table
from tests.peers import CALLS
from tests.support.engines import agree, graph_of, inputs_of, outcome, settled
from tests.support.evaluator import same
from tests.support.strategies import STRONG, pool

DTYPES = [d for d in STRONG if not str(d).startswith("float6_")]


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", CALLS)
def test_every_op_of_every_dtype_with_and_without_jit(name: str) -> None:
    for dtype in DTYPES:
        graph = graph_of(name, dtype) or graph_of(name, dtype, "jax")
        for seed in range(2) if graph else ():
            inputs = inputs_of(graph, seed)
            if (expected := outcome(partial(interpret, graph), *inputs)) is None:
                continue  # an integer to a negative power; nothing raises where JAX traces
            function = targets.jax(graph)
            if (name, dtype) in DEVIATING:
                continue
            runs = [function] if seed or dtype not in JITTED else [function, jax.jit(function)]
            for run in runs:
                found = settled(np.asarray(run(*inputs)))
                result = graph.outputs[0].dtype
                assert agree(name, result, settled(expected), found, *inputs), (dtype, inputs)


JITTED = (DType.float32, DType.bfloat16, DType.int32, DType.complex64)
FNUZ = [d for d in DTYPES if d.format and d.format.specials == "fnuz"]
DEVIATING = {
    **{("signbit", dtype): "the one NaN of fnuz formats has no sign" for dtype in FNUZ},
}


def test_every_op_has_a_row() -> None:
    primitives = {name for name, op in ops.CATALOGUE.items() if not op.decomposition}
    assert primitives - set(table()) == {"input", "cast"}
    assert set(table()) >= COMPOSITES


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("tf32", ["even", "away"])
def test_every_cast_has_the_same_bits(source: DType, tf32: str) -> None:
    graph, given = Graph(tf32=tf32), settled(pool(source))
    x = graph.input(source, ("n",))
    targets_of = [d for d in DTYPES if not source.is_complex or d.is_complex or d is DType.bool]
    graph.output(*map(x.cast, targets_of))
    function = targets.jax(graph)
    for run in (function, jax.jit(function), folded(function)):
        for target, found, expected in zip(
            targets_of, run(given), interpret(graph, given), strict=True
        ):
            assert same(settled(found), settled(expected)), (target, found, expected)


def folded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments are constants of the compiled program, which XLA folds."""
    return lambda *inputs: jax.jit(lambda: function(*inputs))()


MIXED: dict[str, Callable[..., Symbol]] = {
    "add": lambda x, w: x + w,
    "less": lambda x, w: x < w,
    "where": lambda x, w: ops.where(w > 0, x, w),
    "maximum": ops.maximum,
    "atan2": ops.atan2,
    "clip": lambda x, w: ops.clip(x, w, w),
    "outer": ops.outer,
    "logaddexp": ops.logaddexp,
    "layer_norm": lambda x, w: ops.layer_norm(w, x, w),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_graph_without_our_casts_is_refused_by_strict_jax(name: str) -> None:
    graph = Graph(name)
    graph.output(MIXED[name](graph.input("int16", ("n",)), graph.input("float32", ("n",))))
    inputs = np.ones(3, np.int16), np.ones(3, np.float32)
    found, expected = np.asarray(targets.jax(graph)(*inputs)), interpret(graph, *inputs)
    assert found.dtype == expected.dtype
    assert np.allclose(found, expected, 1e-6)  # functions are each side's own
    with pytest.raises(jax.dtypes.TypePromotionError, match="strict"):
        function_of(graph)(*inputs)


def test_64_bits_without_x64_are_refused_clearly() -> None:
    g = Graph()
    g.output(g.input("float64", ("n",)) + 1)
    with jax.enable_x64(False), pytest.raises(TargetError, match="enable_x64"):
        targets.jax(g)(np.ones(3))


def test_float6_is_named() -> None:
    g = Graph()
    g.output(g.input("float32", ("n",)).cast("float6_e2m3fn"))
    with pytest.raises(TargetError, match=r"test_target_jax.py:\d+:\d+: cast.*float6_e2m3fn"):
        targets.jax(g)


def test_inputs_of_64_bits_are_not_made_32() -> None:
    g = Graph()
    g.output(g.input("int32", (2,), name="k") + g.input("int32", (2,), name="m"))
    run, k = targets.jax(g), np.array([1, 2], np.int32)
    for wide in (False, True):
        with (
            jax.enable_x64(wide),
            pytest.raises(ExecutionError, match=r"'m' is int32\[2\]; got an array of int64; give"),
        ):
            run(k, np.array([1 << 40, 1]))

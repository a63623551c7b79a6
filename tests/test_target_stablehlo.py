"""The StableHLO target: parsed by jaxlib's MLIR and run by XLA, against `interpret`."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing reads StableHLO")

from graphir import DType, Graph, ops
from runtime import interpret
from runtime.targets import TargetError, stablehlo
from runtime.targets.stablehlo_ops import STABLEHLO
from tests.hlo import REFUSED, parsed, run
from tests.peers import CALLS
from tests.test_target_jax import agree, arrays, graph_of, outcome, x64

__all__ = ["x64"]
DTYPES = [DType(name) for name in ("float32", "int32", "bool", "bfloat16")]
LACKING = """acos acosh argmax argmin argsort asin asinh atan atanh conj copysign cosh
    cumulative_prod cumulative_sum erf floor_divide gather gelu hypot is_inf layer_norm left_shift
    log10 log2 logaddexp logsoftmax nextafter pad pow remainder repeat right_shift roll scatter
    searchsorted signbit sinh softmax sort std take_along tensordot tile trunc var"""


def test_what_is_lacking_is_what_is_said() -> None:
    assert set(ops.CATALOGUE) - set(STABLEHLO) == {*LACKING.split(), "input"}


@pytest.mark.parametrize("name", sorted({*CALLS} - {*LACKING.split()}))
def test_every_op_runs_and_agrees(name: str) -> None:
    for dtype in DTYPES:
        graph = graph_of(name, dtype)
        for seed in range(2) if graph else ():
            free = CALLS[name].free
            inputs = [
                arrays(x.dtype, x.shape, seed if i in free else 1)
                for i, x in enumerate(graph.inputs)
            ]
            if (expected := outcome(partial(interpret, graph), *inputs)) is None:
                continue
            try:
                text = stablehlo(graph)
            except TargetError:
                assert (name, dtype) in IMPOSSIBLE
                break
            assert agree(name, expected, run(text, inputs)[0]), (dtype, inputs, text)


IMPOSSIBLE = {("matmul", DType.bool), ("reciprocal", DType.int32)}


@pytest.mark.parametrize("name", LACKING.split())
def test_what_is_lacking_is_named_with_its_line(name: str) -> None:
    graph = graph_of(name, DType.float32) or graph_of(name, DType.int32)
    assert graph is not None
    with pytest.raises(TargetError, match=rf"test_target_jax.py:\d+:\d+: {name}\("):
        stablehlo(graph)


def mixed() -> Graph:
    g = Graph("mixed")
    g.output(g.input("int16", ("n",), name="x") * g.input("float32", ("n",), name="w"))
    return g


def test_casts_tell_their_use_and_line() -> None:
    text = stablehlo(mixed(), {"n": 3})
    assert 'loc("lhs of multiply, max: int16 -> float32"("tests/test_target_stablehlo.py":' in text


def test_a_size_that_is_not_given_is_asked_for() -> None:
    with pytest.raises(TargetError, match=r"sizes=\{'n': 4\}"):
        stablehlo(mixed())


def test_without_our_casts_it_is_refused() -> None:
    text = stablehlo(mixed(), {"n": 3})
    x, w = np.arange(3, dtype=np.int16), np.ones(3, np.float32)
    assert np.array_equal(run(text, [x, w])[0], interpret(mixed(), x, w))
    cast = next(line for line in text.splitlines() if "stablehlo.convert" in line)
    bare = text.replace(cast + "\n", "").replace("%0, ", "%arg0, ")
    bare = bare.replace("(tensor<3xf32>, tensor<3xf32>)", "(tensor<3xi16>, tensor<3xf32>)")
    with pytest.raises(REFUSED):
        parsed(bare)

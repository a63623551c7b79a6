"""The StableHLO target without an engine: its text, what it asks for, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, ops
from graphir.runtime.targets import TargetError, stablehlo
from graphir.runtime.targets.stablehlo_.primitives import COMPOSITES, STABLEHLO
from graphir.runtime.targets.stablehlo_.values import ELEMENTS, dense
from tests.peers import CALLS
from tests.support.engines import graph_of
from tests.support.strategies import STRONG
from tests.support.tables import every

CREATED = {"input", "constant", "full", "range", "eye", "shape_of", "cast"}


def test_every_op_has_a_row() -> None:
    primitives = {name for name, op in ops.CATALOGUE.items() if not op.decomposition}
    assert primitives - set(STABLEHLO) == CREATED
    assert set(STABLEHLO) >= COMPOSITES


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CALLS)
def test_every_op_is_written_for_every_dtype(name: str) -> None:
    for dtype in STRONG:
        for rules in ("max", "numpy", "jax"):
            if graph := graph_of(name, dtype, rules):
                text = stablehlo(graph)
                assert text.count("loc(") > 3, text
                break


def test_every_dtype_is_written() -> None:
    assert set(ELEMENTS) == {dtype for dtype in STRONG if not dtype.emulated}


def test_the_text_of_a_small_graph() -> None:
    graph = Graph("net work")
    x, w = graph.input("int16", ("n",), name="x"), graph.input("float32", (1,), name="w")
    graph.output(x * w)
    line = graph.outputs[0].location.line
    place = f'"tests/runtime/targets/test_stablehlo_text.py":{line}'
    assert stablehlo(graph, {"n": 2}).splitlines()[2:] == [
        '    %0 = "stablehlo.convert"(%arg0) : (tensor<2xi16>) -> (tensor<2xf32>) loc(#loc2)',
        '    %1 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 0>}> : '
        "(tensor<1xf32>) -> (tensor<2xf32>) loc(#loc3)",
        '    %2 = "stablehlo.multiply"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> '
        "(tensor<2xf32>) loc(#loc3)",
        "    return %2 : tensor<2xf32> loc(#loc3)",
        "  } loc(#loc3)",
        "} loc(#loc3)",
        f'#loc0 = loc("tests/runtime/targets/test_stablehlo_text.py":{line - 1}:12)',
        f'#loc1 = loc("tests/runtime/targets/test_stablehlo_text.py":{line - 1}:52)',
        f'#loc2 = loc("lhs of multiply, max: int16 -> float32"({place}:18))',
        f"#loc3 = loc({place}:18)",
    ]


def test_numbers_are_told_to_the_bit() -> None:
    floats = np.array([0.1, -0.0, np.nan, np.inf, 1e-45, 1e30], np.float32)
    assert dense(floats, DType.float32) == (
        "dense<[0.10000000149011612, -0.0, 0x7FC00000, 0x7F800000, 1.401298464324817e-45, "
        "1.0000000150474662e+30]> : tensor<6xf32>"
    )
    assert (
        dense(np.array([1 + 2j]), DType.complex128) == "dense<(1.0, 2.0)> : tensor<1xcomplex<f64>>"
    )
    assert dense(np.ones((3, 2), np.int8), DType.int8) == "dense<1> : tensor<3x2xi8>"
    assert dense(np.ones((0, 2), bool), DType.bool) == "dense<> : tensor<0x2xi1>"
    many = np.arange(100, dtype=np.uint8)
    told = many.tobytes().hex().upper()
    assert dense(many, DType.uint8) == f'dense<"0x{told}"> : tensor<100xui8>'


def test_a_size_that_is_not_given_is_asked_for() -> None:
    graph = Graph()
    graph.output(graph.input("float32", ("n",)) + 1)
    with pytest.raises(TargetError, match=r"sizes=\{'n': 4\}"):
        stablehlo(graph)


@every("name", ["max", "argmin", "rebind", "slice"])
def test_what_has_no_result_at_these_sizes_is_refused_with_its_line(name: str) -> None:
    graph = Graph()
    x = graph.input("float32", ("n",))
    attrs = {"slice": {"start": (2,), "stop": (4,), "step": (1,)}, "rebind": {"shape": ("m",)}}
    graph.output(ops.CATALOGUE[name](x, **attrs.get(name, {})))
    other = {"m": 5} if name == "rebind" else {}
    stablehlo(graph, {"n": 5, **other})
    with pytest.raises(GraphirError, match=rf"test_stablehlo_text.py:\d+:\d+: {name}"):
        stablehlo(graph, {"n": 0, **other})

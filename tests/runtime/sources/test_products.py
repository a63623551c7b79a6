"""Products of transposed matrices from other libraries: the layout that BLAS meets."""

from __future__ import annotations

import numpy as np

from graphir import Graph, Symbol, ops
from graphir.runtime import Program, interpret
from graphir.runtime.sources.op_rows import product_layout
from tests.support.tables import every


def transposed(x: Symbol) -> Symbol:
    return ops.transpose(x)


def test_a_transposed_weight_is_read_where_it_lies() -> None:
    graph = Graph("linear", rules="torch")
    x, w = graph.input("float32", (5, 70)), graph.input("float32", (30, 70))
    turned = transposed(w)
    graph.output(ops.matmul(x, turned, layout=product_layout(x, turned)))
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in ((5, 70), (30, 70))]
    expected = arrays[0] @ arrays[1].T
    assert interpret(graph, *arrays).tobytes() == expected.tobytes()
    for native in ("off", "auto"):
        assert Program(graph, native=native)(*arrays).tobytes() == expected.tobytes()


@every("dtype", ["float32", "int32", "bfloat16"])
@every("shape", [(4, 7), ("n", 7)])
def test_other_products_have_no_layout(dtype: str, shape: tuple[int | str, ...]) -> None:
    graph = Graph("products", rules="torch")
    x, y = graph.input(dtype, shape), graph.input(dtype, (7, 3))
    assert product_layout(x, y) is None
    if dtype != "float32" or "n" in shape:
        assert product_layout(transposed(y), transposed(x)) is None

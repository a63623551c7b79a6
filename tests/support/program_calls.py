"""Random graphs with their inputs, block sizes and numbers of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from graphir import Graph, GraphirError
from graphir.ops.dims import evaluate
from tests.support.drawing import graphs
from tests.support.layouts import LAYOUTS
from tests.support.strategies import NAMES, SIZES, arrays, count

SMALL = (2, 3, 1, 0)


BLOCKS = (None, 1, 3, 7, 64, 127, 1000)


@st.composite
def calls(draw: Any, largest: int, pool: Any = SMALL, **wanted: Any) -> Any:
    """A graph, inputs that lie in memory in any way, and how to run it."""
    graph = draw(graphs(**wanted))
    sizes = {name: draw(st.sampled_from(pool)) for name in NAMES}
    if not _fits(graph, sizes, largest):
        sizes = SIZES
    inputs: list[Any] = []
    for x in graph.inputs:
        shape = [evaluate(dim, sizes) for dim in x.shape]
        few = draw(arrays(x.dtype, [min(count(x.shape, sizes), 200)]))
        given = np.resize(few, shape) if len(few) else few.reshape(shape)
        inputs.append(draw(st.sampled_from(LAYOUTS))(given))
    return graph, inputs, draw(st.sampled_from(BLOCKS)), draw(st.sampled_from((1, 2, 3, 4)))


def _fits(graph: Graph, sizes: dict[str, int], largest: int) -> bool:
    try:
        return all(0 <= count(x.shape, sizes) <= largest for x in graph.symbols)
    except GraphirError:
        return False

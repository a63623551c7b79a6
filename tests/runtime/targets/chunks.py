"""Arrays cut into chunks, and what the Dask target makes of them beside `interpret`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import strategies as st

from graphir import GraphirError
from graphir.runtime import interpret, targets
from tests.support.drawing import Program
from tests.support.evaluator import same

INEXACT = ("sum", "prod", "mean", "var", "std", "cumulative_sum", "cumulative_prod", "matmul")
INEXACT += ("tensordot",)
"""Ops that add or multiply many floats, in an order that depends on chunks."""


@st.composite
def chunked(draw: Any, array: Any) -> Any:
    """The array, cut anywhere, into blocks of no elements too; or as it is."""
    if not array.ndim or draw(st.integers(0, 4)) == 4:
        return array
    return cut(array, [pieces(draw, size) for size in array.shape])


def pieces(draw: Any, size: int) -> tuple[int, ...]:
    ends = sorted([0, *draw(st.lists(st.integers(0, size), max_size=3)), size])
    return tuple(b - a for a, b in pairwise(ends))


def cut(array: Any, chunks: Any) -> Any:
    dask_array = da.from_array(array, chunks=-1)
    return dask_array.rechunk(tuple(chunks)) if array.size else dask_array


def computed(found: Any) -> list[Any]:
    """The values of dask arrays, whose dtypes and shapes were told before."""
    found = found if isinstance(found, tuple) else (found,)
    with dask.config.set(scheduler="synchronous"):
        made = list(map(np.asarray, dask.compute(*found)))
    assert [(x.dtype, x.shape) for x in found] == [(x.dtype, x.shape) for x in made]
    return made


def agree(program: Program, data: Any) -> None:
    """The same bits over chunks that are drawn, or the same refusal."""
    compare(program, [data.draw(chunked(array)) for array in program.inputs])


def compare(program: Program, chunks: Any) -> None:
    graph, inputs = program
    try:
        expected = interpret(graph, *inputs)
    except GraphirError:
        with pytest.raises(GraphirError):
            computed(targets.dask(graph)(*chunks))
        return
    found = computed(targets.dask(graph)(*chunks))
    expected = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(found, expected, strict=True):
        assert same(one, other), (one, other, chunks, str(graph))

"""The Dask target: over odd chunks, what `interpret` gives."""

from __future__ import annotations

import io
import pickle
import threading
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed, so nothing is run by it")

import dask
import dask.array as da
from dask.callbacks import Callback
from dask.diagnostics import ProgressBar
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, GraphirError, ops
from runtime import Program as Compiled
from runtime import interpret, targets
from runtime.targets import TargetError
from runtime.targets.dask_movement import MOVES
from runtime.targets.dask_ops import LABELS
from tests.drawing import Program, programs
from tests.evaluator import same
from tests.strategies import STRONG, pool

INEXACT = ("sum", "prod", "mean", "var", "std", "cumulative_sum", "cumulative_prod", "matmul")
INEXACT += ("tensordot",)
"""Ops that add or multiply many floats, in an order that depends on chunks."""
EXACT = tuple(op for name, op in ops.CATALOGUE.items() if name not in INEXACT)


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
    return da.from_array(array, chunks=-1).rechunk(tuple(chunks))


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


@pytest.mark.parametrize("name", sorted(op.name for op in EXACT))
@given(st.data())
@settings(max_examples=15)
def test_programs_of_every_op_give_the_same_bits(name: str, data: st.DataObject) -> None:
    agree(data.draw(programs(op=ops.CATALOGUE[name], steps=3, catalogue=EXACT)), data)


def small(array: Any) -> Any:
    """Floats as small powers of two: sums and products of a few are exact in any order."""
    if array.dtype.kind in "biu" or str(array.dtype).startswith(("int", "uint")):
        return array
    values = np.array([1, -1, 0, 2, 1, -2, 0.5], array.dtype)
    places = np.frombuffer(array.tobytes(), np.uint8).astype(np.intp)
    return values[np.resize(places, array.size) % len(values)].reshape(array.shape)


@pytest.mark.parametrize("name", [one for one in INEXACT if one not in ("var", "std")])
@given(st.data())
@settings(max_examples=30)
def test_sums_and_products_of_few_bits_are_the_same(name: str, data: st.DataObject) -> None:
    graph, inputs = data.draw(programs(op=ops.CATALOGUE[name], steps=0))
    agree(Program(graph, tuple(map(small, inputs))), data)


@pytest.mark.parametrize("name", INEXACT)
@given(st.data())
@settings(max_examples=10)
def test_of_whole_arrays_all_bits_are_the_same(name: str, data: st.DataObject) -> None:
    program = data.draw(programs(op=ops.CATALOGUE[name], steps=0))
    compare(program, program.inputs)

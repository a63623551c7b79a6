"""The Dask target: sums and products of floats over several blocks, which have their own order."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("dask.array", reason="Dask is not installed, so nothing is run by it")

from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType, Graph, ops
from graphir.runtime import interpret, targets
from tests.runtime.targets.chunks import INEXACT, agree, compare, computed, cut
from tests.support.drawing import Program, programs
from tests.support.tables import every


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


# -- floats over several blocks


def _variance(x: Any, count: int, **axis: Any) -> Any:
    off = np.abs(x - x.mean(keepdims=True, **axis)) ** 2
    return off.sum(**axis) / count


Case = tuple[Any, Any, Any]
"""What a graph computes of x, the same by NumPy, and what its error is relative to."""
CASES: dict[str, Case] = {
    "sum": (lambda x: x.sum(axis=0), lambda x: x.sum(axis=0), lambda x: np.abs(x).sum(axis=0)),
    "sum of all": (lambda x: x.sum(), lambda x: x.sum(), lambda x: np.abs(x).sum()),
    "mean": (lambda x: x.mean(axis=1), lambda x: x.mean(axis=1), lambda x: np.abs(x).mean(axis=1)),
    "mean of all": (lambda x: x.mean(), lambda x: x.mean(), lambda x: np.abs(x).mean()),
    "var": (
        lambda x: x.var(axis=0),
        lambda x: _variance(x, len(x), axis=0),
        lambda x: (np.abs(x) ** 2).mean(axis=0),
    ),
    "std": (
        lambda x: x.std(correction=1),
        lambda x: np.sqrt(_variance(x, x.size - 1)),
        lambda x: (np.abs(x) ** 2).mean(),
    ),
    "prod": (lambda x: x.prod(axis=0), lambda x: x.prod(axis=0), lambda x: np.abs(x.prod(axis=0))),
    "cumulative_sum": (
        lambda x: ops.cumulative_sum(x, axis=1),
        lambda x: np.cumsum(x, axis=1),
        lambda x: np.cumsum(np.abs(x), axis=1),
    ),
    "cumulative_prod": (
        lambda x: ops.cumulative_prod(x, axis=0),
        lambda x: np.cumprod(x, axis=0),
        lambda x: np.abs(np.cumprod(x, axis=0)),
    ),
    "matmul": (lambda x: x @ x.T, lambda x: x @ x.T, lambda x: np.abs(x) @ np.abs(x).T),
    "tensordot": (
        lambda x: ops.tensordot(x, x, axes=2),
        lambda x: (x * x).sum(),
        lambda x: np.abs(x * x).sum(),
    ),
}
CHUNKS = ((5, 1, 11, 20), (3, 14, 1, 1, 11))


def graph_of(name: str, dtype: str) -> Graph:
    graph = Graph(name, rules="jax")
    graph.output(CASES[name][0](graph.input(dtype, ("n", "m"), name="x")))
    return graph


def normal(dtype: DType) -> Any:
    random = np.random.default_rng(5)
    values = random.normal(0.5, 1, (37, 30))
    both = values + 1j * random.normal(0.5, 1, values.shape) if dtype.is_complex else values
    return both.astype(dtype.storage)


@every("dtype", ["float32", "float64", "complex64", "bfloat16"])
@every("name", CASES)
def test_floats_over_several_blocks_are_within_the_bound(name: str, dtype: str) -> None:
    x, (_, function, magnitude) = normal(DType(dtype)), CASES[name]
    (found,) = computed(targets.dask(graph_of(name, dtype))(cut(x, CHUNKS)))
    exact = x.astype(np.clongdouble if dtype == "complex64" else np.longdouble)
    expected = function(exact)
    computed_in = np.float64 if dtype == "float64" else np.float32
    bound = x.size * np.finfo(computed_in).eps * magnitude(exact)
    bound += ml_dtypes.finfo(found.dtype).eps * np.abs(expected)
    assert found.dtype == graph_of(name, dtype).outputs[0].dtype.storage
    assert (np.abs(found.astype(exact.dtype) - expected) <= bound).all()


@every("name", CASES)
def test_what_is_not_finite_is_the_same(name: str) -> None:
    """An infinity or NaN in one block makes of the result what it makes in one array."""
    x = normal(DType.float64)
    x[3, 3], x[20, 20], x[20, 25], x[30, 7] = np.inf, np.inf, -np.inf, np.nan
    graph = graph_of(name, "float64")
    (found,) = computed(targets.dask(graph)(cut(x, CHUNKS)))
    np.testing.assert_allclose(found, interpret(graph, x), rtol=1e-9)

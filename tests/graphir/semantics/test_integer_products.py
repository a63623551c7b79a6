"""Products of integers by BLAS wrap as NumPy's do: all bytes, extremes, sizes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphir import Graph
from graphir.ops.attributes import constant
from graphir.runtime import Program, interpret
from graphir.semantics import integer_products
from tests.graphir.semantics.kernel_cases import INTEGERS, run
from tests.support.tables import every

Array = NDArray[Any]


def product(x: Array, y: Array) -> Array:
    """The product by BLAS, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integer_products, "_CALL", -1e12)
        result = integer_products.product(x, y, x.dtype)
    assert result is not None and result.flags.c_contiguous
    return result


def check(x: Array, y: Array) -> None:
    result, expected = product(x, y), np.matmul(x, y)
    assert result.dtype == expected.dtype and np.array_equal(result, expected)


@every("dtype", ["int8", "uint8"])
@every("terms", [1, 3])
def test_all_pairs_of_bytes(dtype: str, terms: int) -> None:
    values = np.arange(256).astype(dtype)
    check(np.stack([values] * terms, 1), np.stack([values] * terms))


@every("dtype", INTEGERS)
@every("terms", [1, 255, 257, 511, 513, 1024, 1025, 5000])
def test_extremes_wrap(dtype: np.dtype[Any], terms: int) -> None:
    limits = np.iinfo(dtype)
    extremes = [limits.min, limits.max, limits.min + 1, 1]
    for left in extremes:
        for right in extremes:
            check(np.full((2, terms), left, dtype), np.full((terms, 3), right, dtype))


def integers(random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Integers below a power of two, or around it, or multiples of three."""
    low, high = random.choice([0, -1]), 1 << int(random.integers(0, min(8 * dtype.itemsize, 63)))
    values = random.integers(low * high, high, shape, dtype=np.int64)
    if random.integers(3) == 0:
        values = random.choice([high - 1, high, -high, 0], shape)
    return values.astype(dtype) * dtype.type(random.choice([1, 3]))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(seed=st.integers(0, 10_000), k=st.one_of(st.integers(1, 40), st.integers(1, 1200)))
def test_products_are_numpys(dtype: np.dtype[Any], seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    m, n = random.integers(1, 7, 2)
    batches = [((), ()), ((3,), ()), ((), (2,)), ((2, 1), (3,))][random.integers(4)]
    x = integers(random, dtype, (*batches[0], m, k))
    y = integers(random, dtype, (*batches[1], k, n))
    if seed % 2:
        x, y = x.mT.copy().mT, np.repeat(y, 2, -1)[..., ::2]
    check(x, y)


@every("dtype", INTEGERS)
@every("shapes", [((90, 100), (100, 80)), ((2, 1, 64, 70), (3, 70, 65))])
def test_kernel_interpreter_and_program_agree(dtype: np.dtype[Any], shapes: Any) -> None:
    random = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    for low, high in ((-99 if limits.min else 0, 99), (limits.min, limits.max)):
        x, y = (random.integers(low, high, shape, dtype, endpoint=True) for shape in shapes)
        assert integer_products.pays(x.shape, y.shape, dtype)
        expected = np.matmul(x, y)
        assert np.array_equal(run("matmul", x, y), expected)
        graph = Graph("product")
        graph.output(graph.input(dtype, x.shape) @ graph.input(dtype, y.shape))
        for result in (interpret(graph, x, y), Program(graph)(x, y)):
            assert result.dtype == dtype and np.array_equal(result, expected)


def test_products_without_terms_or_results_are_numpys() -> None:
    for x, y in (((3, 0), (0, 4)), ((0, 5), (5, 2)), ((0, 9, 9), (9, 9)), ((5,), (5, 5))):
        assert not integer_products.pays(x, y, np.dtype(np.int32))
        result = run("matmul", np.ones(x, np.int32), np.ones(y, np.int32))
        assert np.array_equal(result, np.matmul(np.ones(x, np.int32), np.ones(y, np.int32)))


@every("dtypes", [("uint8", "int8"), ("int32", "int8"), ("int32", "int16"), ("int64", "bool")])
@every("size", [3, 300])
def test_constants_are_converted_once(dtypes: tuple[str, str], size: int) -> None:
    """A constant keeps its magnitude and its floats, and only as long as it lives."""
    left, right = map(np.dtype, dtypes)
    random = np.random.default_rng(size)
    to = np.dtype(np.int64 if left.itemsize == 8 else np.int32)
    before = len(integer_products._FACTS)
    y, wide = (constant(random.integers(-90, 90, (size, 70)).astype(right)) for _ in range(2))
    for other in (y, wide):
        for shape in ((5, size), (2, 3, size)):
            x = random.integers(0, 99, shape).astype(left)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(integer_products, "_CALL", -1e12)
                results = [integer_products.product(x, other, to) for _ in range(2)]
            expected = np.matmul(x.astype(to), other.astype(to))
            assert all(result is not None and result.dtype == to for result in results)
            assert all(np.array_equal(result, expected) for result in results if result is not None)
    is_large = y.nbytes > 4096
    assert len(integer_products._FACTS) == before + 2 * is_large
    del y, wide, other
    assert len(integer_products._FACTS) == before

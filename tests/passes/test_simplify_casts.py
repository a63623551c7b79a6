"""simplify_casts on every chain of dtypes: the bits stay, and nothing lossy is dropped."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, PromotionError, Symbol, ops
from graphir.passes import simplify_casts
from graphir.runtime import interpret
from tests.support.evaluator import same
from tests.support.strategies import pool, whole_bytes


def chain(*dtypes: DType) -> Graph:
    """A graph that casts its input from dtype to dtype; PromotionError from complex to real."""
    graph = Graph("chain")
    value = graph.input(dtypes[0], "n")
    for dtype in dtypes[1:]:
        value = value.cast(dtype)
    graph.output(value)
    return graph


def there_and_back(first: DType, middle: DType) -> Graph:
    graph = Graph("back")
    value = graph.input(first, "n").cast(middle)
    graph.output((value if first.is_complex else value.real).cast(first))
    return graph


def kept(graph: Graph) -> list[DType]:
    """The dtypes on the way from input to output."""
    found: list[DType] = []
    symbol: Symbol = graph.outputs[0]
    while symbol.op is ops.cast:
        found.append(symbol.dtype)
        (symbol,) = symbol.args
    return [symbol.dtype, *reversed(found)]


@cache
def values(dtype: DType) -> Any:
    """Every value of up to 16 bits; of wider dtypes the telling ones, and many patterns of bits."""
    if dtype.family == "bool":
        return np.array([False, True])
    if dtype.is_integer and dtype.bits < 16:
        return np.arange(dtype.min, int(dtype.max) + 1).astype(dtype.storage)
    if dtype.bits <= 16 and not dtype.is_complex:
        count = 2**dtype.bits
        return np.arange(count, dtype=f"u{dtype.storage.itemsize}").view(dtype.storage)
    assert whole_bytes(dtype) or dtype is DType.tensor_float32
    random = np.random.default_rng(1)
    raw = random.bytes(300 * dtype.storage.itemsize)
    found = np.concatenate([pool(dtype), np.frombuffer(raw, dtype.storage), _near(dtype)])
    return found if dtype is not DType.tensor_float32 else interpret(chain(dtype, dtype), found)


def _near(dtype: DType) -> Any:
    """Both sides of every power of two and of the limits of every integer dtype."""
    with np.errstate(all="ignore"):
        powers = [sign * 2**k + d for k in range(64) for d in (-1, 0, 1) for sign in (1, -1)]
        if dtype.is_integer:
            low, high = int(dtype.min), int(dtype.max)
            return np.array([n for n in powers if low <= n <= high], dtype.storage)
        exact = np.array(powers, np.float64)
        both = np.concatenate([exact, 2.0 ** np.arange(-160.0, 130), exact + 0.5])
        return both.astype(dtype.storage)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", DType, ids=str)
def test_every_chain_of_two_casts_keeps_its_bits(first: DType) -> None:
    merged = 0
    for middle in DType:
        for last in DType:
            try:
                graph = chain(first, middle, last)
            except PromotionError:
                continue
            simple = simplify_casts(graph)
            if simple is not graph:
                merged += 1
                check(graph, simple, values(first))
    assert merged


def check(graph: Graph, simple: Graph, given_values: Any) -> None:
    before, after = interpret(graph, given_values), interpret(simple, given_values)
    assert same(before, after), f"{kept(graph)} became {kept(simple)}"
    first, middle, last = kept(graph)
    if middle not in kept(simple)[1:]:
        back = interpret(there_and_back(first, middle), given_values)
        assert same(back, given_values), f"a lossy cast is gone: {kept(graph)}"
    assert kept(simple)[-1] is last


def test_an_integer_through_a_float_saturates_and_is_not_merged() -> None:
    graph = chain(DType.int16, DType.float32, DType.int8)
    assert simplify_casts(graph) is graph
    found = interpret(graph, np.array([200, -200, 127, -32768], np.int16))
    assert found.tolist() == [127, -128, 127, -128]
    direct = interpret(chain(DType.int16, DType.int8), np.array([200], np.int16))
    assert direct.tolist() == [-56]


@given(st.lists(st.sampled_from(DType), min_size=2, max_size=7))
def test_longer_chains_keep_their_bits(dtypes: list[DType]) -> None:
    try:
        graph = chain(*dtypes)
    except PromotionError:
        return
    simple = simplify_casts(graph)
    assert same(interpret(graph, values(dtypes[0])), interpret(simple, values(dtypes[0])))
    assert simplify_casts(simple) is simple

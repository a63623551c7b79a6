"""Products of integers in machine code: NumPy's results for all dtypes, edges, processors."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphir import Graph
from graphir.runtime import Program, interpret
from graphir.runtime.native import integer_products as native
from graphir.runtime.program.cost_model import COST
from tests.support.native_runs import compiled_for, needs_llvmlite
from tests.support.tables import every

pytestmark = needs_llvmlite

Array = NDArray[Any]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
CPUS = ["", "haswell", "x86-64"]


def matmul(x: Array, y: Array, dtype: np.dtype[Any], tier: native.Products, threads: int) -> Array:
    def multiply(x: Array, y: Array) -> Array:
        return np.matmul(x.astype(dtype), y.astype(dtype))

    return tier.product(multiply, dtype, threads, x, y)


def integers(random: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Any values, small ones, or extremes."""
    limits = np.iinfo(dtype)
    whole = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    extremes = random.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
    small = random.integers(0, 99, shape).astype(dtype)
    return [whole, small, extremes][random.integers(3)]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_products_are_numpys(
    cpu: str, dtype: np.dtype[Any], seed: int, data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    m, n = (data.draw(st.integers(1, 70)) for _ in range(2))
    k = data.draw(st.one_of(st.integers(1, 9), st.integers(1, 700)))
    batches = data.draw(st.sampled_from([((), ()), ((3,), ()), ((2, 1), (3,)), ((1,), (2,))]))
    x = integers(random, dtype, (*batches[0], m, k))
    y = integers(random, dtype, (*batches[1], k, n))
    results = [each for each in INTEGERS if each.itemsize >= dtype.itemsize]
    result_dtype = data.draw(st.sampled_from(results))
    with compiled_for(cpu):
        tier = native.Products(now=True)
        result = matmul(x, y, result_dtype, tier, data.draw(st.integers(1, 3)))
    assert tier.kernels and not tier.why
    expected = np.matmul(x.astype(result_dtype), y.astype(result_dtype))
    assert result.dtype == result_dtype and np.array_equal(result, expected)


def in_layout(random: np.random.Generator, x: Array) -> Array:
    """The same elements in some memory layout: rows or columns, strided, or reversed."""
    layout = random.integers(5)
    if layout == 1:
        return np.ascontiguousarray(x.mT).mT
    if layout == 2:
        return np.repeat(np.repeat(x, 2, -1), 2, -2)[..., ::2, ::2]
    return np.flip(np.flip(x, -layout + 2).copy(), -layout + 2) if layout > 2 else x


def emulate_byte_products(patch: pytest.MonkeyPatch, rows: int, lanes: int) -> None:
    """Let bytes be multiplied as on processors with vpdpbusd, by a function of plain LLVM IR."""
    of_bytes, of_terms, vector = (f"<{n} x {t}>" for n, t in _byte_product_shapes(lanes))
    lines = [
        f"define {vector} @emulated({vector} %acc, {vector} %u, {vector} %s) {{{{",
        f"%ub = bitcast {vector} %u to {of_bytes}",
        f"%sb = bitcast {vector} %s to {of_bytes}",
        f"%uw = zext {of_bytes} %ub to {of_terms}",
        f"%sw = sext {of_bytes} %sb to {of_terms}",
        f"%r0 = add {vector} %acc, zeroinitializer",
        f"%t = mul {of_terms} %uw, %sw",
    ]
    for g in range(4):
        mask = ", ".join(f"i32 {4 * i + g}" for i in range(lanes))
        both = f"{of_terms} %t, {of_terms} poison"
        lines.append(f"%g{g} = shufflevector {both}, <{lanes} x i32> <{mask}>")
        lines.append(f"%r{g + 1} = add {vector} %r{g}, %g{g}")
    lines += [f"ret {vector} %r4", "}}"]
    patch.setattr(native, "BYTE_PRODUCT", "@emulated")
    patch.setattr(native, "BYTE_PRODUCT_TEXT", "\n".join(lines))
    tile = native.ProductTile(8, rows, lanes)
    tile_of = native.tile_of
    patch.setattr(native, "tile_of", lambda bits, has: tile if bits == 8 else tile_of(bits, has))


def _byte_product_shapes(lanes: int) -> list[tuple[int, str]]:
    return [(4 * lanes, "i8"), (4 * lanes, "i32"), (lanes, "i32")]


@pytest.mark.parametrize("tile", [None, (4, 8), (12, 16)], ids=str)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_products_of_mixed_dtypes_and_layouts(
    tile: tuple[int, int] | None, seed: int, data: st.DataObject
) -> None:
    random = np.random.default_rng(seed)
    m, n, k = (data.draw(st.integers(1, 70)) for _ in range(3))
    narrow = data.draw(st.booleans())
    dtypes = [each for each in INTEGERS if each.itemsize == 1 or not narrow]
    x, y = (
        in_layout(random, integers(random, data.draw(st.sampled_from(dtypes)), shape))
        for shape in ((m, k), (k, n))
    )
    if data.draw(st.booleans()) and narrow:
        x = x > 0
    width = max(x.itemsize, y.itemsize)
    dtype = data.draw(st.sampled_from([each for each in INTEGERS if each.itemsize >= width]))
    with pytest.MonkeyPatch.context() as patch:
        if tile:
            emulate_byte_products(patch, *tile)
        tier = native.Products(now=True)
        result = matmul(x, y, dtype, tier, data.draw(st.integers(1, 2)))
    assert tier.kernels and not tier.why
    assert np.array_equal(result, np.matmul(x.astype(dtype), y.astype(dtype)))


def test_bytes_are_multiplied_by_the_instruction_of_processors_that_have_it() -> None:
    for features, lanes in (({"avx512vnni", "avx512bw"}, 16), ({"avxvnni", "avx2"}, 8)):
        tile = native.tile_of(8, features)
        assert tile and tile.lanes == lanes
        code = native.ProductCode(tile, np.dtype(np.int8))
        text = native.ProductWriter(code).kernel().text
        assert f"@llvm.x86.avx512.vpdpbusd.{32 * lanes}(" in text
    assert native.tile_of(8, {"avx2"}) is None


@every("shapes", [((300, 500), (500, 400)), ((2000, 300), (300, 40))])
@every("dtype", INTEGERS)
def test_programs_on_threads_agree_with_the_interpreter(
    dtype: np.dtype[Any], shapes: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    graph = Graph("product")
    left, right = (graph.input(dtype, shape) for shape in shapes)
    graph.output(left @ right)
    program = Program(graph, threads=2, native="now")
    for seed in range(3):
        x, y = (integers(np.random.default_rng(seed), dtype, shape) for shape in shapes)
        result = program(x, y)
        assert result.dtype == dtype and np.array_equal(result, interpret(graph, x, y))


def test_it_is_compiled_meanwhile_once_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((64, 64), np.int32)
    tier = native.Products(now=False)
    assert matmul(x, x, x.dtype, tier, 1)[0, 0] == 64 and not tier.kernels
    monkeypatch.setattr(COST, "COMPILE_COST", 0)
    end = time.monotonic() + 60
    while not tier.kernels and time.monotonic() < end:
        assert matmul(x, x, x.dtype, tier, 1)[0, 0] == 64
    assert tier.kernels
    assert matmul(x, x, x.dtype, tier, 1)[0, 0] == 64


def test_where_llvm_fails_numpy_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Any:
        raise RuntimeError("no LLVM")

    monkeypatch.setattr(native, "engine", fails)
    x = np.ones((64, 64), np.int32)
    tier = native.Products(now=True)
    assert matmul(x, x, x.dtype, tier, 1)[0, 0] == 64
    assert "no LLVM" in tier.why and not tier.kernels

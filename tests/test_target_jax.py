"""The JAX target: under strict promotion, with and without jit, against `interpret`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing is run by it")

import jax

from graphir import DType, Graph, GraphirError, ops
from runtime import interpret, targets
from runtime.targets import TargetError
from runtime.targets.jax_ops import table
from tests.evaluator import same
from tests.peers import CALLS
from tests.strategies import STRONG, pool

RAISED = (TypeError, ValueError, IndexError, ZeroDivisionError)
EXACT = "add subtract multiply maximum minimum negative abs where clip equal less concat"
"""Ops whose results have the same bits."""
INDEXING = ("gather", "take_along", "scatter")
DTYPES = [d for d in STRONG if str(d) not in ("float6_e2m3fn", "float6_e3m2fn")]


@np.errstate(all="ignore")
def settled(array: Any) -> Any:
    """Zeros, of their sign, for subnormal numbers: XLA flushes those on the CPU."""
    array = np.array(array)
    if array.dtype.kind == "c":
        array.real, array.imag = settled(array.real), settled(array.imag)
    elif str(array.dtype) in ("bfloat16", "float32", "float64"):
        small = np.abs(array) < ml_dtypes.finfo(array.dtype).tiny
        array[small] = np.copysign(array.dtype.type(0), array[small])
    elif str(array.dtype) == "float8_e8m0fnu":  # whose least is subnormal in float32
        array[array.astype(np.float64) < 2.0**-126] = 1
    return array


@np.errstate(all="ignore")
def arrays(dtype: DType, shape: tuple[int, ...], seed: int) -> Any:
    """Telling values: complex ones finite and small, as no two libraries share specials."""
    values = settled(pool(dtype))
    if dtype.is_complex:
        values = values[np.isfinite(values) & (np.abs(values) < 50)]
        values = values + values.dtype.type(0)  # no -0.0, which says on which side of a cut it is
    if seed % 2:
        values = np.arange(4).astype(dtype.storage)
    return values.take(np.random.default_rng(seed).integers(0, len(values), shape))


def outcome(function: Any, *inputs: Any) -> Any:
    """The result; None where it is refused."""
    try:
        return np.asarray(function(*inputs))
    except RAISED:
        return None


def agree(name: str, one: Any, other: Any) -> bool:
    """Equal bits of exact ops, but for what is flushed; others near: XLA has its own."""
    one, other = settled(one), settled(other)
    if name in EXACT.split() or DType.from_numpy(one.dtype).format is None:
        return same(one, other)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    rough = max(float(ml_dtypes.finfo(one.dtype).eps) * 4, 1e-12)
    known = one.dtype == other.dtype and one.shape == other.shape
    with np.errstate(all="ignore"):
        one, other = one.astype(wide), other.astype(wide)
        return known and bool(np.allclose(one, other, rough * 8, rough * 8, equal_nan=True))


def graph_of(name: str, dtype: DType, rules: str = "max") -> Graph | None:
    """A graph of one op on operands of a dtype; None where the op does not take them."""
    graph, call, op = Graph(name, rules=rules), CALLS[name], ops.CATALOGUE[name]
    try:
        taken = call.operands(*([dtype] * len(call.free)))
        inputs = [graph.input(*one) for one in taken if isinstance(one, tuple)]
        graph.output(op(*([inputs] if op.variadic else inputs), **call.attrs))
    except GraphirError:
        return None
    return graph


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", CALLS)
def test_every_op_of_every_dtype_with_and_without_jit(name: str) -> None:
    for dtype in map(DType, SOME.split()):
        graph = graph_of(name, dtype)
        for seed in range(4) if graph else ():
            free = CALLS[name].free
            inputs = [
                arrays(x.dtype, x.shape, seed if i in free else 1)
                for i, x in enumerate(graph.inputs)
            ]
            if name in INDEXING:
                inputs[-1] = np.asarray(inputs[-1] % 2)
            if (expected := outcome(partial(interpret, graph), *inputs)) is None:
                continue  # an integer to a negative power; nothing raises where JAX traces
            try:
                function = targets.jax(graph)
                function(*inputs)
            except TargetError:
                assert (name, dtype) in IMPOSSIBLE
                break
            assert agree(name, expected, function(*inputs)), (dtype, inputs)
            if not seed and dtype in JITTED:
                assert agree(name, expected, jax.jit(function)(*inputs)), (dtype, inputs)


SOME = "bool int8 int32 int64 uint8 uint64 int4 bfloat16 float16 tensor_float32 float32 float64"
SOME += " complex64 float8_e4m3fn"
JITTED = (DType.float32, DType.bfloat16, DType.int32)
IMPOSSIBLE = {
    (name, dtype) for name in ("argmax", "argmin") for dtype in DTYPES if dtype.is_complex
}


def test_every_op_has_a_row() -> None:
    assert set(ops.CATALOGUE) - set(table()) == {"input", "cast"}


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("tf32", ["even", "away"])
def test_every_cast_has_the_same_bits(source: DType, tf32: str) -> None:
    graph, given = Graph(tf32=tf32), settled(pool(source))
    x = graph.input(source, ("n",))
    targets_of = [d for d in DTYPES if not source.is_complex or d.is_complex or d is DType.bool]
    graph.output(*map(x.cast, targets_of))
    function = targets.jax(graph)
    for run in (function, jax.jit(function)):
        for target, found, expected in zip(
            targets_of, run(given), interpret(graph, given), strict=True
        ):
            assert same(settled(found), settled(expected)), (target, found, expected)


def test_without_our_casts_strict_jax_refuses() -> None:
    x, w = np.ones(3, np.int16), np.ones(3, np.float32)
    g = Graph()
    g.output(g.input("int16", ("n",)) * g.input("float32", ("n",)))
    with (
        jax.numpy_dtype_promotion("strict"),
        pytest.raises(jax.dtypes.TypePromotionError, match="strict"),
    ):
        table()["multiply"](jax.numpy.asarray(x), jax.numpy.asarray(w))
    assert same(np.asarray(jax.jit(targets.jax(g))(x, w)), interpret(g, x, w))


def test_64_bits_without_x64_are_refused_clearly() -> None:
    g = Graph()
    g.output(g.input("float64", ("n",)) + 1)
    with jax.enable_x64(False), pytest.raises(TargetError, match="enable_x64"):
        targets.jax(g)(np.ones(3))


def test_float6_is_named() -> None:
    g = Graph()
    g.output(g.input("float32", ("n",)).cast("float6_e2m3fn"))
    with pytest.raises(TargetError, match=r"test_target_jax.py:\d+:\d+: cast.*float6_e2m3fn"):
        targets.jax(g)

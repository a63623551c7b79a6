"""Every cast in machine code: all values of narrow sources, those about roundings of wide ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from graphir import DType, Symbol, ops
from tests.native_runs import (
    check,
    graph_of,
    needs_llvmlite,
    quiet,
    read_as,
    step_by_step,
    values,
)
from tests.rounding import edges, float_edges, integer_traps
from tests.strategies import STRONG

pytestmark = needs_llvmlite


@pytest.fixture(autouse=True)
def _step_by_step() -> Iterator[None]:
    with step_by_step():
        yield


def casts(x: Symbol) -> Sequence[Symbol]:
    """To every dtype to which there is a cast; the value itself last."""
    real = [d for d in STRONG if not d.is_complex and d is not DType.bool]
    return [*(x.cast(d) for d in STRONG if not (x.dtype.is_complex and d in real)), x]


@cache
def sources(dtype: DType) -> Any:
    """All patterns of up to 16 bits; of more bits what lies about any rounding, and at random."""
    if dtype is DType.bool:
        return np.array([False, True])
    if dtype.is_complex:
        return values(dtype, 5000)
    if dtype.bits <= 16:
        return quiet(read_as(np.arange(2**16), dtype), dtype)
    if dtype.is_integer:
        traps = np.array(integer_traps(dtype.storage.name), dtype.storage)
        return np.concatenate([traps, values(dtype, 5000)])
    parts = [float_edges(dtype.name), values(dtype, 20000)]
    if dtype is DType.float64:
        parts += [ties(d) for d in STRONG if d.is_float and d.bits <= 19]
        parts += [around(edges(23)[::97].astype(np.float64))]
    else:
        parts += [quiet(edges(m)[::3], dtype) for m in (0, 1, 2, 3, 7, 10)]
    if dtype is DType.tensor_float32:
        parts = [(part.view(np.uint32) & 0xFFFFE000).view(np.float32) for part in parts]
    return np.concatenate(parts)


def ties(dtype: DType) -> Any:
    """Float64 half way between neighbours of a format, and beside that."""
    x = read_as(np.arange(2 ** min(dtype.bits, 11)) << max(dtype.bits - 11, 0), dtype)
    x = np.unique(x.astype(np.float64)[np.isfinite(x.astype(np.float64))])
    last = read_as(np.arange(2 ** min(dtype.bits, 9)), dtype).astype(np.float64)
    found = [(each[1:] + each[:-1]) / 2 for each in (x, np.unique(last[np.isfinite(last)]))]
    return around(np.concatenate([x, *found]))


def around(x: Any) -> Any:
    """Float64 and what is beside it."""
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])


@np.errstate(all="ignore")
@pytest.mark.parametrize("source", STRONG, ids=str)
def test_every_cast(source: DType) -> None:
    """And one of a value just computed, which lies in a register and in no memory."""
    x = sources(source)
    check(graph_of(casts, (source, ("n",))), x)
    if source.is_float:
        check(graph_of(lambda x: casts(ops.negative(x)), (source, ("n",))), x)


@pytest.mark.parametrize("tf32", ["even", "away"])
@pytest.mark.parametrize("source", [d for d in STRONG if not d.is_complex], ids=str)
def test_casts_to_tensor_float32(source: DType, tf32: str) -> None:
    graph = graph_of(lambda x: [x.cast("tensor_float32")], (source, ("n",)), tf32=tf32)
    check(graph, sources(source))


@pytest.mark.parametrize("tf32", ["even", "away"])
def test_inputs_of_tensor_float32_are_rounded(tf32: str) -> None:
    """Float32 may be given for it; sums of it are rounded."""
    types = [(DType.tensor_float32, ("n",))] * 2
    graph = graph_of(lambda x, y: [x + x, ops.copysign(x, y), x * y], *types, tf32=tf32)
    x = quiet(edges(10), DType.float32)
    check(graph, x, x[::-1].copy())


@np.errstate(all="ignore")
def test_casts_after_casts() -> None:
    """Each of a chain rounds, whatever the register held."""
    some = [d for d in STRONG if d.bits <= 19 and d.is_float]
    some += [DType.float32, DType.float64, DType.int8, DType.int64, DType.uint4]
    for middle in some:
        graph = graph_of(
            lambda x, middle=middle: [x.cast(middle).cast(d) for d in some], (DType.float64, ("n",))
        )
        check(graph, values(DType.float64, 4000))

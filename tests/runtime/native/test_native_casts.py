"""Every cast in machine code: all values of narrow sources, those about roundings of wide ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphir import DType, Symbol, ops
from tests.support.native_runs import (
    casts,
    check,
    graph_of,
    needs_llvmlite,
    quiet,
    sources,
    step_by_step,
    values,
)
from tests.support.rounding import edges
from tests.support.strategies import STRONG

pytestmark = needs_llvmlite


@pytest.fixture(autouse=True)
def _step_by_step() -> Iterator[None]:
    with step_by_step():
        yield


@np.errstate(all="ignore")
@pytest.mark.parametrize("source", STRONG, ids=str)
def test_every_cast(source: DType) -> None:
    """And one of a value just computed, which lies in a register and in no memory."""
    x = sources(source)
    check(graph_of(casts, (source, ("n",))), x)
    if source.is_float and not source.narrow:
        check(graph_of(lambda x: casts(ops.negative(x)), (source, ("n",))), x[::3])


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
    some = [d for d in STRONG if d.is_float and (not d.narrow or d is DType.float8_e5m2)]
    some += [DType.int8, DType.uint64, DType.uint4]

    def chains(x: Symbol) -> list[Symbol]:
        return [x.cast(middle).cast(last) for middle in some for last in some]

    check(graph_of(chains, (DType.float64, ("n",))), values(DType.float64, 4000))

"""Functions of floats keep the bounds that tests/support/accuracy.py promises."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, Graph, ops, runtime
from graphir.ops.dtype_rules import DIVISION, FLOATING, REAL_FLOATING
from tests.support import accuracy
from tests.support.accuracy import BOUNDS
from tests.support.op_rows import ROWS
from tests.support.tables import every, sampled

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EXACT = {name for name, row in ROWS.items() if row.reference and not row.bound}
"""Which tests of kernels hold to the bits of their references."""
OF_SUMS = {"softmax", "logsoftmax", "layer_norm"}
"""Whose error grows with the length of a row."""
HALVES = {DType.float16: np.dtype(np.float16), DType.bfloat16: np.dtype(ml_dtypes.bfloat16)}


def test_every_function_of_floats_has_a_bound():
    signatures = (FLOATING, REAL_FLOATING, DIVISION)
    functions = {op.name for op in ops.CATALOGUE.values() if op.signature in signatures}
    assert functions - EXACT - OF_SUMS == BOUNDS.keys() - {"pow"}


@every("dtype", ["float32", "float64"])
@every("name", BOUNDS)
def test_functions_are_as_near_as_promised(name: str, dtype: str):
    pytest.importorskip("mpmath", reason="mpmath is not installed, so the truth is not known")
    operands = accuracy.points(name, dtype)
    found = accuracy.distances(accuracy.graphir(name, *operands), name)
    worst = int(found.argmax())
    assert found[worst] <= getattr(BOUNDS[name], dtype), [x[worst] for x in operands]


@sampled(3)
@every("dtype", HALVES)
@every("name", BOUNDS)
def test_halves_are_rounded_from_float32(name: str, dtype: DType):
    """Of all 65536 values; float64 tells the truth of them, but for what cancels."""
    operands = _all(name, HALVES[dtype])
    found = _computed(name, dtype, operands).astype(np.float64)
    wide = [x.astype(np.float64) for x in operands]
    true = accuracy.graphir(name, *wide)
    units = _units(np.maximum(abs(true), _near(name, operands)), dtype)
    greatest = 2.0 ** (np.frexp(float(dtype.max))[1])
    with np.errstate(invalid="ignore"):
        apart = abs(found.clip(-greatest, greatest) - true.clip(-greatest, greatest)) / units
    assert (np.isnan(found) == np.isnan(true)).all()
    assert np.nanmax(apart) <= accuracy.of_half(name, dtype.mantissa_bits)


def _all(name: str, storage: np.dtype[Any]) -> list[Any]:
    """All values; of two operands, beside others in some order. Infinities and NaN left out."""
    x = np.arange(2**16, dtype=np.uint16).view(storage)
    x = np.where(np.isfinite(x), x, x.dtype.type(1))
    more = [np.random.default_rng(0).permutation(x)]
    return [x, *more[: len(ops.CATALOGUE[name].operands) - 1]]


def _computed(name: str, dtype: DType, operands: list[Any]) -> Any:
    graph = Graph("half")
    graph.output(ops.CATALOGUE[name](*(graph.input(dtype, x.shape) for x in operands)))
    return runtime.interpret(graph, *operands)


def _near(name: str, operands: list[Any]) -> Any:
    """What BOUNDS measures by besides the result: in float32, where these are computed."""
    narrow = [x.astype(np.float32) for x in operands]
    return np.array([BOUNDS[name].near(*point) for point in zip(*narrow, strict=True)], float)


def _units(size: Any, dtype: DType) -> Any:
    """The unit in the last place of numbers of these sizes."""
    least = np.frexp(float(dtype.format.least))[1] - 1 + dtype.mantissa_bits
    top = np.frexp(float(dtype.max))[1] - 1
    exponent = np.frexp(np.where(np.isfinite(size), size, float(dtype.max)))[1] - 1
    return 2.0 ** (exponent.clip(least, top) - dtype.mantissa_bits)

"""Products and powers of scalars under jit have the bits of NumPy's scalars, not of its arrays."""

from __future__ import annotations

import numpy as np
import pytest

from runtime import jit

LINES = [
    "x[0] * y[0]",
    "x[0] * y[0] * 3",
    "x[0] ** y[0]",
    "x[0] ** 2",
    "x[0] ** 1.5",
    "2.5 ** x[0]",
    "x[0] ** -1",
    "x[0] ** 3",
    "x[0] ** 0.5",
    "np.power(x[0], y[0])",
    "np.multiply(x[0], y[0])",
    "x[0, ...] ** y[0, ...]",
    "x[0, ...] * y[0]",
    "x[:1] ** y[:1]",
    "x.sum() ** 1.7",
    "np.float64(1.7) ** x[0]",
    "x[0] ** np.float32(1.7)",
    "(x[0] - y[0]) * (x[0] + y[0])",
]


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize("line", LINES)
def test_scalars_have_numpys_bits(line, dtype):
    space = {"np": np, "__name__": "user"}
    exec(f"def f(x, y):\n    return {line}\n", space)
    random, jitted = np.random.default_rng(3), jit(space["f"])
    for _ in range(120):
        x, y = (np.abs(random.normal(size=3)) for _ in range(2))
        if dtype[0] == "c":
            x, y = (z + 1j * random.normal(size=3) for z in (x, y))
        x, y = x.astype(dtype), y.astype(dtype)
        expected, result = np.asarray(space["f"](x, y)), np.asarray(jitted(x, y))
        assert (expected.dtype, expected.tobytes()) == (result.dtype, result.tobytes())

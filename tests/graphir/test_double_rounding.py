"""Products of narrow floats whose float32 results are subnormal: within the bound of `legalize`."""

from __future__ import annotations

import numpy as np
import pytest

from graphir import DType, Graph
from graphir.passes import legalize, weak_types
from graphir.runtime import execute, interpret
from tests.support.tables import every

E8M0 = DType.float8_e8m0fnu


@every(
    ("dtype", "least", "sum_of_exponents"),
    [("tensor_float32", -136, e) for e in (-158, -155, -150, -147)]
    + [("bfloat16", -133, e) for e in (-149, -147, -144, -141)],
)
def test_products_in_the_subnormal_range(dtype: str, least: int, sum_of_exponents: int) -> None:
    """All products of two significands p, q, scaled to p * q * 2**sum, beside exact integers."""
    bits = DType(dtype).mantissa_bits + 1
    whole = np.arange(2 ** (bits - 1), 2**bits, dtype=np.int64)
    one = sum_of_exponents // 2
    storage = DType(dtype).storage
    x = np.ldexp(whole.astype(np.float64), one).astype(storage)
    y = np.ldexp(whole.astype(np.float64), sum_of_exponents - one).astype(storage)
    g = Graph("g")
    a, b = g.input(dtype, ("n", 1), name="a"), g.input(dtype, ("m",), name="b")
    g.output(a * b)
    results = interpret(g, x[:, None], y)
    assert execute(g, x[:, None], y).tobytes() == results.tobytes()
    exact = whole[:, None] * whole  # times 2**sum_of_exponents
    shift = least - sum_of_exponents  # one unit in the last place is 2**shift of these
    assert 0 < shift < 24
    units = np.ldexp(results.astype(np.float64), -least).astype(np.int64)
    error = np.abs((units << shift) - exact)
    # In units of 2**sum: half of a unit in the last place, and 2**-150.
    bound = 2.0 ** (shift - 1) + 2.0 ** (-150 - sum_of_exponents)
    assert error.max() <= bound
    twice = error > 2 ** (shift - 1)
    assert twice.mean() < 0.001
    assert twice.any() == (dtype == "tensor_float32" and sum_of_exponents < -149)


def test_products_of_powers_of_two_beyond_float32() -> None:
    """As the conversion has it: below 2**-127 the least value, above 2**127 NaN."""
    x = np.array([2.0**-127, 2.0**-75, 2.0**-64, 2.0**100, 2.0**-127]).astype(E8M0.storage)
    y = np.array([2.0**-127, 2.0**-75, 2.0**-64, 2.0**100, 2.0**127]).astype(E8M0.storage)
    wanted = np.array([2.0**-127, 2.0**-127, 2.0**-127, np.nan, 1.0], np.float32)
    g = Graph("g", rules="jax")
    a, b = g.input(E8M0, ("n",), name="a"), g.input(E8M0, ("n",), name="b")
    g.output(a * b, a / a, (a * b).cast("float64"))
    for run in (interpret, execute):
        product, ratio, cast = run(g, x, y)
        np.testing.assert_array_equal(product.astype(np.float32), wanted)
        np.testing.assert_array_equal(ratio.astype(np.float32), np.ones(5))
        np.testing.assert_array_equal(cast, wanted)


@every("rules", ["max", "jax", "numpy", "torch"])
def test_passes_that_need_an_explicit_graph_refuse_others(rules: str) -> None:
    g = Graph("g", rules=rules)
    x = g.input("float64", ("n",), name="x")
    g.output(x * x)
    for each in (weak_types, legalize):
        with pytest.raises(ValueError, match=rf"{each.__name__}: casts .* implicit"):
            each(g)

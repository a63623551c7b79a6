"""Elementwise kernels of floats and complex numbers against math, cmath and fractions."""

import cmath
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from graphir import ops
from tests.graphir.semantics.kernel_cases import (
    BOOL,
    COMPLEX,
    FLOATS,
    REAL,
    result_dtype,
    run,
    sample,
)
from tests.support.op_rows import ROWS


@pytest.fixture(autouse=True)
def quiet():
    """What evaluation enters around all kernels."""
    with np.errstate(all="ignore"):
        yield


# -- floats


FLOAT_OPS = [name for name, row in ROWS.items() if "f" in row.dtypes and row.reference]
FLOAT_UNARY = [name for name in FLOAT_OPS if len(ops.CATALOGUE[name].operands) == 1]
FLOAT_PAIRS = [name for name in FLOAT_OPS if len(ops.CATALOGUE[name].operands) == 2]


def stated(function, *values):
    """What Python says; None where it refuses (a pole or no real value), infinity if too large."""
    try:
        return function(*values)
    except (ValueError, ZeroDivisionError):
        return None
    except OverflowError:
        return math.inf


def check(result, expected, ulps):
    for got, want in zip(result.tolist(), expected, strict=True):
        if want is None:
            assert not cmath.isfinite(got)
        elif isinstance(want, complex):
            assert repr(np.array(want, result.dtype).item()) == repr(got)
        elif isinstance(want, bool) or ulps == 0:
            near = np.array(want, result.dtype).item()
            assert got == near or (got != got and near != near)
            assert math.copysign(1, got) == math.copysign(1, near) or got == 0 or got != got
        elif abs(want) == math.inf or math.isnan(want):
            assert abs(got) == abs(want) or (math.isnan(got) and math.isnan(want))
        else:
            near = np.array(want, result.dtype)
            limit = ulps * float(np.spacing(np.abs(near)))
            assert got == near or abs(got - want) <= limit, (got, want)


def test_floats_have_a_reference_or_a_test_of_their_own():
    apart = {"gelu", "clip", "nextafter", "logaddexp", "floor_divide", "remainder"}
    assert {name for name, row in ROWS.items() if "f" in row.dtypes} == {*FLOAT_OPS} | apart


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_single_floats(name, dtype):
    row = ROWS[name]
    x = sample(dtype, 600)
    if name == "silu":  # below, sigmoid is subnormal
        x = x[x > -80]
    result = run(name, x)
    assert result.dtype == result_dtype(name, dtype)
    check(result, [stated(row.reference, v) for v in x.tolist()], row.ulps)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_PAIRS)
def test_pairs_of_floats(name, dtype):
    row = ROWS[name]
    pairs = list(itertools.product(sample(dtype, 40).tolist(), repeat=2))
    result = run(name, *(np.array(v, dtype) for v in zip(*pairs, strict=True)))
    assert result.dtype == result_dtype(name, dtype)
    expected = [stated(row.reference, a, b) for a, b in pairs]
    if name == "pow":  # math.pow raises where IEEE 754 has an infinity
        expected = [None if e is math.inf else e for e in expected]
    check(result, expected, row.ulps)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_division_floors(dtype):
    values = [v for v in sample(dtype, 60).tolist() if math.isfinite(v) and 1e-4 < abs(v) < 1e4]
    pairs = list(itertools.product(values, values))
    x, y = (np.array(v, dtype) for v in zip(*pairs, strict=True))
    for got, (a, b) in zip(run("floor_divide", x, y).tolist(), pairs, strict=True):
        exact = Fraction(a) / Fraction(b)
        assert abs(got - math.floor(exact)) <= abs(exact) * Fraction(float(np.finfo(dtype).eps))
    for got, (a, b) in zip(run("remainder", x, y).tolist(), pairs, strict=True):
        exact = Fraction(a) - Fraction(b) * math.floor(Fraction(a) / Fraction(b))
        assert abs(got - exact) <= abs(b) * float(np.finfo(dtype).eps)
        assert got == 0 or (got < 0) == (b < 0)
    zero = np.array(0, dtype)
    assert run("floor_divide", np.array([1, -1], dtype), zero).tolist() == [math.inf, -math.inf]
    assert np.isnan(run("remainder", np.array([1, 0], dtype), zero)).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_logaddexp(dtype):
    values = [v for v in sample(dtype, 60).tolist() if math.isfinite(v)]
    pairs = list(itertools.product(values, values))
    result = run("logaddexp", *(np.array(v, dtype) for v in zip(*pairs, strict=True)))
    assert result.dtype == dtype
    for got, (a, b) in zip(result.tolist(), pairs, strict=True):
        exact = max(a, b) + math.log1p(math.exp(-abs(a - b)))
        assert abs(got - exact) <= 4 * np.finfo(dtype).eps * max(abs(a), abs(b), 1)
    inf, nan = np.array(np.inf, dtype), np.array(np.nan, dtype)
    assert run("logaddexp", -inf, -inf) == -inf and run("logaddexp", inf, -inf) == inf
    assert np.isnan(run("logaddexp", nan, inf))


def test_nextafter_steps_in_its_own_dtype():
    one, two = np.array(1.0), np.array(2.0)
    assert run("nextafter", one, two) == 1 + 2.0**-52
    assert run("nextafter", one.astype("f4"), two.astype("f4")) == np.float32(1 + 2.0**-23)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_wins_in_extremes(dtype):
    nan, one, inf = (np.array(v, dtype) for v in (np.nan, 1, np.inf))
    for name in ("maximum", "minimum"):
        assert np.isnan(run(name, nan, inf)) and np.isnan(run(name, inf, nan))
    assert np.isnan(run("relu", nan)) and np.isnan(run("clip", nan, one, inf))
    assert np.isnan(run("clip", one, nan, inf)) and np.isnan(run("clip", one, one, nan))


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
def test_clip(dtype):
    x, low, high = sample(dtype, 30), np.array(1, dtype), np.array([[1], [0]], dtype)
    x = x[x == x]
    result = run("clip", x, low, high)
    assert result.dtype == dtype
    assert result.tolist() == [[min(max(v, 1), top) for v in x.tolist()] for top in (1, 0)]


# -- complex numbers


COMPLEX_OPS = [name for name, row in ROWS.items() if "c" in row.dtypes]
COMPLEX_UNARY = [name for name in COMPLEX_OPS if len(ops.CATALOGUE[name].operands) == 1]
COMPLEX_PAIRS = [name for name in COMPLEX_OPS if len(ops.CATALOGUE[name].operands) == 2]


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_single_complex_numbers(name, dtype):
    x = sample(dtype, 200)
    result = run(name, x)
    assert result.dtype == result_dtype(name, dtype)
    expected = [ROWS[name].of_complexes()(v) for v in x.tolist()]
    assert np.allclose(result, expected, rtol=100 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", COMPLEX_PAIRS)
def test_pairs_of_complex_numbers(name, dtype):
    pairs = list(itertools.product(sample(dtype, 20).tolist(), repeat=2))
    result = run(name, *(np.array(v, dtype) for v in zip(*pairs, strict=True)))
    assert result.dtype == result_dtype(name, dtype)
    expected = [ROWS[name].of_complexes()(a, b) for a, b in pairs]
    assert np.allclose(result, expected, rtol=1000 * np.finfo(dtype).eps, atol=0)


def test_complex_edges():
    z = np.array([complex(np.nan, 1), complex(1, np.inf), 0, 2.5 + 3.5j])
    assert run("is_nan", z).tolist() == [True, False, False, False]
    assert run("is_inf", z).tolist() == [False, True, False, False]
    assert run("is_finite", z).tolist() == [False, False, True, True]
    assert run("sign", z).tolist()[2] == 0
    assert run("round", z).tolist()[3] == 2 + 4j
    assert repr(run("conj", z[2:3]).item()) == "-0j"
    pair = run("as_complex", np.array([[-0.0], [np.inf]]), np.array([np.nan, -0.0]))
    assert str(pair.ravel().tolist()) == "[(-0+nanj), (-0-0j), (inf+nanj), (inf-0j)]"

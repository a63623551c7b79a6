"""Elementwise kernels of floats and complex numbers against math, cmath and fractions."""

import cmath
import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from tests.graphir.semantics.kernel_cases import (
    BOOL,
    COMPLEX,
    FLOATS,
    KINDS,
    REAL,
    result_dtype,
    run,
    sample,
)


@pytest.fixture(autouse=True)
def quiet():
    """What evaluation enters around all kernels."""
    with np.errstate(all="ignore"):
        yield


# -- floats: (what Python says, how many ulps NumPy may be off)


def _round_even(x):
    return x if not math.isfinite(x) else math.copysign(round(x), x)


def _whole(function):
    return lambda x: x if not math.isfinite(x) else math.copysign(function(x), x)


def _sign(x):
    return x if math.isnan(x) else float((x > 0) - (x < 0))


def _sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


FLOAT_UNARY = {
    "negative": (operator.neg, 0),
    "positive": (operator.pos, 0),
    "abs": (abs, 0),
    "sign": (_sign, 0),
    "square": (lambda x: x * x, 0),
    "reciprocal": (lambda x: 1 / x, 0),
    "relu": (lambda x: x if x > 0 or math.isnan(x) else 0.0, 0),
    "floor": (_whole(math.floor), 0),
    "ceil": (_whole(math.ceil), 0),
    "trunc": (_whole(math.trunc), 0),
    "round": (_round_even, 0),
    "real": (operator.pos, 0),
    "imag": (lambda x: 0.0, 0),
    "conj": (operator.pos, 0),
    "sqrt": (math.sqrt, 0),
    "cbrt": (math.cbrt, 2),
    "deg2rad": (math.radians, 2),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 2),
    "exp": (math.exp, 4),
    "expm1": (math.expm1, 4),
    "log": (math.log, 4),
    "log1p": (math.log1p, 4),
    "log2": (math.log2, 4),
    "log10": (math.log10, 4),
    "sin": (math.sin, 4),
    "cos": (math.cos, 4),
    "tan": (math.tan, 4),
    "asin": (math.asin, 4),
    "acos": (math.acos, 4),
    "atan": (math.atan, 4),
    "sinh": (math.sinh, 4),
    "cosh": (math.cosh, 4),
    "tanh": (math.tanh, 4),
    "asinh": (math.asinh, 4),
    "acosh": (math.acosh, 4),
    "atanh": (math.atanh, 4),
    "erf": (math.erf, 1),
    "sigmoid": (_sigmoid, 5),
    "softplus": (lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))), 5),
    "silu": (lambda x: x * _sigmoid(x), 6),
    "is_nan": (math.isnan, 0),
    "is_inf": (math.isinf, 0),
    "is_finite": (math.isfinite, 0),
    "signbit": (lambda x: math.copysign(1, x) < 0, 0),
}


def _extreme(choose):
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else choose(a, b)


FLOAT_PAIRS = {
    "add": (operator.add, 0),
    "subtract": (operator.sub, 0),
    "multiply": (operator.mul, 0),
    "divide": (operator.truediv, 0),
    "maximum": (_extreme(max), 0),
    "minimum": (_extreme(min), 0),
    "pow": (math.pow, 4),
    "atan2": (math.atan2, 4),
    "hypot": (math.hypot, 2),
    "heaviside": (lambda a, b: b if a == 0 else a if a != a else float(a > 0), 0),
    "fmod": (math.fmod, 0),
    "copysign": (math.copysign, 0),
    "equal": (operator.eq, 0),
    "not_equal": (operator.ne, 0),
    "less": (operator.lt, 0),
    "less_equal": (operator.le, 0),
    "greater": (operator.gt, 0),
    "greater_equal": (operator.ge, 0),
    "as_complex": (complex, 0),
}


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


def test_a_float_is_stated_for_every_op_that_takes_one():
    stated_ones = set(FLOAT_UNARY) | set(FLOAT_PAIRS)
    apart = {"gelu", "clip", "nextafter", "logaddexp", "floor_divide", "remainder"}
    assert {name for name, kinds in KINDS.items() if "f" in kinds} == stated_ones | apart


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_single_floats(name, dtype):
    function, ulps = FLOAT_UNARY[name]
    x = sample(dtype, 600)
    if name == "silu":  # below, sigmoid is subnormal
        x = x[x > -80]
    result = run(name, x)
    assert result.dtype == result_dtype(name, dtype)
    check(result, [stated(function, v) for v in x.tolist()], ulps)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_PAIRS)
def test_pairs_of_floats(name, dtype):
    function, ulps = FLOAT_PAIRS[name]
    pairs = list(itertools.product(sample(dtype, 40).tolist(), repeat=2))
    result = run(name, *(np.array(v, dtype) for v in zip(*pairs, strict=True)))
    assert result.dtype == result_dtype(name, dtype)
    expected = [stated(function, a, b) for a, b in pairs]
    if name == "pow":  # math.pow raises where IEEE 754 has an infinity
        expected = [None if e is math.inf else e for e in expected]
    check(result, expected, ulps)


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


COMPLEX_UNARY = {
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": abs,
    "sign": lambda z: z / abs(z),
    "square": lambda z: z * z,
    "reciprocal": lambda z: 1 / z,
    "round": lambda z: complex(round(z.real), round(z.imag)),
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "conj": lambda z: z.conjugate(),
    "sqrt": cmath.sqrt,
    "rsqrt": lambda z: 1 / cmath.sqrt(z),
    "exp": cmath.exp,
    "expm1": lambda z: cmath.exp(z) - 1,
    "log": cmath.log,
    "log1p": lambda z: cmath.log(1 + z),
    "log2": lambda z: cmath.log(z, 2),
    "log10": cmath.log10,
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": cmath.atan,
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "asinh": cmath.asinh,
    "acosh": cmath.acosh,
    "atanh": cmath.atanh,
    "is_nan": cmath.isnan,
    "is_inf": cmath.isinf,
    "is_finite": cmath.isfinite,
}
COMPLEX_PAIRS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "pow": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def test_a_complex_number_is_stated_for_every_op_that_takes_one():
    takes = {name for name, kinds in KINDS.items() if "c" in kinds}
    assert takes == set(COMPLEX_UNARY) | set(COMPLEX_PAIRS)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_single_complex_numbers(name, dtype):
    x = sample(dtype, 200)
    result = run(name, x)
    assert result.dtype == result_dtype(name, dtype)
    expected = [COMPLEX_UNARY[name](v) for v in x.tolist()]
    assert np.allclose(result, expected, rtol=100 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", COMPLEX_PAIRS)
def test_pairs_of_complex_numbers(name, dtype):
    pairs = list(itertools.product(sample(dtype, 20).tolist(), repeat=2))
    result = run(name, *(np.array(v, dtype) for v in zip(*pairs, strict=True)))
    assert result.dtype == result_dtype(name, dtype)
    expected = [COMPLEX_PAIRS[name](a, b) for a, b in pairs]
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

"""erf and its kin against the math module and against sums in exact arithmetic."""

import math
import statistics
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from graphir.semantics import special_functions as functions
from graphir.semantics.kernels import KERNELS

FLOATS = [np.dtype("f4"), np.dtype("f8")]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def ulps_apart(x, y):
    return np.abs(x - y) / np.spacing(np.abs(y))


# -- erf


def erf_points():
    rng = np.random.default_rng(0)
    edges = np.array([0.125, 0.5, 0.84375, 1.25, 1 / 0.35, 5.9215871960, 6.0, 28.0])
    middles = (np.arange(8, 385) + 0.5) / 64
    near = [np.nextafter(e, s) for e in (edges, middles) for s in (0, 9)]
    spread = 2.0 ** rng.uniform(-1074, 10, 200_000)
    sizes = np.concatenate([edges, middles, *near, spread, rng.uniform(0, 6.5, 300_000)])
    return np.concatenate([sizes, -sizes])


def test_erf_is_within_an_ulp_of_the_math_module():
    x = erf_points()
    assert x.size > 1_000_000
    expected = np.fromiter(map(math.erf, x.tolist()), float)
    assert ulps_apart(functions.erf(x), expected).max() <= 1


def exact_erf(x):
    """2/sqrt(pi) exp(-x**2) sum of 2**n x**(2n+1) / (2n+1)!!, all terms positive (DLMF 7.6.2)."""
    with localcontext(Context(prec=60)):
        total = term = value = Decimal(x)
        for n in range(1, 300):
            term *= 2 * value * value / (2 * n + 1)
            total += term
        # pi by Machin's formula, from integers
        arctan = {5: 0, 239: 0}
        for d in arctan:
            arctan[d] = sum(
                (-1) ** k * 10**60 // ((2 * k + 1) * d ** (2 * k + 1)) for k in range(50)
            )
        pi = Decimal(4 * (4 * arctan[5] - arctan[239])).scaleb(-60)
        return total * (-value * value).exp() * 2 / pi.sqrt()


def test_erf_is_as_good_as_it_says():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(0, 6, 300), rng.uniform(0, 0.3, 300)])
    for value, got in zip(x.tolist(), functions.erf(x).tolist(), strict=True):
        exact = exact_erf(value)
        with localcontext(Context(prec=60)):
            assert abs(Decimal(got) - exact) < Decimal("0.8") * Decimal(math.ulp(float(exact)))


def test_erf_of_specials():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, -6.0])
    expected = np.array([0.0, -0.0, 1, -1, np.nan, 5e-324, -5e-324, 1, -1])
    result = functions.erf(x)
    assert np.array_equal(result, expected, equal_nan=True)
    assert np.signbit(result).tolist() == np.signbit(expected).tolist()


def test_erf_never_falls():
    centres = np.arange(0, 6, 1 / 128)
    x = np.sort(np.concatenate([centres + k * np.spacing(centres) for k in range(-8, 9)]))
    assert (np.diff(functions.erf(x)) >= 0).all()


def test_erf_of_float32_is_rounded_once():
    x = np.concatenate([np.linspace(-5, 5, 20_001), 2.0 ** np.linspace(-149, 4, 5_000)])
    x = x.astype(np.float32)
    result = functions.erf(x)
    assert result.dtype == np.float32
    exact = np.array([math.erf(v) for v in x.tolist()])
    assert (ulps_apart(result.astype(float), exact.astype(np.float32).astype(float)) <= 1).all()
    assert (np.abs(result - exact) <= 0.5001 * np.spacing(np.abs(result)).astype(float)).all()


# -- activations


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sigmoid_is_stable(dtype):
    big = 80 if dtype == "f4" else 700
    x = np.array([-big, -30, -1, 0, 1, 30, big, np.inf, -np.inf, np.nan], dtype)
    result = KERNELS["sigmoid"](x)
    assert result.dtype == dtype
    assert result[0] == pytest.approx(math.exp(-big), rel=1e-5)
    assert result[3:8] == pytest.approx([0.5, 1 / (1 + math.exp(-1)), 1, 1, 1], rel=1e-7)
    assert result[[3, 6, 7]].tolist() == [0.5, 1, 1]
    assert result[8] == 0 and np.isnan(result[9])
    assert KERNELS["silu"](x)[0] == pytest.approx(-big * math.exp(-big), rel=1e-5)
    assert np.isnan(KERNELS["silu"](x)[8]) and KERNELS["silu"](x)[7] == np.inf


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gelu(dtype):
    x = np.linspace(-4, 4, 200).astype(dtype)
    forms = {
        "none": lambda v: v / 2 * (1 + math.erf(v / math.sqrt(2))),
        "tanh": lambda v: v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
        "quick": lambda v: v / (1 + math.exp(-1.702 * v)),
    }
    for approximate, form in forms.items():
        result = KERNELS["gelu"](x, approximate)
        assert result.dtype == dtype
        expected = [form(v) for v in x.tolist()]
        assert np.allclose(result, expected, rtol=1e-6, atol=8 * np.finfo(dtype).eps)
        assert KERNELS["gelu"](x[:1].reshape(()), approximate).shape == ()
        ends = KERNELS["gelu"](np.array([np.inf, -np.inf, np.nan, -0.0], dtype), approximate)
        assert ends[0] == np.inf and np.isnan(ends[1:3]).all() and ends[3] == 0


def test_gelu_of_negatives_keeps_its_digits():
    x = np.linspace(-37, 0, 500)
    expected = [v / 2 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()]  # within x**2 ulp
    assert np.allclose(KERNELS["gelu"](x, "none"), expected, rtol=1e-12, atol=0)
    far = KERNELS["gelu"](np.array([-39.0, -1e300, 1e300]), "none")
    assert far.tolist() == [0, 0, 1e300]


# -- softmax and norms


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(dtype, axis):
    x = (np.random.default_rng(0).normal(size=(3, 4, 5)) * 5 + 1000).astype(dtype)
    soft, logs = KERNELS["softmax"](x, axis), KERNELS["logsoftmax"](x, axis)
    assert soft.dtype == logs.dtype == dtype and soft.shape == logs.shape == x.shape
    rows = [np.moveaxis(array, axis, -1).reshape(-1, x.shape[axis]) for array in (x, soft, logs)]
    for row, got, log in zip(*map(np.ndarray.tolist, rows), strict=True):
        powers = [math.exp(v - 1000) for v in row]
        total = math.fsum(powers)
        assert got == pytest.approx(
            [p / total for p in powers], rel=float(50 * np.finfo(dtype).eps)
        )
        expected = [v - 1000 - math.log(total) for v in row]
        assert np.allclose(log, expected, rtol=1e-6, atol=20 * np.finfo(dtype).eps)


def test_softmax_of_infinities_and_of_nothing():
    x = np.array([[-np.inf, 0.0, 0.0], [np.inf, 0.0, 0.0], [-np.inf] * 3])
    assert KERNELS["softmax"](x, 1)[0].tolist() == [0, 0.5, 0.5]
    assert KERNELS["logsoftmax"](x, 1)[0, 0] == -np.inf
    assert np.isnan(KERNELS["softmax"](x, 1)[1, 0]) and np.isnan(KERNELS["softmax"](x, 1)[2]).all()
    for function in (KERNELS["softmax"], KERNELS["logsoftmax"]):
        assert function(np.zeros((2, 0, 3), np.float32), 1).shape == (2, 0, 3)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_layer_norm(dtype):
    rng = np.random.default_rng(0)
    x, scale, shift = (rng.normal(size=n).astype(dtype) for n in ((3, 4, 8), 8, 8))
    result = KERNELS["layer_norm"](x, scale, shift, 1e-5)
    assert result.dtype == dtype
    for row, got in zip(x.reshape(-1, 8).tolist(), result.reshape(-1, 8), strict=True):
        mean, spread = statistics.fmean(row), math.sqrt(statistics.pvariance(row) + 1e-5)
        normal = [(v - mean) / spread for v in row]
        expected = [
            v * a + b for v, a, b in zip(normal, scale.tolist(), shift.tolist(), strict=True)
        ]
        assert np.allclose(got, expected, rtol=1e-5 if dtype == "f4" else 1e-13, atol=1e-6)
    with pytest.raises(TypeError):
        KERNELS["layer_norm"](x, scale.astype("f4" if dtype == "f8" else "f8"), shift, 1e-5)
    assert KERNELS["layer_norm"](x[..., :0], scale[:0], shift[:0], 1e-5).shape == (3, 4, 0)


# -- mean, var, std


def spread_of(row, correction):
    parts = [(Fraction(complex(v).real), Fraction(complex(v).imag)) for v in row]
    means = [sum(p[k] for p in parts) / len(parts) for k in (0, 1)]
    squares = sum((p[k] - means[k]) ** 2 for p in parts for k in (0, 1))
    return float(squares / (len(row) - correction)), complex(*map(float, means))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
@pytest.mark.parametrize("axis", [(0,), (1,), (0, 2), (0, 1, 2), ()], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_means_and_variances(dtype, axis, keepdims):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4, 5)) + (1j * rng.normal(size=(3, 4, 5)) if dtype.kind == "c" else 0)
    x = x.astype(dtype)
    part = np.zeros(1, dtype).real.dtype
    rest = [i for i in range(3) if i not in axis]
    rows = x.transpose([*rest, *axis]).reshape(math.prod(x.shape[i] for i in rest), -1).tolist()
    tolerance = {"rtol": 50 * np.finfo(dtype).eps, "atol": 4 * np.finfo(dtype).eps}
    shape = np.sum(x, axis=axis, keepdims=keepdims).shape
    for correction in (-1, 0, 1, 2):
        if axis == () and correction > 0:
            continue
        expected = [spread_of(row, correction) for row in rows]
        mean = KERNELS["mean"](x, axis=axis, keepdims=keepdims)
        var = KERNELS["var"](x, axis=axis, keepdims=keepdims, correction=correction)
        std = KERNELS["std"](x, axis=axis, keepdims=keepdims, correction=correction)
        assert (mean.dtype, var.dtype, std.dtype) == (dtype, part, part)
        assert mean.shape == var.shape == std.shape == shape
        assert np.allclose(mean.ravel(), [m for _, m in expected], **tolerance)
        assert np.allclose(var.ravel(), [v for v, _ in expected], **tolerance)
        assert np.allclose(std.ravel(), [math.sqrt(v) for v, _ in expected], **tolerance)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
def test_too_few_elements_for_a_variance(dtype):
    x, part = np.array([[1, 2, 4], [3, 3, 3]], dtype), np.zeros(1, dtype).real.dtype
    for correction in (3, 4, 100):
        for function in (KERNELS["var"], KERNELS["std"]):
            result = function(x, (1,), False, correction)
            assert result.dtype == part
            assert result[0] == np.inf and np.isnan(result[1])
    empty = KERNELS["mean"](x[:0], (0,), False)
    assert empty.dtype == dtype and np.isnan(empty).all() and empty.shape == (3,)
    for correction in (0, 1):
        empty = KERNELS["var"](x[:0], (0,), True, correction)
        assert empty.dtype == part and np.isnan(empty).all() and empty.shape == (1, 3)
    assert KERNELS["mean"](x[:0], (1,), False).shape == (0,)
    assert KERNELS["var"](x[0, 0].reshape(()), (), False, 0).tolist() == 0

"""Kernels against Python's own arithmetic: exact integers, math, cmath, and loops."""

import cmath
import inspect
import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from graphir import ops
from graphir.errors import ExecutionError
from graphir.kernels import KERNELS

BOOL = [np.dtype(bool)]
SIGNED = [np.dtype(f"i{n}") for n in (1, 2, 4, 8)]
UNSIGNED = [np.dtype(f"u{n}") for n in (1, 2, 4, 8)]
INTEGERS = SIGNED + UNSIGNED
FLOATS = [np.dtype("f4"), np.dtype("f8")]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]
REAL = INTEGERS + FLOATS
BY_LETTER = {"b": BOOL, "i": SIGNED, "u": UNSIGNED, "f": FLOATS, "c": COMPLEX}

# Which kinds of dtype an elementwise op takes: those that its signature can name.
TAKES = {
    "biufc": "add multiply equal not_equal abs positive real imag conj is_nan is_inf is_finite",
    "iufc": "subtract pow negative sign square round",
    "fc": """divide reciprocal sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan
        sinh cosh tanh asinh acosh atanh""",
    "iuf": "floor_divide remainder relu floor ceil trunc",
    "biuf": "maximum minimum less less_equal greater greater_equal clip signbit",
    "f": """erf sigmoid silu gelu atan2 hypot logaddexp copysign nextafter as_complex""",
    "biu": "bitwise_and bitwise_or bitwise_xor bitwise_invert",
    "iu": "left_shift right_shift",
    "b": "logical_and logical_or logical_xor logical_not",
}
KINDS = {name: kinds for kinds, names in TAKES.items() for name in names.split()}
TRUTH = set(
    "equal not_equal less less_equal greater greater_equal is_nan is_inf is_finite signbit "
    "logical_and logical_or logical_xor logical_not".split()
)
PART = {"abs", "real", "imag"}
ELEMENTWISE = {name: op for name, op in ops.CATALOGUE.items() if name in KINDS}
CASES = [(name, dtype) for name in KINDS for letter in KINDS[name] for dtype in BY_LETTER[letter]]


@pytest.fixture(autouse=True)
def quiet():
    """What evaluation enters around all kernels."""
    with np.errstate(all="ignore"):
        yield


def run(name, *arrays, **attrs):
    """The kernel's result, which is a new contiguous array; defaults of attributes filled in."""
    full = {a.name: a.default for a in ops.CATALOGUE[name].attrs if a.name != "dtype"} | attrs
    result = KERNELS[name](*arrays, **full)
    assert type(result) is np.ndarray
    if ops.CATALOGUE[name].kind != "movement":
        assert result.flags.c_contiguous and result.flags.writeable
        assert not any(np.shares_memory(result, array) for array in arrays)
    return result


def result_dtype(name, dtype):
    if name in TRUTH:
        return np.dtype(bool)
    if name == "as_complex":
        return np.dtype("c8" if dtype == "f4" else "c16")
    return dtype.type(0).real.dtype if name in PART else dtype


def wrap(value, dtype):
    bits = 8 * dtype.itemsize
    value %= 2**bits
    return value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def sample(dtype, count, seed=0):
    """Values of a dtype: the edges first, then random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [info.min, info.min + 1, 0, 1, 2, 3, 7, 8, info.max - 1, info.max]
        edges += [-1, -2, -8] if dtype.kind == "i" else []
        wide = rng.integers(info.min, info.max, count, dtype, endpoint=True)
        values = np.concatenate([np.array(edges, dtype), wide >> rng.integers(0, 8, count, dtype)])
    elif dtype.kind == "f":
        edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 1e30]
        edges += [np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
        spread = rng.normal(size=count) * 10.0 ** rng.integers(-3, 3, count)
        values = np.concatenate([np.array(edges, dtype), spread.astype(dtype)])
    else:
        values = (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(dtype)
    return rng.permutation(values)[:count] if seed else values[:count]


# -- the catalogue


def test_every_op_has_a_kernel_and_every_kernel_an_op():
    assert set(KERNELS) == set(ops.CATALOGUE) - {"input", "cast"}
    assert list(KERNELS) == [name for name in ops.CATALOGUE if name in KERNELS]


def test_every_elementwise_op_is_tested_here():
    elementwise = {name for name, op in ops.CATALOGUE.items() if op.kind == "elementwise"}
    assert set(KINDS) | {"where"} == elementwise


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_takes_the_attributes_of_its_op(name):
    op = ops.CATALOGUE[name]
    attrs = {a.name for a in op.attrs if a.name != "dtype" or op.kind == "creation"}
    parameters = inspect.signature(KERNELS[name]).parameters.values()
    arrays = 0 if op.variadic else len(op.operands)
    named = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    variadic = len(named) < len(parameters)
    assert set(named if variadic else named[arrays:]) == attrs


# -- integers


def _shift_right(a, b, bits):
    return a >> b if 0 <= b < bits else -(a < 0)


INTEGER_PAIRS = {
    "add": lambda a, b, bits: a + b,
    "subtract": lambda a, b, bits: a - b,
    "multiply": lambda a, b, bits: a * b,
    "floor_divide": lambda a, b, bits: a // b if b else 0,
    "remainder": lambda a, b, bits: a % b if b else 0,
    "maximum": lambda a, b, bits: max(a, b),
    "minimum": lambda a, b, bits: min(a, b),
    "bitwise_and": lambda a, b, bits: a & b,
    "bitwise_or": lambda a, b, bits: a | b,
    "bitwise_xor": lambda a, b, bits: a ^ b,
    "left_shift": lambda a, b, bits: a << b if 0 <= b < bits else 0,
    "right_shift": _shift_right,
    "equal": lambda a, b, bits: a == b,
    "not_equal": lambda a, b, bits: a != b,
    "less": lambda a, b, bits: a < b,
    "less_equal": lambda a, b, bits: a <= b,
    "greater": lambda a, b, bits: a > b,
    "greater_equal": lambda a, b, bits: a >= b,
}
INTEGER_UNARY = {
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "square": lambda a: a * a,
    "relu": lambda a: max(a, 0),
    "bitwise_invert": operator.invert,
    "signbit": lambda a: a < 0,
    "imag": lambda a: 0,
    "is_nan": lambda a: False,
    "is_inf": lambda a: False,
    "is_finite": lambda a: True,
    **dict.fromkeys(["floor", "ceil", "trunc", "round", "real", "conj"], operator.pos),
}


def check_pairs(name, dtype, a, b):
    x, y = np.array(a, dtype), np.array(b, dtype)
    result = run(name, x, y)
    assert result.dtype == result_dtype(name, dtype)
    bits, truth = 8 * dtype.itemsize, name in TRUTH
    f = INTEGER_PAIRS[name]
    expected = [f(m, n, bits) for m, n in zip(a, b, strict=True)]
    assert result.tolist() == (expected if truth else [wrap(v, dtype) for v in expected])


@pytest.mark.parametrize("dtype", [np.dtype("i1"), np.dtype("u1")], ids=str)
@pytest.mark.parametrize("name", INTEGER_PAIRS)
def test_all_pairs_of_bytes(name, dtype):
    info = np.iinfo(dtype)
    values = range(info.min, info.max + 1)
    check_pairs(name, dtype, *zip(*itertools.product(values, values), strict=True))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_PAIRS)
def test_pairs_of_integers(name, dtype):
    values = sample(dtype, 40).tolist()
    check_pairs(name, dtype, *zip(*itertools.product(values, values), strict=True))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_UNARY)
def test_single_integers(name, dtype):
    values = sample(dtype, 100).tolist()
    result = run(name, np.array(values, dtype))
    assert result.dtype == result_dtype(name, dtype)
    expected = [INTEGER_UNARY[name](v) for v in values]
    if name not in TRUTH:
        expected = [wrap(v, dtype) for v in expected]
    assert result.tolist() == expected


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_powers_wrap(dtype):
    pairs = list(itertools.product(sample(dtype, 20).tolist(), range(20)))
    a, b = (np.array(v, dtype) for v in zip(*pairs, strict=True))
    result = run("pow", a, b)
    assert result.dtype == dtype
    assert result.tolist() == [wrap(m**n, dtype) for m, n in pairs]


def test_a_negative_integer_exponent_is_refused():
    x = np.array([2, 3], np.int16)
    with pytest.raises(ExecutionError, match=r"int16 \*\* -1 .*cast\(DType.float64\)"):
        run("pow", x, np.array(-1, np.int16))
    assert run("pow", x[:0], np.array(-1, np.int16)).shape == (0,)
    assert run("pow", np.float32([2]), np.float32([-1])).tolist() == [0.5]
    assert run("pow", np.uint8([2]), np.uint8([255])).tolist() == [0]


# -- bool


BOOL_PAIRS = {
    "add": operator.or_,
    "multiply": operator.and_,
    "maximum": max,
    "minimum": min,
    "logical_and": operator.and_,
    "logical_or": operator.or_,
    "logical_xor": operator.xor,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


@pytest.mark.parametrize("name", BOOL_PAIRS)
def test_pairs_of_bools(name):
    a, b = [False, False, True, True], [False, True, False, True]
    result = run(name, np.array(a), np.array(b))
    assert result.dtype == bool
    assert result.tolist() == list(map(BOOL_PAIRS[name], a, b))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("positive", [False, True]), ("abs", [False, True]), ("real", [False, True])]
    + [("imag", [False, False]), ("conj", [False, True]), ("signbit", [False, False])]
    + [("is_nan", [False, False]), ("is_inf", [False, False]), ("is_finite", [True, True])]
    + [("bitwise_invert", [True, False]), ("logical_not", [True, False])],
)
def test_single_bools(name, expected):
    result = run(name, np.array([False, True]))
    assert result.dtype == bool
    assert result.tolist() == expected


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
    "rsqrt": (lambda x: 1 / math.sqrt(x), 1),
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
    "silu": (lambda x: x * _sigmoid(x), 6),
    "is_nan": (math.isnan, 0),
    "is_inf": (math.isinf, 0),
    "is_finite": (math.isfinite, 0),
    "signbit": (lambda x: math.copysign(1, x) < 0, 0),
}


def _larger(a, b):
    return math.nan if math.isnan(a + b) and not math.isinf(a - b) else max(a, b)


def _extreme(choose):
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else choose(a, b)


def _logaddexp(a, b):
    if a == b:
        return a + math.log(2)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


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
    "logaddexp": (_logaddexp, 4),
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
    apart = {"gelu", "clip", "nextafter", "floor_divide", "remainder"}
    assert {name for name, kinds in KINDS.items() if "f" in kinds} == stated_ones | apart


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_single_floats(name, dtype):
    function, ulps = FLOAT_UNARY[name]
    x = sample(dtype, 600)
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


# -- the layout of operands


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "logaddexp"])
def test_a_broadcast_operand_counts_as_written_out(name, dtype):
    if dtype.kind not in KINDS[name]:
        pytest.skip("it takes no complex numbers")
    x = np.random.default_rng(5).uniform(0, 10, 3000).astype(dtype)
    for exponent in (2, 0.5, -1, 3):
        y = np.array(exponent, dtype)
        expected = run(name, x, np.full_like(x, exponent)).tobytes()
        assert run(name, x, y).tobytes() == expected
        assert run(name, x.reshape(50, 60), np.broadcast_to(y, 60)).tobytes() == expected
        ones = [run(name, np.array(v), y).tobytes() for v in x]
        assert b"".join(ones) == expected
        ones = [run(name, x[i : i + 1], np.broadcast_to(y, 1)).tobytes() for i in range(len(x))]
        assert b"".join(ones) == expected


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
    assert [repr(v) for v in pair.ravel().tolist()] == ["(-0+nanj)", "(-0-0j)", "(inf+nanj)"] + [
        "(inf-0j)"
    ]


# -- where, and the shapes and dtypes of all


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_where(dtype):
    x, y = sample(dtype, 12), sample(dtype, 12, seed=1).reshape(12, 1)
    c = np.arange(12) % 3 == 0
    result = run("where", c, x, y)
    assert result.dtype == dtype and result.shape == (12, 12)
    for (i, j), got in np.ndenumerate(result):
        assert got.tobytes() == (x[j] if c[j] else y[i, 0]).tobytes()
    assert run("where", np.array(True), x[0:1].reshape(()), y[:1].reshape(())).shape == ()


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda case: str(case))
def test_shapes_and_dtypes(name, dtype):
    count = len(ELEMENTWISE[name].operands)
    for shapes in [
        [()] * 3,
        [(0, 3)] * 3,
        [(2, 3), (3,), (2, 1)],
        [(1,), (), ()],
        [(0,), (), (1,)],
    ]:
        arrays = [np.ones(shape, dtype) for shape in shapes[:count]]
        result = run(name, *arrays)
        assert result.dtype == result_dtype(name, dtype)
        assert result.shape == np.broadcast_shapes(*shapes[:count])


MIXED = [op for op in ops.CATALOGUE.values() if op.name in KERNELS and len(op.operands) > 1]


@pytest.mark.parametrize("op", [*MIXED, ops.concat, ops.stack], ids=lambda op: op.name)
def test_a_missing_cast_is_an_error(op):
    indexed = op.operands[-1] == "indices"
    if indexed and len(op.operands) == 2:
        pytest.skip("indices have a dtype of their own")
    wanted = "?" if op.name.startswith("logical") or op.name == "where" else "i8"
    wanted = "f4" if "f" in KINDS.get(op.name, "") or op.name == "layer_norm" else wanted
    arrays = [np.ones((2, 2) if op.name == "matmul" else 2, wanted) for _ in range(3)]
    arrays[1] = arrays[1].astype("f8")
    if indexed:
        arrays[2] = np.zeros(2, np.int64)
    attrs = {"axes": ((0,), (0,))} if op.name == "tensordot" else {}
    attrs |= {"axis": 0} if any(a.name == "axis" for a in op.attrs) else {}
    with pytest.raises(TypeError):
        run(op.name, *arrays[: max(len(op.operands), 2)], **attrs)


# -- reductions


def rows_of(x, axes):
    """The slices that a reduction over axes reduces, as Python lists, in order of the result."""
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = x.transpose([*rest, *axes])
    return moved.reshape(math.prod(x.shape[i] for i in rest), -1).tolist()


def reduced_shape(x, axes, keepdims):
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


EXACT_REDUCTIONS = {
    "sum": ("iu", sum),
    "prod": ("iu", math.prod),
    "max": ("biuf", max),
    "min": ("biuf", min),
    "any": ("b", any),
    "all": ("b", all),
}
AXES = [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", EXACT_REDUCTIONS)
def test_exact_reductions(name, axis, keepdims):
    kinds, function = EXACT_REDUCTIONS[name]
    for dtype in itertools.chain.from_iterable(BY_LETTER[k] for k in kinds):
        x = sample(dtype, 60, seed=3)
        x = np.where(x == x, x, x.dtype.type(0)).reshape(3, 4, 5)
        result = run(name, x, axis=axis, keepdims=keepdims)
        assert result.dtype == dtype and result.shape == reduced_shape(x, axis, keepdims)
        expected = [function(row) for row in rows_of(x, axis)]
        if dtype.kind in "iu":
            expected = [wrap(v, dtype) for v in expected]
        assert result.ravel().tolist() == expected


def test_sums_of_bools_are_or_and_products_and():
    x = np.array([[False, True], [False, False], [True, True]])
    assert run("sum", x, axis=(1,), keepdims=False).tolist() == [True, False, True]
    assert run("prod", x, axis=(1,), keepdims=False).tolist() == [False, False, True]
    assert run("cumulative_sum", x, axis=1).tolist() == [[False, True], [False, False], [True] * 2]
    assert run("cumulative_prod", x, axis=0).tolist() == [[False, True], [False] * 2, [False] * 2]
    assert run("sum", x, axis=(0, 1), keepdims=False).dtype == bool


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_sums_and_products_of_floats(dtype, axis):
    x = sample(dtype, 1000)[40:100].reshape(3, 4, 5)
    x = x / np.abs(x).max()
    for name, function in (("sum", sum), ("prod", math.prod)):
        result = run(name, x, axis=axis, keepdims=False)
        assert result.dtype == dtype
        bound = 100 * np.finfo(dtype).eps
        for got, row in zip(result.ravel(), rows_of(x, axis), strict=True):
            assert abs(got - function(row)) <= bound * max(sum(map(abs, row)), 1e-30)
    assert np.isnan(run("max", np.array([1, np.nan, 3]), axis=(0,), keepdims=False))
    assert np.isnan(run("min", np.array([1, np.nan, 3]), axis=(0,), keepdims=False))


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_sums_of_nothing(dtype):
    x = np.zeros((0, 3), dtype)
    for name, value in (("sum", 0), ("prod", 1)):
        result = run(name, x, axis=(0,), keepdims=True)
        assert result.dtype == dtype and result.tolist() == [[value] * 3]
        assert run(name, np.array(1, dtype), axis=(), keepdims=False).item() == 1


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extreme(name):
    x = np.zeros((3, 0, 2), np.float32)
    axis = 1 if name.startswith("arg") else (0, 1)
    with pytest.raises(ExecutionError, match=rf"{name} over axis 1 of shape \[3, 0, 2\]"):
        run(name, x, axis=axis, keepdims=False)
    if name.startswith("arg"):
        with pytest.raises(ExecutionError, match="axis 1"):
            run(name, x, axis=None, keepdims=False)
    axis = 0 if name.startswith("arg") else (0,)
    assert run(name, x, axis=axis, keepdims=False).shape == (0, 2)


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
@pytest.mark.parametrize(("name", "choose"), [("argmax", max), ("argmin", min)])
def test_places_of_extremes(dtype, name, choose):
    x = sample(dtype, 60, seed=7)
    x = np.where(x == x, x, x.dtype.type(0)).reshape(3, 4, 5)
    for axis, keepdims in itertools.product([None, 0, 1, 2], [False, True]):
        axes = (0, 1, 2) if axis is None else (axis,)
        result = run(name, x, axis=axis, keepdims=keepdims)
        assert result.dtype == np.int64 and result.shape == reduced_shape(x, axes, keepdims)
        assert result.ravel().tolist() == [row.index(choose(row)) for row in rows_of(x, axes)]
    assert run(name, np.array(1, dtype), axis=None, keepdims=False).item() == 0


def test_nan_is_the_extreme_that_is_found():
    x = np.array([[1.0, np.nan, np.inf, np.nan], [3.0, 3.0, -1.0, -1.0]])
    assert run("argmax", x, axis=1, keepdims=False).tolist() == [1, 0]
    assert run("argmin", x, axis=1, keepdims=False).tolist() == [1, 2]
    assert run("argmax", x, axis=None, keepdims=True).tolist() == [[1]]


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_sums(dtype, axis):
    x = np.random.default_rng(2).integers(0, 4, (4, 5)).astype(dtype)
    for name, step in (("cumulative_sum", operator.add), ("cumulative_prod", operator.mul)):
        result = run(name, x, axis=axis)
        assert result.dtype == dtype
        for row, got in zip(np.moveaxis(x, axis, 1), np.moveaxis(result, axis, 1), strict=True):
            expected = list(itertools.accumulate(row.tolist(), step))
            expected = [bool(v) if dtype == bool else v for v in expected]
            expected = [wrap(v, dtype) if dtype.kind in "iu" else v for v in expected]
            assert got.tolist() == expected
    assert run("cumulative_sum", x[:0], axis=0).shape == (0, 5)


# -- sorting


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_sorting(dtype, axis):
    x = sample(dtype, 60, seed=4)
    x = np.where(x == x, x, x.dtype.type(0)).reshape(6, 10)
    for name, descending in itertools.product(["sort", "argsort"], [False, True]):
        result = run(name, x, axis=axis, descending=descending)
        assert result.dtype == (dtype if name == "sort" else np.int64)
        for row, got in zip(np.moveaxis(x, axis, 1), np.moveaxis(result, axis, 1), strict=True):
            order = sorted(range(len(row)), key=row.tolist().__getitem__, reverse=descending)
            if name == "argsort":  # sorted() keeps equal values in their order, reversed too
                assert got.tolist() == order
            else:
                assert got.tolist() == [row.tolist()[i] for i in order]
        assert run(name, x[:0], axis=0, descending=descending).shape == (0, 10)


def test_nan_sorts_last_and_first_in_descending_order():
    x = np.array([np.nan, 1.0, np.inf, np.nan, -1.0])
    assert run("argsort", x, axis=0, descending=False).tolist() == [4, 1, 2, 0, 3]
    assert run("argsort", x, axis=0, descending=True).tolist() == [0, 3, 2, 1, 4]
    ascending = run("sort", x, axis=0, descending=False).tobytes()
    assert ascending == x[[4, 1, 2, 0, 3]].tobytes()
    descending = run("sort", x, axis=0, descending=True)
    assert descending.tobytes() == x[[3, 0, 2, 1, 4]].tobytes()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sorting_keeps_zeros_in_their_order(dtype):
    zeros = np.random.default_rng(0).choice(np.array([0.0, -0.0], dtype), 500)
    assert run("sort", zeros, axis=0, descending=False).tobytes() == zeros.tobytes()
    assert run("sort", zeros, axis=0, descending=True).tobytes() == zeros[::-1].tobytes()


@pytest.mark.parametrize("dtype", BOOL + REAL, ids=str)
def test_searchsorted(dtype):
    x = np.array([0, 1, 1, 1], dtype) if dtype == bool else np.array([0, 1, 3, 3, 5], dtype)
    values = np.arange(2 if dtype == bool else 7).astype(dtype).reshape(1, -1)
    for side, before in (("left", operator.lt), ("right", operator.le)):
        result = run("searchsorted", x, values, side=side)
        assert result.dtype == np.int64 and result.shape == values.shape
        assert result[0].tolist() == [sum(before(u, v) for u in x) for v in values[0]]
        assert run("searchsorted", x, values[0, 0].reshape(()), side=side).shape == ()
        assert run("searchsorted", x[:0], values, side=side).tolist() == [[0] * values.size]


# -- contractions


def dot(a, b, dtype):
    if dtype == bool:
        return any(x and y for x, y in zip(a, b, strict=True))
    total = sum(x * y for x, y in zip(a, b, strict=True))
    return wrap(total, dtype) if dtype.kind in "iu" else total


def small(dtype, *shape):
    """Values whose products and sums floats have exactly, and bytes do not."""
    x = np.random.default_rng(1).integers(0, 60, shape)
    return (x % 2 if dtype == bool else x).astype(dtype)


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_matmul(dtype):
    a, b = small(dtype, 2, 1, 3, 4), small(dtype, 5, 4, 6)
    result = run("matmul", a, b)
    assert result.dtype == dtype and result.shape == (2, 5, 3, 6)
    for (i, j, m, n), got in np.ndenumerate(result):
        assert got == dot(a[i, 0, m].tolist(), b[j, :, n].tolist(), dtype)
    vector = small(dtype, 4)
    assert run("matmul", vector, vector).item() == dot(vector.tolist(), vector.tolist(), dtype)
    assert run("matmul", vector, b).shape == (5, 6)
    assert run("matmul", a, vector).shape == (2, 1, 3)
    empty = run("matmul", np.zeros((3, 0), dtype), np.zeros((0, 2), dtype))
    assert empty.dtype == dtype and empty.tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_tensordot(dtype):
    a, b = small(dtype, 2, 3, 4), small(dtype, 4, 5, 2)
    result = run("tensordot", a, b, axes=((2, 0), (0, 2)))
    assert result.dtype == dtype and result.shape == (3, 5)
    for (m, n), got in np.ndenumerate(result):
        assert got == dot(a[:, m, :].T.ravel().tolist(), b[:, n, :].ravel().tolist(), dtype)
    assert run("tensordot", a, b, axes=((), ())).shape == (2, 3, 4, 4, 5, 2)
    everything = run("tensordot", a, a, axes=((0, 1, 2), (0, 1, 2)))
    assert everything.shape == ()
    assert everything.item() == dot(a.ravel().tolist(), a.ravel().tolist(), dtype)
    empty = run("tensordot", a[:, :, :0], b[:0], axes=((2,), (0,)))
    assert empty.shape == (2, 3, 5, 2) and not empty.any()


@pytest.mark.parametrize("dtype", BOOL + REAL + COMPLEX, ids=str)
def test_outer(dtype):
    a, b = small(dtype, 3), small(dtype, 4)
    result = run("outer", a, b)
    assert result.dtype == dtype and result.shape == (3, 4)
    for (m, n), got in np.ndenumerate(result):
        assert got == dot([a[m].item()], [b[n].item()], dtype)
    assert run("outer", a, b[:0]).shape == (3, 0)

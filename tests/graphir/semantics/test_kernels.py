"""Kernels of integers and bools against Python, and what all elementwise kernels share."""

import inspect
import itertools
import operator

import numpy as np
import pytest

from graphir import ops
from graphir.errors import ExecutionError
from graphir.semantics.kernels import KERNELS
from tests.graphir.semantics.kernel_cases import (
    BOOL,
    CASES,
    COMPLEX,
    FLOATS,
    INTEGERS,
    KINDS,
    REAL,
    TRUTH,
    result_dtype,
    run,
    sample,
    wrap,
)
from tests.peers import COMPARISONS
from tests.support.op_rows import ROWS
from tests.support.tables import every


@pytest.fixture(autouse=True)
def quiet():
    """What evaluation enters around all kernels."""
    with np.errstate(all="ignore"):
        yield


# -- the catalogue


def test_every_op_has_a_kernel_and_every_kernel_an_op():
    assert set(KERNELS) == set(ops.CATALOGUE) - {"input", "cast"}
    assert list(KERNELS) == [name for name in ops.CATALOGUE if name in KERNELS]


def test_every_elementwise_op_is_tested_here():
    elementwise = {name for name, op in ops.CATALOGUE.items() if op.kind == "elementwise"}
    assert set(KINDS) | {"where"} == elementwise


TOOLS = {"out", "primitives"}
"""Parameters that the machine fills: the memory of a result, the functions of a composite op."""


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_takes_the_attributes_of_its_op(name):
    op = ops.CATALOGUE[name]
    attrs = {a.name for a in op.attrs} - {"literal"}  # where a constant comes from
    if op.kind != "creation" or "value" in attrs:  # an array, which has its dtype
        attrs.discard("dtype")
    parameters = inspect.signature(KERNELS[name]).parameters.values()
    arrays = 0 if op.variadic else len(op.operands)
    named = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    variadic = len(named) < len(parameters)
    assert set(named if variadic else named[arrays:]) - TOOLS == attrs


# -- integers


INTEGER_OPS = [
    name for name, row in ROWS.items() if "i" in row.dtypes and row.of_ints() and name != "pow"
]
INTEGER_PAIRS = [name for name in INTEGER_OPS if len(ops.CATALOGUE[name].operands) == 2]
INTEGER_UNARY = [name for name in INTEGER_OPS if len(ops.CATALOGUE[name].operands) == 1]


def test_integers_have_a_reference_or_a_test_of_their_own():
    takes = {name for name, row in ROWS.items() if "i" in row.dtypes}
    assert takes == {*INTEGER_OPS, "pow", "clip"}


def check_pairs(name, dtype, a, b):
    x, y = np.array(a, dtype), np.array(b, dtype)
    result = run(name, x, y)
    assert result.dtype == result_dtype(name, dtype)
    expected = list(map(ROWS[name].of_ints(), a, b))
    assert result.tolist() == (expected if name in TRUTH else [wrap(v, dtype) for v in expected])


@pytest.mark.exhaustive
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
    expected = list(map(ROWS[name].of_ints(), values))
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
    **COMPARISONS,
}


@pytest.mark.parametrize("name", BOOL_PAIRS)
def test_pairs_of_bools(name):
    a, b = [False, False, True, True], [False, True, False, True]
    result = run(name, np.array(a), np.array(b))
    assert result.dtype == bool
    assert result.tolist() == list(map(BOOL_PAIRS[name], a, b))


@pytest.mark.parametrize(
    ("name", "expected"),
    [(name, [False, True]) for name in ("positive", "abs", "real", "conj")]
    + [(name, [False, False]) for name in ("imag", "signbit", "is_nan", "is_inf")]
    + [(name, [True, False]) for name in ("bitwise_invert", "logical_not")]
    + [("is_finite", [True, True])],
)
def test_single_bools(name, expected):
    result = run(name, np.array([False, True]))
    assert result.dtype == bool
    assert result.tolist() == expected


# -- the layout of operands


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "dtype"),
    [case for case in CASES if case[0] in ("atan2", "hypot", "logaddexp")]
    + [("pow", dtype) for dtype in FLOATS + COMPLEX],
    ids=str,
)
def test_a_broadcast_operand_counts_as_written_out(name, dtype):
    x = np.random.default_rng(5).uniform(0, 10, 3000).astype(dtype)
    for exponent in (2, 0.5, -1, 3):
        y = np.array(exponent, dtype)
        expected = run(name, x, np.full_like(x, exponent)).tobytes()
        assert run(name, x, y).tobytes() == expected
        assert run(name, x.reshape(50, 60), np.broadcast_to(y, 60)).tobytes() == expected
        ones = [run(name, np.array(v), y).tobytes() for v in x]
        scalars = [(v ** y[()]).tobytes() for v in x] if name == "pow" and dtype in FLOATS else ()
        assert b"".join(ones) == (b"".join(scalars) or expected)
        ones = [run(name, x[i : i + 1], np.broadcast_to(y, 1)).tobytes() for i in range(len(x))]
        assert b"".join(ones) == expected


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


@every(("name", "dtype"), CASES)
def test_shapes_and_dtypes(name, dtype):
    count = len(ops.CATALOGUE[name].operands)
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


ALIKE = [
    op
    for op in ops.CATALOGUE.values()
    if (len(op.operands) > 1 and op.operands != ("x", "indices")) or op.variadic
]


@pytest.mark.parametrize("op", ALIKE, ids=lambda op: op.name)
def test_a_missing_cast_is_an_error(op):
    wanted = "?" if op.name.startswith("logical") or op.name == "where" else "i8"
    wanted = "f4" if "f" in KINDS.get(op.name, "") or op.name == "layer_norm" else wanted
    arrays = [np.ones((2, 2) if op.name == "matmul" else 2, wanted) for _ in range(3)]
    arrays[1] = arrays[1].astype("f8")
    if op is ops.scatter:
        arrays[2] = np.zeros(2, np.int64)
    attrs = {"axes": ((0,), (0,))} if op.name == "tensordot" else {}
    attrs |= {"axis": 0} if any(a.name == "axis" for a in op.attrs) else {}
    with pytest.raises(TypeError):
        run(op.name, *arrays[: max(len(op.operands), 2)], **attrs)

"""What NumPy answers, cell by cell: joins, every op on every pair of dtypes, literals and values.

The rules are those of the installed release: `numpy@2.0`, `numpy@2.4` or `numpy@2.5`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, GraphirError, TensorType, ops
from graphir.promotion.numpy_ import NUMPY
from graphir.runtime import interpret
from tests.peers import (
    CALLS,
    Deviation,
    Difference,
    any_complex,
    differences,
    ours,
    unexplained,
)
from tests.peers import numpy_ as numpy
from tests.support.tables import every

DTYPES = list(numpy.DTYPES)
INTEGERS = [dtype for dtype in DTYPES if dtype.is_integer]
KINDS = [True, 1, 1.5, 1j]
RULES = NUMPY.of_release(np.__version__)
SHAPES = [(2,), ()]


# -- joins


def typed(operand: Any) -> Any:
    return TensorType(*operand) if isinstance(operand, tuple) else operand


def test_every_pair_of_any_ranks_joins_as_there():
    for a, b in product(product(DTYPES, SHAPES), repeat=2):
        answer = RULES.promote(typed(a), typed(b))
        assert answer is numpy.result_type(a, b) is ours(RULES, "add", a, b), (a, b)
        assert answer is numpy.result("add", a, b), (a, b)


def test_every_literal_on_either_side_joins_as_there():
    for array, literal in product(product(DTYPES, SHAPES), KINDS):
        for pair in ((array, literal), (literal, array)):
            answer = RULES.promote(*map(typed, pair))
            assert answer is numpy.result_type(*pair) is ours(RULES, "add", *pair), pair
            assert answer is numpy.result("add", *pair), pair
    for pair in product(KINDS, repeat=2):
        assert RULES.promote(*pair) is numpy.result_type(*pair)


def test_three_join_at_once():
    """All triples of dtypes and kinds of literals, in every order; no fold of pairs answers so."""
    folds = 0
    for three in product([*((dtype, (2,)) for dtype in DTYPES), *KINDS[1:]], repeat=3):
        answer = RULES.promote(*map(typed, three))
        assert answer is numpy.result_type(*three), three
        if all(isinstance(one, tuple) for one in three):
            a, b, c = (one[0] for one in three)
            folds += answer is not RULES.promote(RULES.promote(a, b), c)
    assert folds == 14


def test_clip_and_concat_join_three_at_once():
    for three in product(DTYPES, repeat=3):
        operands = [(dtype, (2,)) for dtype in three]
        answer = RULES.promote(*three)
        assert ours(RULES, "clip", *operands) is numpy.result("clip", *operands) is answer, three
        assert ours(RULES, "concat", *operands) is numpy.result("concat", *operands) is answer


# -- ops

DEVIATIONS = [
    Deviation(
        "nextafter",
        lambda dtypes: {RULES.floating(dtype, "") for dtype in dtypes} == {DType.float16},
        "graphir steps through float32 and float64 alone",
    ),
    Deviation(
        "scatter",
        lambda dtypes: any_complex(dtypes[1:]) and not any_complex(dtypes[:1]),
        "NumPy warns (ComplexWarning) that imaginary parts are lost; graphir's casts keep them",
    ),
]


def test_every_op_on_every_pair_of_dtypes():
    names = [name for name in numpy.OPS if name in CALLS]
    found = differences(RULES, numpy.result, names, DTYPES)
    assert unexplained(found, DEVIATIONS) == ([], [])


def test_ops_that_numpy_does_not_have():
    """Under its rules they follow the functions that it has."""
    missing = [name for name in CALLS if name not in numpy.OPS]
    assert " ".join(sorted(missing)) == (
        "affine_view as_complex erf gelu index_add index_update item layer_norm logsoftmax rebind "
        "relu rsqrt shape_of sigmoid silu slice_update softmax softplus"
    )
    for name in ("rsqrt", "erf", "softmax"):
        for dtype in [*INTEGERS, DType.bool]:
            assert ours(RULES, name, (dtype, (2,))) is numpy.result("sqrt", (dtype, (2,)))


@every("op", ["divide", "pow", "atan2", "equal", "bitwise_and", "left_shift"])
def test_rank_never_counts(op: str):
    for a, b in product(DTYPES, repeat=2):
        for pair in (((a, (2,)), (b, ())), ((a, ()), (b, (2,))), ((a, ()), (b, ()))):
            assert ours(RULES, op, *pair) is numpy.result(op, *pair), (op, pair)


# -- literals: which are taken, the dtype that results, and the values

LITERALS: list[Any] = [
    *(True, 0, 1, -1, 127, 128, 255, 256, -128, -129, 65535, 65536, 70000, 2**31, 2**32),
    *(2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1),
    *(2**100, -(2**100), 2**1024 - 2**970 - 1, 10**400, -(10**400)),
    *(1.5, 70000.5, 1e39, float("inf"), 1j, 1e39j),
]
TAKES_LITERALS = [
    name
    for name in [*numpy.OPS, "clip", "where"]
    if len(CALLS[name].free) >= 2
    and CALLS[name].shapes[0] == (2, 2)
    and name not in ("matmul", "tensordot", "concat", "stack", "scatter", "nextafter")
]


def calls(op: str, x: Any, literal: Any) -> Iterator[list[Any]]:
    """An op's operands with a literal on either side of an array."""
    chosen = np.array([True, False, True, False, True])
    for pair in ([x, literal], [literal, x]):
        if op == "where":
            yield [chosen, *pair]
        elif op == "clip":
            if pair[0] is x:
                yield [x, literal, literal]
        else:
            yield pair


def by_numpy(op: str, operands: list[Any]) -> Any:
    """The array that NumPy computes; None where it refuses, or answers `object`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = np.asarray(numpy.OPS[op](*operands))
    except (TypeError, ValueError, OverflowError):
        return None
    return None if found.dtype == object else found


def by_graphir(op: str, operands: list[Any]) -> Any:
    """The array that a graph computes; None where it is refused."""
    g = Graph(rules=RULES)
    arrays = [one for one in operands if isinstance(one, np.ndarray)]
    made = [
        g.input(DType(one.dtype), one.shape) if isinstance(one, np.ndarray) else one
        for one in operands
    ]
    try:
        g.output(ops.CATALOGUE[op](*made))
        return interpret(g, *arrays)
    except (GraphirError, ExecutionError):
        return None


def equal(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def near(op: str, a: Any, b: Any) -> bool:
    """Whether arrays are equal; powers of floats may be one ulp off.

    Where NumPy has no AVX512, its float32 loop gives one base other bits than an array of bases.
    """
    if op != "pow" or a.dtype != np.float32 or a.dtype != b.dtype:
        return equal(a, b)
    return np.allclose(a, b, rtol=2**-23, atol=0, equal_nan=True)


def literal_differences() -> Iterator[Difference]:
    for op, dtype, literal in product(TAKES_LITERALS, DTYPES, LITERALS):
        x = np.array([0, 1, 2, 100, 127], numpy.DTYPES[dtype])
        for operands in calls(op, x, literal):
            mine, theirs = by_graphir(op, operands), by_numpy(op, operands)
            if mine is None and theirs is None:
                continue
            if mine is None or theirs is None or not near(op, mine, theirs):
                yield op, (dtype, literal), mine, theirs


@pytest.mark.exhaustive
def test_literals_are_taken_as_there_and_give_the_same_values():
    assert list(literal_differences()) == []


@every("low", [-300, -128, -1, 300, True, -1.5])
@every("high", [300, 127, 1.5, -1, -300, 2**63, 1j])
def test_a_bound_of_clip_beyond_the_dtype_counts_for_nothing(low: Any, high: Any):
    """As in NumPy since 2.1, a lower one below all values and an upper one above them."""
    for dtype in (np.int8, np.uint8, np.int64, np.uint64, np.float32, bool):
        operands = [np.array([0, 5, 100], dtype), low, high]
        mine, theirs = by_graphir("clip", operands), by_numpy("clip", operands)
        if theirs is None:
            assert mine is None, dtype
        else:
            assert mine is not None and equal(mine, theirs), (dtype, mine, theirs)


def test_literals_are_arrays_to_functions_that_make_arrays():
    for dtype, literal in product(DTYPES, KINDS):
        x = np.ones((), numpy.DTYPES[dtype])
        g = Graph(rules=RULES)
        assert ops.stack([g.input(dtype), literal]).dtype.storage == np.stack([x, literal]).dtype


# -- values


@every("op", ["equal", "not_equal", "less", "less_equal", "greater"])
def test_integers_compare_exactly(op: str):
    for a, b in product(INTEGERS, repeat=2):
        x, y = (np.array([d.min, 0, 1, d.max, d.max - 1], d.storage) for d in (a, b))
        operands = [x[:, None], y[None, :]]
        assert equal(by_graphir(op, operands), by_numpy(op, operands)), (a, b)


def test_ops_of_bool_compute_as_there():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    for op in ("add", "multiply", "maximum", "minimum", "pow", "left_shift", "divide", "hypot"):
        assert equal(by_graphir(op, [x, y]), by_numpy(op, [x, y])), op
    for op in ("abs", "square", "round", "conj", "sum", "prod", "mean", "cumulative_sum", "sqrt"):
        assert equal(by_graphir(op, [x]), by_numpy(op, [x])), op


def test_a_mean_of_float16_is_taken_in_float32():
    x = np.ones(70_000, np.float16)
    assert by_graphir("mean", [x]) == by_numpy("mean", [x]) == 1

"""What NumPy answers, cell by cell: joins, every op on every pair of dtypes, literals and values.

It runs on NumPy 2.0 to 2.5; the rules are those of 2.1 to 2.4, and what others do else is named.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, GraphirError, TensorType, ops
from graphir.promotion.numpy_ import NUMPY
from runtime import interpret
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
VERSION = np.lib.NumpyVersion(np.__version__)
OF_2_0 = VERSION < "2.1.0"
SHAPES = [(2,), ()]


# -- joins


def typed(operand: Any) -> Any:
    return TensorType(*operand) if isinstance(operand, tuple) else operand


def test_every_pair_of_any_ranks_joins_as_there():
    for a, b in product(product(DTYPES, SHAPES), repeat=2):
        answer = NUMPY.promote(typed(a), typed(b))
        assert answer is numpy.result_type(a, b) is ours(NUMPY, "add", a, b), (a, b)
        assert answer is numpy.result("add", a, b), (a, b)


def test_every_literal_on_either_side_joins_as_there():
    for array, literal in product(product(DTYPES, SHAPES), KINDS):
        for pair in ((array, literal), (literal, array)):
            answer = NUMPY.promote(*map(typed, pair))
            assert answer is numpy.result_type(*pair) is ours(NUMPY, "add", *pair), pair
            assert answer is numpy.result("add", *pair), pair
    for pair in product(KINDS, repeat=2):
        assert NUMPY.promote(*pair) is numpy.result_type(*pair)


def test_three_join_at_once():
    """All triples of dtypes and kinds of literals, in every order; no fold of pairs answers so."""
    folds = 0
    for three in product([*((dtype, (2,)) for dtype in DTYPES), *KINDS[1:]], repeat=3):
        answer = NUMPY.promote(*map(typed, three))
        assert answer is numpy.result_type(*three), three
        if all(isinstance(one, tuple) for one in three):
            a, b, c = (one[0] for one in three)
            folds += answer is not NUMPY.promote(NUMPY.promote(a, b), c)
    assert folds == 14


def test_clip_and_concat_join_three_at_once():
    for three in product(DTYPES, repeat=3):
        operands = [(dtype, (2,)) for dtype in three]
        answer = NUMPY.promote(*three)
        assert ours(NUMPY, "clip", *operands) is numpy.result("clip", *operands) is answer, three
        assert ours(NUMPY, "concat", *operands) is numpy.result("concat", *operands) is answer


# -- ops

DEVIATIONS = [
    Deviation(
        "nextafter",
        lambda dtypes: {NUMPY.floating(dtype, "") for dtype in dtypes} == {DType.float16},
        "graphir steps through float32 and float64 alone",
    ),
    Deviation(
        "scatter",
        lambda dtypes: any_complex(dtypes[1:]) and not any_complex(dtypes[:1]),
        "NumPy warns (ComplexWarning) that imaginary parts are lost; graphir's casts keep them",
    ),
]
if OF_2_0:
    DEVIATIONS.append(
        Deviation(
            "floor ceil trunc",
            lambda dtypes: not (dtypes[0].is_float or dtypes[0].is_complex),
            "NumPy 2.0 makes a float of bool and integers first; since 2.1 they stay what they are",
        )
    )


def test_every_op_on_every_pair_of_dtypes():
    names = [name for name in numpy.OPS if name in CALLS]
    found = differences(NUMPY, numpy.result, names, DTYPES)
    assert unexplained(found, DEVIATIONS) == ([], [])


def test_ops_that_numpy_does_not_have():
    """Under its rules they follow the functions that it has."""
    missing = [name for name in CALLS if name not in numpy.OPS]
    assert " ".join(sorted(missing)) == (
        "affine_view as_complex erf gelu index_update item layer_norm logsoftmax rebind relu rsqrt "
        "shape_of sigmoid silu slice_update softmax softplus"
    )
    for name in ("rsqrt", "erf", "softmax"):
        for dtype in [*INTEGERS, DType.bool]:
            assert ours(NUMPY, name, (dtype, (2,))) is numpy.result("sqrt", (dtype, (2,)))


@every("op", ["divide", "pow", "atan2", "equal", "bitwise_and", "left_shift"])
def test_rank_never_counts(op: str):
    for a, b in product(DTYPES, repeat=2):
        for pair in (((a, (2,)), (b, ())), ((a, ()), (b, (2,))), ((a, ()), (b, ()))):
            assert ours(NUMPY, op, *pair) is numpy.result(op, *pair), (op, pair)


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


def wide(case: Sequence[Any]) -> bool:
    """Whether a literal needs more than the 64 bits of a signed int."""
    return isinstance(case[1], int) and case[1] >= 2**63


def beyond(case: Sequence[Any]) -> bool:
    """Whether an int literal is out of the range of the integer dtype beside it."""
    dtype, literal = case
    integers = dtype.is_integer and isinstance(literal, int)
    return integers and not dtype.min <= literal <= dtype.max


LITERAL_DEVIATIONS: list[Deviation] = []
if VERSION < "2.5.0":
    LITERAL_DEVIATIONS.append(
        Deviation(
            "where",
            lambda case: beyond(case) or (wide(case) and case[0] is DType.bool),
            "np.where wraps an int that does not fit; since 2.5 it refuses it (numpy/numpy#30803)",
        )
    )
if OF_2_0:
    LITERAL_DEVIATIONS.append(
        Deviation(
            "logical_and logical_or logical_xor",
            wide,
            "NumPy 2.0 takes the truth of any int; since 2.1 of those of int64 alone",
        )
    )


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
    g = Graph(rules=NUMPY)
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


def literal_differences() -> Iterator[Difference]:
    for op, dtype, literal in product(TAKES_LITERALS, DTYPES, LITERALS):
        x = np.array([0, 1, 2, 100, 127], numpy.DTYPES[dtype])
        for operands in calls(op, x, literal):
            mine, theirs = by_graphir(op, operands), by_numpy(op, operands)
            if mine is None and theirs is None:
                continue
            if mine is None or theirs is None or not equal(mine, theirs):
                yield op, (dtype, literal), mine, theirs


@pytest.mark.exhaustive
def test_literals_are_taken_as_there_and_give_the_same_values():
    assert unexplained(literal_differences(), LITERAL_DEVIATIONS) == ([], [])


@every("low", [-300, -128, -1, 300, True, -1.5])
@every("high", [300, 127, 1.5, -1, -300, 2**63, 1j])
def test_a_bound_of_clip_beyond_the_dtype_counts_for_nothing(low: Any, high: Any):
    """As in NumPy since 2.1, a lower one below all values and an upper one above them."""
    for dtype in (np.int8, np.uint8, np.int64, np.uint64, np.float32, bool):
        operands = [np.array([0, 5, 100], dtype), low, high]
        mine, theirs = by_graphir("clip", operands), by_numpy("clip", operands)
        if theirs is None:
            assert mine is None or OF_2_0, dtype
        else:
            assert mine is not None and equal(mine, theirs), (dtype, mine, theirs)


def test_literals_are_arrays_to_functions_that_make_arrays():
    for dtype, literal in product(DTYPES, KINDS):
        x = np.ones((), numpy.DTYPES[dtype])
        g = Graph(rules=NUMPY)
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

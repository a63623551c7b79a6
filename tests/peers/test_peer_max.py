"""MAX's graph builder against the rule set "max_strict": every op on all dtypes, scalars, arrays.

Wants an environment of `max` 26.7, with this project, numpy>=2, ml_dtypes, networkx and pytest.
"""

from __future__ import annotations

import inspect
import operator
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.graph", reason="MAX is not installed, so nothing is compared with it")

from max.graph import TensorValue
from max.graph import ops as max_ops

from graphir import DType, ops, rules
from graphir.ir.operators.arithmetic import SymbolOperators
from tests.peers import CALLS, max_questions, ours
from tests.peers import max_ as peer
from tests.peers.max_questions import DTYPES, MEASURED, golden, questions
from tests.support.tables import every

STRICT = rules("max_strict")


def test_the_dtypes_and_ops_are_all_that_max_has():
    assert {*DTYPES} == {*peer.DTYPES} and {*peer.OPS} == MEASURED
    # MAX's module `complex` holds as_interleaved_complex, which is another op.
    absent = {op for op in ops.CATALOGUE if op not in MEASURED}
    theirs = {"cast", "constant", "range", "input", "full"}
    assert {op for op in absent if hasattr(max_ops, op)} <= theirs
    assert not any(hasattr(max_ops, op) for op in ("any", "all", "sort", "clip", "clamp", "tan"))


@every("section", max_questions.SECTIONS)
def test_every_answer_is_that_of_max(section: str):
    count = 0
    for _, rows in questions(section):
        for op, operands in (question for row in rows for question in row):
            count += 1
            assert ours(STRICT, op, *operands) is peer.result(op, *operands), (op, operands)
    assert count >= 40


def test_the_golden_file_is_what_max_answers():
    assert max_questions.measurement(peer.VERSION, peer.result) == golden()


@every("op", ["concat", "stack"])
def test_all_triples_of_ops_that_take_one_dtype(op: str):
    for triple in product(DTYPES, repeat=3):
        operands = [(dtype, (2, 2)) for dtype in triple]
        assert ours(STRICT, op, *operands) is peer.result(op, *operands), triple


def test_all_casts():
    for source, target in product(DTYPES, repeat=2):
        assert peer.answer(lambda x, to=target: x.cast(peer.DTYPES[to]), peer.tensor(source, ()))


def test_no_reduction_takes_a_dtype():
    for op in CALLS:
        if any(attr.name == "dtype" for attr in ops.CATALOGUE[op].attrs) and op in MEASURED:
            assert "dtype" not in inspect.signature(peer.OPS[op]).parameters


def test_constants_of_a_byte_and_more():
    for dtype in DTYPES:
        made = peer.answer(
            lambda d: max_ops.constant(1, d, peer.DeviceRef.CPU()), peer.DTYPES[dtype]
        )
        assert (made is dtype) == (dtype.bits >= 8 or dtype is DType.bool)


def test_operators_in_place_are_the_plain_ones():
    names = [name for name in dir(operator) if name.startswith("__i") and name[3:5] != "n"]
    reflected = [name for name in names if hasattr(SymbolOperators, "__" + name[3:])]
    assert reflected and not any(hasattr(TensorValue, name) for name in reflected)
    for a, b in product(DTYPES, repeat=2):
        x, y = peer.tensor(a, (2, 2)), peer.tensor(b, (2, 2))
        assert peer.answer(operator.iadd, x, y) is peer.answer(operator.add, x, y)
        assert peer.answer(operator.itruediv, x, y) is peer.answer(operator.truediv, x, y)


def test_numpy_scalars_on_the_left_are_those_on_the_right():
    for dtype, number in product(DTYPES, (np.int64(1), np.float32(1), np.uint64(2**63))):
        x: Any = peer.tensor(dtype, (2, 2))
        assert peer.answer(max_ops.add, number, x) is peer.answer(max_ops.add, x, number)

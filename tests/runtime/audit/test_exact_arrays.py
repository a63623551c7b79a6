"""Integers that leave 64 bits: audits compute with Python's integers, up to stated limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.audit import exact_arrays, regions
from tests.support.tables import every

TOP = np.array([2**63 - 1, -(2**63), 2**62 + 1, 5])

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def python(x: Any) -> list[int]:
    return [int(v) for v in x.reshape(-1).tolist()]


def sums_and_squares(x: Any) -> Any:
    total = x + x
    return (total * total + x) * 3 - total


# What follows the wrap, on a NumPy array as on an array of Python's integers.
WRAPPED: dict[str, Any] = {
    "powers": lambda x: (x * x) * (x * x) * x,
    "chain": sums_and_squares,
    "floor": lambda x: (x * x) // 7,
    "remainder": lambda x: (x * x) % 1000,
    "sum": lambda x: np.sum(x * x, keepdims=True),
    "sums so far": lambda x: np.cumsum(x * x),
    "products so far": lambda x: np.cumprod(x),
    "matrix": lambda x: x.reshape(2, 2) @ (x * x).reshape(2, 2),
    "outer": lambda x: np.multiply.outer(x, x * x),
    "order": lambda x: np.sort(x * x),
    "greatest": lambda x: np.maximum(x * 4, x * x),
    "choice": lambda x: np.where(x > 0, x * x, x),
    "comparison": lambda x: (x * x > x * 2).astype(np.int64),
    "movement": lambda x: np.concatenate([(x * x)[::-1], x]),
}


@every("name", WRAPPED)
@every("blocks", [False, True])
def test_what_follows_a_wrap_differs_where_it_differs(name: str, blocks: bool, monkeypatch: Any):
    monkeypatch.setattr(regions, "LEAST", 1 if blocks else 1 << 16)
    program = WRAPPED[name]
    (output,) = record(program, TOP).audit().outputs
    exact = python(program(np.array(TOP.tolist(), object)))
    wrong = [a - b for a, b in zip(python(program(TOP)), exact, strict=True)]
    assert output.differing == sum(map(bool, wrong)) > 0
    assert output.largest == pytest.approx(max(map(abs, wrong)))


def test_bits_of_integers_beyond_64_bits_are_those_that_the_run_has():
    def program(x: Any) -> Any:
        return ((x * x) ^ (x * 3)) >> 1, (x * x).astype(np.uint8)

    bits, byte = record(program, TOP).audit().outputs
    assert bits.differing == 0 and byte.differing == 3


def test_floats_of_integers_beyond_64_bits_start_from_their_rounding():
    report = record(lambda x: np.sqrt(np.where(x > 0, x * x, 1)), TOP).audit()
    exact = [float(v) for v in np.sqrt([float(v * v) if v > 0 else 1.0 for v in TOP.tolist()])]
    differing = sum(a != b for a, b in zip(report.results[0].tolist(), exact, strict=True))
    assert report.outputs[0].differing == differing == 2


def test_bits_of_negative_integers_stored_from_floats_are_those_that_the_run_has():
    def program(x: Any) -> Any:
        stored = np.zeros(3, np.uint32)
        np.copyto(stored, x, casting="unsafe")
        return (stored + stored) | 1

    (output,) = record(program, np.array([-4625.0, 0.5, 3.0])).audit().outputs
    assert output.differing == 0


def test_the_least_integer_divided_by_minus_one_wraps():
    (output,) = record(lambda x: x // -1, TOP).audit().outputs
    assert output.differing == 1


def test_casts_of_floats_beyond_64_bits_are_their_integers():
    x = np.array([2.0**70, -(2.0**80), 3.0])
    cast, bits = record(lambda x: (x.astype(np.int64), x.astype(np.int64) & 7), x).audit().outputs
    assert cast.differing == 2
    assert bits.differing == sum(a != 0 for a in (x[:2].astype(np.int64) & 7).tolist())


LIMITS: dict[str, Any] = {
    "elements": (lambda x: x * x, exact_arrays.TOO_MANY),
    "bits": (lambda x: (x[:3] * x[:3]) ** 8, exact_arrays.TOO_LONG),
    "product": (lambda x: np.prod(x), exact_arrays.TOO_LONG),
}


@every("name", LIMITS)
def test_beyond_the_limits_an_error_is_unknown(name: str, monkeypatch: Any):
    monkeypatch.setattr(exact_arrays, "ELEMENTS", 8 if name == "elements" else 1 << 20)
    program, reason = LIMITS[name]
    report = record(program, np.tile(TOP, 4)).audit()
    assert not report.outputs[0].is_known
    assert any(reason in step.reason and step.hides for step in report.unseen)


def test_large_arrays_of_uint64_are_exact_where_they_move(monkeypatch: Any):
    monkeypatch.setattr(exact_arrays, "ELEMENTS", 1)
    monkeypatch.setattr(exact_arrays, "MOVABLE", 1)
    u = np.array([2**63 + 1, 7, 2**64 - 1], np.uint64)
    report = record(lambda u: (np.sort(u)[::-1], u.max(), u ^ u[0], u > 9), u).audit()
    assert [output.differing for output in report.outputs] == [0, 0, 0, 0]


def test_blocks_of_several_dtypes_become_one_array():
    whole, part = exact_arrays.join(np.array([0.5, 1.0]), np.array([2**53 + 1]))
    assert (whole.dtype, part.dtype) == (object, object) and part[0] == 2**53 + 1
    assert exact_arrays.join(np.array([4.0]), np.array([2**53 + 1]))[0].dtype == np.int64
    assert exact_arrays.join(np.array([4]), np.array([0.5]))[0].dtype == np.float64


def test_ranks_keep_the_signs_of_zeros_and_nan():
    def program(i: Any, z: Any) -> Any:
        return np.maximum(np.append(i, z), -1.0), 1 / np.minimum(np.append(i, z), 5.0)

    i, z = np.array([2**53 + 1, 3]), np.array([-0.0, 0.0, np.nan])
    kept, quotient = record(program, i, z).audit().outputs
    assert (kept.differing, quotient.differing) == (1, 0)

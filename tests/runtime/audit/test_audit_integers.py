"""Integers that a promotion to float64 rounds: the audit tells what Python's integers tell."""

import numpy as np

from runtime import record
from tests.support.tables import every


def back(a, b):
    return (a + b).astype(np.int64) - a


def total(a, b):
    return (a * np.float64(1) + b).astype(np.int64)


def exact(a, b):
    return a + b - a


@every("top", [2**52, 2**60, 2**62])
def test_the_error_is_that_of_exact_integers(top):
    rng = np.random.default_rng(top)
    a, b = rng.integers(0, top, 50), rng.integers(0, top, 50).astype(np.uint64)
    report = record(back, a, b).audit()
    (output,) = report.outputs
    wrong = [int(x) - int(y) for x, y in zip(back(a, b), b, strict=True)]
    assert output.differing == sum(map(bool, wrong))
    assert output.largest == max(map(abs, wrong))
    rows = report.only("implicit", exact=False)
    blamed = [row for row in rows if any(row.shares)]
    assert bool(blamed) == any(wrong)
    assert all(row.op == "add" and str(row.target) == "float64" for row in blamed)


def test_small_integers_beside_rounded_ones_stay_exact():
    keys, rows = np.full(5, 2**56, np.uint64), np.arange(5)
    report = record(lambda a, b: (a + b).astype(np.uint64), keys, rows).audit()
    wrong = [int(x) - (2**56 + i) for i, x in enumerate((keys + rows).astype(np.uint64))]
    (output,) = report.outputs
    assert output.differing == sum(map(bool, wrong)) == 4
    assert output.largest == max(map(abs, wrong))
    odd = record(lambda a, b: (a + b).astype(np.uint64), keys + np.uint64(7), rows).audit()
    assert [(row.op, row.operand) for row in odd if row.share] == [("add", "lhs")]


def test_integers_that_float64_has_are_floats_there():
    a = np.array([1, 2**53, -(2**53)])
    assert record(total, a, np.ones(3)).audit().outputs[0].differing == 0
    assert record(exact, a, np.arange(3)).audit().outputs[0].differing == 0

"""Audits of drawn programs say of no value that it differs in fewer elements than it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.audit import regions
from tests.runtime.audit.fuzz_audits import score
from tests.support.tables import quick


def check(first: int, count: int) -> None:
    """No audit of a range of seeds is wrong in the dangerous direction, and most say something."""
    totals = score(first, count, {"few", "crash"})
    assert not (totals["few"] or totals["decided"] or totals["crashes"]), totals
    assert totals["programs"] > 0.95 * count
    assert totals["right"] > 0.75 * totals["outputs"] and totals["many"] <= 0.01 * count


@pytest.mark.parametrize("first", quick([0, 10, 20, 30], 4))
def test_no_figure_of_drawn_programs_is_too_small(first: int) -> None:
    check(first, 10)


def test_the_size_of_integers_that_became_complex_is_computed() -> None:
    def program(x: Any) -> Any:
        values = np.ones(3, complex)
        np.copyto(values, x, casting="unsafe")
        return values, abs(values)

    report = record(program, np.array([2**53 + 1, -(2**60) - 1, 3])).audit()
    assert [output.differing for output in report.outputs] == [2, 0]


def test_elements_that_no_update_names_keep_their_integers() -> None:
    """Of floats that were integers; those that an update names are sums of float64."""
    x = np.array([7, 2**53 + 1, 2**60 + 1])

    def program(x: Any, ufunc: Any, dtype: Any) -> Any:
        values = np.where(x > 0, x, dtype(0))
        ufunc.at(values, [0, 1], 3)
        return values

    for dtype in (np.float64, np.complex128):
        (output,) = record(program, x, np.add, dtype).audit().outputs
        assert output.differing in (1, 2)
    assert record(program, x, np.multiply, np.float64).audit().outputs[0].differing is None


def test_no_infinity_that_a_program_makes_an_integer_is_divided_by_zero() -> None:
    x = np.array([np.inf, 5.0], np.float16)
    with np.errstate(all="ignore"):
        report = record(lambda x, y: x.astype(np.int32) // y, x, np.zeros(2, np.int32)).audit()
    assert report.outputs[0].differing == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "least"), [(1000, regions.LEAST), (1200, 1)])
def test_no_figure_of_many_drawn_programs_is_too_small(
    first: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where each audit runs by blocks, as those of large arrays do."""
    monkeypatch.setattr(regions, "LEAST", least)
    check(first, 200)

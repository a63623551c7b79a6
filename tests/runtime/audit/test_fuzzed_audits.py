"""Audits of drawn programs say of no value that it differs in fewer elements than it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.audit import regions
from tests.runtime.audit.fuzz_audits import score


def check(first: int, count: int) -> None:
    """No audit of a range of seeds is wrong in the dangerous direction, and most say something."""
    totals = score(first, count, {"few", "crash"})
    assert not (totals["few"] or totals["decided"] or totals["crashes"]), totals
    assert totals["programs"] > 0.95 * count
    assert totals["right"] > 0.75 * totals["outputs"] and totals["many"] <= 0.01 * count


def test_no_figure_of_forty_drawn_programs_is_too_small() -> None:
    check(0, 40)


def test_the_size_of_integers_that_became_complex_is_computed() -> None:
    def program(x: Any) -> Any:
        values = np.ones(3, complex)
        np.copyto(values, x, casting="unsafe")
        return values, abs(values)

    report = record(program, np.array([2**53 + 1, -(2**60) - 1, 3])).audit()
    assert [output.differing for output in report.outputs] == [2, 0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("first", "least"), [(1000, regions.LEAST), (1200, 1)])
def test_no_figure_of_many_drawn_programs_is_too_small(
    first: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where each audit runs by blocks, as those of large arrays do."""
    monkeypatch.setattr(regions, "LEAST", least)
    check(first, 200)

"""Audits of drawn programs say of no value that it differs in fewer elements than it does."""

from __future__ import annotations

import pytest

from tests.runtime.audit.fuzz_audits import score


def check(first: int, count: int) -> None:
    """No audit of a range of seeds is wrong in the dangerous direction, and most say something."""
    totals = score(first, count, {"few", "crash"})
    assert not (totals["few"] or totals["decided"] or totals["crashes"]), totals
    assert totals["programs"] > 0.95 * count
    assert totals["right"] > 0.75 * totals["outputs"] and totals["many"] <= 0.01 * count


def test_no_figure_of_forty_drawn_programs_is_too_small() -> None:
    check(0, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1000, 1400, 100))
def test_no_figure_of_many_drawn_programs_is_too_small(first: int) -> None:
    check(first, 100)

"""Programs of overlapping updates, drawn anew: replays in both tiers have NumPy's results."""

from __future__ import annotations

import pytest

from tests.runtime.program.fuzz_updates import check


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.exhaustive) for first in (30, 60))]
)
def test_drawn_programs_of_updates_replay_what_numpy_does(first: int) -> None:
    results = [check(seed) for seed in range(first, first + 30)]
    assert not any(results), f"{next(filter(None, results))}"
    assert results.count("") >= 15

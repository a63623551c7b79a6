"""Programs of views and writes, drawn anew: each front end gives what NumPy gives, or refuses."""

from __future__ import annotations

import pytest

from tests.runtime.fuzz_views import EQUAL, check


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.exhaustive) for first in (20, 40))]
)
@pytest.mark.parametrize("front_end", ["jit", "record", "array_api"])
def test_drawn_programs_of_views_leave_what_numpy_leaves(front_end: str, first: int) -> None:
    kinds: list[str] = []
    for seed in range(first, first + 20):
        wrong, kind = check(seed, front_end)
        assert not wrong, f"--front-end {front_end} --seed {seed} --programs 1\n{wrong}"
        kinds.append(kind)
    assert kinds.count(EQUAL) >= 5

"""Programs of views and writes, drawn anew: jit gives NumPy's results and arguments, or refuses."""

from __future__ import annotations

import pytest

from tests.runtime.jit.fuzz_views import check


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_drawn_programs_of_views_leave_what_numpy_leaves(first: int) -> None:
    kinds: list[str] = []
    for seed in range(first, first + 20):
        wrong, kind = check(seed)
        assert not wrong, f"--seed {seed} --programs 1\n{wrong}"
        kinds.append(kind)
    assert kinds.count("equal") >= 5

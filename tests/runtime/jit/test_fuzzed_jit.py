"""A slice of the fuzz of jit against NumPy, drawn by tests/runtime/jit/fuzz_jit.py."""

from __future__ import annotations

from tests.runtime.jit.fuzz_jit import check
from tests.support.tables import every, sampled


@sampled(4)
@every("first", range(0, 120, 10))
def test_drawn_programs_give_what_numpy_gives_or_are_refused(first: int) -> None:
    equal = 0
    for seed in range(first, first + 10):
        wrong, calls = check(seed)
        assert not wrong, f"--seed {seed} --programs 1\n{wrong}"
        equal += calls["equal"]
    assert equal > 5  # not all refused

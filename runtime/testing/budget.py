"""The budget of a run's shadows, and the claims of recordings that shadows are to make.

A signature of a function is recorded a few times, by the shadows of several tests. A claim stands
for a recording from the moment that a shadow is to make it, so that no other shadow makes it again.
A shadow that ends without the recording gives the claim back. The budget bounds the time of further
recordings, and not that of a function's first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from time import perf_counter, process_time  # by name: a test may have replaced these functions

from graphir.runtime.testing.ledger import CallRecord

# -- numbers, each the most; `python -m tests.benchmarks.plugin_suites` measures what they cost

MOST_SIGNATURES = 24
"""Signatures of a function that are recorded: containers may have signatures without end."""
MOST_RECORDINGS = 3
"""Recordings of a signature: several, since the values of a test choose the branches it takes."""
REPEATING = 8
"""Shadows of a run that record signatures several times. Later ones record new signatures alone,
so that the number of shadows does not grow with that of tests."""
MOST_MISSES = 8
"""Shadows that start in vain for a signature of a function without any recording."""
MOST_TESTS = 8
"""Tests of a shadow: one that ends early loses the claims of few tests."""
HOT = 200
"""Calls of a function without news, after which it runs unwatched until the end of the test; half
as many in the next test that calls it so often, since the overhead would grow with the tests."""

# -- seconds

SECONDS = 3.0
"""Seconds of the processor of a shadow: a recorded loop takes many times its own time."""
SHADOW_TESTS = 0.5
"""Seconds of a clock that the tests of a shadow take outside of it. Shadows of several short tests
save forks; a long test has one of its own."""
GAP = 0.2
"""Seconds of a clock without a claim, after which a function without a recording gets a new shadow:
the one before may still be at the recording before, and ends if it records nothing for a while."""
LOOK = 0.05
"""Seconds of a clock between two looks at whether a shadow has ended, where no test may wait."""
FREE_SECONDS, WAITING = 4.0, 0.5
"""Seconds of a clock that tests wait for further recordings of a function, and so large a part of
their own time more; for the first recording they wait as long as it takes."""
FREE_WORK, WORK = 1.0, 0.05
"""Seconds of the processor in which shadows make further recordings of a function with arrays of
the same dtypes, and so large a part of the tests' own more; for the first recording, and for those
of a baseline, they compute as long as it takes."""


@dataclass
class Budget:
    """The time that tests and their shadows have taken, and what it leaves for further ones."""

    tests: int = 0
    test_seconds: float = 0.0
    """The seconds of a clock in tests, with those in which they waited for shadows."""
    wait_seconds: float = 0.0
    starts: int = 0
    shadow_seconds: float = 0.0
    """The seconds of the processor of the shadows that have ended."""
    affords_more: bool = True
    """Whether shadows may compute for further recordings in this test."""

    def begin_test(self) -> None:
        """Begin a test."""
        self.tests += 1
        self.affords_more = self.shadow_seconds < FREE_WORK + WORK * process_time()

    @property
    def may_wait(self) -> bool:
        """Whether a test may wait for a shadow to end."""
        return self.wait_seconds < FREE_SECONDS + WAITING * (self.test_seconds - self.wait_seconds)

    def clock(self) -> float:
        """Return the seconds of a clock that stands still while tests wait."""
        return perf_counter() - self.wait_seconds

    def shadow_tests(self) -> int:
        """Return the number of tests of the next shadow."""
        if "PYTEST_XDIST_WORKER" in os.environ:  # other processes say which test comes next
            return 1
        count = int(SHADOW_TESTS * self.tests / max(self.test_seconds, 1e-3))
        return max(1, min(MOST_TESTS, count))


@dataclass(eq=False, slots=True)
class CallSignature:
    """A signature of a function: its claims of recordings, of which `misses` came to nothing."""

    call: CallRecord
    test: str = ""
    tests: set[str] | None = None
    """The tests that may record it; None: any test."""
    claims: int = 0
    misses: int = 0
    kind: tuple[str, frozenset[str]] = "", frozenset()
    """The function, and the dtypes of arrays among the arguments."""


class Claims:
    """The recordings that are claimed or made, of each function and kind of signature."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.kinds: set[tuple[str, frozenset[str]]] = set()
        self.functions: set[str] = set()
        self.recorded: set[str] = set()
        """The functions of which a recording is made."""

    def allow(self, signature: CallSignature, test: str) -> bool:
        """Whether a test may record a signature, which needs a recording."""
        if signature.claims >= (MOST_RECORDINGS if self._budget.starts < REPEATING else 1):
            return False
        if signature.tests is not None:
            return test in signature.tests
        return self._budget.affords_more or signature.kind not in self.kinds

    def add(self, signature: CallSignature) -> None:
        """Claim a recording of a signature."""
        signature.claims += 1
        self.functions.add(signature.call.function)
        self.kinds.add(signature.kind)

    def give_back(self, signature: CallSignature) -> None:
        """Give back the claim of a recording that its shadow has not made."""
        signature.misses += 1
        self.kinds.discard(signature.kind)
        most = MOST_RECORDINGS
        if signature.call.function not in self.recorded:
            self.functions.discard(signature.call.function)
            most = MOST_MISSES
        if signature.misses < most:
            signature.claims -= 1

"""The pool of a run's shadows: it starts them where processors are free, and takes in their facts.

A test has one shadow, which makes all recordings that its calls claim. A further one starts for a
function without a recording if the first may not come to it.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter  # by name: a test may have replaced it
from typing import Any

from graphir.runtime.testing.budget import GAP, LOOK, SECONDS, Budget, CallSignature, Claims
from graphir.runtime.testing.ledger import CallRecord, Ledger
from graphir.runtime.testing.shadow import Shadow, ShadowSide, fork, why_visible


class ShadowPool:
    """The shadows that run, with the claims of recordings that each is to make."""

    def __init__(self, ledger: Ledger, budget: Budget, claims: Claims) -> None:
        self._ledger, self._budget, self._claims = ledger, budget, claims
        self._live: dict[Shadow, list[CallSignature]] = {}
        self._running: dict[Shadow, str] = {}
        """The function that each live shadow records."""
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        self._most_live = max(1, (os.cpu_count() or 1) // workers)
        self._next_look = 0.0
        self._last_claim = 0.0
        self.current: Shadow | None = None
        """The shadow that makes the recordings of this test; None if the next claim starts one."""
        self.tests_left = 0
        """The tests that the current shadow goes through, with this one."""

    def claim(self, signature: CallSignature) -> ShadowSide | None:
        """Claim a recording of a signature, which the test's shadow makes, or a new one.

        Returns the shadow's own side in the process of a new shadow, which is to record this call.
        """
        self.collect()  # the shadow of this test may have asked whether to go on
        shadow, now = self.current, self._budget.clock()
        function = signature.call.function
        is_first = function not in self._claims.functions
        if shadow is None or (is_first and now - self._last_claim > GAP):
            problem = why_visible() if self._has_place(is_first) else "no shadow was free"
            if not problem:
                shadow = None
            elif self.current is None:
                self._ledger.lost_calls.setdefault(function, problem)
                return None
        self._last_claim = self._budget.clock()
        self._claims.add(signature)
        if shadow is None:
            return self._start(signature)
        self._live[shadow].append(signature)
        return None

    def _start(self, signature: CallSignature) -> ShadowSide | None:
        """Fork a shadow, which records this call first; return its side in its process."""
        self._budget.starts += 1
        self.tests_left = self._budget.shadow_tests()
        try:
            side = fork(SECONDS)
        except OSError as error:
            problem = f"no shadow could start: {error.strerror}"
            self._ledger.lost_calls[signature.call.function] = problem
            signature.claims -= 1
            return None
        if isinstance(side, Shadow):
            self.current, self._live[side] = side, [signature]
            return None
        signature.claims -= 1  # its recording counts itself
        self._live.clear()
        return side

    def _has_place(self, must: bool) -> bool:
        """Whether a shadow may start: waits for one to end if it must, or if there is time."""
        if len(self._live) < self._most_live:
            return True
        started = perf_counter()
        if must or self._budget.may_wait:
            self.collect(wait=True, most=1)
            self._budget.wait_seconds += perf_counter() - started
        elif started > self._next_look:
            self._next_look = started + LOOK
            self.collect()
        return len(self._live) < self._most_live

    def collect(self, wait: bool = False, most: int = sys.maxsize) -> None:
        """Take in what shadows have sent; with `wait`, of `most` shadows until they end."""
        for shadow in list(self._live)[:most]:
            for message in shadow.messages(wait):
                self._take_in(shadow, message)
            if shadow.has_ended:
                self._finish(shadow)

    def _take_in(self, shadow: Shadow, message: dict[str, Any]) -> None:
        claims = self._live[shadow]
        if "start" in message:
            self._running[shadow] = message["start"]
        elif "idle" in message:
            shadow.answer(goes_on=bool(claims))
            if not claims and shadow is self.current:
                self.current = None
        elif "failed" in message:
            shadow.failure = f"a test failed in its shadow: {message['failed']}"
        elif "end" in message:
            shadow.reason = message["end"]
            self._budget.shadow_seconds += message["seconds"]
        elif "calls" in message:
            calls: list[CallRecord] = message["calls"]
            if not message["partial"]:
                self._running.pop(shadow, None)
            for call in calls:
                self._ledger.add_call(call)
                if call.recordings:
                    self._claims.recorded.add(call.function)
            covered = {(call.function, call.arguments) for call in calls if call.recordings}
            claims[:] = [x for x in claims if (x.call.function, x.call.arguments) not in covered]
            self._ledger.differences.update(dict.fromkeys(message["differences"]))

    def _finish(self, shadow: Shadow) -> None:
        """Give back the claims of recordings that a shadow has not made."""
        if shadow is self.current:
            self.current = None
        name = self._running.pop(shadow, None)
        if name is not None and shadow.reason:
            self._ledger.refused[name] = shadow.reason
        for signature in self._live.pop(shadow):
            reason = shadow.reason or shadow.failure or "its shadow did not come to the call"
            self._ledger.lost_calls[signature.call.function] = reason
            self._claims.give_back(signature)

"""The watch over a package's functions while its tests run.

The callback `enter` runs before each call. It looks the signature of the call up in a table; for a
signature with too few recordings, a shadow of the test starts (see runtime.testing.shadow), which
records this call, and all further such calls of the test. The test itself runs on as it is.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from collections.abc import Generator, Sequence
from itertools import count
from os import getpid  # this and others by name: a test may have replaced these functions
from threading import get_ident
from time import perf_counter, process_time
from typing import Any

import numpy as np

from graphir.passes import Policy
from graphir.runtime.recording import record
from graphir.runtime.recording.captured import UNDER_TEST, ArraySlot, slots
from graphir.runtime.recording.numpy_.interception import MakerPlaces, maker_places
from graphir.runtime.recording.numpy_.watched_code import watched_code
from graphir.runtime.recording.recording import RecordingSession
from graphir.runtime.testing import instrument
from graphir.runtime.testing.facts import Facts, PackagePlaces
from graphir.runtime.testing.instrument import HiddenDtypes, WatchedFunction
from graphir.runtime.testing.isolation import observe_acts, visible_act
from graphir.runtime.testing.ledger import CallRecord, Ledger, source_digest
from graphir.runtime.testing.shadow import Shadow, ShadowSide, fork, why_visible
from graphir.runtime.testing.shadow_calls import MOST_RECORDINGS, CallSignature, ShadowCalls
from graphir.runtime.testing.signatures import arguments_text, array_dtypes, call_key

MOST_SIGNATURES = 24
"""The most signatures of a function that are recorded."""
MOST_TESTS = 8
"""The most tests of a shadow."""
REPEATING = 8
"""So many shadows record signatures several times; later ones record new signatures alone."""
GAP = 0.2
"""After so many seconds without a recording, a function without any gets another shadow: the one
before may still be at the recording before, and ends if it records nothing for a while."""
HOT = 200
"""After so many calls without news in one test, a function runs unwatched until its end; after half
as many in the next test that calls it so often, since the overhead would grow with the tests."""
SECONDS = 3.0
"""The most seconds of a shadow."""
MOST_MISSES = 8
"""The most shadows that start in vain for a signature of a function without any recording."""
FREE_SECONDS, WAITING = 4.0, 0.5
"""Tests wait for further recordings of a function so many seconds, and for a part of their own
time, at most; for the first one they wait as long as it takes."""
FREE_WORK, WORK = 1.0, 0.05
"""Shadows compute for further recordings of a function with arrays of the same dtypes so many
seconds of the processor, and for a part of the tests' own, at most; for the first one, and for
those of a baseline, as long as it takes."""
MOST_FUNCTIONS = 1 << 16
ELSEWHERE = "only other threads or processes than the tests', or code outside of tests, call it"
GENERATOR = "it is a generator, and no function that was recorded runs it to its end"


class FunctionWatch:
    """Watches the functions of a package, and keeps the ledger of what their recordings saw."""

    def __init__(
        self, package: str, root: str, policy: Policy | None = None, against: Sequence[str] = ()
    ) -> None:
        self.package, self.root = package, root
        self.recorders: dict[tuple[str, str], set[str]] = {}
        """By function and signature, the tests that record it; other signatures: any test."""
        self.ledger = Ledger()
        self._policy, self._against = policy, against
        self._numbers = count()
        self._elsewhere = mmap.mmap(-1, MOST_FUNCTIONS)
        """The functions that are called outside of tests, also in forked processes."""
        self._functions: dict[int, WatchedFunction] = {}
        self._tables: dict[int, dict[Any, CallSignature]] = {}
        self._by_text: dict[tuple[int, str], CallSignature] = {}
        self._calls: dict[int, int] = {}
        self._hot_at: dict[int, int] = {}
        self._waited, self._next_look = 0.0, 0.0
        self._hot: list[int] = []
        self._modules: set[str] = set()
        self._imports = 0
        self._test = ""
        self._on = False
        self._process, self._thread = getpid(), get_ident()
        self._shadow: Shadow | None = None
        self._starts = 0
        self._spent, self._affords = 0.0, True
        """The seconds of shadows so far, and whether they leave some for further recordings."""
        self._claimed: set[str] = set()
        """The functions whose first recording is claimed or made, and in `_with_facts` made."""
        self._with_facts: set[str] = set()
        self._kinds: set[tuple[str, frozenset[str]]] = set()
        """The kinds of signatures of which a recording is claimed or made."""
        self._last_claim = 0.0
        self._tests, self._tests_left, self._seconds = 0, 0, 0.0
        self._claims: list[CallSignature] = []
        self._live: dict[Shadow, list[CallSignature]] = {}
        self._running: dict[Shadow, str] = {}
        """The function that each live shadow records."""
        self._most_live = max(1, (os.cpu_count() or 1) // _workers())
        self._calls_here: ShadowCalls | None = None
        """The recording of calls, if this process is a shadow."""
        self._slots: list[ArraySlot] = []
        self._places: MakerPlaces = []
        self._hidden = HiddenDtypes()

    # -- the test run

    def start(self, hides_dtypes: bool) -> None:
        """Watch the functions of the package's modules that are loaded.

        With `hides_dtypes`, tests do not see that this process has imported ml_dtypes.
        """
        UNDER_TEST.add(self.package.partition(".")[0])
        instrument.set_callbacks(self._enter, self._take_result, self._leave)
        _warm_up()
        self._watch_modules()
        if hides_dtypes:
            self._hidden.hide()
        observe_acts(self._notice)

    def begin(self) -> None:
        """Begin a test."""
        self._tests += 1
        if self._calls_here is None:
            self._affords = self._spent < FREE_WORK + WORK * process_time()
        self._tests_left -= 1
        if self._tests_left <= 0:
            self.leave()
            self._shadow = None

    @property
    def is_shadow(self) -> bool:
        """Whether this process is a shadow."""
        return self._calls_here is not None

    def leave(self, last: bool = False) -> None:
        """End this process if it is a shadow; with `last`, after the last of its tests alone."""
        if self._calls_here is not None and (not last or self._tests_left <= 1):
            self._calls_here.side.end()

    @contextlib.contextmanager
    def test(self, name: str) -> Generator[None]:
        """Context manager: a part of a test runs."""
        started = perf_counter()
        if len(sys.modules) != self._imports:
            self._watch_modules()
        self._watch_hot(True)
        for number in self._hot:
            self._calls[number] = 0
        self._hot.clear()
        self._test, self._on = name, True
        if self._calls_here is not None:
            self._calls_here.test = name
        try:
            yield
        except Exception as error:
            if self._calls_here is not None:
                self._calls_here.settle(is_failure=True)
                text = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
                self._calls_here.side.send({"failed": text})
            raise
        finally:
            self._on = False
            self._seconds += perf_counter() - started
            self._collect(False)

    def stop(self) -> Ledger:
        """Give the functions their own code back, wait for all shadows, and return the ledger."""
        for function in self._functions.values():
            function.use(function.own)
        self._collect(True)
        for signature in self._by_text.values():
            self.ledger.add_call(signature.call)
        reached = {name for name, _ in self.ledger.calls}
        for function in self._functions.values():
            if function.name in reached:
                lines = range(function.line, function.end_line + 1)
                self.ledger.sources[function.name] = source_digest(function.file, lines)
            elif self._elsewhere[function.number % MOST_FUNCTIONS]:
                self.ledger.refused.setdefault(function.name, ELSEWHERE)
        self.ledger.modules = len(self._modules)
        return self.ledger

    def _watch_modules(self) -> None:
        self._imports = len(sys.modules)
        if self._calls_here is None:  # the session of a shadow has replaced them
            self._places = maker_places()
        modules = instrument.modules_under_test(self.package)
        new = [x for x in modules if x.__name__ not in self._modules]
        if not new:
            return
        self._modules.update(x.__name__ for x in new)
        for function in instrument.watched_functions(new, self._numbers):
            self._functions[function.number] = function
            self._tables[function.number], self._calls[function.number] = {}, 0
            function.use(function.watched)
        own_functions = [x for each in self._functions.values() for x in each.functions]
        self._slots = [x for x in slots(*own_functions) if x.access and type(x.value) is np.ndarray]
        places = PackagePlaces(self.root, list(self._functions.values()))
        self.facts = Facts(places, self._policy, self._against)
        if self._calls_here is not None:
            self._calls_here.facts = self.facts

    # -- callbacks of watched code

    def _enter(self, number: int, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Return whether a shadow has made the call; `_take_result` then has its result."""
        if not self._on or get_ident() != self._thread:
            self._elsewhere[number % MOST_FUNCTIONS] = 1
            return False
        here, function = self._calls_here, self._functions[number]
        if here is not None and here.passes:
            return False
        kind = function.kind
        if kind == "coroutine":
            return self._pass_coroutine(number)
        try:
            key = call_key(args, keywords)
            signature = self._tables[number].get(key)
        except Exception:  # objects may refuse any question
            return False
        if signature is None:
            if len(self._tables[number]) >= MOST_SIGNATURES:
                return (here is None or here.root is None) and self._idle(number)
            signature = self._tables[number][key] = self._new_signature(number, args, keywords)
        if signature.test is not self._test:
            signature.test = self._test
            signature.call.tests.append(self._test)
        if here is not None and here.root is not None:
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            return here.enter_inner(function, signature, args, keywords, frame)
        name = signature.call.function
        if kind == "generator":
            self.ledger.lost_calls.setdefault(name, GENERATOR)
            return self._idle(number)
        if name in self.ledger.refused or not self._records(signature):
            return self._idle(number)
        if here is None and not self._claim(number, signature):
            return self._idle(number)
        here = self._calls_here
        assert here is not None  # a claim that succeeds has made this process a shadow
        return here.record(function, signature, args, keywords)

    def _new_signature(
        self, number: int, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> CallSignature:
        """Return the signature of a call with a new key; keys of equal texts share a signature."""
        text = number, arguments_text(args, keywords)
        signature = self._by_text.get(text)
        if signature is None:
            call = CallRecord(self._functions[number].name, text[1])
            signature = self._by_text[text] = CallSignature(call)
            signature.kind = call.function, array_dtypes(call.arguments)
            signature.tests = self.recorders.get((call.function, call.arguments))
            self._hot_at.pop(number, None)
        return signature

    def _records(self, signature: CallSignature) -> bool:
        """Whether this test may record a signature, which needs a recording."""
        if signature.claims >= (MOST_RECORDINGS if self._starts < REPEATING else 1):
            return False
        if signature.tests is not None:
            return self._test in signature.tests
        return self._affords or signature.kind not in self._kinds

    def _pass_coroutine(self, number: int) -> bool:
        function = self._functions[number]
        self.ledger.refused[function.name] = "it is a coroutine"
        if self._calls_here is None:
            function.use(function.own)
        return False

    def _idle(self, number: int) -> bool:
        self._calls[number] += 1
        if self._calls[number] >= self._hot_at.get(number, HOT):
            self._hot_at[number] = max(1, self._calls[number] // 2)
            self._functions[number].use(self._functions[number].own)
            self._hot.append(number)
        return False

    def _watch_hot(self, watched: bool) -> None:
        """Give the functions that are called often their watched code, or their own."""
        for number in self._hot:
            function = self._functions[number]
            code = function.watched if self._calls_here is None else function.shadowed
            function.use(code if watched else function.own)

    def _take_result(self) -> Any:
        return None if self._calls_here is None else self._calls_here.take_result()

    def _leave(self, number: int, result: Any) -> Any:
        """Note the result of a call in a shadow, and return it."""
        if self._calls_here is not None:
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            self._calls_here.leave(number, result, frame)
        return result

    # -- shadows

    def _become_shadow(self, side: ShadowSide) -> None:
        self._live = {}
        for function in self._functions.values():
            function.use(function.shadowed)
        self._watch_hot(False)
        self._hidden.show()
        session = RecordingSession(self.package, self._slots, self._places)
        here = ShadowCalls(side, session, self.facts, self._kinds, self._watch_hot)
        here.test, here.compares = self._test, bool(self._against)
        self._calls_here = here

    def _claim(self, number: int, signature: CallSignature) -> bool:
        """Claim a recording by the shadow of this test; return whether this is now a shadow."""
        if getpid() != self._process:  # a process that the test has forked
            self._elsewhere[number % MOST_FUNCTIONS] = 1
            return False
        self._collect(False)  # the shadow of this test may have asked whether to go on
        shadow, now = self._shadow, perf_counter() - self._waited
        is_first = signature.call.function not in self._claimed
        if shadow is None or (is_first and now - self._last_claim > GAP):
            reason = "" if self._has_place(is_first) else "no shadow was free"
            reason = reason or why_visible()
            if not reason:
                shadow = None
            elif self._shadow is None:
                self.ledger.lost_calls.setdefault(signature.call.function, reason)
                return False
        self._last_claim = perf_counter() - self._waited
        signature.claims += 1
        self._claimed.add(signature.call.function)
        self._kinds.add(signature.kind)
        if shadow is None:
            return self._start_shadow(signature)
        self._claims.append(signature)
        return False

    def _start_shadow(self, signature: CallSignature) -> bool:
        """Fork a shadow, which records this call first; return whether this process is it."""
        self._starts += 1
        self._tests_left = self._shadow_tests()
        try:
            side = fork(SECONDS)
        except OSError as error:
            self.ledger.lost_calls[signature.call.function] = (
                f"no shadow could start: {error.strerror}"
            )
            signature.claims -= 1
            return False
        if isinstance(side, ShadowSide):
            signature.claims -= 1
            self._become_shadow(side)
            return True
        self._shadow, self._claims = side, [signature]
        self._live[side] = self._claims
        return False

    def _notice(self, event: str, args: tuple[Any, ...]) -> None:
        """Notice acts of the test for which its shadow ends, so that the next call gets another."""
        if self._shadow is None or not self._on:
            return
        try:
            is_visible = bool(visible_act(event, args))
        except Exception:  # a program may have events of its own, of the same name
            is_visible = True
        if is_visible and get_ident() == self._thread:
            self._shadow = None

    def _has_place(self, must: bool) -> bool:
        """Whether a shadow may start: waits for one to end if it must, or if there is time."""
        if len(self._live) < self._most_live:
            return True
        started = perf_counter()
        if must or self._waited < FREE_SECONDS + WAITING * (self._seconds - self._waited):
            self._collect(True, 1)
            self._waited += perf_counter() - started
        elif started > self._next_look:
            self._next_look = started + 0.05
            self._collect(False)
        return len(self._live) < self._most_live

    def _shadow_tests(self) -> int:
        """Return the number of tests of the next shadow: those of about half a second."""
        if "PYTEST_XDIST_WORKER" in os.environ:  # other processes say which test comes next
            return 1
        return max(1, min(MOST_TESTS, int(0.5 * self._tests / max(self._seconds, 1e-3))))

    def _collect(self, wait: bool, most: int = sys.maxsize) -> None:
        """Take in what shadows have sent; with `wait`, of `most` shadows until they end."""
        for shadow, claims in list(self._live.items())[:most]:
            for message in shadow.messages(wait):
                self._take_in(shadow, claims, message)
            if shadow.has_ended:
                self._finish(shadow, claims)

    def _take_in(
        self, shadow: Shadow, claims: list[CallSignature], message: dict[str, Any]
    ) -> None:
        if "start" in message:
            self._running[shadow] = message["start"]
        elif "idle" in message:
            shadow.answer(goes_on=bool(claims))
            if not claims and shadow is self._shadow:
                self._shadow = None
        elif "failed" in message:
            shadow.failure = f"a test failed in its shadow: {message['failed']}"
        elif "end" in message:
            shadow.reason = message["end"]
            self._spent += message["seconds"]
        elif "calls" in message:
            calls: list[CallRecord] = message["calls"]
            if not message["partial"]:
                self._running.pop(shadow, None)
            for call in calls:
                self.ledger.add_call(call)
                if call.recordings:
                    self._with_facts.add(call.function)
            covered = {(call.function, call.arguments) for call in calls if call.recordings}
            claims[:] = [x for x in claims if (x.call.function, x.call.arguments) not in covered]
            self.ledger.differences.update(dict.fromkeys(message["differences"]))

    def _finish(self, shadow: Shadow, claims: list[CallSignature]) -> None:
        """Return the claims of recordings that a shadow has not made."""
        del self._live[shadow]
        if shadow is self._shadow:
            self._shadow = None
        name = self._running.pop(shadow, None)
        if name is not None and shadow.reason:
            self.ledger.refused[name] = shadow.reason
        for signature in claims:
            reason = shadow.reason or shadow.failure or "its shadow did not come to the call"
            function, most = signature.call.function, MOST_RECORDINGS
            self.ledger.lost_calls[function] = reason
            signature.misses += 1
            self._kinds.discard(signature.kind)
            if function not in self._with_facts:
                self._claimed.discard(function)
                most = MOST_MISSES
            if signature.misses < most:
                signature.claims -= 1


def _workers() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def _warm_up() -> None:
    """Record once, so that shadows find modules and caches loaded."""
    watched_code("", __file__)

    def twice(x: Any) -> Any:
        return x * np.float64(2) + x.mean()

    recording = record(twice, np.ones(2, np.float32))
    str(recording.report().sentences)

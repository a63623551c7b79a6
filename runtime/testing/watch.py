"""The watch over a package's functions while its tests run.

The callback `enter` runs before each call. It looks the signature of the call up in a table; for a
signature with too few recordings, a shadow of the test starts (see runtime.testing.shadow), which
records this call, and all further such calls of the test. The test itself runs on as it is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2s
from itertools import count
from types import MethodType
from typing import Any

import numpy as np

from graphir import Graph
from graphir.source_text import source_line
from passes import Policy
from runtime.recording import record
from runtime.recording.captured import UNDER_TEST, ArraySlot, slots
from runtime.recording.numpy_.creation import MakerPlaces, maker_places
from runtime.recording.session import RecordingSession
from runtime.recording.values import RecordedValue, TracedScalar, active, recording_with
from runtime.testing import instrument
from runtime.testing.dtype_names import HiddenDtypes
from runtime.testing.facts import Facts, PackagePlaces, Span
from runtime.testing.instrument import WatchedFunction
from runtime.testing.ledger import CallRecord, Difference, Ledger, call_from_json
from runtime.testing.shadow import Shadow, ShadowSide, fork
from runtime.testing.signatures import (
    arguments_text,
    call_key,
    dtype_text,
    library_of,
    result_leaves,
)

MOST_RECORDINGS = 3
"""The most recordings of a function for each signature."""
MOST_SIGNATURES = 24
"""The most signatures of a function that are recorded."""
MOST_TESTS = 8
"""The most tests of a shadow."""
REPEATING = 40
"""So many shadows start for second recordings too; later ones for new signatures alone."""
HOT = 200
"""After so many calls without news in one test, a function runs unwatched until its end; after half
as many in the next test that calls it so often, since the overhead would grow with the tests."""
SECONDS = 3.0
"""The most seconds of a shadow."""
FREE_SECONDS, WAITING = 4.0, 0.5
"""Tests wait for shadows so many seconds, and for a part of their own time, at most."""


@dataclass(eq=False, slots=True)
class _Signature:
    """A signature of a function: its claims of recordings, of which `misses` came to nothing."""

    call: CallRecord
    test: str = ""
    tests: set[str] | None = None
    """The tests that may record it; None: any test."""
    claims: int = 0
    misses: int = 0


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
        self._functions: dict[int, WatchedFunction] = {}
        self._tables: dict[int, dict[Any, _Signature]] = {}
        self._by_text: dict[tuple[int, str], _Signature] = {}
        self._calls: dict[int, int] = {}
        self._hot_at: dict[int, int] = {}
        self._waited, self._next_look = 0.0, 0.0
        self._hot: list[int] = []
        self._modules: set[str] = set()
        self._imports = 0
        self._test = ""
        self._on = False
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._shadow: Shadow | None = None
        self._starts = 0
        self._tests, self._tests_left, self._seconds = 0, 0, 0.0
        self._claims: list[_Signature] = []
        self._live: dict[int, tuple[Shadow, list[_Signature]]] = {}
        self._running: dict[int, str] = {}
        """The function that each live shadow records, by process."""
        self._most_live = max(1, (os.cpu_count() or 1) // _workers())
        self._side: ShadowSide | None = None
        self._root: WatchedFunction | None = None
        self._session: RecordingSession | None = None
        self._slots: list[ArraySlot] = []
        self._places: MakerPlaces = []
        self._hidden = HiddenDtypes()
        self._spans: list[Span] = []
        self._frames: dict[int, Span] = {}
        self._result: Any = None

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

    def begin(self, writes: bool) -> None:
        """Begin a test; `writes` if it is sure to write files."""
        self._tests += 1
        if self._side is None and self._shadow is None:
            return
        self._tests_left -= 1
        if self._tests_left <= 0 or writes:
            self.leave()
            self._shadow = None
        if self._side is not None:
            self._side.limit(SECONDS)

    def leave(self, last: bool = False) -> None:
        """End this process if it is a shadow; with `last`, after the last of its tests alone."""
        if self._side is not None and (not last or self._tests_left <= 1):
            self._side.end()

    @contextlib.contextmanager
    def test(self, name: str) -> Generator[None]:
        """Context manager: a part of a test runs."""
        started = time.perf_counter()
        if len(sys.modules) != self._imports:
            self._watch_modules()
        for number in self._hot:
            self._functions[number].use(self._functions[number].watched)
            self._calls[number] = 0
        self._hot.clear()
        self._test, self._on = name, True
        try:
            yield
        finally:
            self._on = False
            self._seconds += time.perf_counter() - started
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
                self.ledger.sources[function.name] = source_digest(function)
        self.ledger.functions = len(self._functions)
        return self.ledger

    def _watch_modules(self) -> None:
        self._imports = len(sys.modules)
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

    # -- callbacks of watched code

    def _enter(self, number: int, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
        """Return whether a shadow has made the call; `_take_result` then has its result."""
        if not self._on or threading.get_ident() != self._thread:
            return False
        if self._functions[number].kind == "generator":
            return self._pass_generator(number)
        try:
            key = call_key(args, keywords)
            signature = self._tables[number].get(key)
        except Exception:  # objects may refuse any question
            return False
        if signature is None:
            if len(self._tables[number]) >= MOST_SIGNATURES:
                return self._idle(number)
            signature = self._tables[number][key] = self._new_signature(number, args, keywords)
        if signature.test is not self._test:
            signature.test = self._test
            signature.call.tests.append(self._test)
        if self._root is not None:
            self._open_span(number, signature)
            return False
        if not self._records(signature) or self._functions[number].name in self.ledger.refused:
            return self._idle(number)
        if self._side is None and not self._claim(signature):
            return self._idle(number)
        return self._record(number, signature, args, keywords)

    def _new_signature(
        self, number: int, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> _Signature:
        """Return the signature of a call with a new key; keys of equal texts share a signature."""
        text = number, arguments_text(args, keywords)
        signature = self._by_text.get(text)
        if signature is None:
            call = CallRecord(self._functions[number].name, text[1])
            signature = self._by_text[text] = _Signature(call)
            signature.tests = self.recorders.get((call.function, call.arguments))
            self._hot_at.pop(number, None)
        return signature

    def _records(self, signature: _Signature) -> bool:
        """Whether this test may record a signature, which needs a recording."""
        of_test = signature.tests is None or self._test in signature.tests
        return of_test and signature.claims < MOST_RECORDINGS

    def _pass_generator(self, number: int) -> bool:
        function = self._functions[number]
        self.ledger.refused[function.name] = "it is a generator"
        if self._side is None:
            function.use(function.own)
        return False

    def _idle(self, number: int) -> bool:
        self._calls[number] += 1
        if self._calls[number] >= self._hot_at.get(number, HOT) and self._side is None:
            self._hot_at[number] = max(1, self._calls[number] // 2)
            self._functions[number].use(self._functions[number].own)
            self._hot.append(number)
        return False

    def _take_result(self) -> Any:
        result, self._result = self._result, None
        return result

    def _leave(self, number: int, result: Any) -> Any:
        """Note the result of a call in a shadow, and return it."""
        span = self._frames.pop(id(sys._getframe(1)), None)  # pyright: ignore[reportPrivateUsage]
        recorder = active()
        if span is None or recorder is None or span.function.number != number:
            return result
        span.end = len(recorder.graph.symbols)
        for path, value in result_leaves(result):
            is_recorded = isinstance(value, (RecordedValue, TracedScalar))
            span.results[path] = dtype_text(value), recorder.before(value) if is_recorded else None
        return result

    # -- the parent's side

    def _claim(self, signature: _Signature) -> bool:
        """Claim a recording by the shadow of this test; return whether this is now a shadow."""
        if os.getpid() != self._process:  # a process that the test has forked
            return False
        if self._shadow is None and signature.claims and self._starts >= REPEATING:
            return False
        if self._shadow is None and not self._has_place():
            return False
        signature.claims += 1
        if self._shadow is not None:
            self._claims.append(signature)
            return False
        self._starts += 1
        self._tests_left = self._shadow_tests()
        side = fork(SECONDS)
        if isinstance(side, ShadowSide):
            signature.claims -= 1
            self._become_shadow(side)
            return True
        self._shadow, self._claims = side, [signature]
        self._live[side.pid] = side, self._claims
        return False

    def _has_place(self) -> bool:
        """Whether a shadow may start; waits for the first one to end if the tests have the time."""
        if len(self._live) < self._most_live:
            return True
        started = time.perf_counter()
        if self._waited < FREE_SECONDS + WAITING * (self._seconds - self._waited):
            self._collect(True, 1)
            self._waited += time.perf_counter() - started
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
        for shadow, claims in list(self._live.values())[:most]:
            for message in shadow.messages(wait):
                self._take_in(shadow, claims, message)
            if shadow.status is not None:
                self._finish(shadow, claims)

    def _take_in(self, shadow: Shadow, claims: list[_Signature], message: dict[str, Any]) -> None:
        if "start" in message:
            self._running[shadow.pid] = message["start"]
        elif "left" in message:
            name = self._running.pop(shadow.pid, None)
            if name is not None:
                self.ledger.refused[name] = message["left"]
        else:
            self._running.pop(shadow.pid, None)
            calls = [call_from_json(each) for each in message["calls"]]
            for call in calls:
                self.ledger.add_call(call)
            covered = {(call.function, call.arguments) for call in calls}
            claims[:] = [x for x in claims if (x.call.function, x.call.arguments) not in covered]
            differences = (Difference(*x) for x in message["differences"])
            self.ledger.differences.update((x, None) for x in differences)

    def _finish(self, shadow: Shadow, claims: list[_Signature]) -> None:
        """Return the claims of recordings that a shadow has not made."""
        del self._live[shadow.pid]
        if shadow is self._shadow:
            self._shadow = None
        name = self._running.pop(shadow.pid, None)
        if name is not None and shadow.status:
            reason = "its recording crashed"
            if -shadow.status in (signal.SIGALRM, signal.SIGPROF):
                reason = f"its recording takes more than {SECONDS:g} s"
            self.ledger.refused[name] = reason
        for signature in claims:
            signature.misses += 1
            if signature.misses < MOST_RECORDINGS:
                signature.claims -= 1

    # -- the shadow's side

    def _become_shadow(self, side: ShadowSide) -> None:
        self._side, self._live = side, {}
        for function in self._functions.values():
            function.use(function.shadowed)
        self._hidden.show()
        self._session = RecordingSession(self.package, self._slots, self._places)
        side.before_end = self._send_differences

    def _send_differences(self) -> None:
        if self._against and self._session is not None:
            with recording_with(None):
                differences = [list(x) for x in self.facts.differences(self._session.graph)]
            assert self._side is not None
            self._side.send({"calls": [], "differences": differences})

    def _record(
        self, number: int, signature: _Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> bool:
        watched, side = self._functions[number], self._side
        assert side is not None  # of a shadow
        side.send({"start": watched.name})
        function: Any = watched.functions[-1]
        if watched.kind == "method":
            function, args = MethodType(function, args[0]), args[1:]
        if "rules" in keywords:  # a parameter of record, too
            function, keywords = partial(function, **keywords), {}
        session = self._session
        assert session is not None
        self._root, self._spans, self._frames = watched, [], {}
        first, notes = len(session.graph.symbols), len(session.recorder.notes)
        library = library_of([*args, *keywords.values()])
        try:
            if library:
                self._trace(library, function, signature, args, keywords)
                return False
            self._result = session.call(function, args, keywords)
        finally:
            self._root = None
            if not library:
                new_notes = list(map(str, session.recorder.notes.values()))[notes:]
                self._send_facts(session.graph, first, new_notes)
        return True

    def _trace(
        self,
        library: str,
        function: Any,
        signature: _Signature,
        args: tuple[Any, ...],
        keywords: Mapping[str, Any],
    ) -> None:
        """Send what a function of JAX or torch does with arrays like these."""
        from runtime.sources import from_jax, from_torch

        assert self._root is not None and self._side is not None
        signature.claims += 1
        span = Span(self._root, signature.call.arguments, 0)
        try:
            graph = (from_jax if library == "jax" else from_torch)(function, *args, **keywords)
        except Exception as error:
            problem = str(error).partition("\n")[0][:200]
            span.counts = True
            call = CallRecord(self._root.name, signature.call.arguments, unseen=[problem])
            self._side.send({"calls": [asdict(call)], "differences": []})
            return
        several = len(graph.outputs) > 1
        for place, symbol in enumerate(graph.outputs):
            dtype = str(getattr(symbol.type, "dtype", "opaque"))
            span.results[f"[{place}]" if several else "result"] = dtype, symbol
        self._spans = [span]
        self._send_facts(graph, 0, list(map(str, graph.notes)))

    def _open_span(self, number: int, signature: _Signature) -> None:
        recorder = active()
        if recorder is None:
            return
        counts = self._records(signature)
        signature.claims += counts
        span = Span(self._functions[number], signature.call.arguments, len(recorder.graph.symbols))
        span.counts = counts
        self._spans.append(span)
        self._frames[id(sys._getframe(2))] = span  # pyright: ignore[reportPrivateUsage]

    def _send_facts(self, graph: Graph, first: int, notes: list[str]) -> None:
        assert self._side is not None
        try:
            with recording_with(None):
                calls = self.facts.calls(graph, first, self._spans, notes)
        except Exception as error:  # a fault of ours may not change the shadow's course
            self._side.end(f"its facts have a fault: {type(error).__name__}")
        for call in calls:
            call.recorded_in = [self._test]
        self._side.send({"calls": [asdict(x) for x in calls], "differences": []})


BLANK = "-"
"""Stands for a line without code in the digests of a function's lines."""


def source_digest(function: WatchedFunction) -> str:
    """Return short digests of a function's lines, separated by spaces."""
    numbers = range(function.line, function.end_line + 1)
    return " ".join(_line_digest(source_line(function.file, number)) for number in numbers)


def _line_digest(line: str) -> str:
    text = line.strip()
    if not text or text.startswith("#"):
        return BLANK
    return blake2s(text.encode(), digest_size=3).hexdigest()


def _workers() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def _warm_up() -> None:
    """Record once, so that shadows find modules and caches loaded."""
    from runtime.recording.numpy_.calls import watched_code

    watched_code("", __file__)

    def twice(x: Any) -> Any:
        return x * np.float64(2) + x.mean()

    recording = record(twice, np.ones(2, np.float32))
    str(recording.report().sentences)

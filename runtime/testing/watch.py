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
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2s
from itertools import count
from os import getpid  # this and others by name: a test may have replaced these functions
from threading import get_ident
from time import perf_counter, process_time
from time import time as clock
from types import MethodType
from typing import Any, cast

import numpy as np

from graphir import Graph
from graphir.passes import Policy
from graphir.runtime.recording import record
from graphir.runtime.recording.captured import UNDER_TEST, ArraySlot, mapped_tuple, slots
from graphir.runtime.recording.numpy_.creation import MakerPlaces, maker_places
from graphir.runtime.recording.session import RecordingSession
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedScalar,
    active,
    plain,
    recording_with,
)
from graphir.runtime.testing import instrument
from graphir.runtime.testing.dtype_names import HiddenDtypes
from graphir.runtime.testing.facts import Facts, PackagePlaces, Span
from graphir.runtime.testing.instrument import WatchedFunction
from graphir.runtime.testing.ledger import CallRecord, Difference, Ledger, call_from_json
from graphir.runtime.testing.shadow import (
    Shadow,
    ShadowSide,
    fork,
    nothing_before_end,
    observe_acts,
    visible_act,
    why_visible,
)
from graphir.runtime.testing.signatures import (
    arguments_text,
    array_dtypes,
    call_key,
    dtype_text,
    library_of,
    result_leaves,
)
from graphir.source_text import source_line

MOST_RECORDINGS = 3
"""The most recordings of a function for each signature."""
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
LONG = 0.1
"""After so many seconds of the processor, a recording passes by calls like those that it has
recorded: the rounds of a loop are alike."""
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
_CLOCK = 0.02
"""The most seconds by which times of files are behind the clock."""


@dataclass(eq=False, slots=True)
class _Signature:
    """A signature of a function: its claims of recordings, of which `misses` came to nothing."""

    call: CallRecord
    test: str = ""
    tests: set[str] | None = None
    """The tests that may record it; None: any test."""
    claims: int = 0
    misses: int = 0
    kind: tuple[str, frozenset[str]] = "", frozenset()
    """The function, and the dtypes of arrays among the arguments."""


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
        self.temporary: Callable[[], str] = str
        """Returns the folder below which tests have temporary folders, if it is not the usual."""
        self._elsewhere = mmap.mmap(-1, MOST_FUNCTIONS)
        """The functions that are called outside of tests, also in forked processes."""
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
        self._process, self._thread = getpid(), get_ident()
        self._shadow: Shadow | None = None
        self._starts = 0
        self._started = 0.0
        self._spent, self._affords = 0.0, True
        """The seconds of shadows so far, and whether they leave some for further recordings."""
        self._claimed: set[str] = set()
        """The functions whose first recording is claimed or made, and in `_with_facts` made."""
        self._with_facts: set[str] = set()
        self._kinds: set[tuple[str, frozenset[str]]] = set()
        """The kinds of signatures of which a recording is claimed or made."""
        self._last_claim = 0.0
        self._tests, self._tests_left, self._seconds = 0, 0, 0.0
        self._claims: list[_Signature] = []
        self._live: dict[Shadow, list[_Signature]] = {}
        self._running: dict[Shadow, str] = {}
        """The function that each live shadow records."""
        self._most_live = max(1, (os.cpu_count() or 1) // _workers())
        self._side: ShadowSide | None = None
        self._root: WatchedFunction | None = None
        self._session: RecordingSession | None = None
        self._raising: list[dict[str, Any]] = []
        self._slots: list[ArraySlot] = []
        self._places: MakerPlaces = []
        self._traces = False
        self._firsts = 0, 0
        """The numbers of steps and of notes before the call that is recorded."""
        self._hidden = HiddenDtypes()
        self._spans: list[Span] = []
        self._frames: dict[int, Span] = {}
        self._result: Any = None
        self._long_at, self._passes = 0.0, False
        self._ended: dict[tuple[int, str], Span] = {}
        """The last recorded call of each function and signature that has returned."""

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
        self._started = clock()
        if self._side is None:
            self._affords = self._spent < FREE_WORK + WORK * process_time()
        self._tests_left -= 1
        if self._tests_left <= 0:
            self.leave()
            self._shadow = None

    @property
    def is_shadow(self) -> bool:
        """Whether this process is a shadow."""
        return self._side is not None

    def leave(self, last: bool = False) -> None:
        """End this process if it is a shadow; with `last`, after the last of its tests alone."""
        if self._side is not None and (not last or self._tests_left <= 1):
            self._side.end()

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
        try:
            yield
        except Exception as error:
            if self._side is not None:
                self._settle(is_failure=True)
                text = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
                self._side.send({"failed": text})
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
                self.ledger.sources[function.name] = source_digest(function)
            elif self._elsewhere[function.number % MOST_FUNCTIONS]:
                self.ledger.refused.setdefault(function.name, ELSEWHERE)
        self.ledger.functions, self.ledger.modules = len(self._functions), len(self._modules)
        return self.ledger

    def _watch_modules(self) -> None:
        self._imports = len(sys.modules)
        if self._side is None:  # the session of a shadow has replaced them
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
        if not self._on or get_ident() != self._thread:
            self._elsewhere[number % MOST_FUNCTIONS] = 1
            return False
        if self._passes:
            return False
        kind = self._functions[number].kind
        if kind == "coroutine":
            return self._pass_coroutine(number)
        try:
            key = call_key(args, keywords)
            signature = self._tables[number].get(key)
        except Exception:  # objects may refuse any question
            return False
        if signature is None:
            if len(self._tables[number]) >= MOST_SIGNATURES:
                return self._root is None and self._idle(number)
            signature = self._tables[number][key] = self._new_signature(number, args, keywords)
        if signature.test is not self._test:
            signature.test = self._test
            signature.call.tests.append(self._test)
        if self._root is not None:
            former = self._ended.get((number, signature.call.arguments))
            if former is not None and kind != "generator" and process_time() > self._long_at:
                return self._pass_by(former, args, keywords)
            self._open_span(number, signature)
            return False
        name = signature.call.function
        if kind == "generator":
            self.ledger.lost_calls.setdefault(name, GENERATOR)
            return self._idle(number)
        if name in self.ledger.refused or not self._records(signature):
            return self._idle(number)
        if self._side is None and not self._claim(number, signature):
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
            signature.kind = call.function, array_dtypes(call.arguments)
            signature.tests = self.recorders.get((call.function, call.arguments))
            self._hot_at.pop(number, None)
        return signature

    def _records(self, signature: _Signature) -> bool:
        """Whether this test may record a signature, which needs a recording."""
        if signature.claims >= (MOST_RECORDINGS if self._starts < REPEATING else 1):
            return False
        if signature.tests is not None:
            return self._test in signature.tests
        return self._affords or signature.kind not in self._kinds

    def _pass_coroutine(self, number: int) -> bool:
        function = self._functions[number]
        self.ledger.refused[function.name] = "it is a coroutine"
        if self._side is None:
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
            code = function.watched if self._side is None else function.shadowed
            function.use(code if watched else function.own)

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
        self._ended[number, span.arguments] = span
        for path, value in result_leaves(result):
            is_recorded = isinstance(value, (RecordedValue, TracedScalar))
            span.results[path] = dtype_text(value), recorder.before(value) if is_recorded else None
        return result

    # -- the parent's side

    def _claim(self, number: int, signature: _Signature) -> bool:
        """Claim a recording by the shadow of this test; return whether this is now a shadow."""
        if getpid() != self._process:  # a process that the test has forked
            self._elsewhere[number % MOST_FUNCTIONS] = 1
            return False
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
        if shadow is not None:
            self._claims.append(signature)
            return False
        self._starts += 1
        self._tests_left = self._shadow_tests()
        try:
            side = fork(SECONDS, self._fresh_files)
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
        shadow = self._shadow
        if shadow is None or not self._on:
            return
        try:
            is_visible = bool(visible_act(event, args, shadow.is_private))
        except Exception:  # a program may have events of its own, of the same name
            is_visible = True
        if is_visible and get_ident() == self._thread:
            self._shadow = None

    def _fresh_files(self) -> list[str]:
        """Return the files and folders that this test has made or changed where tests write."""
        temporary = self.temporary()
        usual = tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp"
        roots = [os.path.abspath(x) for x in (temporary, usual, os.getcwd()) if x]
        paths: list[str] = []
        for root in dict.fromkeys(roots):
            for entry in os.scandir(root):
                path, is_hidden = entry.path, entry.name.startswith((".", "__pycache__"))
                if is_hidden or any(f"{x}/".startswith(f"{path}/") for x in (*roots[:2], *paths)):
                    continue
                if any(path.startswith(f"{x}/") for x in paths) or entry.is_symlink():
                    continue
                if entry.stat(follow_symlinks=False).st_ctime >= self._started - _CLOCK:
                    paths.append(path)
        return paths

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

    def _take_in(self, shadow: Shadow, claims: list[_Signature], message: dict[str, Any]) -> None:
        if "start" in message:
            self._running[shadow] = message["start"]
        elif "failed" in message:
            shadow.failure = f"a test failed in its shadow: {message['failed']}"
        elif "end" in message:
            shadow.reason = message["end"]
            self._spent += message["seconds"]
        elif "calls" in message:
            calls = [call_from_json(each) for each in message["calls"]]
            if not message.get("partial"):
                self._running.pop(shadow, None)
            for call in calls:
                self.ledger.add_call(call)
                if call.recordings:
                    self._with_facts.add(call.function)
            covered = {(call.function, call.arguments) for call in calls if call.recordings}
            claims[:] = [x for x in claims if (x.call.function, x.call.arguments) not in covered]
            differences = (Difference(*x) for x in message["differences"])
            self.ledger.differences.update((x, None) for x in differences)

    def _finish(self, shadow: Shadow, claims: list[_Signature]) -> None:
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

    # -- the shadow's side

    def _become_shadow(self, side: ShadowSide) -> None:
        self._side, self._live = side, {}
        for function in self._functions.values():
            function.use(function.shadowed)
        self._watch_hot(False)
        self._hidden.show()
        self._session = RecordingSession(self.package, self._slots, self._places)
        side.before_end = self._before_end

    def _before_end(self, reason: str) -> None:
        """Send what the shadow has seen of calls that have not returned, and the differences."""
        session = self._session
        assert session is not None and self._side is not None
        self._settle()
        if self._root is not None and reason and not self._traces:
            self._send_facts(session.graph, unfinished=True)
        if self._against:
            with recording_with(None):
                differences = [list(x) for x in self.facts.differences(session.graph)]
            self._side.send({"calls": [], "differences": differences, "partial": True}, later=True)

    def _record(
        self, number: int, signature: _Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> bool:
        watched, side = self._functions[number], self._side
        assert side is not None  # of a shadow
        self._settle()
        side.send({"start": watched.name})  # with the facts of the recording before
        function: Any = watched.functions[-1]
        if watched.kind == "method":
            function, args = MethodType(function, args[0]), args[1:]
        if "rules" in keywords:  # a parameter of record, too
            function, keywords = partial(function, **keywords), {}
        session = self._session
        assert session is not None
        self._kinds.add(signature.kind)
        self._root, self._spans, self._frames = watched, [], {}
        self._long_at = process_time() + LONG
        self._firsts = len(session.graph.symbols), len(session.recorder.notes)
        library = library_of([*args, *keywords.values()])
        self._traces = bool(library)
        self._watch_hot(True)
        side.idle_since, has_ended = None, False
        try:
            if library:
                self._trace(library, function, signature, args, keywords)
                return False
            self._result = session.call(function, args, keywords)
            has_ended = True
        finally:
            self._root = None
            side.idle_since = process_time()
            self._watch_hot(False)
            if not library:
                self._send_facts(session.graph, raises=not has_ended)
        return True

    def _settle(self, is_failure: bool = False) -> None:
        """Send the facts of recordings that ended in an exception, which the test may expect.

        If the test fails, it may pass outside of the shadow: what followed there was not seen.
        """
        for message in self._raising:
            if is_failure:
                for call in message["calls"]:
                    call.update(recordings=0, recorded_in=[], results={})
            assert self._side is not None
            self._side.send(message, later=True)
        self._raising.clear()

    def _trace(
        self,
        library: str,
        function: Any,
        signature: _Signature,
        args: tuple[Any, ...],
        keywords: Mapping[str, Any],
    ) -> None:
        """Send what a function of JAX or torch does with arrays like these."""
        from graphir.runtime.sources import from_jax, from_torch

        assert self._root is not None and self._side is not None
        signature.claims += 1
        span = Span(self._root, signature.call.arguments, 0)
        try:
            graph = (from_jax if library == "jax" else from_torch)(function, *args, **keywords)
        except Exception as error:
            problem = str(error).partition("\n")[0][:200]
            span.counts = True
            call = CallRecord(self._root.name, signature.call.arguments, unseen=[problem])
            self._side.send({"calls": [vars(call)], "differences": []}, later=True)
            return
        several = len(graph.outputs) > 1
        for place, symbol in enumerate(graph.outputs):
            dtype = str(getattr(symbol.type, "dtype", "opaque"))
            span.results[f"[{place}]" if several else "result"] = dtype, symbol
        self._spans, self._firsts = [span], (0, 0)
        self._send_facts(graph)

    def _pass_by(self, former: Span, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
        """Make a call like a recorded one, and give its results the symbols of those."""
        recorder = active()
        if recorder is None:
            return False
        self._passes = True
        try:
            with recording_with(None):
                by_name = {name: plain(value) for name, value in keywords.items()}
                result = former.function.functions[-1](*map(plain, args), **by_name)
        finally:
            self._passes = False
        symbols = {
            (str(symbol.type.dtype), symbol.type.shape): symbol
            for _, symbol in former.results.values()
            if symbol is not None
        }

        def recorded(value: Any) -> Any:
            is_array = issubclass(cast("Any", type(value)), (np.ndarray, np.generic))
            if not is_array or recorder.owner(value):
                return value
            symbol = symbols.get((str(value.dtype), value.shape))
            return recorder.wrapped(value, symbol)

        self._result = mapped_tuple(result, recorded)
        return True

    def _open_span(self, number: int, signature: _Signature) -> None:
        recorder = active()
        if recorder is None:
            return
        self._kinds.add(signature.kind)
        of_test = signature.tests is None or self._test in signature.tests
        counts = of_test and signature.claims < MOST_RECORDINGS
        signature.claims += counts
        span = Span(self._functions[number], signature.call.arguments, len(recorder.graph.symbols))
        span.counts = counts
        self._spans.append(span)
        self._frames[id(sys._getframe(2))] = span  # pyright: ignore[reportPrivateUsage]

    def _send_facts(self, graph: Graph, unfinished: bool = False, raises: bool = False) -> None:
        """Send the facts of the recorded call; with `unfinished`, before it returns.

        With `raises`, they are kept until the test goes on, or fails.
        """
        assert self._side is not None and self._session is not None
        first, count = self._firsts
        notes = graph.notes if self._traces else [*self._session.recorder.notes.values()][count:]
        open_spans = {id(span) for span in self._frames.values()} if unfinished else set[int]()
        try:
            with recording_with(None):
                calls = self.facts.calls(graph, first, self._spans, [str(x) for x in notes])
        except Exception as error:  # a fault of ours may not change the shadow's course
            self._side.before_end = nothing_before_end
            self._side.end(f"its facts have a fault: {type(error).__name__}")
        spans = [span for span in self._spans if span.counts]
        for call, span in zip(calls, spans, strict=True):
            call.recorded_in = [self._test]
            if id(span) in open_spans:
                call.recordings, call.recorded_in, call.results = 0, [], {}
        message = {"calls": [vars(x) for x in calls], "differences": [], "partial": unfinished}
        if raises:
            self._raising.append(message)
        else:
            self._side.send(message, later=True)


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
    from graphir.runtime.recording.numpy_.watched_code import watched_code

    watched_code("", __file__)

    def twice(x: Any) -> Any:
        return x * np.float64(2) + x.mean()

    recording = record(twice, np.ones(2, np.float32))
    str(recording.report().sentences)

"""The recording of calls in a shadow: the facts that it sends to the tests' own process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from time import process_time  # by name: a test may have replaced it
from types import FrameType, MethodType
from typing import Any, NamedTuple, cast

import numpy as np

from graphir.public import Graph
from graphir.runtime.recording.builder import IS_DATA
from graphir.runtime.recording.captured import mapped_tuple
from graphir.runtime.recording.recording import RecordingSession
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedScalar,
    active,
    plain,
    recording_with,
)
from graphir.runtime.sources import from_jax, record_torch
from graphir.runtime.testing.budget import MOST_RECORDINGS, CallSignature
from graphir.runtime.testing.facts import Facts, Span
from graphir.runtime.testing.instrument import WatchedFunction
from graphir.runtime.testing.ledger import CallRecord
from graphir.runtime.testing.shadow import ShadowSide, nothing_before_end
from graphir.runtime.testing.signatures import dtype_text, library_of, result_leaves

LONG = 0.1
"""After so many seconds of the processor, a recording passes by calls like those that it has
recorded: the rounds of a loop are alike."""


class WatchedCall(NamedTuple):
    """A call of a watched function."""

    function: WatchedFunction
    signature: CallSignature
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]


class ShadowCalls:
    """Records calls in the process of a shadow, and sends their facts to the tests' process.

    `facts` makes facts of a graph, and `test` is the name of the test that runs. `watch_inner` is
    called with whether the functions that are called often are watched. `kinds` are the kinds of
    signatures that have been recorded.
    """

    def __init__(
        self,
        side: ShadowSide,
        session: RecordingSession,
        facts: Facts,
        kinds: set[tuple[str, frozenset[str]]],
        watch_inner: Callable[[bool], None],
    ) -> None:
        self.side, self.facts, self.test = side, facts, ""
        self.root: WatchedFunction | None = None
        """The function that is being recorded."""
        self.passes = False
        """Whether calls are passed by."""
        self.compares = False
        """Whether the facts include differences under other rules."""
        self._session, self._kinds, self._watch_inner = session, kinds, watch_inner
        self._raising: list[dict[str, Any]] = []
        self._traces = False
        self._firsts = 0, 0
        """The numbers of steps and of notes before the call that is recorded."""
        self._spans: list[Span] = []
        self._frames: dict[int, Span] = {}
        self._result: Any = None
        self._long_at = 0.0
        self._ended: dict[tuple[int, str], Span] = {}
        """The last recorded call of each function and signature that has returned."""
        side.before_end = self._before_end

    def take_result(self) -> Any:
        """Return the result of the call that was made in place of the test's own, and forget it."""
        result, self._result = self._result, None
        return result

    def enter_inner(self, call: WatchedCall, frame: FrameType) -> bool:
        """Note a call inside the recorded one; return whether it was made here."""
        function, signature, args, keywords = call
        former = self._ended.get((function.number, signature.call.arguments))
        if former is not None and function.kind != "generator" and process_time() > self._long_at:
            return self._pass_by(former, args, keywords)
        self._open_span(function, signature, frame)
        return False

    def leave(self, number: int, result: Any, frame: FrameType) -> None:
        """Note the result of a call."""
        span = self._frames.pop(id(frame), None)
        recorder = active()
        if span is None or recorder is None or span.function.number != number:
            return
        span.end = len(recorder.graph.symbols)
        self._ended[number, span.arguments] = span
        for path, value in result_leaves(result):
            is_recorded = isinstance(value, (RecordedValue, TracedScalar))
            span.results[path] = dtype_text(value), recorder.before(value) if is_recorded else None

    def _before_end(self, reason: str) -> None:
        """Send what the shadow has seen of calls that have not returned, and the differences."""
        self.settle()
        if self.root is not None and reason and not self._traces:
            self._send_facts(self._session.graph, unfinished=True)
        if self.compares:
            with recording_with(None):
                differences = [*self.facts.differences(self._session.graph)]
            self.side.send({"calls": [], "differences": differences, "partial": True}, later=True)

    def record(self, call: WatchedCall) -> bool:
        """Record a call; return whether it was made, which a traced call is not."""
        watched, signature, args, keywords = call
        side, session = self.side, self._session
        self.settle()
        side.send({"start": watched.name})  # with the facts of the recording before
        function: Any = watched.functions[-1]
        if watched.kind == "method":
            function, args = MethodType(function, args[0]), args[1:]
        if "rules" in keywords:  # a parameter of record, too
            function, keywords = partial(function, **keywords), dict[str, Any]()
        self._kinds.add(signature.kind)
        self.root, self._spans, self._frames = watched, [], {}
        self._long_at = process_time() + LONG
        self._firsts = len(session.graph.symbols), len(session.recorder.notes)
        library = library_of([*args, *keywords.values()])
        self._traces = bool(library)
        self._watch_inner(True)
        side.idle_since, has_ended = None, False
        try:
            if library:
                source = from_jax if library == "jax" else _torch_graph
                self._trace(signature, partial(source, function, *args, **keywords))
                return False
            self._result = session.call(function, args, keywords)
            has_ended = True
        finally:
            self.root = None
            side.idle_since = process_time()
            self._watch_inner(False)
            if not library:
                self._send_facts(session.graph, raises=not has_ended)
        return True

    def settle(self, is_failure: bool = False) -> None:
        """Send the facts of recordings that ended in an exception, which the test may expect.

        If the test fails, it may pass outside of the shadow: what followed there was not seen.
        """
        for message in self._raising:
            if is_failure:
                for call in message["calls"]:
                    call.forget_results()
            self.side.send(message, later=True)
        self._raising.clear()

    def _trace(self, signature: CallSignature, trace: Callable[[], Graph]) -> None:
        """Send what a function of JAX or torch does with arrays like these."""
        assert self.root is not None
        signature.claims += 1
        span = Span(self.root, signature.call.arguments, 0)
        try:
            graph = trace()
        except Exception as error:
            problem = str(error).partition("\n")[0][:200]
            span.counts = True
            call = CallRecord(self.root.name, signature.call.arguments, unseen=[problem])
            self.side.send({"calls": [call], "differences": [], "partial": False}, later=True)
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
        self.passes = True
        try:
            with recording_with(None):
                by_name = {name: plain(value) for name, value in keywords.items()}
                result = former.function.functions[-1](*map(plain, args), **by_name)
        finally:
            self.passes = False
        symbols = {
            (str(symbol.type.dtype), symbol.type.shape): symbol
            for _, symbol in former.results.values()
            if symbol is not None
        }

        def recorded(value: Any) -> Any:
            is_array = issubclass(cast("Any", type(value)), (np.ndarray, np.generic))
            if not is_array or recorder.memory.owner(value):
                return value
            symbol = symbols.get((str(value.dtype), value.shape))
            return recorder.wrapped(value, symbol)

        self._result = mapped_tuple(result, recorded)
        return True

    def _open_span(
        self, function: WatchedFunction, signature: CallSignature, frame: FrameType
    ) -> None:
        recorder = active()
        if recorder is None:
            return
        self._kinds.add(signature.kind)
        of_test = signature.tests is None or self.test in signature.tests
        counts = of_test and signature.claims < MOST_RECORDINGS
        signature.claims += counts
        span = Span(function, signature.call.arguments, len(recorder.graph.symbols))
        span.counts = counts
        self._spans.append(span)
        self._frames[id(frame)] = span

    def _send_facts(self, graph: Graph, unfinished: bool = False, raises: bool = False) -> None:
        """Send the facts of the recorded call; with `unfinished`, before it returns.

        With `raises`, they are kept until the test goes on, or fails.
        """
        first, count = self._firsts
        every = [*self._session.recorder.notes.values()][count:]
        notes = graph.notes if self._traces else [x for x in every if x.reason != IS_DATA]
        open_spans = {id(span) for span in self._frames.values()} if unfinished else set[int]()
        try:
            with recording_with(None):
                calls = self.facts.calls(graph, first, self._spans, [str(x) for x in notes])
        except Exception as error:  # a fault of ours may not change the shadow's course
            self.side.before_end = nothing_before_end
            self.side.end(f"its facts have a fault: {type(error).__name__}")
        spans = [span for span in self._spans if span.counts]
        for call, span in zip(calls, spans, strict=True):
            call.recorded_in = [self.test]
            if id(span) in open_spans:
                call.forget_results()
        message = {"calls": calls, "differences": [], "partial": unfinished}
        if raises:
            self._raising.append(message)
        else:
            self.side.send(message, later=True)


def _torch_graph(function: Callable[..., Any], *args: Any, **keywords: Any) -> Graph:
    return record_torch(function, *args, **keywords).graph

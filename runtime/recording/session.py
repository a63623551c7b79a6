"""Recordings of many calls by one recorder, in a process that ends with it.

A recording of its own costs milliseconds before the first step: it replaces NumPy's constructors
in all modules, and finds the arrays that the program can reach. A session does both once, and never
undoes them. Between its calls nothing records; what it left behind computes as plain arrays do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from graphir.public import Graph
from graphir.runtime.recording.captured import ArraySlot, swapped
from graphir.runtime.recording.numpy_.creation import MakerPlaces
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.recording import new_recorder, recorded_slot
from graphir.runtime.recording.results import plain_result
from graphir.runtime.recording.values import plain, recording_with

MOST_VISITS = 400
"""The most objects among the arguments of a call in which a session looks for arrays."""


class RecordingSession:
    """Records calls in one graph.

    `slots` hold the arrays that the program captures, `places` the constructors (maker_places).
    The code of the program must have its calls watched already (see watched_code.watch_calls).
    """

    def __init__(self, name: str, slots: Iterable[ArraySlot], places: MakerPlaces) -> None:
        self.recorder: Recorder = new_recorder(name, "numpy", RecordingSession.call.__code__)
        for namespace, key, maker in places:
            namespace[key] = maker
        for slot in slots:
            if slot.holds(slot.value):
                new = recorded_slot(
                    self.recorder.program_arrays.wrap_capture, slot.value, slot.name
                )
                if new is not slot.value:
                    slot.store(new)

    @property
    def graph(self) -> Graph:
        """The graph of all calls so far."""
        return self.recorder.graph

    def call(
        self, function: Callable[..., Any], args: Iterable[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """Return the plain result of a call, whose steps are added to the graph."""
        recorder, positional, by_name = self.recorder, dict(enumerate(args)), dict(keywords)
        roots = getattr(function, "__self__", None), positional, by_name
        recorder.enter()
        with (
            swapped(partial(recorded_slot, self._wrap), plain, *roots, most=MOST_VISITS),
            recording_with(recorder),
        ):
            result: Any = function(*positional.values(), **by_name)
        return plain_result(result)

    def _wrap(self, value: Any, name: str | None) -> Any:
        """Return a recorded scalar, or a recorded array that is an input from its first use on."""
        arrays = self.recorder.program_arrays
        wrap = arrays.wrap_argument if isinstance(value, np.generic) else arrays.wrap_capture
        return wrap(value, name)

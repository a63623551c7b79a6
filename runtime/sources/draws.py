"""Notes of random numbers that a program draws from Python or NumPy while it is traced."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def note_draws(note: Callable[[str], Any]) -> Generator[None]:
    """Pass a note for each global generator from which the body draws numbers."""
    states = [state() for state in _STATES.values()]
    yield
    for (module, state), before in zip(_STATES.items(), states, strict=True):
        if state() != before:
            text = f"the numbers that the program draws from {module} are constants of the graph"
            note(f"{text}; pass them as arguments")


def _numpy_state() -> tuple[Any, ...]:
    state: Any = np.random.get_state()
    return state[1].tobytes(), *state[2:]  # the words of the generator, and its position


_STATES: dict[str, Callable[[], Any]] = {"random": random.getstate, "numpy.random": _numpy_state}

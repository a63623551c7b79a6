"""Detection of random draws during a trace, which later calls of the Program would repeat."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, cast

import numpy as np

GENERATORS = (
    random.Random,
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
)

_ENTROPY = {
    id(method.__code__) for method in (random.SystemRandom.getrandbits, random.SystemRandom.random)
}


def draws_entropy(frame: FrameType) -> bool:
    """Whether a starting function draws entropy from the operating system.

    Generators without a seed draw entropy at their creation.
    """
    code = frame.f_code
    return id(code) in _ENTROPY or (
        code is random.Random.seed.__code__ and frame.f_locals.get("a") is None
    )


class Randomness:
    """The states of generators at their first occurrence; `moved` names the changed ones."""

    def __init__(self) -> None:
        self.entropy = False
        self._states: dict[int, tuple[Any, str, Any]] = {}
        for generator, name in _of_process():
            self.add(generator, name)

    def add(self, generator: Any, name: str) -> None:
        """Record the state of a generator at its first occurrence."""
        if id(generator) not in self._states:
            self._states[id(generator)] = generator, name, _state(generator)

    def advanced_generators(self) -> list[str]:
        """Return the names of the generators that have drawn numbers since."""
        names = [name for method, name, state in self._states.values() if _state(method) != state]
        return [*names, *(["a generator without a seed"] if self.entropy else [])]


def _of_process() -> Iterator[tuple[Any, str]]:
    yield cast("Any", np.random.mtrand)._rand, "np.random"
    yield cast("Any", random)._inst, "random"
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "default_generator"):
        yield torch.default_generator, "torch"


def _state(generator: Any) -> Any:
    """Return the state of a generator as nested tuples, which compare by value."""
    if isinstance(generator, np.random.SeedSequence):
        return generator.n_children_spawned
    if isinstance(generator, np.random.Generator):
        return _state(generator.bit_generator)
    if isinstance(generator, np.random.BitGenerator):
        seeds: Any = generator.seed_seq
        return _plain(generator.state), getattr(seeds, "n_children_spawned", 0)
    if isinstance(generator, np.random.RandomState):
        return _plain(generator.get_state(legacy=False))
    if isinstance(generator, random.SystemRandom):
        return None  # has no state; see `draws_entropy`
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state().numpy().tobytes()  # of torch


def _plain(state: Any) -> Any:
    if isinstance(state, np.ndarray):
        return cast("np.ndarray[Any, Any]", state).tobytes()
    if isinstance(state, dict):
        table = cast("dict[str, Any]", state)
        return tuple((name, _plain(method)) for name, method in table.items())
    return state

"""Detection of random draws during a trace, which later calls of the Program would repeat."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Container, Iterator
from threading import get_ident
from types import FrameType, ModuleType
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
    """The draws of random numbers by one thread while it traces a function.

    A generator has drawn numbers if its state has changed. The generators of the process serve all
    threads: beside other threads their changes count if the traced code reaches them.
    """

    def __init__(self) -> None:
        self.entropy = False
        self._states: dict[int, tuple[Any, str, Any]] = {}
        self._reached: set[int] = set()
        for generator, name in _of_process():
            self._states[id(generator)] = generator, name, _state(generator)

    def add(self, generator: Any, name: str) -> None:
        """Record the state of a generator at its first occurrence in the traced code."""
        self._reached.add(id(generator))
        if id(generator) not in self._states:
            self._states[id(generator)] = generator, name, _state(generator)

    def add_function(self, function: Callable[..., Any]) -> None:
        """Record that the traced code calls, or can call, a compiled method of a generator."""
        owner = getattr(function, "__self__", None)
        if id(owner) in self._states:
            self._reached.add(id(owner))

    def add_module(self, module: ModuleType, attributes: Container[str]) -> None:
        """Record that the traced code reaches attributes of a module whose functions draw numbers.

        The functions of np.random are methods, of whose calls a profile function hears nothing.
        """
        module_name = module.__name__
        if module_name == "numpy" and "random" in attributes:
            module_name = "numpy.random"
        self._reached.update(
            id(generator) for generator, name, _ in self._states.values() if name == module_name
        )

    def advanced_generators(self) -> list[str]:
        """Return the names of the generators from which this thread has drawn numbers since."""
        is_alone = runs_alone()
        names = [
            name
            for key, (generator, name, state) in self._states.items()
            if (is_alone or key in self._reached) and _state(generator) != state
        ]
        return [*names, *(["a generator without a seed"] if self.entropy else [])]


def runs_alone() -> bool:
    """Whether no other thread runs Python code, apart from those of graphir."""
    # sys._current_frames() would hold the frames of machine code's compiler, whose objects of LLVM
    # this thread would then free while that one uses LLVM.
    return all(
        thread.ident == get_ident() or thread.name.startswith("graphir")
        for thread in threading.enumerate()
    )


def _of_process() -> Iterator[tuple[Any, str]]:
    yield cast("Any", np.random.mtrand)._rand, "numpy.random"
    yield cast("Any", random)._inst, "random"
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "default_generator"):
        yield torch.default_generator, "torch"


def _state(generator: Any) -> Any:
    """Return the state of a generator as nested tuples, which compare by value."""
    return next(read(generator) for kind, read in _STATES.items() if isinstance(generator, kind))


def _bit_state(generator: np.random.BitGenerator) -> Any:
    return _plain(generator.state), getattr(generator.seed_seq, "n_children_spawned", 0)


_STATES: dict[type, Callable[[Any], Any]] = {
    np.random.SeedSequence: lambda x: x.n_children_spawned,
    np.random.Generator: lambda x: _bit_state(x.bit_generator),
    np.random.BitGenerator: _bit_state,
    np.random.RandomState: lambda x: _plain(x.get_state(legacy=False)),
    random.SystemRandom: lambda x: None,  # has no state; see `draws_entropy`
    random.Random: random.Random.getstate,
    object: lambda x: x.get_state().numpy().tobytes(),  # of torch
}


def _plain(state: Any) -> Any:
    if isinstance(state, np.ndarray):
        return cast("np.ndarray[Any, Any]", state).tobytes()
    if isinstance(state, dict):
        table = cast("dict[str, Any]", state)
        return tuple((name, _plain(method)) for name, method in table.items())
    return state

"""Detection of random draws during a trace, which later calls of the Program would repeat."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from threading import Lock, get_ident
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

    A generator that the traced code reaches has drawn numbers if its state has changed. The
    generators of the process serve all threads: those of NumPy count the draws of each thread, and
    those of other libraries count if the traced code reaches them too.
    """

    def __init__(self) -> None:
        self.entropy = False
        self._states: dict[int, tuple[Any, str, Any]] = {}
        self._reached: set[int] = set()
        for generator, name in _of_process():
            self._states[id(generator)] = generator, name, _state(generator)
        self._draws = _DRAWS[get_ident()]

    def add(self, generator: Any, name: str) -> None:
        """Record the state of a generator at its first occurrence in the traced code."""
        self._reached.add(id(generator))
        if id(generator) not in self._states:
            self._states[id(generator)] = generator, name, _state(generator)

    def add_function(self, function: Any) -> None:
        """Record that the traced code calls, or can call, a compiled method of a generator."""
        owner = getattr(function, "__self__", None)
        if id(owner) in self._states:
            self._reached.add(id(owner))

    def add_module(self, module: ModuleType) -> None:
        """Record that the traced code reaches a module whose functions draw numbers."""
        self._reached.update(
            id(generator)
            for generator, name, _ in self._states.values()
            if name == module.__name__ and not isinstance(generator, np.random.RandomState)
        )

    def advanced_generators(self) -> list[str]:
        """Return the names of the generators from which this thread has drawn numbers since."""
        names = [
            name
            for generator, name, state in self._states.values()
            if self._is_own(generator) and _state(generator) != state
        ]
        return [*names, *(["a generator without a seed"] if self.entropy else [])]

    def _is_own(self, generator: Any) -> bool:
        """Whether a change of a generator's state is the work of the traced code."""
        if generator is _NUMPY_GENERATOR and _TRACES and _TRACES[0].is_installed:
            return _DRAWS[get_ident()] != self._draws
        return id(generator) in self._reached or runs_alone()


def runs_alone() -> bool:
    """Whether no other thread runs Python code, apart from those of graphir."""
    # sys._current_frames() would hold the frames of machine code's compiler, whose objects of LLVM
    # this thread would then free while that one uses LLVM.
    return all(
        thread.ident == get_ident() or thread.name.startswith("graphir")
        for thread in threading.enumerate()
    )


class _CountingLock:
    """The lock of NumPy's global generator while a trace runs; it counts the draws of each thread.

    Each draw enters the lock, under whichever name the program calls and from compiled code too.
    NumPy takes any object with a `capsule`, the memory of the state, and a `lock` for a generator.
    """

    def __init__(self, generator: Any) -> None:
        self.generator, self.capsule, self.lock = generator, generator.capsule, self
        self._lock = generator.lock

    def __enter__(self) -> None:
        self._lock.acquire()
        _DRAWS[get_ident()] += 1

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def is_installed(self) -> bool:
        """Whether the global generator still has the memory of this lock."""
        return _NUMPY_GENERATOR._bit_generator is self.generator

    def install(self, generator: Any) -> None:
        """Give the global generator this lock, or that of `generator`; its state stays the same."""
        with self._lock:  # so that no other thread draws in between
            state = _NUMPY_GENERATOR.get_state(legacy=False)
            cast("Any", np.random).set_bit_generator(generator)
            _NUMPY_GENERATOR._bit_generator = self.generator
            _NUMPY_GENERATOR.set_state(state)  # with the normal number kept for the next draw


_NUMPY_GENERATOR: Any = cast("Any", np.random.mtrand)._rand
_DRAWS: Counter[int] = Counter()
_TRACES: list[_CountingLock] = []
"""A reference to the installed lock for each trace under way."""
_CHANGE = Lock()


def count_draws() -> None:
    """Begin to count the draws from NumPy's global generator, until `stop_counting`; it nests."""
    with _CHANGE:
        lock = _TRACES[0] if _TRACES else _CountingLock(_NUMPY_GENERATOR._bit_generator)
        if not _TRACES:
            lock.install(lock)
        _TRACES.append(lock)


def stop_counting() -> None:
    """End the count that `count_draws` began."""
    with _CHANGE:
        lock = _TRACES.pop()
        if not _TRACES and lock.is_installed:
            lock.install(lock.generator)


def _of_process() -> Iterator[tuple[Any, str]]:
    yield _NUMPY_GENERATOR, "np.random"
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
        draws = _DRAWS[get_ident()]
        state = _plain(generator.get_state(legacy=False))
        _DRAWS[get_ident()] = draws  # a look at the state enters the lock, as a draw does
        return state
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

"""Values that a program makes while a source traces it: constants, whose casts no op shows.

NumPy computes at once what does not depend on the arguments, and so do the constructors of JAX and
PyTorch. A source finds the constants that the program did not hold before it ran, and watches the
constructors that turn Python numbers into arrays of a dtype.
A source also
notes the random numbers that a program draws from Python or NumPy meanwhile."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import compress
from threading import RLock
from types import CodeType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.ir.inlining import inlined
from graphir.ir.liveness import live_mask
from graphir.location import UnseenPart
from graphir.public import DType, Graph, Location, Symbol, ops
from graphir.runtime.recording.captured import slots
from graphir.runtime.user_code import INSTALLED


class Folding:
    """The values that a program makes while it is traced.

    `kind` is the class of the library's arrays, and `as_array` gives the values of one, or None.
    `entered`, if a source keeps it, has the values of the program's arrays that became constants;
    other constants of rank 1 and above are then the source's own.
    """

    entered: list[Any] | None = None

    def __init__(self, kind: type, as_array: Callable[[Any], Any] = np.asarray) -> None:
        self._kind, self._as_array = kind, as_array
        self._literals: list[Any] = []
        self._parts: list[UnseenPart] = []

    def note_array(self, what: str, location: Location, data: Any, dtype: np.dtype[Any]) -> None:
        """Take in that a constructor makes an array of a NumPy dtype of data; of tracers, nothing.

        JAX gives a tracer of the array, so that its values are computed here.
        """
        try:
            before: Any = np.asarray(data)
            if before.dtype == dtype and not _is_written(data):
                return
            with np.errstate(all="ignore"):
                after = before.astype(dtype)
        except (TypeError, ValueError):
            return
        if _is_written(data):
            self._literals.append(after)
        change = _change(before, after)
        if change:
            reason = f"makes {after.dtype} {change} while the program is traced"
            self._parts.append(UnseenPart(what, location, reason))

    @contextmanager
    def watched(self, makers: Iterable[tuple[Any, str, str]]) -> Generator[None]:
        """Context manager: note the arrays of constructors that lines of the user call.

        A constructor is the attribute of an owner, and has the name that reports give it. Only
        calls in this context count; other threads may trace at the same time.
        """
        token = _ACTIVE.set(self)
        with _LOCK:
            _USERS[0] += 1
            for owner, name, what in makers:
                if (owner, name) not in _ORIGINALS:
                    original = _ORIGINALS[owner, name] = getattr(owner, name)
                    setattr(owner, name, _watching(original, what))
        try:
            yield
        finally:
            _ACTIVE.reset(token)
            with _LOCK:
                _USERS[0] -= 1
                while _ORIGINALS and not _USERS[0]:
                    (owner, name), original = _ORIGINALS.popitem()
                    setattr(owner, name, original)

    @classmethod
    def is_watching(cls, code: CodeType) -> bool:
        """Whether code is of a watched constructor: a frame between the user's and a library's."""
        return code.co_filename == cls.is_watching.__code__.co_filename

    def unseen(self, graph: Graph, program: Any, scalars: bool = False) -> list[UnseenPart]:
        """Return what the program made: values that changed, and constants that it did not hold.

        Constants of rank 0 count if `scalars`.
        """
        constants = [x for x in _constants(graph) if scalars or x.rank]
        arrays = [*self._literals, *self._captured(program)] if constants else []
        before, inside = _by_type(arrays), _by_type(self.entered or ())
        parts = [
            UnseenPart(
                f"a constant {constant.type}",
                constant.location,
                "is made while the program is traced; the graph has its values alone",
            )
            for constant in constants
            if not _is_among(constant.attrs["value"], before)
            and (self.entered is None or _is_among(constant.attrs["value"], inside))
        ]
        return [*self._parts, *parts]

    def _captured(self, program: Callable[..., Any]) -> Iterator[Any]:
        """Yield the arrays that a program reaches before it runs."""
        for slot in slots(program, kinds=(np.ndarray, np.generic, self._kind)):
            value: Any = slot.value
            if isinstance(value, (np.ndarray, np.generic)):
                yield np.asarray(cast("Any", value))
            elif isinstance(value, self._kind) and (array := self._as_array(value)) is not None:
                yield array


_ACTIVE: ContextVar[Folding | None] = ContextVar("folding", default=None)
_LOCK = RLock()
_USERS = [0]
_ORIGINALS: dict[tuple[Any, str], Callable[..., Any]] = {}
"""The constructors that are watched, by owner and name, while a program is traced."""


def _watching(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return a constructor that tells the active Folding of its arrays."""

    @wraps(original)
    def constructor(*args: Any, **keywords: Any) -> Any:
        result, folding = original(*args, **keywords), _ACTIVE.get()
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if folding is not None and not frame.f_code.co_filename.startswith(INSTALLED):
            data = next((x for x in args if not isinstance(x, type)), None)
            place = Location(frame.f_code, frame.f_lasti)
            folding.note_array(what, place, data, result.dtype)
        return result

    return constructor


def _constants(graph: Graph) -> Iterator[Symbol]:
    """Yield the live constants that are no Python numbers of the program, and no masks."""
    view = inlined(graph)
    for symbol in compress(view.symbols, live_mask(view, view.outputs)):
        is_made = symbol.op is ops.constant and symbol.attrs["literal"] is None
        if is_made and not symbol.weak and symbol.dtype is not DType.bool:
            yield symbol


def _by_type(arrays: Iterable[Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for array in arrays:
        groups.setdefault((array.dtype, array.shape), []).append(array)
    return groups


def _is_among(value: NDArray[Any], arrays: Mapping[Any, Sequence[Any]]) -> bool:
    same = arrays.get((value.dtype, value.shape), ())
    return any(x is value or x.tobytes() == value.tobytes() for x in same)


def _is_written(data: Any) -> bool:
    """Whether data are Python numbers, which the program writes, also in lists and tuples."""
    if isinstance(data, (list, tuple)):
        return all(map(_is_written, cast("Iterable[Any]", data)))
    return isinstance(data, (bool, int, float, complex)) and not isinstance(data, np.generic)


def _change(before: NDArray[Any], after: NDArray[Any]) -> str:
    """Return the first number that a conversion changed, as text; "" for none.

    A number that a float rounds is none, as for policies.
    """
    if before.dtype.kind not in "biufc" or after.dtype.kind == "b":
        return ""
    with np.errstate(all="ignore"):
        if after.dtype.kind in "iu":
            changed = after != before
        else:
            values = after if after.dtype.kind in "fc" else after.astype(np.float64)
            overflowed = ~np.isfinite(values) & np.isfinite(before)
            changed = overflowed | ((values == 0) & (before != 0))
    if not changed.any():
        return ""
    first = int(np.argmax(changed))
    return f"{after.reshape(-1)[first]} of {before.reshape(-1)[first]}"


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

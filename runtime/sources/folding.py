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
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from itertools import compress
from threading import RLock
from types import CodeType
from typing import Any, NamedTuple, cast

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

    class Made(NamedTuple):
        """An array that was made of data while the program was traced: the data, and where."""

        before: NDArray[Any]
        after: NDArray[Any]
        location: Location

        @property
        def is_number(self) -> bool:
            """Whether the data are a Python number."""
            return not self.before.ndim and self.before.dtype.name in _OF_NUMBERS

    def __init__(self, kind: type, as_array: Callable[[Any], Any] = np.asarray) -> None:
        self._kind, self._as_array = kind, as_array
        self._literals: list[Any] = []
        self._parts: list[UnseenPart] = []
        self._made: list[Folding.Made] = []

    def note_number(self, data: Any, dtype: np.dtype[Any]) -> None:
        """Take in that the library converts a number among the operands of an op."""
        before: NDArray[Any] = np.asarray(data)
        with np.errstate(all="ignore"):
            after = before.astype(dtype)
        frame: Any = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code.co_filename.startswith(INSTALLED):
            frame = frame.f_back
        if frame is not None and not before.ndim and _change(before, after):
            self._made.append(Folding.Made(before, after, Location(frame.f_code, frame.f_lasti)))

    def made(self, array: NDArray[Any], line: tuple[str, int] | None = None) -> Made | None:
        """Return what a constant was made of, if one expression alone made it; None if unknown.

        Single numbers count if they were made in the line that uses them.
        """
        found = [x for x in self._made if _is_same(x.after, array)]
        if not array.ndim:
            found = [x for x in found if x.location.place[:2] == line]
        return found[0] if len({x.location.place for x in found}) == 1 else None

    def note_array(self, what: str, location: Location, data: Any, dtype: np.dtype[Any]) -> None:
        """Take in that a constructor makes an array of a NumPy dtype of data; of tracers, nothing.

        JAX gives a tracer of the array, so that its values are computed here.
        """
        is_written = _is_written(data)
        try:
            before: Any = np.asarray(data)
            if before.dtype == dtype and not is_written:
                return
            with np.errstate(all="ignore"):
                after = before.astype(dtype)
        except (TypeError, ValueError):
            return
        change = _change(before, after)
        if is_written:
            self._literals += [after, before]
        rounds_numbers = is_written and not change
        self._made.append(Folding.Made(after if rounds_numbers else before, after, location))
        if change:
            reason = f"makes {after.dtype} {change} while the program is traced"
            self._parts.append(UnseenPart(what, location, reason))

    @contextmanager
    def watched(self, makers: Iterable[tuple[Any, Any, str]]) -> Generator[None]:
        """Context manager: note the arrays of constructors that lines of the user call.

        A constructor is the attribute or the item of an owner, and has the name that reports give
        it. Only
        calls in this context count; other threads may trace at the same time.
        """
        token = _ACTIVE.set(self)
        with _LOCK:
            _USERS[0] += 1
            for owner, name, what in makers:
                if all(x is not owner or y != name for x, y, _ in _ORIGINALS):
                    is_item = isinstance(owner, dict)
                    original: Any = cast("Any", owner)[name] if is_item else getattr(owner, name)
                    _ORIGINALS.append((owner, name, original))
                    _replace(owner, name, _watching(original, what))
        try:
            yield
        finally:
            _ACTIVE.reset(token)
            with _LOCK:
                _USERS[0] -= 1
                while _ORIGINALS and not _USERS[0]:
                    _replace(*_ORIGINALS.pop())

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
_ORIGINALS: list[tuple[Any, Any, Callable[..., Any]]] = []
"""The constructors that are watched while a program is traced, each with its owner and name."""


def _replace(owner: Any, name: Any, function: Callable[..., Any]) -> None:
    if isinstance(owner, dict):
        owner[name] = function
    else:
        setattr(owner, name, function)


def _watching(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return a constructor that tells the active Folding of its arrays.

    Without a name, the function is the rule by which JAX converts a number while it traces.
    """

    @wraps(original)
    def folding_rule(constants: Any, parameters: Any, types: Any) -> Any:
        folding = _ACTIVE.get()
        if folding is not None:
            with suppress(TypeError, ValueError):  # a dtype that NumPy has not
                folding.note_number(constants[0], np.dtype(parameters["new_dtype"]))
        return original(constants, parameters, types)

    if not what:
        return folding_rule

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


_OF_NUMBERS = ("float64", "int64", "complex128")
"""The dtypes that NumPy gives Python numbers."""


def _is_same(array: NDArray[Any], other: NDArray[Any]) -> bool:
    is_alike = (array.dtype, array.shape) == (other.dtype, other.shape)
    return is_alike and array.tobytes() == other.tobytes()


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

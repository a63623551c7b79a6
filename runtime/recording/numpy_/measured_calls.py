"""Calls of NumPy's functions in a recorded program, for audits: the same calls, wide operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from graphir.public import Symbol
from graphir.runtime.audit.library_calls import LibraryCall, wide_setting
from graphir.runtime.recording.values import RecordedNumber, RecordedValue, plain, recording_with
from graphir.semantics.library_calls import leaves, mapped

if TYPE_CHECKING:
    from graphir.runtime.recording.recorder import Recorder

_DISPATCHER = cast("type[Any]", type(np.sum))
_UNMEASURED = frozenset(
    ("array2string", "array_repr", "array_str", "einsum_path", "save", "savetxt", "savez",
     "savez_compressed", "may_share_memory", "shares_memory")
)  # fmt: skip
_ORDERS = frozenset(("partition", "sort", "sort_complex"))
_CHOOSING = _ORDERS | frozenset(("unique", "unique_all", "unique_counts", "unique_values"))
"""The functions whose integers are those of operands, positions and counts."""
_SIMPLE = (str, bytes, bool, int, float, complex, type(None), np.dtype, type)


class _Place(int):
    """The place of an operand among the operands."""


class RecordedCall(LibraryCall):
    """A function of NumPy with its other arguments; `operands` are its arrays and NumPy scalars.

    The results are the arrays and NumPy scalars in what the function returns, then the operands,
    to which it may have written.
    """

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.function = function
        self.operands: list[Any] = []
        keywords = {name: wide_setting(name, value) for name, value in kwargs.items()}
        self._arguments = mapped(self._leaf, [[*args], keywords])

    @property
    def keeps_order(self) -> bool:
        """Whether the results are in an order, beside which no choice counts."""
        return getattr(self.function, "__name__", "") in _ORDERS

    @property
    def keeps_integers(self) -> bool:
        """Whether the integers are those of operands, positions or counts."""
        return getattr(self.function, "__name__", "") in _CHOOSING

    def widened(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results on copies of wide operands."""
        arrays = [np.array(x) for x in operands]
        args, kwargs = mapped(
            lambda leaf: arrays[leaf] if type(leaf) is _Place else leaf, self._arguments
        )
        with np.errstate(all="ignore"):
            result = self.function(*args, **kwargs)
        return [*arrays_in(result), *arrays]

    def place(self, real: Any, result: Any) -> int | None:
        """Return the place of a result of the run, or of an operand that it wrote to; or None."""
        results = [*arrays_in(result), *map(plain, self.operands)]
        return next((i for i, x in enumerate(results) if x is real), None)

    def _leaf(self, value: Any) -> Any:
        if not isinstance(value, (np.ndarray, np.generic)):
            return value
        self.operands.append(value)
        return _Place(len(self.operands) - 1)


class KnownCall(NamedTuple):
    """A call, and the symbols that its operands had before it."""

    call: RecordedCall
    symbols: tuple[Symbol, ...]


def arrays_in(result: Any) -> list[Any]:
    """Return the arrays and NumPy scalars in the result of a call, as plain ones."""
    return [plain(x) for x in leaves(result) if isinstance(x, (np.ndarray, np.generic))]


UNDONE: Any = object()
"""The result of a call that the recorder has not made yet."""


class RunningCall:
    """A call of the program that the recorder handles: its arguments, and what NumPy made of it.

    Running calls are a stack: `outer` is the call inside of which this one runs, or None.
    """

    __slots__ = ("_measured", "args", "error", "function", "kwargs", "outer", "result")

    def __init__(self, args: Sequence[Any], kwargs: Any, outer: RunningCall | None) -> None:
        self.args, self.kwargs, self.outer = args, kwargs, outer
        self.function = ""
        """The name of NumPy's function if that is written in Python, so that it makes calls."""
        self.result: Any = UNDONE
        """The plain result of NumPy; UNDONE before NumPy's call."""
        self.error: Exception | None = None
        """The error that NumPy's call raised."""
        self._measured: KnownCall | bool | None = False

    def measure(self, recorder: Recorder, name: str) -> None:
        """Note the symbols of the operands, before NumPy may write to these."""
        try:
            self._measured = _measured_call(recorder, name, self.args, self.kwargs)
        except Exception as error:  # no fault of the recording may stop the program
            recorder.add_fault(error)
            self._measured = None

    def measured(self, recorder: Recorder, name: str) -> KnownCall | None:
        """Return the call for an audit, one object for all results: an audit measures it once.

        None of a call that cannot be repeated: of what is no function of NumPy's own, with
        arguments that are functions or objects, or with `out=`.
        """
        if self._measured is False:
            self.measure(recorder, name)
        return cast("KnownCall | None", self._measured)

    def stack(self) -> list[tuple[Any, Any]]:
        """Return the arguments of this call and of those around it, the user's call first."""
        outer = [] if self.outer is None else self.outer.stack()
        return [*outer, (self.args, self.kwargs)]


def _measured_call(
    recorder: Recorder, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> KnownCall | None:
    first: Any = args[0] if args else None
    function: Any = None
    if isinstance(first, np.ufunc) and len(args) == 4:
        function, method, args, kwargs = args
        is_own = function.signature or getattr(np, function.__name__, None) is function
        function = getattr(function, method) if is_own else None
    elif isinstance(first, _DISPATCHER) and len(args) == 3 and isinstance(args[2], dict):
        function, args, kwargs = args
        function = None if cast("Any", first).__name__ in _UNMEASURED else function
    elif isinstance(first, RecordedValue):
        function = getattr(np.ndarray, name, None)
    elif isinstance(getattr(first, "__self__", None), _SOURCES) and len(args) == 4:
        first, _, args, kwargs = args
        function = _RepeatedDraw(first.__self__, first.__name__)
    is_plain = kwargs.get("out") is None and kwargs.get("where", True) is True
    if function is None or not is_plain or not all(map(_is_repeatable, leaves([args, kwargs]))):
        return None
    call = RecordedCall(function, args, {x: y for x, y in kwargs.items() if x != "out"})
    symbols = [recorder.before(x) for x in call.operands]
    if None in symbols:
        return None
    return KnownCall(call, cast("tuple[Symbol, ...]", tuple(symbols)))


class _RepeatedDraw:
    """A method of a source of random numbers in its present state: each call draws the same."""

    def __init__(self, source: Any, name: str) -> None:
        is_generator = isinstance(source, _GENERATOR)
        with recording_with(None):
            self._source = deepcopy(source.bit_generator if is_generator else source)
        self._is_generator, self._name = is_generator, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        source = deepcopy(self._source)
        return getattr(_GENERATOR(source) if self._is_generator else source, self._name)(
            *args, **kwargs
        )


_GENERATOR = np.random.Generator  # a recording puts classes of its own in place of NumPy's
_SOURCES = (np.random.Generator, np.random.RandomState)


def _is_repeatable(leaf: Any) -> bool:
    """Whether an argument is an array of numbers, or a setting."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return cast("Any", leaf).dtype.kind in "biufc"
    if isinstance(leaf, RecordedNumber):
        return False
    return isinstance(leaf, _SIMPLE) or leaf is ... or leaf is np._NoValue  # pyright: ignore

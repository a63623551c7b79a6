"""The ways in which recorded values leave the recording: as numbers, bools, texts and bytes.

`LeavingValues` notes them, and `reading` makes the methods by which they leave. As operands of
opaque steps, values go into calls that no op describes: see `operands`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.import_names import is_own_module
from graphir.public import DType, Symbol
from graphir.runtime.recording.structured import structured_trace
from graphir.runtime.recording.values import (
    Array,
    RecordedNumber,
    RecordedValue,
    RecordingTrace,
    Result,
    TracedScalar,
    active,
    plain,
    plains,
)
from graphir.semantics.library_calls import leaves

if TYPE_CHECKING:
    from graphir.runtime.recording.builder import NotingBuilder
    from graphir.runtime.recording.recorder import Recorder

AS_BYTES = "gives its bytes to what is not recorded"
AS_NUMBER = "is read as a Python number, by which the program may go on"
AS_TEXT = "is read as text, by which the program may go on"
AS_TRUTH = "is read as a bool, by which the program may go on"


class LeavingValues:
    """The values that leave a recorded program beside its results: as text, numbers, files."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.rounds: dict[tuple[Any, ...], dict[Symbol, Array]] = {}
        """The values that left, and of which the program took numbers.

        The values of one key are the rounds of a place: a name, whether they surely leave, the
        dtype and the shape.
        """
        self.saved: dict[int, Symbol] = {}
        """The symbols whose values the program wrote to files, by index."""

    @property
    def surely(self) -> bool:
        """Whether a value surely left the program."""
        return any(leaves for _, leaves, *_ in self.rounds)

    def add(self, value: Any, surely: bool = True, part: int = 0) -> None:
        """Note that a value leaves the program: as text, to a file, or as a Python number.

        Without `surely`, the program may go on by the number. `part` is the position of the value
        among those that one call formats.
        """
        symbol = self._recorder.before(value)
        if symbol is not None:
            self.add_symbol(value, plain(value), symbol, surely, part)

    def add_symbol(self, value: Any, real: Result, symbol: Symbol, surely: bool, part: int) -> None:
        """Note that a value leaves the program, by its plain value and its symbol."""
        name = self._recorder.sites.name_of(value, self._recorder.here, part)
        key = name, surely, real.dtype, real.shape
        rounds = self.rounds.setdefault(key, {})
        if symbol not in rounds:
            rounds[symbol] = np.array(real)

    def add_saved(self, values: Any) -> None:
        """Note that the program writes values to a file, from which it may load them."""
        for leaf in traced_leaves(values):
            symbol = self._recorder.before(leaf)
            if symbol is not None:
                self.saved[symbol.index] = symbol
                self.add(leaf)

    def hand_out(self, what: str, value: Any, reason: str, part: int = 0) -> bool:
        """Note that numbers, texts or bytes are made of values: these leave, or are read.

        Returns whether they only leave the program. `part` is as for `add`.
        """
        only_leaves = self._recorder.sites.is_escape()
        if not only_leaves:
            self._recorder.read(what, self._truncated(value) if what == "int" else value, reason)
        for leaf in traced_leaves(value):
            self.add(leaf, only_leaves, part)
        return only_leaves

    def _truncated(self, value: Any) -> Any:
        """Return the symbol of a float as an integer, which is all that `int` reads of it."""
        real, symbol = plain(value), self._recorder.before(value)
        if symbol is None or np.size(real) != 1 or not symbol.dtype.is_float:
            return value
        return self._recorder.cast(symbol, DType.int64) if abs(float(real)) < 2**62 else value


def reading(name: str, reason: str, truth: bool = False) -> Callable[..., Any]:
    """Return a method that calls NumPy's method on the plain value, and notes that values left.

    `truth` is whether only the truth of the value leaves.
    """

    def method(self: RecordedValue | TracedScalar, *args: Any, **kwargs: Any) -> Any:
        recorder = active()
        if recorder is not None:
            recorder.locate()
            if reason == AS_BYTES:
                recorder.leaving.hand_out(name, self, reason)
            else:
                recorder.read(name, self, reason, truth)
        return getattr(self.plain, name)(*plains(args), **plains(kwargs))

    method.__name__ = name
    return method


def number_of(name: str, value: Any, number: Any) -> Any:
    """Return the Python number of a recorded value, and note that the value left the recording.

    The graph can contain such a number only as a literal. If the number leaves the program (see
    passes.analysis.value_flows), the recorded value is an output.
    """
    recorder = active()
    if recorder is not None:
        recorder.locate()
        if name == "float" and value.dtype.kind in "iu" and recorder.sites.is_escape():
            value = value.astype(np.float64)  # a cast of the graph, which may round
        reason = "makes Python numbers, by which the program may go on"
        if recorder.leaving.hand_out(name, value, reason):
            return number
        recorder.note(name, "makes Python numbers: they are taken as literals")
        if value.size == 1:
            recorder.numbers.add_plain(number, value)
    return number


def text_of(value: Any, text: str) -> str:
    """Return the text of a recorded value, and note that the value leaves the program.

    If the program may go on by the text, the value is read.
    """
    recorder = active()
    if recorder is not None and recorder.locate():
        recorder.leaving.hand_out("str", value, AS_TEXT)
    return text


def note_question(value: RecordedValue | TracedScalar) -> None:
    """Note that the program asks for the dtype or the shape of a value that it has computed.

    The value leaves the program if the program only shows what it asked for.
    """
    recorder = active()
    if recorder is not None and recorder.sites.is_shown():
        symbol = recorder.before(value)
        if symbol is not None and symbol.args:
            recorder.locate()
            recorder.leaving.add(value)


class Texts:
    """The methods of recorded arrays and scalars that give texts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self, repr(plain(self)))

    def __str__(self) -> str:
        return text_of(self, str(plain(self)))

    def __format__(self, spec: str) -> str:
        return text_of(self, format(plain(self), spec))


# -- operands of opaque steps: all recorded values in the arguments of a call

_DISPATCHER = cast("type[Any]", type(np.sum))
_SIMPLE = (str, bytes, bool, int, float, complex, type(None), type, np.dtype, np.generic)
_WIDE = frozenset("?dD")
"""The NumPy dtypes of wide arithmetic, whose results cannot wrap."""
_WHOLE = frozenset(
    ("bincount", "busday_count", "busday_offset", "digitize", "is_busday", "lexsort", "packbits",
     "ravel_multi_index", "unpackbits", "unravel_index")
)  # fmt: skip
"""Compiled functions of NumPy that are exact for integers."""


class _UnknownOperandError(Exception):
    """Raised if an argument may read values that are not among the arguments."""


def operands(recorder: NotingBuilder, values: Any) -> tuple[Symbol, ...] | None:
    """Return the symbols of all recorded values in the arguments of calls.

    The answer is None if the call may read other values too, through an object or a function.
    """
    symbols: dict[int, Symbol] = {}
    try:
        for leaf in leaves(values):
            for symbol in _symbols(recorder, leaf):
                symbols[symbol.index] = symbol
    except _UnknownOperandError:
        return None
    return tuple(symbols.values())


def _symbols(recorder: NotingBuilder, value: Any) -> Iterator[Symbol]:
    if isinstance(value, (RecordedValue, TracedScalar)) and value.plain.dtype.names:
        array = value if isinstance(value, RecordedValue) else cast("Any", value).array
        trace = structured_trace(array, cast("Any", recorder))
        if trace is None or not trace.is_certain:
            raise _UnknownOperandError
        yield from trace.symbols()
    elif isinstance(value, RecordedNumber):
        yield value.scalar.symbol
    elif isinstance(value, TracedScalar):
        yield _required(value.symbol if value.recorder is recorder else None)
    elif isinstance(value, np.ndarray):
        if value.size and not is_text(cast("Any", value).dtype):
            yield _required(_last_symbol(recorder, cast("Any", value)))
    elif isinstance(value, (set, frozenset)):
        for part in leaves([*cast("Iterable[Any]", value)]):
            yield from _symbols(recorder, part)
    elif not (isinstance(value, _SIMPLE) or value is ... or _is_numpy(value)):
        raise _UnknownOperandError


def is_text(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is that of texts or bytes, which carry no error: what they were made of did.

    The recorder notes values of which the program makes texts as read.
    """
    return dtype.kind in "US"


def _required(symbol: Symbol | None) -> Symbol:
    if symbol is None:
        raise _UnknownOperandError
    return symbol


def _last_symbol(recorder: NotingBuilder, array: NDArray[Any]) -> Symbol | None:
    """Return the last symbol of the whole memory that an array is a view of; None if unknown."""
    is_recorded = isinstance(array, RecordedValue)
    trace = _trace(array) if is_recorded else recorder.memory.owner(array)
    if trace is None or trace.recorder is not recorder:
        return None if is_recorded else recorder.plain_array_symbol_if_typed(array)
    return (trace.root or trace).last_symbol


def _trace(array: Any) -> RecordingTrace | None:
    """Return the trace of an array, or of the nearest array of which it is a view; or None."""
    while isinstance(array, RecordedValue):
        if array.recording_trace is not None:
            return array.recording_trace
        array = array.source
    return None


def _is_numpy(value: Any) -> bool:
    """Whether a value is a function of NumPy or of this project, which calls no user code."""
    if isinstance(value, np.ufunc):  # ufuncs of np.frompyfunc, on objects alone, call user code
        return not value.types or any(set(loop) - set("O->") for loop in value.types)
    if isinstance(value, _DISPATCHER):
        return True
    if not isinstance(value, (FunctionType, MethodType, BuiltinFunctionType)):
        return value is np._NoValue  # pyright: ignore
    module = str(getattr(value, "__module__", "") or "")
    return is_own_module(module) or module.partition(".")[0] in ("numpy", "_operator", "operator")


def is_wide(name: str, function: Any, operands: Iterable[Symbol] | None, real: Result) -> bool:
    """Whether a call of a NumPy function computes in wide arithmetic already.

    That is the case if operands are bool, float64 or complex128 and no result is narrower.
    Functions of positions are exact for integers too.
    """
    own = isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function
    own = own or isinstance(function, (_DISPATCHER, RecordedValue))
    if operands is None or not (own or name.startswith("numpy.")):
        return False
    if name.rpartition(".")[2] in _WHOLE:
        is_of_integers = all(x.dtype.family in ("bool", "int", "uint") for x in operands)
        return is_of_integers and real.dtype.kind not in "fc"  # weights of bincount
    dtypes = {np.dtype(x.dtype.storage).char for x in operands}
    return dtypes <= _WIDE and np.dtype(real.dtype).char in _WIDE | {"l", "q"}


def traced_leaves(value: Any) -> list[Any]:
    """Return the recorded values in a value, also inside lists, tuples, dicts and slices."""
    return [
        leaf.scalar if isinstance(leaf, RecordedNumber) else leaf
        for leaf in leaves(value)
        if isinstance(leaf, (RecordedValue, TracedScalar, RecordedNumber))
    ]

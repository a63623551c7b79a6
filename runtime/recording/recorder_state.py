"""The state of a recorder by purpose: the calls that run, the values handed out, the memory.

The recorder has one object of each class: `ProgramCalls`, `ProgramNumbers`, `ProgramObjects` and
`ArrayMemory`. An object is changed by its own methods alone; the rest of the recording reads its
attributes. A `RunningCall` has the form in which audits repeat it on wide operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast
from weakref import ref

import numpy as np

from graphir.public import Symbol
from graphir.runtime.audit.library_calls import LibraryCall, wide_setting
from graphir.runtime.recording.values import (
    Array,
    RecordedNumber,
    RecordedValue,
    RecordingTrace,
    Result,
    TracedScalar,
    plain,
    recording_with,
)
from graphir.semantics.library_calls import leaves, mapped

if TYPE_CHECKING:
    from graphir.runtime.recording.builder import NotingBuilder
    from graphir.runtime.recording.recorder import Recorder


class ProgramCalls:
    """The calls of the program that the recorder handles, one inside of another."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.running: RunningCall | None = None
        """The innermost call."""

    def enter(self, form: CallForm, args: Sequence[Any], kwargs: Mapping[str, Any]) -> RunningCall:
        """Add a call inside of the running one, and return it."""
        self.running = RunningCall(form, args, kwargs, self.running)
        return self.running

    def leave(self, call: RunningCall) -> None:
        """End a call: the one around it runs on."""
        self.running = call.outer

    def name_function(self, name: str) -> None:
        """Note which NumPy function, written in Python, the running call runs; "" when it ends."""
        if self.running is not None:
            self.running.function = name

    def function_name(self, name: str = "") -> str:
        """Return the outermost NumPy function that is written in Python, or `name` outside of one.

        The user called that function, and its own code makes the inner calls.
        """
        call = self.running
        while call is not None:
            name, call = call.function or name, call.outer
        return name

    @property
    def arguments(self) -> list[tuple[Any, Any]]:
        """The arguments of the running calls, the user's call first."""
        return [] if self.running is None else self.running.stack()

    @property
    def target(self) -> Any:
        """The function that the program called, or the array whose method it called."""
        call = self.outermost
        return call.args[0] if call is not None and call.args else None

    @property
    def outermost(self) -> RunningCall | None:
        """The call that the program itself made."""
        call = self.running
        while call is not None and call.outer is not None:
            call = call.outer
        return call

    def measure(self, name: str) -> None:
        """Note the running call for audits, before NumPy may write to its operands."""
        if self.running is not None:
            self.running.measure(self._recorder, name)

    def measured(self, name: str) -> KnownCall | None:
        """Return the running call for an audit (see `RunningCall.measured`)."""
        return None if self.running is None else self.running.measured(self._recorder, name)

    def place(self, call: KnownCall, real: Result) -> int | None:
        """Return the place of `real` among the results of the running call; None of any other."""
        return call.call.place(real, UNDONE if self.running is None else self.running.result)

    def forget_result(self) -> None:
        """Note that the running call is to come: NumPy's call so far has converted an argument."""
        if self.running is not None:
            self.running.result = UNDONE


class ProgramNumbers:
    """The recorded numbers and bools that the program has got, by which it may go on.

    Before the first of a kind, calls of the program need no look at their arguments for that kind.
    """

    def __init__(self) -> None:
        self.has_any = False
        """Whether the program has got recorded numbers, of NumPy or of Python."""
        self.python_count = 0
        """The number of recorded Python numbers that the program has got."""
        self.has_integers = False
        """Whether the program has got recorded Python integers."""
        self.has_bools = False
        """Whether the program has got NumPy bools of recorded values."""
        self.last_scalar: TracedScalar | None = None
        """The scalar that NumPy has computed last."""
        self._sources: dict[int, tuple[Any, Any]] = {}

    def add_scalar(self, scalar: TracedScalar) -> None:
        """Note a recorded NumPy scalar."""
        self.last_scalar, self.has_any = scalar, True

    def add_float(self) -> None:
        """Note a recorded Python float."""
        self.python_count, self.has_any = self.python_count + 1, True

    def add_integer(self) -> None:
        """Note a recorded Python integer."""
        self.add_float()
        self.has_integers = True

    def add_bool(self) -> None:
        """Note a NumPy bool, which has no symbol."""
        self.has_bools = True

    def add_plain(self, number: Any, source: RecordedValue) -> None:
        """Note a number without a symbol, and the recorded value that it was made from."""
        self._sources[id(number)] = number, source

    def source(self, number: Any) -> Any:
        """Return the recorded value that a plain number was made from; None of any other."""
        known, source = self._sources.get(id(number), (None, None))
        return source if known is number else None


class ProgramObjects:
    """The object arrays that the program has got, which no graph has."""

    def __init__(self) -> None:
        self.has_numbers = False
        """Whether the program has got object arrays of recorded Python numbers."""
        self.makers: list[str] = []
        """The calls with recorded arguments that made objects, as functions of the user do."""

    def add_numbers(self) -> None:
        """Note an object array of recorded Python numbers."""
        self.has_numbers = True

    def add_maker(self, name: str) -> None:
        """Note a call with recorded arguments that made objects."""
        if name not in self.makers:
            self.makers.append(name)

    @property
    def reason(self) -> str:
        """The reason why no op makes an array, if the program has made objects."""
        makers = ", ".join(self.makers) or "what is not recorded"
        return f"it was made of objects, which no graph has, as {makers} makes"


class ArrayMemory:
    """The memory of arrays: who owns it, how often it was written to, and what was replaced."""

    def __init__(self, recorder: NotingBuilder) -> None:
        self._recorder = recorder
        self.writes = 0
        """The number of writes to recorded memory so far."""
        self._owners: dict[int, ref[RecordingTrace]] = {}
        self._outside: dict[int, tuple[Array, Array, Symbol]] = {}
        """Plain arrays of the program with a copy and a symbol of their values, by id."""
        self._resized: dict[int, tuple[RecordedValue, Array]] = {}
        """Arrays whose memory was replaced, by id, with the original plain array."""

    def add_owner(self, real: Array, trace: RecordingTrace) -> None:
        """Note the trace of the recorded array that owns the memory of a plain array."""
        self._owners[id(real)] = ref(trace)

    def owner(self, array: Array) -> RecordingTrace | None:
        """Return the trace of the recorded array that owns the memory of a plain array, or None."""
        base: Any = array
        while base is not None:
            entry = self._owners.get(id(base))
            trace = entry and entry()
            if trace is not None and trace.plain is base:
                return trace
            if isinstance(base, RecordedValue):  # under a view of an array of another class
                trace = base.recording_trace
                if trace is not None and trace.recorder is self._recorder:
                    return trace
                base = cast("Any", np.ndarray).base.__get__(base)
            else:
                base = getattr(base, "base", None)
        return None

    def count_write(self) -> int:
        """Count a write, and return its number."""
        self.writes += 1
        return self.writes

    def outside_symbol(self, array: Array) -> Symbol | None:
        """Return the symbol of a plain array that has the values noted last; None of any other."""
        known, copy, symbol = self._outside.get(id(array), (None, None, None))
        is_same = known is array and copy is not None and copy.tobytes() == array.tobytes()
        return symbol if is_same else None

    def note_plain_write(
        self, array: Array, symbol: Symbol | None, copy: Array | None = None
    ) -> None:
        """Note that a plain array has the values of a symbol, or unknown ones for None.

        `copy` has these values if the caller has one.
        """
        if symbol is None:
            self._outside.pop(id(array), None)
        else:
            self._outside[id(array)] = array, np.array(array) if copy is None else copy, symbol

    def is_resized(self, array: RecordedValue) -> bool:
        """Whether the memory of an array was replaced."""
        return id(array) in self._resized

    def add_resized(self, array: RecordedValue, original: Array) -> None:
        """Note that the memory of an array is replaced; `original` is its plain array before."""
        self._resized.setdefault(id(array), (array, original))

    def copy_back_resized(self) -> None:
        """Copy the final size and values of each resized array to its original array."""
        for array, original in self._resized.values():
            original.resize(array.shape, refcheck=False)
            original[...] = array.plain
            array._plain = original  # pyright: ignore[reportPrivateUsage]


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

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
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

    def place(self, real: Result, result: Any) -> int | None:
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


CallForm: TypeAlias = Literal["ufunc", "operator", "function", "maker", "method"]
"""What the arguments of a running call are.

ufunc: `ufunc, method, inputs, kwargs`; operator: `function, ufunc, inputs`; function: `function,
args, kwargs`; maker: `original, record, args, kwargs`; method: the array, and NumPy's arguments.
"""


class RunningCall:
    """A call of the program that the recorder handles: its arguments, and what NumPy made of it.

    Running calls are a stack: `outer` is the call inside of which this one runs, or None.
    """

    __slots__ = ("_measured", "args", "error", "form", "function", "kwargs", "outer", "result")

    def __init__(
        self,
        form: CallForm,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        outer: RunningCall | None,
    ) -> None:
        self.form: CallForm = form
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
            self._measured = _measured_call(recorder, name, self)
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


def _measured_call(recorder: Recorder, name: str, running: RunningCall) -> KnownCall | None:
    function, args, kwargs = _repeatable_call(running, name)
    is_plain = kwargs.get("out") is None and kwargs.get("where", True) is True
    if function is None or not is_plain or not all(map(_is_repeatable, leaves([args, kwargs]))):
        return None
    call = RecordedCall(function, args, {x: y for x, y in kwargs.items() if x != "out"})
    symbols = [recorder.before(x) for x in call.operands]
    if None in symbols:
        return None
    return KnownCall(call, cast("tuple[Symbol, ...]", tuple(symbols)))


def _repeatable_call(
    call: RunningCall, name: str
) -> tuple[Callable[..., Any] | None, Sequence[Any], Mapping[str, Any]]:
    """Return a function that repeats a call by NumPy alone, its arguments and its keywords.

    The function is None for a call that an audit cannot repeat.
    """
    args, kwargs = call.args, call.kwargs
    function: Any = None
    match call.form:
        case "ufunc":
            ufunc, method, args, kwargs = args
            if ufunc.signature or getattr(np, ufunc.__name__, None) is ufunc:
                function = getattr(ufunc, method)
        case "function":
            function, args, kwargs = args
            if function.__name__ in _UNMEASURED:
                function = None
        case "maker":
            draw, _, args, kwargs = args
            source = getattr(draw, "__self__", None)
            if isinstance(source, _SOURCES):
                function = _RepeatedDraw(source, draw.__name__)
        case "method":
            function = getattr(np.ndarray, name, None)
        case "operator":
            pass
    return function, args, kwargs


class _RepeatedDraw:
    """A method of a source of random numbers in its present state: each call draws the same."""

    def __init__(self, source: np.random.Generator | np.random.RandomState, name: str) -> None:
        is_generator = isinstance(source, _GENERATOR)
        with recording_with(None):
            self._source: Any = deepcopy(source.bit_generator if is_generator else source)
        self._is_generator, self._name = is_generator, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = deepcopy(self._source)
        source = _GENERATOR(state) if self._is_generator else state
        return getattr(source, self._name)(*args, **kwargs)


_GENERATOR = np.random.Generator  # a recording puts classes of its own in place of NumPy's
_SOURCES = (np.random.Generator, np.random.RandomState)


def _is_repeatable(leaf: Any) -> bool:
    """Whether an argument is an array of numbers, or a setting."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return cast("Any", leaf).dtype.kind in "biufc"
    if isinstance(leaf, RecordedNumber):
        return False
    return isinstance(leaf, _SIMPLE) or leaf is ... or leaf is np._NoValue  # pyright: ignore

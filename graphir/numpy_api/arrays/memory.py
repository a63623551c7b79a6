"""The memory of symbolic arrays: cells, and arrays that view the cells.

An ndarray of a traced function is an `ArrayValue`: a cell and a layout within the cell's memory.
The cell has a symbol, which holds the current values of the whole memory. Each write replaces the
cell's symbol; symbols themselves never change. The cell also has an ndarray of the same shape,
dtype and strides, whose values nobody reads. NumPy itself takes views of that ndarray, so NumPy
decides between view and copy and determines each layout. `steps_between` derives the ops from the
whole to a view from the strides.

A cell without a symbol is known. The values of its ndarray are the program's values, and NumPy
computes with them until the program writes a symbol.

The ndarrays of a trace:

- `Cell.buffer`: that of the whole memory; None before the first use of the layout.
- `Cell.layout`: the buffer, which the property allocates; None if the layout is unknown.
- `ArrayValue.layout`: that of one array, a view of the cell's; None if the layout is unknown.
- `ArrayValue.plain`: the layout of an array, for code that needs one; an error if it is unknown.
- `ArrayValue.origin`: the ndarray from which strides tell the steps to the array; None for the
  buffer. The steps of `prefix` lead from the buffer to another origin, such as bytes as integers.
- `stand_in(fill)`: a new ndarray in the layout of an array, whose elements equal a number.

Recordings and the Array API namespace have no cells: see RecordingTrace and Lazy, which share the
steps of views (numpy_api/view_steps.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from functools import cache
from sys import getrefcount
from threading import local
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphir.dtypes import DType
from graphir.errors import GraphError, GraphirError, MissingOpError
from graphir.hints import Array, Number
from graphir.ir.literals import array_of
from graphir.ir.symbol import Symbol
from graphir.numpy_api.view_layouts import ViewLayout, overlaps, steps_between
from graphir.numpy_api.view_steps import Steps, ViewBuilder, backward, forward
from graphir.ops.op import GraphValue, Op
from graphir.semantics.library_calls import restored

if TYPE_CHECKING:
    from collections.abc import Generator

    from graphir.ir.graph import Graph

LONGEST_TRACE = 20_000
"""The maximum number of symbols of a trace. A longer trace unrolls a loop that should be an op."""


PYTHON_NUMBERS = frozenset((bool, int, float, complex))


class _Active(local):
    memory: TraceMemory | None = None


_ACTIVE = _Active()


def active_memory() -> TraceMemory | None:
    """Return the memory of the trace on this thread; None during NumPy's own work."""
    return _ACTIVE.memory


@contextmanager
def tracing_with(memory: TraceMemory | None) -> Generator[None]:
    """Inside the block, NumPy's array constructors on this thread add arrays to `memory`."""
    outer, _ACTIVE.memory = _ACTIVE.memory, memory
    if memory is not None:
        memory.watch_errors()
    try:
        yield
    finally:
        _ACTIVE.memory = outer


def plainly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call NumPy on plain arrays, with plain results; turn its errors into graph errors."""
    outer, _ACTIVE.memory = _ACTIVE.memory, None
    try:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
    except Exception as error:
        raise as_graph_error(error) from None
    finally:
        _ACTIVE.memory = outer


class ArrayIndexError(GraphirError, IndexError):
    """An index is out of range for the array."""


class ArrayTypeError(GraphirError, TypeError):
    """NumPy does not accept the operands."""


class ArrayOverflowError(GraphirError, OverflowError):
    """A Python number does not fit the dtype of an array."""


class ArrayAttributeError(GraphirError, AttributeError):
    """An array has no such attribute."""


class OrderError(MissingOpError):
    """No op computes in the order in which NumPy does."""


_ERRORS = ArrayIndexError, ArrayTypeError, ArrayOverflowError, ArrayAttributeError


def as_graph_error(error: Exception) -> Exception:
    """Return NumPy's error as a GraphirError that derives from the same class."""
    if isinstance(error, GraphirError):
        return error
    kind = next((kind for kind in _ERRORS if type(error) is kind.__bases__[1]), GraphError)
    return like_numpy(kind(str(error)), type(error))


def like_numpy(error: GraphirError, kind: type[Exception]) -> GraphirError:
    """Return an error as one of NumPy's class, for programs that catch that class and no other."""
    builtins: list[Any] = [x for x in type(error).__mro__ if not issubclass(x, GraphirError)]
    if builtins == [*kind.__mro__]:
        return error
    fits = all(issubclass(kind, each) for each in builtins)
    return restored(type(error) if fits else GraphirError, kind, error.args, vars(error))


def filled_like(array: Array, fill: int) -> Array:
    """Return a new array of one number, with the dtype, shape, strides and flags of an array."""
    low, high = np.lib.array_utils.byte_bounds(array)
    start = array.__array_interface__["data"][0] - low
    memory: Any = np.zeros(high - low, np.uint8)
    new: Array = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    if fill:
        new.fill(fill)
    new.setflags(write=array.flags.writeable)
    return new


def copied(array: Array) -> Array:
    """Return a copy of an array with the same strides, which the call may write to."""
    if 0 in array.strides:
        return array.copy()
    copy = filled_like(array, 0)
    copy.setflags(write=True)
    copy[...] = array
    copy.setflags(write=array.flags.writeable)
    return copy


class LayoutUse(IntEnum):
    """What a trace depends on beside the types of its arguments."""

    NONE = 0
    STRIDES = 1
    """The strides and the alignment of the arguments: they decide the layouts of results, and the
    loops in which NumPy rounds."""
    ALL = 2
    """Their strides, writability and shared memory: the function writes to an array, say."""


class TraceMemory(ViewBuilder):
    """The memory of a trace: the builder of its graph, and the classes of its values."""

    def __init__(
        self, graph: Graph, array: type[ArrayValue], scalar: type[ScalarValue], selection: Any
    ) -> None:
        super().__init__()
        self.graph, self.array, self.scalar, self.selection = graph, array, scalar, selection
        self.layout_use, self._constants_of = LayoutUse.NONE, graph
        self.runs_here = False
        """Whether the graph runs in this process alone, as that of `jit`: it may call NumPy."""
        self.bodies: set[Any] = set()
        """The NumPy functions whose Python bodies are running."""
        self.arguments: list[Cell] = []
        """The memory of the arguments of the traced function."""
        self.watch_errors()

    def watch_errors(self) -> None:
        """Take the present handling of floating-point errors and warnings as that of the caller."""
        self._error_state = _ERROR_STATE.get()
        self._warnings = _warning_state()
        self._filters = _warning_filters()
        self._handled_errors = {kind for kind, how in np.geterr().items() if how in _HANDLED}

    def reads_layouts(self, use: LayoutUse) -> None:
        """Note that the trace depends on the layouts of the arguments."""
        self.layout_use = max(self.layout_use, use)

    # -- ops of views

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols and return its symbol."""
        return self.graph.emit(op, args, attrs)

    def array_symbol(self, array: Array) -> Symbol:
        """Return the constant of an array that nobody writes to."""
        return self.graph.constant_of(array_of(array, None))

    def constant_array(self, array: Array) -> Symbol:
        """Return the symbol of an array that nobody writes to; a graph has one for equal arrays."""
        if self._constants_of is not self.graph.innermost:
            self._constants_of, self._constants = self.graph.innermost, {}
        return super().constant_array(array)

    # -- values

    def value_of(
        self,
        symbol: Symbol,
        scalar: bool | None = False,
        allocate: Callable[[], Array | None] | None = None,
    ) -> ArrayValue | ScalarValue:
        """Return the value of a symbol: an array with its own memory, or a scalar.

        `scalar=None` says that the graph does not distinguish a 0-d array from a scalar.
        `allocate()` returns an ndarray with the layout of the result; without it the result is in
        row-major order.
        """
        self.check()
        if scalar and not symbol.rank:
            return self.scalar(self, symbol)
        cell = Cell(self, None, symbol)
        cell.allocate = allocate
        if scalar is None and not symbol.rank:
            cell.frozen = "whether it is a scalar or a 0-d array depends on values; write x = x + y"
        return self.array(cell)

    def plain_array(self, plain: Array, fill: Number | None = None) -> ArrayValue:
        """Return the array of known values, in memory that only the program holds."""
        if not plain.dtype.isnative:
            DType(plain.dtype.str)  # raises: graphs have no such dtype
        cell = Cell(self, plain, None)
        cell.fill = fill
        return self.array(cell, plain)

    def check(self) -> None:
        """Raise the refusal that the program has caught, or GraphError for too long a trace."""
        if self.graph.trace_state.refusal is not None:
            raise self.graph.trace_state.refusal.having()
        if _ERROR_STATE.get() is not self._error_state:
            self._check_error_state()
        if _warning_state() != self._warnings:
            self._check_warnings()
        if len(self.graph.symbols) <= LONGEST_TRACE:
            return
        raise MissingOpError(
            f"the loop here is unrolled into more than {LONGEST_TRACE:,} ops",
            fix=(
                "write it as operations on whole arrays, or call the function from a "
                "plain Python loop"
            ),
        )

    def _check_error_state(self) -> None:
        """Raise MissingOpError where the program handles NumPy's floating-point errors."""
        handled = {kind for kind, how in np.geterr().items() if how in _HANDLED}
        if not handled <= self._handled_errors:
            raise MissingOpError(
                "whether NumPy raises or calls here depends on values: no op has np.errstate",
                got=", ".join(f"{kind}={how!r}" for kind, how in np.geterr().items()),
                fix="test the values, as by np.where(y == 0, 1, y), or use errstate outside",
            )
        self._error_state = _ERROR_STATE.get()

    def _check_warnings(self) -> None:
        """Raise MissingOpError where the program handles NumPy's warnings."""
        state, filters = _warning_state(), _warning_filters()
        actions = (entry[0] for entry in filters if issubclass(RuntimeWarning, entry[2]))
        is_error = filters != self._filters and next(actions, "") == "error"
        if is_error or state[-1] != self._warnings[-1]:
            raise MissingOpError(
                "whether NumPy warns here depends on values, so that no op warns",
                got="warnings that are errors, or are recorded",
                fix="test the values, or handle warnings outside of the traced function",
            )
        self._warnings = state
        self._filters = filters


_ERROR_STATE: ContextVar[Any] = np._core.umath._extobj_contextvar  # pyright: ignore
"""The state of np.errstate: an object for each state, so that a look at it is cheap."""
_HANDLED = ("raise", "call", "log")
"""The ways of np.errstate in which a floating-point error changes what the program does."""


SHUFFLING = "you are shuffling"
"""The start of the warning that traces turn into an error: see `trace`."""


def _warning_state() -> tuple[int, ...]:
    """Return the ids of the list of warning filters, of its first filter, and of the writer."""
    filters: list[Any] = cast("Any", warnings.filters)
    first = id(filters[0]) if filters else 0
    return id(filters), len(filters), first, id(getattr(warnings, "_showwarnmsg_impl", None))


def _warning_filters() -> list[Any]:
    """Return the warning filters but those of traces, which run on other threads too."""
    filters: list[Any] = cast("Any", list(warnings.filters))
    return [each for each in filters if SHUFFLING not in getattr(each[1], "pattern", "")]


class Cell:
    """A memory: its current symbol (None for known values) and an ndarray of its layout."""

    __slots__ = (
        "allocate",
        "buffer",
        "constant",
        "fill",
        "frozen",
        "home",
        "memory",
        "symbol",
        "version",
    )

    def __init__(self, memory: TraceMemory, plain: Array | None, symbol: Symbol | None) -> None:
        self.memory, self.buffer, self.symbol = memory, plain, symbol
        self.home = memory.graph.innermost
        """The graph that may write to the memory: the body of control flow that made it, say."""
        self.version = 0
        self.fill: Any = None
        """For known values: the number that all elements equal, or None."""
        self.constant: Symbol | None = None
        """For known values: their symbol, valid until the next write."""
        self.frozen = ""
        """The reason why the memory refuses writes; empty if it allows writes."""
        self.allocate: Callable[[], Array | None] | None = None

    @property
    def layout(self) -> Array | None:
        """The ndarray with the layout of the memory; None if the layout is unknown."""
        if self.buffer is None and self.symbol is not None:
            if self.allocate is not None:
                allocate, self.allocate = self.allocate, None
                self.buffer = allocate()
                if self.buffer is None:
                    self.frozen = self.frozen or "how its elements lie in memory is not known"
            elif not self.frozen:
                shape = self.symbol.shape
                if all(isinstance(size, int) for size in shape):
                    self.buffer = np.empty(cast("Any", shape), self.symbol.dtype.to_numpy())
        return self.buffer

    def whole(self) -> Symbol:
        """Return the symbol of the whole memory."""
        if self.symbol is not None:
            return self.symbol
        if self.constant is None or self.constant.graph is not self.memory.graph.innermost:
            assert self.buffer is not None
            self.constant = self.constant_of(self.buffer)
        return self.constant

    def constant_of(self, values: Array) -> Symbol:
        """Return the constant of known values."""
        graph = self.memory.graph
        if self.fill is not None:
            return self.memory.filled(self.fill, values.shape, DType.from_numpy(values.dtype))
        return graph.constant_of(array_of(np.array(values, order="C"), None))

    def changed(self) -> None:
        """Count a write, drop the facts about the old values, and note the use of layouts."""
        self.version += 1
        self.fill = self.constant = None
        self.memory.reads_layouts(LayoutUse.ALL)


class TracedValue(GraphValue):
    """An array or a scalar of a traced function."""

    __slots__ = ()
    memory: TraceMemory
    is_known: bool
    """Whether the values are known, so that NumPy itself computes with them."""
    in_order: bool
    """Whether the elements are contiguous in row-major order."""

    def operand(self) -> Any:
        """Return the operand of ops: the symbol, or a plain array of known values."""
        return self.read()

    def stand_in(self, fill: int) -> Any:
        """Return a value of NumPy of which all elements equal a number; known values stay."""
        raise NotImplementedError

    def beside(self, symbol: Symbol) -> Any:
        """Return the array or scalar of a symbol."""
        return self.memory.value_of(symbol, scalar=None)


class ArrayValue(TracedValue):
    """An ndarray of a traced function: a view of a cell.

    `prefix` are the steps from the whole memory to `origin`; the strides determine the later steps.
    """

    __slots__ = ("_read", "_version", "_view", "cell", "is_argument", "origin", "prefix")
    cell: Cell
    is_argument: bool
    """Whether the caller holds this very array."""

    def __init__(
        self, cell: Cell, view: Array | None = None, origin: Array | None = None, prefix: Steps = ()
    ) -> None:
        self.graph = cell.memory.graph
        self.cell, self._view = cell, view
        self.origin, self.prefix = origin, prefix
        self.is_argument = False
        self._read: Symbol | None = None
        self._version = -1

    @property
    def memory(self) -> TraceMemory:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The memory of the trace."""
        return self.cell.memory

    @property
    def is_known(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the values are known, so that NumPy itself computes with them."""
        return self.cell.symbol is None and not self.prefix

    @property
    def layout(self) -> Array | None:
        """The ndarray with the layout of this array; None if the layout is unknown."""
        if self._view is None:
            self._view = self.cell.layout
        return self._view

    @property
    def plain(self) -> Array:
        """The ndarray with the layout of this array; raises GraphError if the layout is unknown."""
        view = self.layout
        if view is None:
            raise GraphError(
                "the memory layout of an array is unknown, because its sizes depend on values",
                got=str(self.read().type),
            )
        return view

    def operand(self) -> Any:
        """Return the symbol; an array of known values, unless all are equal."""
        is_plain = self.is_known and self.cell.fill is None
        return self.plain.copy() if is_plain else self.read()

    def stand_in(self, fill: int) -> Array:
        """Return an array of this layout of which all elements equal a number, or known values."""
        return copied(self.plain) if self.is_known else filled_like(self.plain, fill)

    @property
    def in_order(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the elements are contiguous in row-major order."""
        if self._view is None and self.cell.buffer is None and self.cell.allocate is None:
            return True
        view = self.layout
        return view is not None and view.flags.c_contiguous

    @property
    def is_aligned(self) -> bool:
        """Whether the elements lie at multiples of their alignment; arguments may lie elsewhere."""
        return self._view is None or self._view.flags.aligned

    @property
    def lies_usually(self) -> bool:
        """Whether the array is in row-major order and writable, as a new array is."""
        return self.in_order and (self._view is None or self._view.flags.writeable)

    @property
    def owns_memory(self) -> bool:
        """Whether this is the array that NumPy made with the memory, and no view of it exists."""
        is_whole = self._view is None or self._view is self.cell.buffer
        is_only = getrefcount(self.cell) == _count_of_slot()
        return is_whole and is_only and not (self.prefix or self.is_argument)

    def lies_in(self, order: str) -> bool:
        """Whether the elements are contiguous in order C or F; any other order allows all."""
        if order not in ("C", "F"):
            return True
        flags = self.plain.flags
        return flags.c_contiguous if order == "C" else flags.f_contiguous

    @property
    def dims(self) -> tuple[Any, ...]:
        """The sizes of the axes; the layout need not be known."""
        if self._view is not None:
            return self._view.shape
        return self.cell.whole().shape if self.cell.buffer is None else self.cell.buffer.shape

    @property
    def element(self) -> DType:
        """The dtype of the elements; the elements are not read."""
        if self._view is None and self.cell.symbol is not None:
            return self.cell.symbol.dtype
        return DType.from_numpy(self.plain.dtype)

    @property
    def steps(self) -> Steps:
        """The view steps from the whole memory to this array."""
        view = self._view
        whole = self.cell.buffer if self.origin is None else self.origin
        if view is None or view is whole:
            return self.prefix
        assert whole is not None
        steps = steps_between(whole, view)
        if steps is None:
            raise GraphError(
                "no op selects the elements of this view",
                got=f"a view of {whole.dtype}{list(whole.shape)}",
                fix="use x.copy()",
            )
        return (*self.prefix, *steps)

    def read(self) -> Symbol:
        """Return the symbol of the current values."""
        cell = self.cell
        symbol, graph = self._read, cell.memory.graph.innermost
        if symbol is None or self._version != cell.version or symbol.graph is not graph:
            if cell.symbol is not None or self.prefix:
                symbol = forward(self.steps, cell.memory, cell.whole())
            elif self._view is None or self._view is cell.buffer:
                symbol = cell.whole()
            else:
                symbol = cell.constant_of(self._view)
            self._read, self._version = symbol, cell.version
        return symbol

    def write(self, symbol: Symbol) -> None:
        """Replace the values by the values of a symbol with the same dtype and shape."""
        self.check_writable()
        self.memory.check()
        cell = self.cell
        steps = self.steps
        whole = backward(steps, cell.memory, cell.whole(), symbol) if steps else symbol
        cell.symbol = whole
        cell.changed()
        self._read, self._version = symbol, cell.version

    def check_writable(self) -> None:
        """Raise GraphError if the array is read-only or its memory is frozen."""
        reason = self.cell.frozen
        if self.cell.home is not self.graph.innermost:
            raise GraphError(
                "a function of control flow writes to an array from outside of it",
                got=str(self.read().type),
                fix="pass the array to the function, and return its new values",
            )
        view = self._view
        if not reason and view is not None and not view.flags.writeable:
            wholes = [view] if self.cell.buffer is None else [view, self.cell.buffer]
            shares = any(overlaps(ViewLayout(x.shape, x.strides)) for x in wholes)
            reason = "it is read-only" + (": its elements share memory" if shares else "")
        if reason:
            raise GraphError(
                "this array refuses writes",
                got=f"{self.read().type}, {reason}",
                fix="write to x.copy()",
            )

    def of_view(self, view: Array) -> ArrayValue:
        """Return another view of the same memory."""
        return type(self)(self.cell, view, self.origin, self.prefix)


class _Slot:
    __slots__ = ("cell",)

    def __init__(self) -> None:
        self.cell = object()


@cache
def _count_of_slot() -> int:
    """Return the reference count of an object that only a slot references."""
    holder = _Slot()
    return getrefcount(holder.cell)


class ScalarValue(TracedValue):
    """A NumPy scalar of a traced function, which is immutable."""

    __slots__ = ("memory", "number_class", "symbol")

    def __init__(self, memory: TraceMemory, symbol: Symbol) -> None:
        self.graph, self.memory, self.symbol = memory.graph, memory, symbol
        self.number_class: type | None = None
        """The class of the number, if NumPy gives a number of Python."""

    def read(self) -> Symbol:
        """Return the symbol."""
        return self.symbol

    def stand_in(self, fill: int) -> Any:
        """Return a number as a scalar of the dtype."""
        return self.symbol.dtype.to_numpy().type(fill)

    is_known = False
    in_order = True

"""The memory of symbolic arrays: base cells, and arrays that view them.

An ndarray of a traced function is an `ArrayValue`: a cell, and how the array lies in the cell's
memory. The cell has one symbol, the values of the whole memory now, and each write replaces that
symbol; symbols themselves never change. Beside the symbol a cell has `plain`, an ndarray of the
same shape, dtype and strides whose values nobody reads: NumPy itself takes views of `plain`, so
what is a view, what is a copy and how each lies is NumPy's own answer, and `steps_between` reads
from the strides which ops lead from the whole to the view. A cell without a symbol is known: there
the values of `plain` are those of the program, and NumPy computes with them until a symbol is
written.

A recording measures: its cells have a symbol and true values. A lazy array has a symbol alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError
from graphir.ir.literals import array_of
from graphir.ir.symbol import Symbol
from graphir.numpy_api.views.layouts import steps_between
from graphir.numpy_api.views.steps import Steps, backward, forward
from graphir.ops.op import GraphValue, Op

if TYPE_CHECKING:
    from collections.abc import Generator

    from graphir.ir.graph import Graph

Array: TypeAlias = NDArray[Any]

LONGEST_TRACE = 20_000
"""The symbols of a trace; a longer one unrolls a loop that should be an op."""


class _Active(local):
    memory: TraceMemory | None = None


_ACTIVE = _Active()


def active_memory() -> TraceMemory | None:
    """The memory of the function that this thread traces; None inside NumPy's own work."""
    return _ACTIVE.memory


@contextmanager
def tracing_with(memory: TraceMemory | None) -> Generator[None]:
    """Inside the block, arrays that NumPy makes on this thread belong to that memory."""
    outer, _ACTIVE.memory = _ACTIVE.memory, memory
    try:
        yield
    finally:
        _ACTIVE.memory = outer


def plainly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call of NumPy on plain arrays, whose results are plain."""
    outer, _ACTIVE.memory = _ACTIVE.memory, None
    try:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
    except Exception as error:
        raise as_graph_error(error) from None
    finally:
        _ACTIVE.memory = outer


class ArrayIndexError(GraphError, IndexError):
    """An index that the array does not have."""


class ArrayTypeError(GraphError, TypeError):
    """Operands that NumPy does not take."""


class ArrayOverflowError(GraphError, OverflowError):
    """A Python number that the dtype of an array does not hold."""


class ArrayAttributeError(GraphError, AttributeError):
    """An attribute that an array does not have."""


_ERRORS = ArrayIndexError, ArrayTypeError, ArrayOverflowError, ArrayAttributeError


def as_graph_error(error: Exception) -> Exception:
    """NumPy's error as one of ours that is of the same builtin class, at the user's line."""
    if isinstance(error, GraphError):
        return error
    kind = next((one for one in _ERRORS if isinstance(error, one.__bases__[1])), GraphError)
    return kind(str(error))


class TraceMemory:
    """The memory of one trace: a ViewBuilder over its graph, and the classes of its values."""

    def __init__(
        self, graph: Graph, array: type[ArrayValue], scalar: type[ScalarValue], selection: Any
    ) -> None:
        self.graph, self.array, self.scalar, self.selection = graph, array, scalar, selection
        self.uses_layouts = False
        """Whether strides of arguments count: something was written, or asked how it lies."""
        self.bodies: set[Any] = set()
        """The functions of NumPy whose Python bodies run."""
        self._constants: dict[Any, Symbol] = {}

    # -- ops of views

    def emit(self, op: Op, args: tuple[Symbol, ...], **attrs: Any) -> Symbol:
        """Add an op on symbols."""
        return self.graph.emit(op, args, attrs)

    def reshaped(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """The symbol in another shape; itself where it has that."""
        wanted = tuple(shape)
        return x if x.shape == wanted else self.emit(ops.reshape, (x,), shape=wanted)

    def broadcast(self, x: Symbol, shape: Iterable[Any]) -> Symbol:
        """The symbol repeated to a shape; leading axes of 1 may go."""
        wanted = tuple(shape)
        if x.rank > len(wanted):
            x = self.reshaped(x, x.shape[x.rank - len(wanted) :])
        return x if x.shape == wanted else self.emit(ops.broadcast_to, (x,), shape=wanted)

    def places(self, start: int, step: int, axis: int, shape: tuple[Any, ...]) -> Symbol:
        """The indices start, start + step, ... along an axis, for each element of a shape."""
        key = "places", start, step, axis, shape
        if key not in self._constants:
            along = [1] * len(shape)
            along[axis] = shape[axis]
            attrs = {"dtype": DType.int64, "start": start, "step": step, "size": shape[axis]}
            line = self.emit(ops.range, (), **attrs)
            self._constants[key] = self.broadcast(self.reshaped(line, along), shape)
        return self._constants[key]

    def held(self, array: Array) -> Symbol:
        """The constant of an array that nobody writes to; one for equal arrays."""
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.graph.constant_of(array_of(array, None))
        return self._constants[key]

    def filled(self, value: Any, shape: tuple[Any, ...], dtype: DType) -> Symbol:
        """One value everywhere."""
        attrs = {"dtype": dtype, "value": value, "shape": shape, "literal": None}
        return self.emit(ops.full, (), **attrs)

    # -- values

    def computed(
        self, symbol: Symbol, scalar: bool | None = False, allocate: Any = None
    ) -> ArrayValue | ScalarValue:
        """The value of a symbol: an array of its own memory, or a scalar.

        `scalar=None` says that a graph does not tell a 0-d array from a scalar. `allocate()` gives
        an ndarray that lies as the result does; without it the result is in row-major order.
        """
        self.check_length()
        if scalar and not symbol.rank:
            return self.scalar(self, symbol)
        cell = Cell(self, None, symbol)
        cell.allocate = allocate
        if scalar is None and not symbol.rank:
            cell.frozen = "whether it is a scalar or a 0-d array depends on values; write x = x + y"
        return self.array(cell)

    def known(self, plain: Array, fill: Any = None) -> ArrayValue:
        """The array of known values, in memory that the program alone has."""
        if not plain.dtype.isnative:
            DType(plain.dtype.str)  # which says that graphs have no such dtype
        cell = Cell(self, plain, None)
        cell.fill = fill
        return self.array(cell, plain)

    def check_length(self) -> None:
        """Raise GraphError where the trace unrolls a long loop."""
        if len(self.graph.symbols) <= LONGEST_TRACE:
            return
        raise GraphError(
            f"the loop here is unrolled into more than {LONGEST_TRACE:,} ops; write it as "
            "operations on whole arrays, or call the function from a plain Python loop"
        )


class Cell:
    """Memory: its symbol now (None where the values are known), and an ndarray that lies alike."""

    __slots__ = (
        "allocate",
        "constant",
        "fill",
        "frozen",
        "held",
        "memory",
        "symbol",
        "version",
    )

    def __init__(self, memory: TraceMemory, plain: Array | None, symbol: Symbol | None) -> None:
        self.memory, self.held, self.symbol = memory, plain, symbol
        self.version = 0
        self.fill: Any = None
        """Of known values: the number that all elements are."""
        self.constant: Symbol | None = None
        """Of known values: their symbol, while nothing is written."""
        self.frozen = ""
        """Why nothing can be written here."""
        self.allocate: Callable[[], Array | None] | None = None

    @property
    def plain(self) -> Array | None:
        """The ndarray; None where no layout is known."""
        if self.held is None and self.symbol is not None:
            if self.allocate is not None:
                allocate, self.allocate = self.allocate, None
                self.held = allocate()
                if self.held is None:
                    self.frozen = self.frozen or "how its elements lie in memory is not known"
            elif not self.frozen:
                shape = self.symbol.shape
                if all(isinstance(size, int) for size in shape):
                    self.held = np.empty(cast("Any", shape), self.symbol.dtype.to_numpy())
        return self.held

    def whole(self) -> Symbol:
        """The symbol of the whole memory."""
        if self.symbol is not None:
            return self.symbol
        if self.constant is None:
            assert self.held is not None
            self.constant = self.entered(self.held)
        return self.constant

    def entered(self, values: Array) -> Symbol:
        """The constant of known values."""
        graph = self.memory.graph
        if self.fill is not None:
            return self.memory.filled(self.fill, values.shape, DType.from_numpy(values.dtype))
        return graph.constant_of(array_of(np.array(values, order="C"), None))

    def changed(self) -> None:
        """Count a write."""
        self.version += 1
        self.fill = self.constant = None


class ArrayValue(GraphValue):
    """An ndarray of a traced function: a view of a cell.

    `prefix` are steps before those that the strides tell, from the whole memory to `origin`.
    """

    __slots__ = ("_read", "_version", "_view", "cell", "is_argument", "origin", "prefix")
    cell: Cell
    is_argument: bool
    """Whether the caller has this very array."""

    def __init__(
        self,
        cell: Cell,
        view: Array | None = None,
        origin: Array | None = None,
        prefix: Steps = (),
    ) -> None:
        self.graph = cell.memory.graph
        self.cell, self._view = cell, view
        self.origin, self.prefix = origin, prefix
        self.is_argument = False
        self._read: Symbol | None = None
        self._version = -1

    @property
    def memory(self) -> TraceMemory:
        """The memory of the trace."""
        return self.cell.memory

    @property
    def is_known(self) -> bool:
        """Whether the values are known, so that NumPy itself computes with them."""
        return self.cell.symbol is None and not self.prefix

    @property
    def layout(self) -> Array | None:
        """The ndarray that lies as this array does; None where no layout is known."""
        if self._view is None:
            self._view = self.cell.plain
        return self._view

    @property
    def plain(self) -> Array:
        """The same; GraphError where no layout is known."""
        view = self.layout
        if view is None:
            raise GraphError(f"how the elements of {self.read().type} lie in memory is not known")
        return view

    @property
    def in_order(self) -> bool:
        """Whether the elements lie in row-major order."""
        if self._view is None and self.cell.held is None and self.cell.allocate is None:
            return True
        view = self.layout
        return view is not None and view.flags.c_contiguous

    @property
    def dims(self) -> tuple[Any, ...]:
        """The sizes of the axes, without asking for a layout."""
        if self._view is not None:
            return self._view.shape
        return self.cell.whole().shape if self.cell.held is None else self.cell.held.shape

    @property
    def element(self) -> DType:
        """The dtype of the elements, without reading them."""
        if self._view is None and self.cell.symbol is not None:
            return self.cell.symbol.dtype
        return DType.from_numpy(self.plain.dtype)

    @property
    def steps(self) -> Steps:
        """The steps from the whole memory to this array."""
        view = self._view
        whole = self.cell.held if self.origin is None else self.origin
        if view is None or view is whole:
            return self.prefix
        assert whole is not None
        steps = steps_between(whole, view)
        if steps is None:
            raise GraphError(f"no ops lead from {whole.dtype}{whole.shape} to this view of it")
        return (*self.prefix, *steps)

    def read(self) -> Symbol:
        """The symbol of the values now."""
        cell = self.cell
        if self._read is None or self._version != cell.version:
            if cell.symbol is not None or self.prefix:
                self._read = forward(self.steps, cell.memory, cell.whole())
            elif self._view is None or self._view is cell.held:
                self._read = cell.whole()
            else:
                self._read = cell.entered(self._view)
            self._version = cell.version
        return self._read

    def write(self, symbol: Symbol) -> None:
        """Replace the values by those of a symbol of the same dtype and shape."""
        self.check_writable()
        self.memory.check_length()
        cell = self.cell
        steps = self.steps
        whole = backward(steps, cell.memory, cell.whole(), symbol) if steps else symbol
        cell.symbol = whole
        cell.changed()
        self._read, self._version = symbol, cell.version
        cell.memory.uses_layouts = True

    def beside(self, symbol: Symbol) -> Any:
        """The array of a symbol."""
        return self.memory.computed(symbol, scalar=None)

    def check_writable(self) -> None:
        """Raise GraphError where nothing can be written."""
        reason = self.cell.frozen
        if not reason and self._view is not None and not self._view.flags.writeable:
            reason = "it is read-only"
        if reason:
            raise GraphError(
                f"an array is not written to; got {self.read().type}, {reason}; write to x.copy()"
            )

    def of_view(self, view: Array) -> ArrayValue:
        """Another view of the same memory."""
        return type(self)(self.cell, view, self.origin, self.prefix)


class ScalarValue(GraphValue):
    """A NumPy scalar of a traced function, which nothing changes."""

    __slots__ = ("memory", "symbol")

    def __init__(self, memory: TraceMemory, symbol: Symbol) -> None:
        self.graph, self.memory, self.symbol = memory.graph, memory, symbol

    def read(self) -> Symbol:
        """The symbol."""
        return self.symbol

    def beside(self, symbol: Symbol) -> Any:
        """The array or scalar of a symbol."""
        return self.memory.computed(symbol, scalar=None)

    is_known = False
    in_order = True

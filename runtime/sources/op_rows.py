"""Rows: the ops of another library in terms of graphir's, and how a source tries a row.

A row is a function `row(e, *operands, **attributes)`. The RowCall `e` is the call of the library's
op: it adds ops to the graph, and has the types of the results. The row returns a symbol or several;
None for a form of the op that it does not cover. An op without a row, or whose row returns None,
becomes the op `call`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from inspect import Parameter, signature
from math import prod
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphir.ir.graph import Attempt
from graphir.ops.dims import Size
from graphir.public import DType, Graph, GraphError, GraphirError, Op, Symbol, TensorType, ops
from graphir.semantics.matrix_products import Layout, layout_of, uses_blas

SymbolOrNone: TypeAlias = "Symbol | None"
"""An operand that may be absent."""

Emitted: TypeAlias = "Symbol | Sequence[Symbol | None] | None"
"""The results of a row; None for a form of the op that it does not cover."""

Row: TypeAlias = Callable[..., Emitted]

RowFunction = TypeVar("RowFunction", bound=Row)

Attribute: TypeAlias = Any
"""A value of another library: a number, a text, a sequence, or an object of the library's own."""


class RowCall:
    """The call of an op of another library, for its row. `types` are those of its results.

    A type is None where the library infers no dtype or no rank. `e(ops.add, x, y)` adds an op to
    the graph; the call of each library says what becomes of Python numbers among the operands.
    """

    def __init__(self, graph: Graph, name: str, types: Sequence[TensorType | None]) -> None:
        self.graph, self.name, self.types = graph, name, types

    @property
    def type(self) -> TensorType:
        """The type of the first result; GraphError where it is unknown."""
        return self.result_type(0)

    def result_type(self, place: int) -> TensorType:
        """Return the type of a result; GraphError where it is unknown."""
        type_ = self.types[place]
        if type_ is None:
            raise GraphError(f"the type of {self.name} is unknown")
        return type_

    def __call__(self, op: Op, *operands: Symbol, **attrs: Attribute) -> Symbol:
        """Add an op on symbols to the graph."""
        return self.graph.emit(op, operands, attrs)

    def constant(self, values: ArrayLike, dtype: DType | None = None) -> Symbol:
        """Return the constant of an array, or of values in a dtype."""
        array = np.asarray(values, None if dtype is None else dtype.storage, order="C")
        return self.graph.constant_of((dtype or DType.from_numpy(array.dtype), array))

    def shaped(self, x: Symbol, shape: Sequence[Size]) -> Symbol:
        """Return a symbol reshaped."""
        return x if x.shape == tuple(shape) else self(ops.reshape, x, shape=tuple(shape))

    def spread(self, x: Symbol, shape: Sequence[Size]) -> Symbol:
        """Return a symbol broadcast to a shape."""
        return x if x.shape == tuple(shape) else self(ops.broadcast_to, x, shape=tuple(shape))

    def along(self, vector: Symbol, axis: int, rank: int) -> Symbol:
        """Return a vector as an array of a rank, along an axis."""
        return self.shaped(vector, [vector.shape[0] if i == axis else 1 for i in range(rank)])

    def cut(self, x: Symbol, axis: int, start: Size, stop: Size, step: int = 1) -> Symbol:
        """Return the slice of a symbol along an axis."""
        limits: tuple[list[Size], ...] = [0] * x.rank, [*x.shape], [1] * x.rank
        if (start, stop, step) == (0, x.shape[axis], 1):
            return x
        for limit, number in zip(limits, (start, stop, step), strict=True):
            limit[axis] = number
        first, last, by = limits
        return self(ops.slice, x, start=first, stop=last, step=by)

    def divide_integers(self, x: Symbol, y: Symbol, are_natural: bool) -> Symbol:
        """Return quotients of integers towards 0; if they `are_natural`, none is below 0."""
        if not are_natural:
            x = self(ops.subtract, x, self(ops.fmod, x, y))
        return self(ops.floor_divide, x, y)


class PlainRow(NamedTuple):
    """The row of an op that is one op of graphir."""

    op: Op

    def __call__(self, e: RowCall, *operands: Symbol) -> Symbol | None:
        """Add the op; None for another number of operands."""
        return e(self.op, *operands) if len(operands) == len(self.op.operands) else None


class OpRows(dict[str, Row]):
    """The rows of a library, by its names of ops.

    `plain` has the ops that are one op of graphir: a name that both share, or `sub=subtract`.
    `without_effect` are attributes that change no values; rows need not take them. A row need not
    take an attribute that is None, False or ().
    """

    raises_faults: ClassVar[bool] = False
    """Whether a fault in a row raises, as tests demand. For users the op becomes a call."""

    def __init__(self, plain: str, without_effect: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.without_effect = without_effect
        for name, _, op in (entry.partition("=") for entry in plain.split()):
            self[name] = PlainRow(ops.find(op or name))

    def row(self, *names: str) -> Callable[[RowFunction], RowFunction]:
        """Decorator: make a function the row of ops."""

        def register(function: RowFunction) -> RowFunction:
            self.update(dict.fromkeys(names, function))
            return function

        return register

    def results(
        self, row: Row, e: RowCall, operands: Sequence[Any], attributes: Mapping[str, Attribute]
    ) -> Sequence[Symbol | None] | None:
        """Return the results of a row; None for operands or attributes that it does not take."""
        if attributes:
            names, takes_all = _keywords(row)
            attributes = {
                name: value
                for name, value in attributes.items()
                if name in names
                or (name not in self.without_effect and (takes_all or not _is_absent(value)))
            }
        try:
            result = row(e, *operands, **attributes)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                return None  # raised by the call: the row has no such parameter
            raise
        return [result] if isinstance(result, Symbol) else result


@cache
def _keywords(row: Row) -> tuple[frozenset[str], bool]:
    """Return the names of the keywords that a row takes, and whether it takes all."""
    parameters = signature(row).parameters.values()
    kinds = Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    names = frozenset(parameter.name for parameter in parameters if parameter.kind in kinds)
    return names, any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)


def _is_absent(value: Attribute) -> bool:
    """Whether an attribute has the value by which libraries say that it is not there."""
    return value is None or value is False or (type(value) is tuple and not value)


# -- trials


REFUSALS = (
    *(GraphirError, NotImplementedError, ValueError, IndexError),
    *(ArithmeticError, MemoryError),
)
"""The exceptions by which a row, NumPy or a library refuses a form of an op."""


@contextmanager
def trial(graph: Graph, note: Callable[[Exception], None] | None = None) -> Generator[Attempt]:
    """Context manager: try to add an op; a block that does not keep its additions leaves none.

    A refusal ends the block. Another exception is a fault in this project: tests raise it, and for
    users another way stands for the op. `note` gets an exception that is no GraphirError.
    """
    try:
        with graph.attempt() as attempt:
            yield attempt
    except (GraphirError, NotImplementedError):
        pass
    except Exception as error:  # whatever a row raises, the op becomes a call
        if OpRows.raises_faults and not isinstance(error, REFUSALS):
            raise AssertionError(f"a row has a fault: {error!r}") from error
        if note is not None:
            note(error)


def identifier(text: str) -> str:
    """Return the identifier that is most like a text."""
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name.isidentifier() else f"x_{name}"


# -- forms that several libraries share


class FlatScatter(NamedTuple):
    """An array and its updates with the axis first, and the flat places of the updates.

    No index beyond the axis is a place then. `order` are the axes of the result of the scatter.
    """

    x: Symbol
    updates: Symbol
    places: Symbol
    order: Sequence[int]


def flat_scatter(
    emit: Callable[..., Symbol], x: Symbol, updates: Symbol, index: Symbol, axis: int
) -> FlatScatter:
    """Return a scatter along an axis, with an index of int64 and known sizes, in flat form.

    `emit` adds an op on symbols and numbers to the graph.
    """
    order = [axis, *(k for k in range(x.rank) if k != axis)]
    x, places, updates = (emit(ops.permute, each, dims=order) for each in (x, index, updates))
    sizes: list[Any] = [*places.shape]
    strides: list[Any] = [prod(x.shape[k + 1 :]) for k in range(x.rank)]
    for k, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if k == 0:
            places = emit(ops.multiply, places, stride)
        elif size > 1:
            line = np.arange(int(size), dtype=np.int64) * int(stride)
            column = line.reshape(-1, *[1] * (x.rank - k - 1))
            places = emit(ops.add, places, x.graph.constant_of((DType.int64, column)))
    return FlatScatter(x, updates, places, [order.index(k) for k in range(x.rank)])


def product_layout(x: Symbol, y: Symbol) -> Layout | None:
    """Return the attribute `layout` of a product of views that permute the axes of arrays.

    The answer is None if both operands lie in C order, if a size is unknown, or if BLAS does not
    compute the product.
    """
    dtype = x.dtype.storage
    if x.dtype is not y.dtype or not uses_blas(dtype) or not (x.rank and y.rank):
        return None
    if not any(operand.op in (ops.transpose, ops.permute) for operand in (x, y)):
        return None
    if not all(isinstance(size, int) for size in (*x.shape, *y.shape)):
        return None
    return layout_of("matmul", _memory(x), _memory(y), dtype)


def _memory(x: Symbol) -> NDArray[Any]:
    """Return an array without values that lies in memory as a symbol's value does."""
    if x.op is ops.transpose:
        axes = x.attrs["axis1"], x.attrs["axis2"]
        return _memory(x.args[0]).swapaxes(*axes)
    if x.op is ops.permute:
        dims: Sequence[int] = x.attrs["dims"]
        return _memory(x.args[0]).transpose(*dims)
    return np.empty(cast("tuple[int, ...]", x.shape), x.dtype.storage)

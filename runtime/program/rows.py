"""Row-wise ops inside regions: a kernel takes a few whole rows at a time, or parts of a long row.

NumPy adds contiguous floats pairwise: it adds up to 128 elements directly, and more elements as the
sum of two halves, the first a multiple of 8 (numpy/_core/src/umath/loops_utils.h.src,
pairwise_sum). A long row is cut at the nodes of that summation tree, so the parts add up to the
bits of np.add.reduce, whichever thread adds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir.conversions import convert
from graphir.hints import Array
from graphir.public import DType, Symbol, ops
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics.evaluation import contiguous
from graphir.semantics.kernels import KERNELS, kernel_of
from graphir.semantics.sorting import sort_into

Tree: TypeAlias = "int | tuple[Tree, Tree]"

LEAF = 128
"""The most elements that NumPy's pairwise summation adds directly."""

_IN_ORDER = ("sum", "mean", "prod")
_SUMS = ("sum", "mean")
_IN_ANY_ORDER = ("max", "min", "any", "all")


def in_parts(symbol: Symbol) -> bool:
    """Whether a reduction of rows part by part has the same bits as of whole rows."""
    dtype, name = symbol.args[0].dtype, symbol.op.name
    if dtype.is_complex:
        return False
    return name in _SUMS or name in _IN_ANY_ORDER or (name == "prod" and not dtype.is_float)


def halves(a: int, b: int, limit: int, leaves: list[tuple[int, int]]) -> Tree:
    """Return the summation tree of elements a to b, and append the ranges of its leaves.

    A leaf has at most `limit` elements, or at most LEAF if that is more. In the tree a leaf is its
    index in `leaves`.
    """
    size = b - a
    if size <= max(limit, LEAF):
        leaves.append((a, b))
        return len(leaves) - 1
    middle = a + size // 2 // 8 * 8
    return halves(a, middle, limit, leaves), halves(middle, b, limit, leaves)


@cache
def sums_by_halves() -> bool:
    """Whether this NumPy adds every row by the summation tree of `halves`, at any memory offset.

    NumPy 2.0 adds 8,192 elements at a time, and such a chunk may begin in one row and end in the
    next. With such a NumPy, ops that add floats are calls on whole arrays. NumPy 2.4 adds by the
    tree.
    """
    x = np.sin(np.arange(20_011, dtype=np.float64)).astype(np.float32)
    leaves: list[tuple[int, int]] = []
    tree = halves(0, len(x), 1024, leaves)
    sums = [np.add.reduce(x[a:b]) for a, b in leaves]

    two = np.add.reduce(np.stack([x, x]), axis=1)
    return bool((two == _combine(tree, sums, np.add)).all() and np.add.reduce(x) == two[0])


def _combine(tree: Tree, results: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Return the result of a tree: `join` combines the results of the leaves pair by pair."""
    if isinstance(tree, int):
        return results[tree]
    return join(_combine(tree[0], results, join), _combine(tree[1], results, join))


class ColumnSpace(NamedTuple):
    """A shape as three axes, of which reductions reduce the middle one.

    `lead` is the number of elements of the axes before the reduced ones, `rows` that of the reduced
    axes, and `lanes` that of the axes after them.
    """

    lead: int
    rows: int
    lanes: int

    @staticmethod
    def of(shape: Sequence[int], first: int, end: int) -> ColumnSpace:
        """Return the space of a shape whose axes from `first` to `end` are the middle one."""
        parts = shape[:first], shape[first:end], shape[end:]
        return ColumnSpace(*map(math.prod, parts))


def column_space(symbol: Symbol, shape: Sequence[int]) -> ColumnSpace | None:
    """Return the space of a reduction of outer axes, whose operand has `shape`; None for others.

    The reduced axes are neighbours, and more than one element is after them, since NumPy adds
    floats along a contiguous axis pairwise.
    """
    if symbol.op.name not in _IN_ORDER and symbol.op.name not in _IN_ANY_ORDER:
        return None
    dtype, axes = symbol.args[0].dtype, symbol.attrs["axis"]
    if dtype is not symbol.dtype or dtype is DType.tensor_float32:
        return None
    if dtype.storage.char not in "?bBhHiIlLqQfd" or not axes:
        return None
    first, end = axes[0], axes[-1] + 1
    if tuple(axes) != tuple(range(first, end)):
        return None
    space = ColumnSpace.of(shape, first, end)
    return space if space.lead and space.rows and space.lanes > 1 else None


class Parts:
    """The reduction of long rows: a partial result for each leaf, and their combination at the end.

    `trees` has the tree of each row, `leaves` is the count of all leaves, and `length` is the
    number of elements of a row.
    """

    def __init__(self, symbol: Symbol, trees: Sequence[Tree], leaves: int, length: int) -> None:
        self.symbol, self.trees, self.length = symbol, trees, length
        self.sums = symbol.op.name in _SUMS
        self.finding: Any = [None] * leaves

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Reduce the leaf with number `index`, whose elements are `values`."""
        self.finding[index] = self._reduce(contiguous(values))

    def expect(self, results: Array) -> None:
        """Read the sums of the leaves from an array that machine code fills before `result`."""
        self.finding = results

    def _reduce(self, values: Array) -> Any:
        if self.sums:
            return np.add.reduce(values, dtype=values.dtype)
        return KERNELS[self.symbol.op.name](values, axis=(0,), keepdims=False)

    def result(self, shape: tuple[int, ...]) -> Array:
        """Return the reduction of every row, as an array of `shape`."""
        leaves = np.array(self.finding).reshape(len(self.trees), -1)
        rows = _combine(self.trees[0], leaves.T, self._join)  # rows of one length have equal trees
        if self.sums:
            rows = rows + rows.dtype.type(0)
        if self.symbol.op.name == "mean":  # as np.mean divides
            rows = np.true_divide(rows, np.intp(self.length), out=rows, casting="unsafe")
        return rows.reshape(shape)

    def _join(self, values: Array, others: Array) -> Array:
        if self.sums:
            return np.add(values, others)
        return KERNELS[self.symbol.op.name](np.stack([values, others]), axis=(0,), keepdims=False)


class Rows:
    """A row-wise symbol computed by its kernel, a few whole rows at a time.

    The kernel maps each row to a row or to one element. `others` are the operands after the first,
    `length` is the number of elements of a row, and `out` is the array of all results.
    """

    def __init__(
        self,
        symbol: Symbol,
        settings: Mapping[str, Any],
        others: Sequence[Array],
        length: int,
        out: Array,
    ) -> None:
        self.others, self.length, self.out, self.symbol = others, length, out, symbol
        of_rows = dict(settings)
        if "axis" in settings:
            of_rows["axis"] = (1,) if isinstance(settings["axis"], tuple) else 1
        if "keepdims" in settings:
            of_rows["keepdims"] = False
        self.call = caller(symbol, of_rows)
        self.is_ascending_sort = symbol.op is ops.sort and not settings["descending"]
        self.finding: Array | None = None

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Compute the rows that elements a to b, with these values, make up."""
        matrix = values.reshape(-1, self.length)
        if self.is_ascending_sort and matrix.dtype == self.out.dtype:  # without a temporary array
            result = self.out.reshape(-1)[a:b].reshape(matrix.shape)
            sort_into(result, contiguous(matrix), 1, self.symbol.attrs["stable"])
            return
        results = self.call(contiguous(matrix), *self.others).reshape(-1)
        each = len(results) // len(matrix)  # a row or one element
        start = a // self.length * each
        self.out.reshape(-1)[start : start + len(results)] = results

    def expect(self, results: Array) -> None:
        """Read all results from an array, in their compute dtype, that is complete before `result`.

        Machine code fills the array.
        """
        self.finding = results

    def result(self, shape: tuple[int, ...]) -> Array:
        """Return the results of all rows; they already have their shape."""
        if self.finding is not None:
            converted_values = convert(
                self.finding, DType.from_numpy(self.finding.dtype), self.symbol.dtype
            )
            self.out.reshape(-1)[:] = converted_values
        return self.out


RowConsumer: TypeAlias = Parts | Rows
"""What takes the operand of a row-wise symbol, a range of elements at a time, and has its value."""


def neutral(symbol: Symbol) -> Any:
    """Return the number from which NumPy starts a reduction, or one that changes no result."""
    name, dtype = symbol.op.name, symbol.dtype.storage
    if name in ("max", "min") and dtype.kind == "f":
        return -np.inf if name == "max" else np.inf
    if name in ("max", "min") and dtype != np.bool_:
        limits = np.iinfo(dtype)
        return limits.min if name == "max" else limits.max
    return name in ("prod", "all", "min")


def finish_columns(symbol: Symbol, space: ColumnSpace, sums: Array) -> None:
    """Make sums means, if the symbol is a mean, as np.mean does."""
    if symbol.op is ops.mean:
        np.true_divide(sums, np.intp(space.rows), out=sums, casting="unsafe")


def caller(
    symbol: Symbol, settings: Mapping[str, Any], kernel: Callable[..., Any] | None = None
) -> Callable[..., Array]:
    """Return the kernel of a symbol as a function of contiguous operands; `kernel` stands for it.

    The function converts the kernel's result to the storage dtype of the symbol: NumPy's index
    results, for example, are int64. It raises a kernel's refusal again with the source line of the
    symbol.
    """
    call_kernel, dtype = partial(kernel or kernel_of(symbol), **settings), symbol.dtype
    storage = dtype.storage

    def call(*operands: Array) -> Array:
        try:
            result = np.asarray(call_kernel(*operands))
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol) from None
        if result.dtype == storage:
            return result
        return convert(result, DType.from_numpy(result.dtype), dtype)

    return call

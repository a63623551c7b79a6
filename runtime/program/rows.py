"""Reductions and the like over rows: by kernels, a few rows at a time, or long rows in parts.

NumPy adds contiguous floats pairwise: up to 128 at once, more as the sum of two halves, the first a
multiple of 8 (numpy/_core/src/umath/loops_utils.h.src, pairwise_sum). A long row is cut where that
tree is, so that the parts add up to the very bits of np.add.reduce, whoever adds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol
from graphir.conversions import convert
from graphir.semantics.evaluation import contiguous
from graphir.semantics.kernels import KERNELS
from runtime.results import REFUSAL_ERRORS, refused

Array: TypeAlias = NDArray[Any]
Tree: TypeAlias = "int | tuple[Tree, Tree]"

LEAF = 128
"""Elements up to which a row is added at once."""

_SUMS = ("sum", "mean")
_IN_ANY_ORDER = ("max", "min", "any", "all")


def in_parts(symbol: Symbol) -> bool:
    """Whether the rows of a reduction may be reduced part by part, with the same result."""
    dtype, name = symbol.args[0].dtype, symbol.op.name
    if dtype.is_complex:
        return False
    return name in _SUMS or name in _IN_ANY_ORDER or (name == "prod" and not dtype.is_float)


def halves(a: int, b: int, limit: int, leaves: list[tuple[int, int]]) -> Tree:
    """Elements a to b as a tree of sums, whose leaves, of at most `limit`, are added to a list."""
    size = b - a
    if size <= max(limit, LEAF):
        leaves.append((a, b))
        return len(leaves) - 1
    middle = a + size // 2 // 8 * 8
    return halves(a, middle, limit, leaves), halves(middle, b, limit, leaves)


@cache
def sums_by_halves() -> bool:
    """Whether this NumPy adds whole rows by that tree, wherever they lie.

    NumPy 2.0 adds 8,192 elements at a time, which may begin in one row and end in the next; then
    ops that add floats take whole arrays. 2.4 does as said.
    """
    x = np.sin(np.arange(20_011, dtype=np.float64)).astype(np.float32)
    leaves: list[tuple[int, int]] = []
    tree = halves(0, len(x), 1024, leaves)
    sums = [np.add.reduce(x[a:b]) for a, b in leaves]

    two = np.add.reduce(np.stack([x, x]), axis=1)
    return bool((two == _combine(tree, sums, np.add)).all() and np.add.reduce(x) == two[0])


def _combine(tree: Tree, results: Sequence[Any], join: Callable[[Any, Any], Any]) -> Any:
    """What was found for the leaves of a tree, joined two by two."""
    if isinstance(tree, int):
        return results[tree]
    return join(_combine(tree[0], results, join), _combine(tree[1], results, join))


class Parts:
    """The reduction of long rows: a partial result for each leaf, combined at the end."""

    def __init__(self, symbol: Symbol, trees: Sequence[Tree], leaves: int, length: int) -> None:
        self.symbol, self.trees, self.length = symbol, trees, length
        self.sums = symbol.op.name in _SUMS
        self.finding: Any = [None] * leaves

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Reduce the leaf of that index."""
        self.finding[index] = self._reduce(contiguous(values))

    def expect(self, sums: Array) -> None:
        """Take the sums of the leaves, which are there before the result."""
        self.finding = sums

    def _reduce(self, values: Array) -> Any:
        if self.sums:
            return np.add.reduce(values, dtype=values.dtype)
        return KERNELS[self.symbol.op.name](values, axis=(0,), keepdims=False)

    def result(self, shape: tuple[int, ...]) -> Array:
        """The reduction of every row."""
        rows = np.array([_combine(tree, self.finding, self._join) for tree in self.trees])
        if self.symbol.op.name == "mean":  # as np.mean divides
            rows = np.true_divide(rows, np.intp(self.length), out=rows, casting="unsafe")
        return rows.reshape(shape)

    def _join(self, value: Any, other: Any) -> Any:
        return self._reduce(np.array([value, other]))


class Rows:
    """Whole rows given to a kernel, which makes a row or an element of each."""

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
        self.finding: Array | None = None

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Compute the rows of elements a to b."""
        matrix = values.reshape(-1, self.length)
        results = self.call(contiguous(matrix), *self.others).reshape(-1)
        each = len(results) // len(matrix)  # a row or one element
        start = a // self.length * each
        self.out.reshape(-1)[start : start + len(results)] = results

    def expect(self, results: Array) -> None:
        """Take those of all rows, as they are computed, which are there before the result."""
        self.finding = results

    def result(self, shape: tuple[int, ...]) -> Array:
        """The results of all rows."""
        if self.finding is not None:
            converted_values = convert(
                self.finding, DType.from_numpy(self.finding.dtype), self.symbol.dtype
            )
            self.out.reshape(-1)[:] = converted_values
        return self.out


def caller(symbol: Symbol, settings: Mapping[str, Any]) -> Callable[..., Array]:
    """The kernel of a symbol as a function of contiguous operands, its result in its storage.

    What it refuses is told with the line of the symbol; places, made as int64, get their dtype.
    """
    kernel, dtype = partial(KERNELS[symbol.op.name], **settings), symbol.dtype

    def call(*operands: Array) -> Array:
        try:
            result = np.asarray(kernel(*operands))
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol) from None
        if result.dtype == dtype.storage:
            return result
        return convert(result, DType.from_numpy(result.dtype), dtype)

    return call

"""Reductions and the like over rows: by kernels, a few rows at a time, or long rows in parts.

NumPy adds contiguous floats pairwise: up to 128 at once, more as the sum of two halves, the first a
multiple of 8 (numpy/_core/src/umath/loops_utils.h.src, pairwise_sum). A long row is cut where that
tree is, so that the parts add up to the very bits of np.add.reduce, whoever adds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol
from graphir.conversions import convert
from graphir.evaluation import contiguous
from graphir.kernels import KERNELS
from runtime.results import REFUSED, refused

Array: TypeAlias = NDArray[Any]
Tree: TypeAlias = "int | tuple[Tree, Tree]"

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
    if size <= max(limit, 128):
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

    def combined(tree: Tree) -> Any:
        return sums[tree] if isinstance(tree, int) else combined(tree[0]) + combined(tree[1])

    two = np.add.reduce(np.stack([x, x]), axis=1)
    return bool((two == combined(tree)).all() and np.add.reduce(x) == two[0])


class Parts:
    """The reduction of long rows: a partial result for each leaf, combined at the end."""

    def __init__(self, symbol: Symbol, trees: Sequence[Tree], leaves: int, length: int) -> None:
        self.symbol, self.trees, self.length = symbol, trees, length
        self.sums = symbol.op.name in _SUMS
        self.found: list[Any] = [None] * leaves

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Reduce the leaf of that index."""
        self.found[index] = self._reduced(contiguous(values))

    def _reduced(self, values: Array) -> Any:
        if self.sums:
            return np.add.reduce(values, dtype=values.dtype)
        return KERNELS[self.symbol.op.name](values, axis=(0,), keepdims=False)

    def result(self, shape: tuple[int, ...]) -> Array:
        """The reduction of every row."""
        rows = np.array([self._combined(tree) for tree in self.trees])
        if self.symbol.op.name == "mean":  # as np.mean divides
            rows = np.true_divide(rows, np.intp(self.length), out=rows, casting="unsafe")
        return rows.reshape(shape)

    def _combined(self, tree: Tree) -> Any:
        if isinstance(tree, int):
            return self.found[tree]
        return self._reduced(np.array([self._combined(tree[0]), self._combined(tree[1])]))


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
        self.symbol, self.others, self.length, self.out = symbol, others, length, out
        self.settings = dict(settings)
        if "axis" in settings:
            self.settings["axis"] = (1,) if isinstance(settings["axis"], tuple) else 1
        if "keepdims" in settings:
            self.settings["keepdims"] = False

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Compute the rows of elements a to b."""
        matrix = values.reshape(-1, self.length)
        made = called(self.symbol, (contiguous(matrix), *self.others), self.settings).reshape(-1)
        each = len(made) // len(matrix)  # a row or one element
        start = a // self.length * each
        self.out.reshape(-1)[start : start + len(made)] = made

    def result(self, shape: tuple[int, ...]) -> Array:
        """The results of all rows."""
        return self.out


def called(symbol: Symbol, operands: Sequence[Array], settings: Mapping[str, Any]) -> Array:
    """The value of a symbol, from its kernel."""
    try:
        made = KERNELS[symbol.op.name](*operands, **settings)
    except REFUSED as error:
        raise refused(error, symbol) from None
    return as_result(made, symbol.dtype)


def as_result(made: Array, dtype: DType) -> Array:
    """What a kernel made, in the storage of its result; places come as int64."""
    array = np.asarray(made)
    if array.dtype == dtype.storage:
        return array
    return convert(array, DType.from_numpy(array.dtype), dtype)

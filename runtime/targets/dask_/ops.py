"""Steps of non-elementwise ops: the chunks of their operands, and the tasks on blocks."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (Dask is no part of the project's own environment, and its arrays have no types there.)

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

from graphir import DType, Symbol
from graphir.conversions import convert
from graphir.ops import CATALOGUE
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.runtime.targets.dask_.movement import MOVES
from graphir.runtime.targets.dask_.pieces import (
    Arrays,
    BlockPiece,
    Labels,
    meta,
    numbered,
    quiet,
    single,
    without_elements,
)
from graphir.runtime.targets.dask_.reductions import PARTIAL, SCANS, contracted, reduced
from graphir.runtime.targets.emission import emitter
from graphir.semantics.evaluation import settings_of


class BlockStep(Protocol):
    """A step that computes the Dask arrays of some symbols from the arrays of other symbols."""

    @property
    def needs(self) -> Sequence[Symbol]:
        """The symbols that the step reads."""
        ...

    @property
    def results(self) -> Sequence[Symbol]:
        """The symbols that the step computes."""
        ...

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the arrays of the results, for known sizes of dims."""
        ...


class Movement:
    """A movement or creation op, which dask.array executes."""

    def __init__(self, symbol: Symbol) -> None:
        self.needs, self.results = symbol.args, (symbol,)
        self.move = emitter("Dask", MOVES, symbol)

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the result. Raises ExecutionError if a shape contradicts an assertion."""
        (symbol,) = self.results
        tf32, operands = symbol.graph.tf32, [values[arg] for arg in self.needs]
        settings = settings_of(symbol.op, symbol.dtype, symbol.attrs, sizes, tf32)
        try:
            result = self.move(*operands, **settings)
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol) from None
        if operands and not result.size:
            result = without_elements(result.shape, result.dtype, operands)
        return [_as(result, symbol.dtype, tf32)]


class Along:
    """An op over axes: one Program if each axis lies in one block, else the function `parts`."""

    def __init__(self, symbol: Symbol, piece: BlockPiece, parts: Callable[..., Any]) -> None:
        self.needs, self.results = symbol.args, (symbol,)
        self.piece, self.parts = piece, parts

    def compute(self, values: Arrays, sizes: Mapping[str, int]) -> list[Any]:
        """Return the result."""
        (symbol,) = self.results
        return [_as(self.parts(self.piece, symbol, values), symbol.dtype, symbol.graph.tf32)]


def _as(x: Any, dtype: DType, tf32: str) -> Any:
    """Return x in the dtype of the result; indices, for example, are int64 at first."""
    if x.dtype == dtype.storage:
        return x
    function = partial(convert, source=DType.from_numpy(x.dtype), target=dtype, tf32=tf32)
    return x.map_blocks(quiet(function), dtype=dtype.storage, meta=meta(dtype.storage, x.ndim))


# -- labels: axes with one label have the same chunks. A label that the result lacks is a whole
#    axis, unless the label begins with k: the op sums over such an axis.

Cut: TypeAlias = "tuple[Labels, ...]"


def _alone(symbol: Symbol) -> Cut:
    return (numbered(symbol.args[0]),)


def _normed(symbol: Symbol) -> Cut:
    labels = numbered(symbol.args[0])
    return labels, labels[-1:], labels[-1:]


def _looked_up(symbol: Symbol) -> Cut:
    return numbered(symbol.args[0], "s"), numbered(symbol.args[1])


def _at_places(symbol: Symbol) -> Cut:
    """Return the labels of the data, and of operands with the same axes except along one axis."""
    labels, axis = numbered(symbol.args[0]), symbol.attrs["axis"]
    others = (*labels[:axis], "places", *labels[axis + 1 :])
    return labels, *[others] * (len(symbol.args) - 1)


def _of_matmul(symbol: Symbol) -> Cut:
    x, y = (numbered(arg)[:-2] for arg in symbol.args)
    left = (*x, "row", "k") if symbol.args[0].rank > 1 else ("k",)
    right = (*y, "k", "column") if symbol.args[1].rank > 1 else ("k",)
    return left, right


def _of_tensordot(symbol: Symbol) -> Cut:
    x, y = (list(numbered(arg, name)) for arg, name in zip(symbol.args, "ab", strict=True))
    for place, (i, j) in enumerate(zip(*symbol.attrs["axes"], strict=True)):
        x[i] = y[j] = f"k{place}"
    return tuple(x), tuple(y)


LABELS: Mapping[str, Callable[[Symbol], Cut]] = {
    **dict.fromkeys(PARTIAL, _alone),
    **dict.fromkeys(("softmax", "logsoftmax", "sort", "argsort"), _alone),
    "layer_norm": _normed,
    "searchsorted": _looked_up,
    "gather": _looked_up,
    **dict.fromkeys(("take_along", "scatter"), _at_places),
    "matmul": _of_matmul,
    "tensordot": _of_tensordot,
    "outer": lambda symbol: (("a",), ("b",)),
}
_WHOLE = (*SCANS, "softmax", "logsoftmax", "sort", "argsort", "layer_norm", "scatter")
"""Ops that take an axis whole which their result has too."""

COMPOSITES = frozenset(CATALOGUE) - {"affine_view", "item", "matmul", "numpy_sum"}
"""The composite ops that stay whole: a Program or dask.array computes them."""


def step_of(symbol: Symbol) -> BlockStep:
    """Return the step of a non-elementwise op. Raises TargetError for an op that Dask lacks."""
    name = symbol.op.name
    if name not in LABELS:
        return Movement(symbol)
    labels = LABELS[name](symbol)
    axis: int = symbol.attrs.get("axis", -1)
    piece = single(symbol, labels, labels[0][axis] if name in _WHOLE else "")
    if name in PARTIAL:
        return Along(symbol, piece, reduced)
    return Along(symbol, piece, contracted) if symbol.op.kind == "contraction" else piece

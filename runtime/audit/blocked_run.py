"""A reference run that can run the elementwise steps of a region in one block at a time.

A block fits in a core's cache. It has the blocks of the region's operands, and computes the value
of a step when something reads it. So a pass over a region computes only the values that it needs,
and no array of the whole shape exists in between. A run also remembers the facts that passes ask of
its values more than once: extents of magnitudes, ranges of integers, in a block the float64 values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.op import Inference
from graphir.public import DType, Symbol
from graphir.runtime.audit.double_double import round_numbers
from graphir.runtime.audit.exactness import range_of
from graphir.runtime.interpreter import ReferenceRun
from graphir.semantics.evaluation import Evaluation

if TYPE_CHECKING:
    from typing import Self

Array: TypeAlias = NDArray[Any]
View: TypeAlias = Callable[[Array], Array]
"""A function from an array of a step to its part in one block."""


class Extent(NamedTuple):
    """The least and the greatest magnitude of the elements; NaN if one is NaN."""

    least: float
    most: float

    @property
    def is_normal(self) -> bool:
        """Whether no element is zero, infinite or NaN."""
        return self.least > 0 and self.most < float("inf")


class BlockedRun(ReferenceRun):
    """A reference run of whole arrays, or of one block of a region (see `block`)."""

    is_block = False
    given: frozenset[int] = frozenset()
    """The places of the values that a block has, and cannot compute: its operands."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._block_evaluations: dict[int, Evaluation] = {}
        self._forget()

    def _forget(self) -> None:
        self._floats: dict[int, Array] = {}
        self._extents: dict[int, Extent] = {}
        self._squares: dict[int, float] = {}
        self._ranges: dict[int, tuple[int, int]] = {}

    def block(self, operands: Iterable[Symbol], view: View) -> Self:
        """Return a run of one block of the elementwise steps on `operands`."""
        run = copy.copy(self)
        run.is_block = True
        run._forget()
        run.values = list[Array | None]([None]) * len(self.values)
        operands = tuple(operands)
        run.given = frozenset(x.index for x in operands)
        for x in operands:
            run.values[x.index] = view(self.cached_value(x))
        return run

    def free(self, places: Iterable[int]) -> None:
        """Free the values of the symbols at `places`, which no later step of a block reads."""
        for place in places:
            self.values[place] = None
            self._floats.pop(place, None)

    def cached_value(self, symbol: Symbol) -> Array:
        """Return the value of a symbol; a block computes it, and the values it needs."""
        value = self.values[symbol.index]
        if value is not None:
            return value
        if not self.is_block:
            return super().cached_value(symbol)
        missing: dict[int, Symbol] = {}
        waiting = [symbol]
        while waiting:
            x = waiting.pop()
            if x.index not in missing and self.values[x.index] is None:
                missing[x.index] = x
                waiting += self.reads(x)
        for place in sorted(missing):
            value = self.values[place] = self.value(missing[place])
        assert value is not None  # the last one is that of the symbol
        return value

    def reads(self, symbol: Symbol) -> Iterable[Symbol]:
        """Return the symbols whose values in this run the value of a symbol is computed from."""
        return symbol.args

    def concrete(self, symbol: Symbol) -> Inference:
        """Return the inference for a symbol, without the loop of NumPy, which is of whole arrays.

        Where the loop has other bits, the run has NumPy's own results (see RecordedFacts).
        """
        inference = super().concrete(symbol)
        if "loop" not in inference.attrs:
            return inference
        attrs = {name: value for name, value in inference.attrs.items() if name != "loop"}
        return Inference(inference.type, inference.operands, AttributeRecord.of(attrs))

    def _evaluation(self, symbol: Symbol) -> Evaluation:
        """Return the evaluation of a symbol, which the blocks of a run keep."""
        if not self.is_block:
            return super()._evaluation(symbol)
        evaluation = self._block_evaluations.get(symbol.index)
        if evaluation is None:
            evaluation = self._block_evaluations[symbol.index] = super()._evaluation(symbol)
        return evaluation

    def floats(self, symbol: Symbol) -> Array:
        """Return the values of a symbol as float64 or complex128; a block keeps them."""
        floats = self._floats.get(symbol.index)
        if floats is None:
            floats = as_floats(self.cached_value(symbol), self.graph.storage_dtype(symbol))
            if self.is_block:
                self._floats[symbol.index] = floats
        return floats

    def native(self, symbol: Symbol) -> Array:
        """Return the values of a symbol in float32 or complex64 as they are, others as `floats`."""
        is_native = self.graph.storage_dtype(symbol) in (DType.float32, DType.complex64)
        return self.cached_value(symbol) if is_native else self.floats(symbol)

    def extent(self, symbol: Symbol) -> Extent:
        """Return the extent of the values of a symbol."""
        extent = self._extents.get(symbol.index)
        if extent is None:
            extent = self._extents[symbol.index] = _extent(self.native(symbol))
        return extent

    def squares(self, symbol: Symbol) -> float:
        """Return the sum of the squares of the magnitudes of a symbol; inf if it overflows."""
        squares = self._squares.get(symbol.index)
        if squares is None:
            squares = _squares(self.native(symbol), self.extent(symbol).most)
            self._squares[symbol.index] = squares
        return squares

    def range(self, symbol: Symbol) -> tuple[int, int]:
        """Return the least and the greatest value of an integer symbol."""
        least_and_most = self._ranges.get(symbol.index)
        if least_and_most is None:
            least_and_most = range_of(self.cached_value(symbol))
            self._ranges[symbol.index] = least_and_most
        return least_and_most


def keep_freed_memory() -> None:
    """Let the C library keep the memory that a block frees for the next block.

    glibc returns the end of its heap to the system when twice the size of the largest map that was
    freed is unused there, at most twice 32 MiB (mallopt(3), M_MMAP_THRESHOLD). Without this, each
    block maps its memory again page by page: in tests.benchmarks.audit_cost, `mixed` takes 0.9 s
    instead of 0.6.
    """
    np.empty((1 << 25) - (1 << 16), np.uint8)


def as_floats(values: Array, dtype: DType) -> Array:
    """Return values of a dtype, or wide values, as float64 or complex128."""
    wide = DType.complex128 if dtype.is_complex else DType.float64
    if values.dtype == object:
        values, dtype = round_numbers(values), wide
    return convert(values, dtype, wide)


_RUN = 1 << 12
"""The elements of a product in BLAS: fewer than it divides among threads, which wait."""


def inner(x: Array, y: Array) -> float:
    """Return the real part of the sum of x * y over the elements of two arrays of one shape."""
    if x.dtype != y.dtype or x.dtype.kind != "f" or not x.ndim:
        return float(np.add.reduce(x * y, axis=None).real)
    x, y = x.reshape(-1), y.reshape(-1)
    if x.size < _RUN:
        return float(np.add.reduce(x * y))
    even = x.size - x.size % _RUN
    total = float(np.vecdot(x[:even].reshape(-1, _RUN), y[:even].reshape(-1, _RUN)).sum())
    return total + float(np.add.reduce(x[even:] * y[even:])) if even < x.size else total


def norm(x: Array) -> float:
    """Return the Euclidean norm of real numbers, which neither overflows nor underflows midway."""
    most = float(np.abs(x).max(initial=0.0))
    if 1e-100 < most < 1e100:
        return math.sqrt(inner(x, x))
    if not most or not math.isfinite(most):
        return most
    return most * math.sqrt(float(np.square(x / most).sum()))


def _extent(values: Array) -> Extent:
    if values.size <= 1:
        number = float(np.abs(values).item()) if values.size else 0.0
        return Extent(number, number)
    size = np.abs(values)
    return Extent(float(size.min()), float(size.max()))


def _squares(values: Array, most: float) -> float:
    """Return the sum of the squares of magnitudes up to `most`."""
    if values.dtype == np.float32 and not 1e-12 < most < 1e12:  # the squares leave its range
        values = values.astype(np.float64)
    return inner(values, np.conj(values))

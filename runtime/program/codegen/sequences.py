"""Sequences: the steps of a small plan as one call of machine code over scratch memory.

A sequence has the kernels of regions, NumPy's products, reductions of outer axes, sorts of rows,
and moves of elements, as of `stack`. Views of arrays cost nothing: kernels and products read them
at an offset, by their strides; other operations read a contiguous copy. All values but the results
of the sequence lie in scratch memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from graphir.hints import Array
from graphir.public import DType, Symbol, ops
from graphir.runtime.program.batches import BatchStep, layout_of, multiplies_in_place
from graphir.runtime.program.blocks import Range, in_order
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.control import ControlStep
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.program.cutting import VIEWS
from graphir.runtime.program.phases import PhasesStep
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rows import ColumnSpace, Tree, neutral
from graphir.runtime.program.steps import ELEMENT_MOVES, CallStep, LayoutStep, ScalarStep, Step
from graphir.runtime.program.tier import (
    Accumulation,
    ColumnFold,
    ColumnMean,
    ColumnStart,
    ElementMoves,
    LeafJoin,
    LoopRun,
    MemoryPlace,
    Product,
    ProductOperand,
    RowSort,
    SequencePart,
)
from graphir.runtime.program.wavefronts import WavefrontStep
from graphir.semantics.kernels import kernel_of

if TYPE_CHECKING:
    from graphir.runtime.native import NativeTier
    from graphir.runtime.native.drivers.thread_pool import Job

AnyStep: TypeAlias = "Step | PhasesStep | BatchStep"


class ArrayCell(NamedTuple):
    """An input or a result of a sequence: its cell, dtype and shape."""

    cell: int
    dtype: Storage
    shape: tuple[int, ...]


class View(NamedTuple):
    """The cell that a view is about, and the bytes between the first elements of both."""

    source: int
    offset: int


def is_sort(step: Step) -> bool:
    """Whether a step is a sort of rows that a sequence can have."""
    return isinstance(step, RegionStep) and sort_of(step) is not None


def sort_of(step: RegionStep) -> RowSort | None:
    """Return a region that is one ascending sort, or order, of rows of numbers; or None.

    NumPy's sorts of floats leave zeros of both signs in any order, which a stable sort does not.
    """
    if step.region.symbols or len(step.rows) != 1 or len(step.ins) != 1 or not step.size:
        return None
    _, _, operand_dtype = step.ins[0]
    if step.operand_shape(step.body.inputs[0]) != step.shape:
        return None
    symbol, settings = step.rows[0].symbol, step.rows[0].settings
    dtype, finds = symbol.args[0].dtype.storage, symbol.op is ops.argsort
    if symbol.op is not ops.sort and not (finds and symbol.dtype is DType.int64):
        return None
    if settings["stable"] and not finds and dtype.kind == "f":
        return None
    if settings["descending"] or dtype.char not in "iIlLqQfd" or operand_dtype != dtype:
        return None
    rows = step.size // step.length
    stable = finds and settings["stable"]
    return RowSort(dtype, rows, step.length, finds, stable, step.threads)


class SequenceWriter:
    """The parts of a sequence, and the places of all cells.

    `arrays` are the inputs, `inputs` of them, and then the results. `distinct_inputs` are the pairs
    of inputs that must not lie at one address. `values` are the cells with their constants, and
    with arrays that have the strides of views. `views` has the cells that are views, and `tuples`
    the cells of the parts of tuples, by the cell of the tuple and their number.
    """

    def __init__(
        self,
        arrays: Sequence[ArrayCell],
        inputs: int,
        constants: Mapping[int, Any],
        values: Sequence[Any],
        views: Mapping[int, View],
        tuples: Mapping[tuple[int, int], int],
        tier: NativeTier,
    ) -> None:
        self._tuples, self._tier = tuples, tier
        self._inputs, self._values, self._views = inputs, [*values], views
        self._shapes = {array.cell: array.shape for array in arrays[:inputs]}
        self._places: dict[int, Any] = {**constants}
        self._places |= {array.cell: MemoryPlace(k, 0) for k, array in enumerate(arrays)}
        self._viewed: dict[int, MemoryPlace] = {}  # of results that are copies of views
        self.parts: list[SequencePart] = []
        self.scratch, self.price = 0, 0.0
        self._is_awake = False  # whether threads have just worked on other steps
        self._last = dict[int, int]()
        self._owned, self._free = dict[int, tuple[int, int]](), defaultdict[int, list[int]](list)
        self.distinct_inputs: list[tuple[int, int]] = []
        self.targets: set[int] = set()

    def add_all(self, steps: Sequence[AnyStep]) -> bool:
        """Add steps; the answer is False if the sequence cannot have one of them, or not yet.

        The memory of values that no later step reads is that of later values of their size.
        """
        roots: dict[int, int] = {}
        self._is_awake = any(step.has_native_threads for step in steps)
        for number, step in enumerate(steps):
            cells = [roots.get(cell, cell) for cell in step.reads]
            self._last |= dict.fromkeys(cells, number)
            if isinstance(step, (CallStep, LayoutStep)) and step.write in self._views:
                roots[step.write] = cells[0]
        for number, step in enumerate(steps):
            if not self.add(step):
                return False
            for cell in [cell for cell in self._owned if self._last.get(cell, -1) <= number]:
                start, size = self._owned.pop(cell)
                self._free[size].append(start)
        return True

    def add(self, step: AnyStep) -> bool:
        """Add a step; the answer is False if the sequence cannot have it, or not yet."""
        if isinstance(step, (PhasesStep, WavefrontStep, BatchStep)):
            return self._add_job(step)
        if isinstance(step, RegionStep) and (sort := sort_of(step)):
            return self._add_sort(step, sort)
        if isinstance(step, RegionStep) and step.columns:
            return self._add_columns(step, step.columns)
        if isinstance(step, (RegionStep, ScalarStep)):
            return self._add_region(step)
        if isinstance(step, ControlStep):
            # A part of a tuple is a cell into which the loop writes.
            return step.symbol.op is ops.control.part or self._add_loop(step)
        return self._add_call(step)

    def _add_call(self, step: CallStep | LayoutStep) -> bool:
        if isinstance(step, LayoutStep) or (step.symbol.op in VIEWS and step.write in self._views):
            return self._add_view(step)
        if step.symbol.op in (*ELEMENT_MOVES, ops.reshape):
            return self._add_moves(step)
        if step.columns:
            return self._add_fold(step, step.columns)
        if step.space:
            return self._add_reduction(step, step.space)
        if step.accumulation:
            return self._add_accumulation(step, step.accumulation)
        if step.symbol.op is ops.full:
            self._places[step.write] = self._values[step.write] = step.call()
            return True
        return self._add_product(step)

    def _add_region(self, step: RegionStep | ScalarStep) -> bool:
        if isinstance(step, RegionStep) and (leaves := step.native.leaf_job(step, self._values)):
            return self._add_long_rows(step, *leaves)
        values, copies = [*self._values], dict[int, Any]()
        for cell in step.reads if isinstance(step, RegionStep) else ():
            array = values[cell]
            if array is not None and array.size * COST.SMALL_INPUT <= step.size:
                copies[cell] = self._contiguous(cell, array.shape, array.dtype)
                values[cell] = np.ascontiguousarray(array)
        kernel = step.native.placed(step, values, copies=False)
        if kernel is None:
            return False
        for cell, size in _sizes(step):
            self._allocate(cell, size)
        if self._is_awake:
            kernel = kernel._replace(shared=step.native.shared(step, COST.AWAKE_THREAD))
        places = [copies.get(cell, self._places[cell]) for cell in kernel.cells]
        for number, array in enumerate(kernel.arrays):
            if not isinstance(places[number], MemoryPlace):
                places[number] = array  # which is aligned
        self.parts.append(SequencePart(kernel, places))
        self.price += step.price
        return True

    def _add_long_rows(
        self, step: RegionStep, job: Job, cells: Sequence[int], trees: Sequence[Tree]
    ) -> bool:
        """Add the reductions of the leaves of long rows, and their joins."""
        for cell, size in _sizes(step):
            self._allocate(cell, size)
        pairs: list[Range] = []
        last, count = _join(trees[0], pairs), len(trees)
        symbols = [rows.symbol for rows in step.rows]
        dtypes = [symbol.dtype.storage for symbol in symbols]
        leaf_count = count * (len(pairs) + 1)
        leaves = [self._scratch(leaf_count * dtype.itemsize) for dtype in dtypes]
        self.parts.append(SequencePart(job, [*[self._places[cell] for cell in cells], *leaves]))
        for rows, dtype, leaf in zip(step.rows, dtypes, leaves, strict=True):
            join = LeafJoin(rows.symbol.op.name, dtype, count, step.length, tuple(pairs))
            self.parts.append(SequencePart(join, [self._places[rows.cell], leaf]))
        self.price += step.price
        return last == 0

    def _add_job(self, step: PhasesStep | WavefrontStep | BatchStep) -> bool:
        """Add the regions of a step."""
        sources = step.sources if isinstance(step, WavefrontStep) else ()
        if any(self._shapes.get(source.cell) != source.shape for source in sources):
            return False
        job = step.job(self._values)
        if job is None:
            return False
        for cell, size in step.sizes.items():
            self._allocate(cell, size)
        places = [cell if cell is None else self._places[cell] for cell in step.cells]
        self.parts.append(SequencePart(job, places))
        self.price += step.price
        return True

    def _add_view(self, step: CallStep | LayoutStep) -> bool:
        view = self._views.get(step.write)
        if view is None:
            return False
        # Offset and strides of a view of a result are those in the memory that the result copies.
        place = self._viewed.get(view.source) or self._places[view.source]
        if step.write in self._places:
            return self._add_result(step.write, place, view.offset)
        if isinstance(place, MemoryPlace):
            self._places[step.write] = MemoryPlace(place.array, place.offset + view.offset)
        else:
            self._places[step.write] = self._values[step.write]
        return True

    def _add_loop(self, step: ControlStep) -> bool:
        symbol, loop = step.symbol, step.loop
        is_first = not any(isinstance(part.kernel, LoopRun) for part in self.parts)
        if not loop or not loop.is_compiled or not is_first:
            return False
        shapes = step.operand_shapes
        dtypes = [arg.graph.concrete_dtype(arg.dtype).storage for arg in symbol.args]
        operands = [*zip(dtypes, shapes, strict=True)]
        results = [
            *zip([part.dtype.storage for part in symbol.type.parts], step.part_shapes, strict=True)
        ]
        places: list[Any] = []
        for k, (dtype, shape) in enumerate(results):
            size = math.prod(shape) * dtype.itemsize
            cell = self._tuples.get((step.write, k))
            if cell is not None:
                self._allocate(cell, size)
            places.append(self._scratch(size) if cell is None else self._places[cell])
        for cell, (dtype, shape) in zip(step.reads, operands, strict=True):
            places.append(self._contiguous(cell, shape, dtype))
        carries = symbol.attrs.get("carries", len(results))
        run = LoopRun(loop, operands, results, carries, step.length or 0)
        self.parts.append(SequencePart(run, places))
        return True

    def _add_result(self, cell: int, source: Any, offset: int) -> bool:
        """Add the copy of a view that is a result."""
        array: Array = self._values[cell]
        self._values[cell] = None
        if not isinstance(source, MemoryPlace) or array.size > COST.SEQUENCE_MOVES:
            return False
        strides = [step // array.itemsize for step in array.strides]
        source = self._viewed[cell] = source._replace(offset=source.offset + offset)
        moves = _moves(array.dtype, np.arange(array.size), _distances(array.shape, strides))
        self._add_to(cell, array.shape, array.dtype, moves, source)
        return True

    def _add_sort(self, step: RegionStep, sort: RowSort) -> bool:
        source = self._contiguous(step.ins[0][1], step.shape, sort.dtype)
        rows = step.rows[0]
        self._add_to(rows.cell, rows.shape, rows.symbol.dtype.storage, sort, source)
        self.price += step.price
        return True

    def _add_fold(self, step: CallStep, space: ColumnSpace) -> bool:
        symbol = step.symbol
        dtype = symbol.dtype.storage
        source = self._contiguous(step.reads[0], step.source_shape, dtype)
        fold = ColumnFold(symbol.op.name, symbol.dtype, space)
        self._allocate(step.write, math.prod(step.shape) * dtype.itemsize)
        result = self._places[step.write]
        self._add_sums([symbol], space, SequencePart(fold, [source, result]), [result])
        self.price += math.prod(space) * dtype.itemsize * COST.COLUMN_BYTE
        return True

    def _add_reduction(self, step: CallStep, space: ColumnSpace) -> bool:
        """Add a large reduction of outer axes of an array in C order."""
        source = self._values[step.reads[0]]
        job = self._tier.column_job(step.symbol, space, step.most_threads)
        if job is None or not (source is None or source.flags.c_contiguous):
            return False
        self._allocate(step.write, math.prod(step.shape) * step.symbol.dtype.storage.itemsize)
        cells = step.reads[0], step.write
        self._add_sums_of_job([step.symbol], space, job, cells)
        self.price += math.prod(space) * step.symbol.dtype.storage.itemsize * COST.COLUMN_BYTE
        return True

    def _add_accumulation(self, step: CallStep, accumulation: Accumulation) -> bool:
        source = self._values[step.reads[0]]
        if source is not None and not source.flags.c_contiguous:
            return False
        self._allocate(step.write, math.prod(step.shape) * accumulation.dtype.itemsize)
        places = [self._places[step.reads[0]], self._places[step.write]]
        self.parts.append(SequencePart(accumulation, places))
        self.price += math.prod(step.shape) * COST.ACCUMULATION_STEP
        return True

    def _add_columns(self, step: RegionStep, space: ColumnSpace) -> bool:
        """Add a region and the reductions of its outer axes."""
        entry = step.native.column_job(step, space, self._values)
        if entry is None:
            return False
        for cell, size in _sizes(step):
            self._allocate(cell, size)
        self._add_sums_of_job([rows.symbol for rows in step.rows], space, *entry)
        self.price += step.price
        return True

    def _add_sums_of_job(
        self, symbols: Sequence[Symbol], space: ColumnSpace, job: Job, cells: Sequence[int]
    ) -> None:
        """Add a job that reduces outer axes; its last cells are those of the results."""
        places = [self._places[cell] for cell in cells]
        results = places[len(places) - len(symbols) :]
        self._add_sums(symbols, space, SequencePart(job, places), results)

    def _add_sums(
        self,
        symbols: Sequence[Symbol],
        space: ColumnSpace,
        part: SequencePart,
        results: Sequence[Any],
    ) -> None:
        """Add the first values of results, the part that reduces outer axes, and means."""
        size, both = space.lead * space.lanes, [*zip(symbols, results, strict=True)]
        for symbol, place in both:
            start = ColumnStart(symbol.dtype.storage, size, neutral(symbol))
            self.parts.append(SequencePart(start, [place]))
        self.parts.append(part)
        for symbol, place in both:
            if symbol.op is ops.mean:
                mean = ColumnMean(symbol.dtype.storage, size, space.rows)
                self.parts.append(SequencePart(mean, [place]))

    def _add_moves(self, step: CallStep) -> bool:
        """Add an op whose result has elements of its operands, by its kernel on their numbers."""
        dtype, shapes = step.symbol.dtype.storage, step.operand_shapes
        sizes = [math.prod(shape) for shape in shapes]
        ends = [*accumulate(sizes)]
        numbers: list[Array] = np.split(np.arange(ends[-1]), ends[:-1])
        operands = [part.reshape(shape) for part, shape in zip(numbers, shapes, strict=True)]
        order: Array = np.ravel(kernel_of(step.symbol)(*operands, **step.settings))
        self._allocate(step.write, math.prod(step.shape) * dtype.itemsize)
        for cell, shape, part in zip(step.reads, shapes, numbers, strict=True):
            to: Array = np.flatnonzero(np.isin(order, part))
            if len(to):
                elements = self._elements(cell, shape, dtype)[order[to] - part[0]]
                moves = _moves(dtype, to, elements)
                self._add_to(step.write, step.shape, dtype, moves, self._places[cell])
        return True

    def _contiguous(self, cell: int, shape: tuple[int, ...], dtype: Storage) -> Any:
        """Return the place of the value of a cell, or of a contiguous copy of the value."""
        value = self._values[cell]
        if value is None or value.flags.c_contiguous:
            return self._places[cell]
        elements = self._elements(cell, shape, dtype)
        moves = _moves(dtype, np.arange(elements.size), elements)
        place = self._scratch(elements.size * dtype.itemsize)
        self.parts.append(SequencePart(moves, [place, self._places[cell]]))
        return place

    def _elements(self, cell: int, shape: tuple[int, ...], dtype: Storage) -> Array:
        """Return the distances of all elements from the first one in memory, in elements."""
        return _distances(shape, self._operand(cell, shape, dtype).strides)

    def _add_to(
        self, cell: int, shape: tuple[int, ...], dtype: Storage, kernel: Any, source: Any
    ) -> None:
        """Add an operation of one operand that writes the value of a cell."""
        self._allocate(cell, math.prod(shape) * dtype.itemsize)
        self.parts.append(SequencePart(kernel, [self._places[cell], source]))

    def _add_product(self, step: CallStep) -> bool:
        left, right = operands = [
            self._operand(cell, shape, step.symbol.dtype.storage)
            for cell, shape in zip(step.reads, step.operand_shapes, strict=True)
        ]
        places = [self._places[cell] for cell in step.reads]
        if not all(math.prod(operand.shape) for operand in operands):
            return False
        if not self._are_laid_out(step, operands, places):
            return False
        dtype = step.symbol.dtype.storage
        self._allocate(step.write, math.prod(step.shape) * dtype.itemsize)
        places.append(self._places[step.write])
        threads = step.most_threads if step.is_shared_product else 1
        self.parts.append(SequencePart(Product(dtype, left, right, threads), places))
        self.price += math.prod(step.shape) * left.shape[-1] * COST.NUMPY_TERM
        return True

    def _operand(self, cell: int, shape: tuple[int, ...], dtype: Storage) -> ProductOperand:
        value = self._values[cell]
        return ProductOperand.of(in_order(shape, dtype) if value is None else value)

    def _are_laid_out(
        self, step: CallStep, operands: Sequence[ProductOperand], places: Sequence[Any]
    ) -> bool:
        """Whether operands have the strides that a product demands, and share no memory.

        NumPy calls another function of BLAS for a matrix and its own transpose, in one memory.
        """
        if not multiplies_in_place(step, operands):
            return False
        left, right = operands
        if layout_of(step) is None or left.strides[-2:] != right.strides[-2:][::-1]:
            return True
        x, y = places
        if not (isinstance(x, MemoryPlace) and isinstance(y, MemoryPlace)) or x == y:
            return False
        if x.array == y.array or min(x.array, y.array) < 0:
            return True
        self.distinct_inputs.append((x.array, y.array))
        return x.offset == y.offset and max(x.array, y.array) < self._inputs

    def _allocate(self, cell: int, size: int) -> None:
        """Give the value of a cell scratch memory, unless it is a result of the sequence."""
        self.targets.add(cell)
        if cell not in self._places:
            size = -(-size // LINE) * LINE
            free = self._free[size]
            place = MemoryPlace(-1, free.pop()) if free else self._scratch(size)
            self._places[cell], self._owned[cell] = place, (place.offset, size)

    def _scratch(self, size: int) -> MemoryPlace:
        """Return new scratch memory."""
        # The arrays of a sequence have the numbers from 0, and scratch memory has -1.
        place = MemoryPlace(-1, self.scratch)
        self.scratch += -(-size // LINE) * LINE
        return place


def sequence_of(
    steps: Sequence[AnyStep],
    tier: NativeTier,
    arrays: Sequence[ArrayCell],
    inputs: int,
    constants: Mapping[int, Any],
    values: Sequence[Any],
    views: Mapping[int, View],
    empty: Callable[..., Any],
) -> Callable[..., Any] | None:
    """Return a built-in function that runs steps; None if there is none, or none yet.

    The first `inputs` of `arrays` are the inputs, and the others the results. The function returns
    None for inputs that are not plain, contiguous arrays. `empty` makes the memory of large
    results. The other arguments are those of SequenceWriter.
    """
    parts = [
        step for step in steps if isinstance(step, CallStep) and step.symbol.op is ops.control.part
    ]
    tuples = {(step.reads[0], step.symbol.attrs["index"]): step.write for step in parts}
    if len(tuples) < len(parts):
        return None
    writer = SequenceWriter(arrays, inputs, constants, values, views, tuples, tier)
    if not writer.add_all(steps) or writer.scratch > COST.KEPT_RESULTS or not writer.parts:
        return None
    results = [array.cell for array in arrays[inputs:]]
    if len(set(results)) < len(results) or not writer.targets.issuperset(results):
        return None
    types = [(array.dtype, array.shape) for array in arrays]
    sizes, is_long = (inputs, writer.scratch), writer.price > COST.RELEASED_LOCK
    has_loop = any(isinstance(part.kernel, LoopRun) for part in writer.parts)
    if is_long and has_loop:  # a loop releases the lock itself
        return None
    return tier.sequence(writer.parts, types, *sizes, writer.distinct_inputs, is_long, empty)


def _join(tree: Tree, pairs: list[Range]) -> int:
    """Append the pairs of leaves to join, and return the leaf that gets the result of a tree."""
    if isinstance(tree, int):
        return tree
    left, right = (_join(half, pairs) for half in tree)
    pairs.append((left, right))
    return left


def _sizes(step: RegionStep | ScalarStep) -> list[tuple[int, int]]:
    """Return the cells that a region writes, with their bytes."""
    if isinstance(step, ScalarStep):
        outs = step.scalars.outs
        return [(step.cells[symbol.index], symbol.dtype.storage.itemsize) for symbol in outs]
    both = step.results.items()
    return [(cell, math.prod(shape) * dtype.itemsize) for cell, (shape, dtype) in both]


def _distances(shape: Sequence[int], strides: Sequence[int]) -> Array:
    places = [np.arange(size) * step for size, step in zip(shape, strides, strict=True)]
    return np.ravel(sum(np.ix_(*places), np.zeros((), np.int64)))


def _moves(dtype: Storage, to: Array, elements: Array) -> ElementMoves:
    return ElementMoves(dtype.itemsize, np.stack([to, elements], axis=1))

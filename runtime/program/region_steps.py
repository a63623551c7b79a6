"""The step of a region, which runs block by block.

A `RegionStep` cuts the iteration space of a region into blocks whose operands, results and scratch
memory fit the cache together, and runs all instructions on one block before the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphir.hints import Array
from graphir.numpy_api.ufuncs import OPS
from graphir.public import Symbol, ops
from graphir.runtime.program.blocks import (
    Entering,
    FlatSpace,
    Operand,
    Range,
    RowSpace,
    Strided,
    Uniform,
    laid_out,
    share,
)
from graphir.runtime.program.codegen.assembly import RegionBody
from graphir.runtime.program.codegen.instructions import entering
from graphir.runtime.program.codegen.tracing import Storage, assign, select
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Region
from graphir.runtime.program.memory import Need, ScratchView, Store, Workspace
from graphir.runtime.program.rows import (
    LEAF,
    ColumnSpace,
    Parts,
    RowConsumer,
    Rows,
    Tree,
    halves,
    in_parts,
)
from graphir.runtime.program.steps import PlanRun, PlanStep, Settings, bound_settings, shape_of
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics.evaluation import contiguous

Partition: TypeAlias = tuple[Sequence[Range], list[Tree]]
"""The ranges of an iteration space, and the summation trees of long rows."""

Work: TypeAlias = Callable[[Workspace, Iterator[int]], None]
"""A function by which a thread computes ranges, by their numbers."""

CHEAP = frozenset({ufunc for ufunc, op in OPS.items() if op and op.cheap} | {assign, select})
"""The cheap functions, whose results do not depend on the memory layout of their operands."""

ANY_LAYOUT = CHEAP | {np.true_divide, np.sqrt}
"""The functions of real numbers whose results do not depend on the memory layout of operands.

IEEE 754 defines the result of a division and of a square root.
"""


class RowsOf(NamedTuple):
    """A row-wise symbol of a region, with its call bound.

    `place` is the slot of the first operand and `cell` the cell of the result. `others` are the
    cells of the other operands, `shape` is the shape of the result, and `settings` are the keyword
    arguments of the kernel.
    """

    symbol: Symbol
    place: int
    cell: int
    others: tuple[int, ...]
    shape: tuple[int, ...]
    settings: Settings


class RegionStep(PlanStep):
    """A region with its shape bound: one block if the region fits the cache, else several.

    `native` is the compiled region. `small` is the function that runs a region of one block.
    `assemble` returns the body of the region; its argument are the numbers of the results that the
    region stores into slices. `stores` has these slices, by the number of the result (see
    updates.py). `shapes` has the shapes of symbols that differ from those of the graph, by index.
    `results` has the shape and dtype of each result, by cell.
    """

    small: Any = None
    is_reshaped = False
    columns: ColumnSpace | None = None
    """The space of row-wise symbols that reduce outer axes."""

    def __init__(
        self,
        region: Region,
        assemble: Callable[[frozenset[int]], RegionBody],
        shape: tuple[int, ...],
        cells: Mapping[int, int],
        sizes: Mapping[str, int],
        threads: int,
        block: int | None,
        native: Any = None,
        shapes: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
        body, axes = assemble(frozenset()), region.axes
        self.region = region
        self.assemble, self.shape, self.native = assemble, shape, native
        self.cells, self.sizes, self._shapes = cells, sizes, shapes or {}
        self.stores: dict[int, Store] = {}
        self.size, self.axes = math.prod(shape), axes
        self.length = math.prod(shape[len(shape) - axes :]) if axes else 1
        self.most_threads, self._block_given = threads, block
        self.threads = threads if block or self.size * cost(body) > COST.SECOND_THREAD else 1
        self.block = block or self._choose_block(body)
        self._take(body)
        self._bind_results(body)
        self.price = (
            self.size * cost(body)
            + COST.NUMPY_CALL * len(body.calls)
            + COST.PYTHON_STEP * len(body.rows)
        )
        row = math.prod(shape[1:])
        self.row = row if shape and self.size and row <= self.block and not self.rows else 0
        if self.row:
            self.block -= self.block % row
        self._partitions: dict[int, Partition] = {}
        self.ranges, self.trees = self.cut(self.block)
        self.blocks = max(1, len(self.ranges))
        # All blocks but the last have one size, so two of them have all lengths; leaves differ.
        ends = self.ranges if self.trees else [*self.ranges[:1], *self.ranges[-1:]]
        lengths = {b - a for a, b in ends}
        self.longest = max(lengths, default=0)
        self.needs = {size: Need(self.views((size,))) for size in lengths}

    def _choose_block(self, body: RegionBody) -> int:
        """Return the number of elements of a block: those that fit the cache, or more if cheap."""
        block = _block(body)
        if self.size <= COST.BLOCK_MOST and self.size * cost(body) < COST.ONE_BLOCK:
            block = max(block, self.size)
        if not body.calls:  # kernels of rows alone, which need no scratch memory
            ranges = 1 if self.threads == 1 else COST.RANGES_PER_THREAD * self.threads
            block = max(block, -(-self.size // ranges))
        return block

    def _bind_results(self, body: RegionBody) -> None:
        """Bind the results, the row-wise symbols, and the cells that the region reads."""
        cells = self.cells
        self.writes = [(cells[symbol.index], symbol.dtype.storage) for symbol in body.outs]
        self.rows = [
            RowsOf(
                symbol,
                place,
                cells[symbol.index],
                tuple(cells[arg.index] for arg in symbol.args[1:]),
                self.operand_shape(symbol),
                bound_settings(symbol, self.sizes),
            )
            for symbol, place in body.rows
        ]
        self.results = {cell: (self.shape, dtype) for cell, dtype in self.writes}
        for rows in self.rows:
            self.results[rows.cell] = rows.shape, rows.symbol.dtype.storage
        cells_read = [cell for _, cell, _ in self.ins]
        self.operands = list(
            dict.fromkeys(cells_read + [c for rows in self.rows for c in rows.others])
        )
        self.reads = self.operands

    @property
    def result_shapes(self) -> dict[int, tuple[int, ...]]:
        """The shapes of the results, by cell."""
        return {cell: shape for cell, (shape, _) in self.results.items()}

    @property
    def has_long_rows(self) -> bool:
        """Whether threads share rows in machine code, and then join the results of their parts."""
        return self.native is not None and bool(self.native.cut(self, self.most_threads)[1])

    @property
    def has_native_threads(self) -> bool:
        """Whether threads share the region in machine code."""
        return self.native.shared(self) is not None

    @property
    def is_sequential(self) -> bool:
        """Whether the region may become machine code that a sequence can call."""
        if self.native is None or self.stores or not self.size:
            return False
        if self.columns:
            return True
        is_shared = self.threads > 1 or self.native.threads(self) > 1
        return not is_shared or self.has_native_threads or self.has_long_rows

    def _take(self, body: RegionBody) -> None:
        """Take the slots of a body: its operands, results and scratch memory."""
        self.body, slots = body, list(enumerate(body.slots))
        self.ins = [
            (k, self.cells[body.inputs[slot.number].index], slot.dtype)
            for k, slot in slots
            if slot.kind == "in"
        ]
        self.entering = {
            k: function
            for k, slot in slots
            if slot.kind == "in" and (function := entering(body.inputs[slot.number]))
        }
        self.outs = [(k, slot.number, slot.dtype) for k, slot in slots if slot.kind == "out"]
        self.scratch = [(k, slot.number, slot.dtype) for k, slot in slots if slot.kind == "scratch"]

    def reshaped(self, shape: tuple[int, ...], cells: Mapping[int, int]) -> RegionStep:
        """Return the region with an iteration space of another shape, and operands to match."""
        symbols = (*self.body.inputs, *self.body.outs)
        shapes = {symbol.index: shape for symbol in symbols if symbol.rank}
        space, memory = (self.region, self.assemble, shape), (cells, self.sizes)
        options = self.most_threads, self._block_given, self.native, shapes
        step = RegionStep(*space, *memory, *options)
        step.is_reshaped = True
        return step

    def operand_shape(self, symbol: Symbol) -> tuple[int, ...]:
        """Return the shape of an operand or a result."""
        shape = self._shapes.get(symbol.index)
        return shape_of(symbol, self.sizes) if shape is None else shape

    @property
    def stored_cells(self) -> list[tuple[int, Store]]:
        """The cells of the results that the region stores into slices, and the slices."""
        return [(self.writes[index][0], store) for index, store in self.stores.items()]

    def write_into_slices(self) -> None:
        """Let the region write its results into the slices of `stores`."""
        self._take(self.assemble(frozenset(self.stores)))
        own = [store.target for store in self.stores.values()]
        reads = [store.source for store in self.stores.values() if store.source not in own]
        self.reads = list(dict.fromkeys([*self.operands, *reads]))
        self.needs = {size: Need(self.views((size,))) for size in self.needs}

    def cut(self, block: int) -> Partition:
        """Return the blocks of the iteration space, and the summation trees of long rows.

        Without row-wise symbols a block has `block` elements. With them a block has whole rows; or,
        if a row is longer than a block, the blocks are the leaves of the rows' summation trees.
        """
        partition = self._partitions.get(block)
        if partition is None:
            partition = self._partitions[block] = self._cut(block)
        return partition

    def _cut(self, block: int) -> Partition:
        if not self.size:
            return [], []
        if not self.rows:
            return Uniform(self.size, block), []
        if self.length > max(block, LEAF) and all(in_parts(rows.symbol) for rows in self.rows):
            ranges: list[Range] = []
            starts = range(0, self.size, self.length)
            return ranges, [halves(a, a + self.length, block, ranges) for a in starts]
        return Uniform(self.size, max(1, block // self.length) * self.length), []

    def views(self, shape: tuple[int, ...]) -> tuple[ScratchView, ...]:
        """Return the views of scratch memory that a block of `shape` needs."""
        return tuple(ScratchView(slot, dtype, shape) for _, slot, dtype in self.scratch)

    def run(self, run: PlanRun) -> None:
        """Compute all results block by block, by machine code or by NumPy."""
        native = self.native.task(self, run.values) if self.native else None
        start = perf_counter_ns()
        if self.small and not native:
            self.small.run(run)
            self._spend(start)
            return
        for store in self.stores.values():
            source = np.asarray(run.values[store.source])
            run.values[store.target] = store.array(source, run.memory.recycler.empty)
        outs = [self._out(run, index, bool(native)) for index in range(len(self.writes))]
        threads = self.native.threads(self) if native else self.threads
        partition = native.cut(threads) if native else (self.ranges, self.trees)
        consumers = [self._consumer(rows, run, partition) for rows in self.rows]
        work = (
            native.work(outs, partition, consumers) if native else self._work(run, outs, consumers)
        )
        threads = 1 if native and native.has_threads else threads
        share(len(partition[0]), work, threads, run.workspace, run.memory.free)
        if not native:
            self._spend(start)
        for rows, consumer in zip(self.rows, consumers, strict=True):
            run.values[rows.cell] = consumer.result(rows.shape)
        for index, ((cell, _), out) in enumerate(zip(self.writes, outs, strict=True)):
            store = self.stores.get(index)
            if store and (native or not self._writes_into(store, run)):
                part = run.values[store.target][store.box.key]
                part[...] = out.reshape(part.shape)
            elif not store:
                run.values[cell] = out

    def _spend(self, start: int) -> None:
        """Add the time since `start` to the NumPy time of the region, by which the tier compiles.

        `start` is in nanoseconds of `perf_counter_ns`.
        """
        if self.native:
            self.native.charge(perf_counter_ns() - start)

    def _work(self, run: PlanRun, outs: Sequence[Array], consumers: Sequence[RowConsumer]) -> Work:
        """Return the function by which a thread runs all instructions on each of its blocks."""
        shape = self.shape
        ins = [(k, _read_as(np.asarray(run.values[cell]), dtype)) for k, cell, dtype in self.ins]
        sources: dict[int, Operand] = {k: laid_out(x, shape, self.longest) for k, x in ins}
        results = [(k, outs[index].view(dtype)) for k, index, dtype in self.outs]
        by_rows = any(not x.flags.c_contiguous for _, x in results)
        if self.row and (by_rows or any(type(x) is Strided for x in sources.values())):
            by_rows, strict = True, contiguous_slots(self)
            sources = {
                k: sources[k] if x.size == 1 else RowSpace(x, shape, self.row, k in strict)
                for k, x in ins
            }
        for k, function in self.entering.items():
            sources[k] = Entering(sources[k], function)
        for k, x in results:
            sources[k] = RowSpace(x, shape, self.row, False) if by_rows else FlatSpace(x)
        inner = shape[1:] if by_rows else ()

        def work(workspace: Workspace, numbers: Iterator[int]) -> None:
            for i in numbers:
                a, b = self.ranges[i]
                args: list[Any] = [None] * len(self.body.slots)
                scratch = workspace.views(self.needs[b - a])
                for (k, _, _), view in zip(self.scratch, scratch, strict=True):
                    args[k] = view.reshape(-1, *inner) if by_rows else view
                for k, source in sources.items():
                    args[k] = source.block(a, b)
                self.body.function(*args)
                for rows, consumer in zip(self.rows, consumers, strict=True):
                    consumer.take(i, a, b, args[rows.place])

        return work

    def _out(self, run: PlanRun, index: int, native: bool) -> Array:
        """Return the memory of a result; machine code writes to new memory alone."""
        (cell, dtype), store = self.writes[index], self.stores.get(index)
        if store and not native and self._writes_into(store, run):
            return run.values[store.target][store.box.key].reshape(self.shape)
        try:
            return run.empty(cell, self.shape, dtype)
        except REFUSAL_ERRORS as error:
            raise refused(error, self.body.outs[0]) from None

    def _writes_into(self, store: Store, run: PlanRun) -> bool:
        """Whether blocks of the result can be parts of the slice that a store is about."""
        if self.row:
            return True
        return store.is_contiguous and run.values[store.target].flags.c_contiguous

    def _consumer(self, rows: RowsOf, run: PlanRun, partition: Partition) -> RowConsumer:
        ranges, trees = partition
        if trees:
            return Parts(rows.symbol, trees, len(ranges), self.length)
        others = [contiguous(run.values[cell]) for cell in rows.others]
        out = run.empty(rows.cell, rows.shape, rows.symbol.dtype.storage)
        return Rows(rows.symbol, rows.settings, others, self.length, out)


def threads_of(members: Sequence[RegionStep], pays: bool) -> int:
    """Return the number of threads for regions as one step: more than 1 if a second thread pays."""
    member = members[0]
    return member.most_threads if pays or member.threads > 1 else 1


def native_threads_of(members: Sequence[RegionStep]) -> int:
    """Return the number of threads that the work of all regions in machine code justifies."""
    price = sum(member.native.price(member) for member in members if member.native)
    return threads_of(members, price > COST.NATIVE_SECOND_THREAD)


def contiguous_slots(step: RegionStep) -> set[int]:
    """Return the slots that must be contiguous.

    Row-wise symbols, functions that are not in ANY_LAYOUT, and complex arithmetic read contiguous
    memory, because their results depend on the layout.
    """
    places = {rows.place for rows in step.rows}
    of_complex = {k for k, slot in enumerate(step.body.slots) if slot.dtype.kind == "c"}
    for function, args, _ in step.body.calls:
        places.update(args if function not in ANY_LAYOUT else of_complex.intersection(args))
    return places


def _read_as(array: Array, dtype: Storage) -> Array:
    return array if array.dtype == dtype else array.view(dtype)


def cost(body: RegionBody) -> float:
    """Return the estimated time of a body in NumPy, in nanoseconds per element."""
    rows = [COST.NUMPY_SORT if symbol.op in _SORTS else COST.NUMPY_CHEAP for symbol, _ in body.rows]
    return sum([_price(function) for function, _, _ in body.calls]) + sum(rows)


_SORTS = (ops.sort, ops.argsort)


def _price(function: Callable[..., Any]) -> float:
    if function in CHEAP:
        return COST.NUMPY_CHEAP
    return COST.NUMPY_UFUNC if isinstance(function, np.ufunc) else COST.NUMPY_OTHER


def _block(body: RegionBody) -> int:
    """Return the number of elements of a block such that all its slots together fit the cache."""
    outside = {(slot.kind, slot.number): slot.dtype.itemsize for slot in body.slots}
    width = sum(body.widths) + sum(n for (kind, _), n in outside.items() if kind != "scratch")
    return max(
        COST.BLOCK_LEAST,
        min(COST.BLOCK_MOST, 1 << max(1, COST.CACHE // max(width, 1)).bit_length() - 1),
    )

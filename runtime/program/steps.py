"""The steps of a plan with their sizes bound: a call of a program runs these objects.

A `RegionStep` cuts the iteration space of a region into blocks whose operands, results and scratch
memory fit the cache together, and runs all instructions on one block before the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from graphir import DType, GraphirError, Op, Symbol, TensorType, ops
from graphir.decorators import lazy
from graphir.numpy_api.ufuncs import OPS
from graphir.ops.dims import evaluate
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
from graphir.runtime.program.codegen.scalars import Scalars
from graphir.runtime.program.codegen.tracing import Storage, assign, select
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import ACCUMULATIONS, VIEWS, Region
from graphir.runtime.program.memory import Box, Lane, Need, Recycler, ScratchView, Store
from graphir.runtime.program.rows import (
    LEAF,
    ColumnSpace,
    Parts,
    Rows,
    Tree,
    caller,
    column_space,
    halves,
    in_parts,
)
from graphir.runtime.program.tier import Accumulation, Multiply, Tier
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics import data_movement as movement
from graphir.semantics import integer_products
from graphir.semantics import matrix_products as products
from graphir.semantics.evaluation import contiguous, settings_of
from graphir.semantics.sums import layout_of_sum

if TYPE_CHECKING:
    from graphir.runtime.program.wavefronts import WavefrontStep

Array: TypeAlias = NDArray[Any]
Settings: TypeAlias = dict[str, Any]


class Taker(Protocol):
    """What takes the operand of a row-wise symbol, a range of elements at a time."""

    def take(self, index: int, a: int, b: int, values: Array) -> None:
        """Take elements a to b, the range with number `index`."""
        ...

    def expect(self, results: Array) -> None:
        """Read the results from an array that machine code fills before `result`."""
        ...

    def result(self, shape: tuple[int, ...]) -> Array:
        """Return the value of the symbol, of `shape`."""
        ...


Partition: TypeAlias = tuple[Sequence[Range], list[Tree]]
Work: TypeAlias = Callable[[Lane, Iterator[int]], None]

CHEAP = frozenset({ufunc for ufunc, op in OPS.items() if op and op.cheap} | {assign, select})
"""The cheap functions, whose results do not depend on the memory layout of their operands."""

ANY_LAYOUT = CHEAP | {np.true_divide, np.sqrt}
"""The functions of real numbers whose results do not depend on the memory layout of operands.

IEEE 754 defines the result of a division and of a square root.
"""


class PlanRun:
    """The state of one call: values by cell, output arrays, scratch memory, and progress.

    `targets` are the arrays of the caller into which results go, by cell. `progress`, if any, is
    called with the number of finished blocks and with `total`.
    """

    def __init__(
        self,
        values: list[Any],
        lane: Lane,
        free: list[Lane],
        recycler: Recycler,
        targets: Mapping[int, Array],
        progress: Callable[[int, int], None] | None = None,
        total: int = 0,
    ) -> None:
        self.values, self.lane, self.free = values, lane, free
        self.recycler, self.targets = recycler, targets
        self.progress, self.total, self.blocks_done = progress, total, 0

    def empty(self, cell: int, shape: tuple[int, ...], dtype: Storage) -> Array:
        """Return memory for the value of a cell: the caller's `out` array, or a new array."""
        target = self.targets.get(cell)
        return self.recycler.empty(shape, dtype) if target is None else target

    def tell(self, count: int) -> None:
        """Report that `count` blocks of the current step are done."""
        if self.progress:
            self.progress(self.blocks_done + count, self.total)


class ScalarStep:
    """A region of 0-d values with its cells bound."""

    shape, axes, size, length, threads, most_threads = (), 0, 1, 1, 1, 1
    blocks = 1

    def __init__(
        self,
        scalars: Scalars,
        cells: Mapping[int, int],
        sizes: Mapping[str, int],
        native: Any = None,
    ) -> None:
        self.scalars, self.cells, self.sizes, self.native = scalars, cells, sizes, native
        self.reads = [cells[symbol.index] for symbol in scalars.inputs]
        self.results = [cells[symbol.index] for symbol in scalars.outs]

    @property
    def price(self) -> float:
        """The estimated nanoseconds of the step in Python."""
        return COST.PYTHON_STEP

    def operand_shape(self, symbol: Symbol) -> tuple[int, ...]:
        """Return the shape of an operand or a result."""
        return shape_of(symbol, self.sizes)


class CallStep:
    """A call of a kernel on whole arrays; operands that are not contiguous are copied first.

    With `in_place`, an update writes into its first operand (see ownership.py). `copied_rows` are
    the rows that the copy of an update has to have (see copies.py), or None for all rows.
    """

    blocks = 1
    price = 0
    in_place = False
    multiply: Multiply = staticmethod(products.matmul)
    copied_rows: Sequence[slice] | None = None

    def __init__(
        self,
        symbol: Symbol,
        cells: Mapping[int, int],
        sizes: Mapping[str, int],
        tier: Tier | None = None,
        threads: int = 1,
    ) -> None:
        self.symbol = symbol
        self.reads = [cells[arg.index] for arg in symbol.args]
        self.write = cells[symbol.index]
        self.settings = _settings(symbol, sizes)
        self.kernel = caller(symbol, self.settings)
        self.fits = _fits(symbol, self.settings, sizes)
        self.shape = shape_of(symbol, sizes)
        self._sizes, self.most_threads = sizes, threads
        if self.is_large_product:
            self.kernel = partial(_integer_product, symbol.dtype.storage)
            if tier:
                self.kernel = tier.product(self.kernel, symbol.dtype.storage, threads)
        elif tier and self.is_large_search:
            self.kernel = tier.search(self.kernel, self.settings["side"], threads)
        elif tier and (space := self.space) and math.prod(space) >= COST.COLUMN_ELEMENTS:
            self.kernel = tier.columns(self.kernel, symbol, space, self.shape, threads)
        elif tier and self.accumulation and math.prod(self.shape) >= COST.COLUMN_ELEMENTS:
            self.kernel = tier.accumulation(self.kernel, self.accumulation)
        elif tier and self.is_shared_product:
            self.multiply = tier.float_product(products.matmul, threads)
            self.kernel = caller(symbol, self.settings, self.multiply)

    @lazy
    def is_large_product(self) -> bool:
        """Whether the kernel is a product of integers that is faster than NumPy's loop.

        The operands of such a product may have any integer dtypes that the product's dtype holds.
        """
        symbol = self.symbol
        if symbol.op is not ops.matmul or symbol.attrs["layout"]:
            return False
        left, right = self.operand_shapes
        return integer_products.pays(left, right, symbol.dtype.storage)

    @lazy
    def space(self) -> ColumnSpace | None:
        """The space of the operand, if the kernel reduces its outer axes."""
        return column_space(self.symbol, self.source_shape) if self.symbol.args else None

    @property
    def columns(self) -> ColumnSpace | None:
        """The same, if the operand is so small that a call of its own in machine code is slower."""
        return self.space if self.space and math.prod(self.space) < COST.COLUMN_ELEMENTS else None

    @lazy
    def accumulation(self) -> Accumulation | None:
        """The accumulation that the kernel is, if machine code can be that."""
        symbol = self.symbol
        if symbol.op not in ACCUMULATIONS or symbol.args[0].dtype is not symbol.dtype:
            return None
        dtype, axis = symbol.dtype.storage, self.settings["axis"]
        is_plain = dtype.char in "bBhHiIlLqQfd" and symbol.dtype is not DType.tensor_float32
        if not is_plain or not math.prod(self.shape):
            return None
        space = ColumnSpace.of(self.shape, axis, axis + 1)
        return Accumulation(symbol.op.name, dtype, space, self.most_threads)

    @property
    def results(self) -> Sequence[int]:
        """The cell of the result."""
        return (self.write,)

    @property
    def multiplies(self) -> bool:
        """Whether NumPy's product of the operands is the result, without conversion."""
        return self._is_plain_product and self.multiply is products.matmul

    @lazy
    def _is_plain_product(self) -> bool:
        symbol = self.symbol
        if symbol.op is not ops.matmul or self.is_large_product:
            return False
        return {operand.dtype for operand in symbol.args} == {symbol.dtype}

    @property
    def is_shared_product(self) -> bool:
        """Whether threads can share real matrices for each of which BLAS uses threads."""
        if not self._is_plain_product or self.symbol.dtype.storage.char not in "fd":
            return False
        left, right = self.operand_shapes
        if min(len(left), len(right)) == 1 or self.most_threads == 1:
            return False
        *batch, m, n = self.shape
        terms = m * n * left[-1]
        if math.prod(batch) >= self.most_threads:
            return terms > COST.BLAS_THREADS
        return COST.PANEL_LEAST <= terms < COST.PANEL_MOST

    @property
    def is_large_search(self) -> bool:
        """Whether the kernel is a search for values that are many and give int64 places."""
        if self.symbol.op is not ops.searchsorted or self.symbol.dtype is not DType.int64:
            return False
        return math.prod(self.operand_shapes[1]) >= COST.SEARCHED

    @property
    def operand_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operands."""
        return [shape_of(arg, self._sizes) for arg in self.symbol.args]

    @property
    def source_shape(self) -> tuple[int, ...]:
        """The shape of the first operand."""
        return shape_of(self.symbol.args[0], self._sizes)

    @property
    def box(self) -> Box:
        """The slice that a slice or its update is about."""
        return Box(*[self.settings[name] for name in Box._fields])

    def run(self, run: PlanRun) -> None:
        """Call the kernel on the values of the cells that the step reads, and store its result."""
        run.values[self.write] = self.call(*[run.values[cell] for cell in self.reads])

    def call(self, *operands: Any) -> Array:
        """Return the result of the kernel for some operands."""
        copies = self.symbol.op.computes and "layout" not in self.settings
        if copies and not self._reduces_windows(operands):
            operands = tuple(map(contiguous, operands))
        if self.in_place:
            write = WRITERS[self.symbol.op]
            try:
                return write(*operands, **self.settings)
            except REFUSAL_ERRORS as error:
                raise refused(error, self.symbol) from None
        return self.kernel(*operands)

    def _reduces_windows(self, operands: Sequence[Array]) -> bool:
        """Whether the step reduces elements that overlap, with the bits of a contiguous copy.

        The copy of windows has many times the elements of their array.
        """
        op, x = self.symbol.op, operands[0]
        if op.kind != "reduction" or x.flags.c_contiguous or not x.flags.aligned:
            return False
        low, high = np.lib.array_utils.byte_bounds(x)
        if x.nbytes <= high - low:
            return False
        return op in _ORDERLESS or (
            op is ops.sum and layout_of_sum(x, self.settings["axis"], np.array(True)) is None
        )


_ORDERLESS = frozenset({ops.max, ops.min, ops.any, ops.all})
"""The reductions whose results do not depend on the order of the elements."""


def _integer_product(dtype: Storage, x: Array, y: Array) -> Array:
    """Return the product of operands of integer dtypes in a dtype that holds them."""
    exact = integer_products.product(x, y, dtype)
    if exact is not None:
        return exact
    return np.matmul(x.astype(dtype, copy=False), y.astype(dtype, copy=False))


class LayoutStep:
    """A view of an array in the memory of a cell, which no symbol of the graph stands for.

    `text` is the view as a Python expression, with {0} for the array and further numbers for
    `values`. With `shape` () the view has all elements of the array.
    """

    blocks = 1
    price = 0

    def __init__(
        self, read: int, write: int, shape: tuple[int, ...], text: str, values: Sequence[Any] = ()
    ) -> None:
        self.reads, self.write, self.shape = [read], write, shape
        self.text, self.values = text, values

    @property
    def results(self) -> Sequence[int]:
        """The cell of the view."""
        return (self.write,)

    def call(self, array: Array) -> Array:
        """Return the view of an array."""
        names = {f"v{k}": value for k, value in enumerate((array, *self.values))}
        return eval(self.text.format(*names), names)


def is_view(step: Any) -> TypeGuard[CallStep | LayoutStep]:
    """Whether the result of a step is a view of its operand, without arithmetic."""
    is_op = isinstance(step, CallStep) and step.symbol.op in VIEWS
    return is_op or isinstance(step, LayoutStep)


WRITERS: dict[Op, Callable[..., Array]] = {
    ops.slice_update: movement.write_slice,
    ops.index_update: movement.write_indices,
    ops.index_add: movement.add_at_indices,
}
"""The updates in place, by op."""


def _fits(symbol: Symbol, settings: Settings, sizes: Mapping[str, int]) -> bool:
    """Whether the bounds of a slice, an item or an update of a slice lie in the first operand."""
    if "index" in settings:
        low = settings["index"]
        high = [at + 1 for at in low]
    elif "start" in settings and symbol.args:
        low, high = settings["start"], settings["stop"]
    else:
        return True
    bounds = zip(low, high, shape_of(symbol.args[0], sizes), strict=True)
    return all(0 <= a <= b <= n for a, b, n in bounds)


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


class RegionStep:
    """A region with its shape bound: one block if the region fits the cache, else several.

    `native` is the compiled region. `small` is the function that runs a region of one block.
    `assemble` returns the body of the region; its argument are the numbers of the results that the
    region stores into slices. `stores` has these slices, by the number of the result (see
    stores.py). `shapes` has the shapes of symbols that differ from those of the graph, by index.
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
        self.block = block or _block(body)
        self.threads = threads if block or self.size * cost(body) > COST.SECOND_THREAD else 1
        if not block and self.size <= COST.BLOCK_MOST and self.size * cost(body) < COST.ONE_BLOCK:
            self.block = max(self.block, self.size)
        if not block and not body.calls:  # kernels of rows alone, which need no scratch memory
            ranges = 1 if self.threads == 1 else COST.RANGES_PER_THREAD * self.threads
            self.block = max(self.block, -(-self.size // ranges))
        self._take(body)
        self.writes = [(cells[each.index], each.dtype.storage) for each in body.outs]
        self.rows = [
            RowsOf(
                symbol,
                place,
                cells[symbol.index],
                tuple(cells[arg.index] for arg in symbol.args[1:]),
                self.operand_shape(symbol),
                _settings(symbol, sizes),
            )
            for symbol, place in body.rows
        ]
        self.results = {cell: (shape, dtype) for cell, dtype in self.writes}
        for rows in self.rows:
            self.results[rows.cell] = rows.shape, rows.symbol.dtype.storage
        cells_read = [cell for _, cell, _ in self.ins]
        self.operands = list(
            dict.fromkeys(cells_read + [c for rows in self.rows for c in rows.others])
        )
        self.reads = self.operands
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
        step = self.resized(shape, shapes, self.most_threads, cells)
        step.is_reshaped = True
        return step

    def resized(
        self,
        shape: tuple[int, ...],
        shapes: Mapping[int, tuple[int, ...]],
        threads: int,
        cells: Mapping[int, int] | None = None,
    ) -> RegionStep:
        """Return the region with another shape, on at most `threads` threads.

        `shapes` are the new shapes of its operands and of the results of its row-wise symbols, by
        the index of the symbol. `cells` are the new cells, if they differ.
        """
        space, memory = (self.region, self.assemble, shape), (cells or self.cells, self.sizes)
        return RegionStep(*space, *memory, threads, self._block_given, self.native, shapes)

    def operand_shape(self, symbol: Symbol) -> tuple[int, ...]:
        """Return the shape of an operand or a result."""
        shape = self._shapes.get(symbol.index)
        return shape_of(symbol, self.sizes) if shape is None else shape

    @property
    def stored_cells(self) -> list[tuple[int, Store]]:
        """The cells of the results that the region stores into slices, and the slices."""
        return [(self.writes[index][0], store) for index, store in self.stores.items()]

    def adopt_stores(self) -> None:
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
            run.values[store.target] = store.array(source, run.recycler.empty)
        outs = [self._out(run, index, bool(native)) for index in range(len(self.writes))]
        threads = self.native.threads(self) if native else self.threads
        partition = native.cut(run, threads) if native else (self.ranges, self.trees)
        takers = [self._taker(rows, run, partition) for rows in self.rows]
        work = native.work(outs, partition, takers) if native else self._work(run, outs, takers)
        count = len(partition[0])

        def report_blocks(count_done: int) -> None:
            run.tell(count_done * self.blocks // count)

        tell = report_blocks if run.progress else None
        threads = 1 if native and native.has_threads else threads
        share(count, work, threads, run.lane, run.free, tell)
        if not native:
            self._spend(start)
        for rows, taker in zip(self.rows, takers, strict=True):
            run.values[rows.cell] = taker.result(rows.shape)
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
            self.native.spend(perf_counter_ns() - start)

    def _work(self, run: PlanRun, outs: Sequence[Array], takers: Sequence[Taker]) -> Work:
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

        def work(lane: Lane, numbers: Iterator[int]) -> None:
            for i in numbers:
                a, b = self.ranges[i]
                args: list[Any] = [None] * len(self.body.slots)
                scratch = lane.views(self.needs[b - a])
                for (k, _, _), view in zip(self.scratch, scratch, strict=True):
                    args[k] = view.reshape(-1, *inner) if by_rows else view
                for k, source in sources.items():
                    args[k] = source.block(a, b)
                self.body.function(*args)
                for rows, taker in zip(self.rows, takers, strict=True):
                    taker.take(i, a, b, args[rows.place])

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

    def _taker(self, rows: RowsOf, run: PlanRun, partition: Partition) -> Taker:
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


def shape_of(
    symbol: Symbol, sizes: Mapping[str, int], part: TensorType | None = None
) -> tuple[int, ...]:
    """Return the shape of a symbol, or of a part of it, with its dims bound to `sizes`."""
    try:
        return tuple([evaluate(dim, sizes) for dim in (part or symbol).shape])
    except GraphirError as error:
        raise refused(error, symbol) from None


def _settings(symbol: Symbol, sizes: Mapping[str, int]) -> Settings:
    try:
        return settings_of(symbol.op, symbol.dtype, symbol.attrs, sizes, symbol.graph.tf32)
    except GraphirError as error:
        raise refused(error, symbol) from None


def cost(body: RegionBody) -> float:
    """Return the estimated time of a body in NumPy, in nanoseconds per element."""
    rows = [COST.NUMPY_SORT if symbol.op in _SORTS else COST.NUMPY_CHEAP for symbol, _ in body.rows]
    return sum([_price(function) for function, _, _ in body.calls]) + sum(rows)


_SORTS = (ops.sort, ops.argsort)


def _price(function: Any) -> float:
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


Step: TypeAlias = "ScalarStep | CallStep | LayoutStep | RegionStep | WavefrontStep"
"""A step of a plan."""

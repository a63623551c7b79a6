"""Wavefronts: stencils over one another, run one after another on each block of rows.

The steps of a stencil read rows around each row of the step before. A `WavefrontStep` runs all of
them on a block of rows before the next block, each step some rows ahead of the steps that read its
result. The rows that later blocks read again stay in a window of scratch memory in the cache, so
that the arrays pass through memory once, and threads meet once. A thread starts each step with the
rows that its own rows depend on, and so computes a few rows that another thread computes too.

An array with an updated slice is an array of its own here: its slice is the result of a region, and
the other elements are copied from the array before. No order of updates is then to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.decorators import lazy
from graphir.hints import Array
from graphir.runtime.program.blocks import Uniform, aligned, strided
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.region_steps import RegionStep, native_threads_of, threads_of
from graphir.runtime.program.steps import CallStep, PlanRun, PlanStep
from graphir.runtime.program.tier import RowKernel, RowMove, RowOperand

if TYPE_CHECKING:
    from graphir.runtime.native.drivers.thread_pool import Job

Storage: TypeAlias = "np.dtype[Any]"


class CopySource(NamedTuple):
    """An operand of a copy from outside of the step, broadcast to `shape` and contiguous."""

    cell: int
    shape: tuple[int, ...]


class RowPlacement(NamedTuple):
    """The place of an array in the rows of another array, its memory, whose rows are contiguous.

    Row i lies in row `i + shift` of the memory, `offset` bytes after the start of that row. The
    first of `strides`, in bytes, is the distance between the rows of the memory.
    """

    memory: int | CopySource
    shift: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass
class Stage:
    """The computation of rows 0 to `end` of results in memories, from rows in memories.

    For the rows of a block from `a` to `b`, the stage computes its rows to `b + high`, and a thread
    that begins with row `a` begins with `a + low`.
    """

    end: int
    reads: list[RowPlacement]
    writes: list[RowPlacement]
    low: int = field(default=0, init=False)
    high: int = field(default=0, init=False)


@dataclass
class RegionStage(Stage):
    """A region as a stage; with `is_row`, its whole shape is one row.

    `operands` are the placements of the operands in memories, by cell.
    """

    step: RegionStep
    is_row: bool
    operands: dict[int, RowPlacement]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the region, with an axis of rows."""
        return (1, *self.step.shape) if self.is_row else self.step.shape

    @property
    def each(self) -> int:
        """The number of elements of a row."""
        return self.step.size // self.shape[0]

    def layout(self, placement: RowPlacement, dtype: Storage) -> Array:
        """Return an array of the layout of an operand or a result, without its memory."""
        shape, strides = placement.shape, placement.strides
        skip = int(self.is_row)
        return strided(np.empty(1, dtype), shape[skip:], strides[skip:])


@dataclass
class CopyStage(Stage):
    """A copy of rows of an array as a stage: the only read has the shape of the only write."""

    itemsize: int

    @property
    def record(self) -> list[int]:
        """The record of the copy in machine code (see `RowKernel`)."""
        (source,), (target,) = self.reads, self.writes
        row = target.strides[0]
        places = [_places(placement, self.itemsize) for placement in (target, source)]
        edges = np.any([np.diff(place) != self.itemsize for place in places], axis=0)
        starts = np.flatnonzero(np.concatenate([[True], edges]))
        sizes = np.diff(starts, append=places[0].size) * self.itemsize
        columns = [place[starts].tolist() for place in places]
        pieces = [*zip(*columns, sizes.tolist(), strict=True)]
        if row == source.strides[0] and pieces == [(0, 0, row)]:
            pieces = []
        words = [word for piece in pieces for word in piece]
        return [0, 0, row, source.strides[0], len(pieces), *words]


def _places(placement: RowPlacement, itemsize: int) -> NDArray[np.int64]:
    """Return the bytes before each element of a row, from the first element on."""
    places = np.zeros((), np.int64)
    for size, by in zip(placement.shape[1:], placement.strides[1:], strict=True):
        places = places[..., None] + by * np.arange(size)
    return places.reshape(-1)


class RowWindow(NamedTuple):
    """The rows of a memory that a block of rows `a` to `b` works on: `a + keep` to `b + high`."""

    keep: int
    high: int

    @property
    def span(self) -> int:
        """The number of rows that the next block reads again."""
        return self.high - self.keep


class RowMemory(NamedTuple):
    """The shape and dtype of an array of rows, of which all are in memory, or those of a window.

    With `is_row`, the array itself has no axis of rows.
    """

    shape: tuple[int, ...]
    dtype: Storage
    is_row: bool = False

    @property
    def row(self) -> int:
        """The bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def reach(
    stages: Sequence[Stage], memories: Mapping[int, RowMemory], results: Collection[int], rows: int
) -> dict[int, RowWindow]:
    """Set `low` and `high` of stages, and return the windows of the memories.

    `rows` is the number of rows that threads share. All rows of the memories in `results` are
    computed. A stage computes the rows that later stages read, and no others.
    """
    lows, highs = dict[int | CopySource, int](), dict[int | CopySource, int]()
    outputs = [({placement.memory for placement in stage.writes}, stage) for stage in stages]
    cells_read = {
        placement.memory
        for cells, stage in outputs
        for placement in stage.reads
        if placement.memory not in cells
    }
    for cell, memory in memories.items():
        if cell in results or cell not in cells_read:
            lows[cell], highs[cell] = 0, max(0, memory.shape[0] - rows)
    for stage in reversed(stages):
        stage.low = min([lows[placement.memory] - placement.shift for placement in stage.writes])
        stage.high = max([highs[placement.memory] - placement.shift for placement in stage.writes])
        for placement in (*stage.reads, *stage.writes):
            low, high = stage.low + placement.shift, stage.high + placement.shift
            lows[placement.memory] = min(low, lows.get(placement.memory, low))
            highs[placement.memory] = max(high, highs.get(placement.memory, high))
    keeps = dict(highs)
    for stage in stages:
        for placement in stage.reads:
            keeps[placement.memory] = min(keeps[placement.memory], stage.high + placement.shift)
    return {cell: RowWindow(keeps[cell], highs[cell]) for cell in memories}


class WavefrontStep(PlanStep):
    """Regions and copies of rows as one step, on blocks of rows in machine code.

    `steps` are the steps that it replaces, which run one by one until there is machine code.
    `stages` are in order, and `memories` are the arrays that they write, by cell. `results` maps
    the cells that other steps or the outputs read to the cells of their memories; the other
    memories are windows of scratch memory. `rows` is the number of rows that threads share.
    """

    blocks = 2  # more than one: the step is no part of a Python function

    def __init__(
        self,
        steps: Sequence[RegionStep | CallStep],
        stages: Sequence[Stage],
        memories: Mapping[int, RowMemory],
        results: Mapping[int, int],
        rows: int,
    ) -> None:
        self.stages, self.memories, self.results = stages, memories, results
        self.rows, self.shape = rows, memories[next(iter(results.values()))].shape
        self.regions = [stage for stage in stages if isinstance(stage, RegionStage)]
        self.members = [stage.step for stage in self.regions]
        reads = [(cell, stage) for stage in self.regions for cell in stage.step.reads]
        self.operands = list(dict.fromkeys([c for c, stage in reads if c not in stage.operands]))
        sources = [source.memory for stage in stages for source in stage.reads]
        self.sources = list(
            dict.fromkeys([source for source in sources if isinstance(source, CopySource)])
        )
        self._steps, written = steps, {cell for step in steps for cell in step.results}
        cells = [cell for step in steps for cell in step.reads if cell not in written]
        self.reads = list(dict.fromkeys(cells))
        memories_kept = frozenset(results.values())
        self.windows = reach(stages, memories, memories_kept, rows)
        self.inner = [cell for cell in memories if cell not in memories_kept]
        self.ahead = max(stage.high - stage.low for stage in stages)
        self.bytes = max(map(self._bytes, self.regions))
        self.native_block_rows = self._block_rows()
        self.price = sum(member.price for member in self.members)
        self.threads = threads_of(self.members, self.price > COST.SECOND_THREAD)
        self._keys = [*memories, *self.operands, *self.sources]
        self._jobs: dict[Any, Job] = {}
        self._dead = written.difference(results)

    @property
    def has_native_threads(self) -> bool:
        """Whether threads share the rows."""
        return self.threads > 1

    @property
    def is_sequential(self) -> bool:
        """Whether all regions may become machine code."""
        return all(member.native is not None for member in self.members)

    def _bytes(self, stage: RegionStage) -> int:
        """Return the bytes of all memories that a region reads or writes, in all of their rows."""
        cells = {placement.memory for placement in (*stage.reads, *stage.writes)}
        memories = [memory for cell, memory in self.memories.items() if cell in cells]
        return sum(memory.shape[0] * memory.row for memory in memories)

    def _block_rows(self) -> int:
        """Return the rows of a block in machine code; 0 if windows do not fit."""
        memories = self.memories
        spans = sum(self.windows[cell].span * memories[cell].row for cell in self.inner)
        row = sum(memory.row for memory in memories.values())
        return max(0, COST.NATIVE_WINDOWS - spans) // row

    @lazy
    def halo(self) -> float:
        """The elements that each further range computes again, as a part of all elements."""
        again = sum(stage.each * (stage.high - stage.low) for stage in self.regions)
        return again / sum(stage.step.size for stage in self.regions)

    def _ranges(self, threads: int) -> Uniform:
        """Return the ranges of rows that threads take; fewer ranges overlap in fewer rows."""
        if threads == 1 or self.halo * threads > COST.MOST_HALO:
            return Uniform(self.rows, self.rows)
        limit = int(COST.HALO / self.halo) if self.halo else COST.RANGES_PER_THREAD * threads
        count = min(max(threads, limit - limit % threads), COST.RANGES_PER_THREAD * threads)
        return Uniform(self.rows, -(-self.rows // count))

    # -- running

    def run(self, run: PlanRun) -> None:
        """Run all stages on each block of rows in machine code, or the steps one by one."""
        arrays = {cell: aligned(run.values[cell]) for cell in self.operands}
        job = self._job(run.values, arrays)
        if job is None:
            for step in self._steps:
                step.run(run)
            for cell in self._dead:
                run.values[cell] = None
            return
        memories = self._memories(run) | arrays
        job.run([memories[key].ctypes.data if key in memories else 0 for key in self._keys])

    def _memories(self, run: PlanRun) -> dict[int | CopySource, Array]:
        """Return the memories of results, and the sources of copies."""
        arrays: dict[int | CopySource, Array] = {}
        for cell, memory_cell in self.results.items():
            memory = self.memories[memory_cell]
            run.values[cell] = run.empty(cell, memory.shape[memory.is_row :], memory.dtype)
            arrays[memory_cell] = run.values[cell].reshape(-1)
        for source in self.sources:
            array = np.broadcast_to(run.values[source.cell], source.shape)
            arrays[source] = np.ascontiguousarray(array).reshape(-1)
        return arrays

    # -- machine code

    @property
    def cells(self) -> list[int | None]:
        """The cells of the memories of the job; None for windows."""
        cells = {memory: cell for cell, memory in self.results.items()}
        cells |= {cell: cell for cell in self.operands}
        return [cells.get(key) if isinstance(key, int) else key.cell for key in self._keys]

    @property
    def sizes(self) -> dict[int, int]:
        """The bytes of the results, by cell."""
        both = [(cell, self.memories[memory]) for cell, memory in self.results.items()]
        return {cell: memory.shape[0] * memory.row for cell, memory in both}

    def job(self, values: Sequence[Any]) -> Job | None:
        """Return all stages in machine code for values of some layouts; None without kernels.

        A value that is None has C order.
        """
        arrays: dict[int, Array] = {}
        for step in self.members:
            for symbol in step.body.inputs:
                cell = step.cells[symbol.index]
                if cell in self.operands:
                    shape, dtype = step.operand_shape(symbol), symbol.dtype.storage
                    array = values[cell]
                    arrays[cell] = np.empty(shape, dtype) if array is None else array
        return self._job(values, arrays)

    def _job(self, values: Sequence[Any], arrays: Mapping[int, Array]) -> Job | None:
        """Return all stages in machine code; None without kernels.

        `arrays` are the operands, whose strides decide on kernels.
        """
        if not self.native_block_rows or not all(m.native and m.native.pays for m in self.members):
            return None
        key = tuple([arrays[cell].strides for cell in self.operands])
        return lookup(self._jobs, key, lambda: self._bound_job(values, arrays), COST.KEPT_WALKS)

    def _bound_job(self, values: Sequence[Any], arrays: Mapping[int, Array]) -> Job | None:
        kernels = [self._kernel(stage, values, arrays) for stage in self.stages]
        if any(kernel is None for kernel in kernels):
            return None
        moves = [
            RowMove(
                self._keys.index(cell), self.native_block_rows * row, self.windows[cell].span * row
            )
            for cell in self.inner
            for row in [self.memories[cell].row]
            if self.windows[cell].span
        ]
        table = self.members[0].native.together(kernels, self.native_block_rows, moves)
        rows = [self.native_block_rows + self.windows[cell].span for cell in self.inner]
        sizes = [n * self.memories[cell].row for n, cell in zip(rows, self.inner, strict=True)]
        ends = [0, *accumulate(-(-size // LINE) * LINE for size in sizes)]
        inner = dict(zip(map(self._keys.index, self.inner), ends, strict=False))
        threads = native_threads_of(self.members)
        ranges = self._ranges(threads)
        threads = min(threads, len(ranges))
        return table.job(inner, ends[-1], self.rows, ranges[0][1], threads)

    def _kernel(
        self, stage: Stage, values: Sequence[Any], arrays: Mapping[int, Array]
    ) -> RowKernel | None:
        """Return a stage in machine code; None if there is no kernel."""
        lead = stage.end, 0, stage.low, stage.high
        if not isinstance(stage, RegionStage):
            assert isinstance(stage, CopyStage)
            both = (*stage.writes, *stage.reads)
            operands = [self._operand(place, memory) for place, memory in enumerate(both)]
            return RowKernel(None, stage.record, operands, 1, *lead)
        step = stage.step
        layouts = [*values]
        for cell in self.operands:
            layouts[cell] = arrays[cell]
        for symbol in step.body.inputs:
            cell = step.cells[symbol.index]
            if cell in stage.operands:
                layouts[cell] = stage.layout(stage.operands[cell], symbol.dtype.storage)
        results = [
            stage.layout(placement, dtype)
            for placement, (_, dtype) in zip(stage.writes, step.writes, strict=True)
        ]
        kernel = step.native.placed(step, layouts, False, results)
        if kernel is None:
            return None
        targets = {
            cell: placement for placement, (cell, _) in zip(stage.writes, step.writes, strict=True)
        }
        placements = stage.operands | targets
        operands = [
            self._operand(place, placements[cell])
            if cell in placements
            else RowOperand(place, self._keys.index(cell))
            for place, cell in enumerate(kernel.cells)
        ]
        kernel = kernel._replace(arrays=())
        return RowKernel(kernel, kernel.record, operands, stage.each, *lead)

    def _operand(self, place: int, placement: RowPlacement) -> RowOperand:
        """Return an operand of a kernel in a window or in an array."""
        number, row = self._keys.index(placement.memory), placement.strides[0]
        if placement.memory not in self.inner:
            return RowOperand(place, number, placement.offset + placement.shift * row)
        keep = self.windows[placement.memory].keep  # type: ignore[index]
        return RowOperand(place, number, placement.offset + (placement.shift - keep) * row, row)

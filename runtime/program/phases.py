"""Phases: regions over the same rows, run one after another on each block of rows.

A normalisation reduces each row, broadcasts the results back, and computes on the row again. As
steps of their own, its regions would pass the array through memory several times. A `PhasesStep`
runs all of them on a few rows before the next rows, so a row stays in the cache, and a value that
no other step reads has scratch memory for these rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from graphir.hints import Array
from graphir.runtime.program.blocks import (
    Entering,
    FlatSpace,
    Operand,
    Uniform,
    aligned,
    in_order,
    laid_out,
    share,
)
from graphir.runtime.program.cost_model import COST, LINE, NATIVE_SIDE
from graphir.runtime.program.memory import Need, ScratchView, Workspace, lookup
from graphir.runtime.program.region_steps import (
    RegionStep,
    contiguous_slots,
    native_threads_of,
    threads_of,
)
from graphir.runtime.program.rows import Rows
from graphir.runtime.program.steps import CallStep, PlanRun, PlanStep
from graphir.runtime.program.tier import RowKernel, RowOperand
from graphir.semantics.evaluation import contiguous

if TYPE_CHECKING:
    from graphir.runtime.native.drivers.thread_pool import Job

Buffers: TypeAlias = dict[int, Array]
"""The scratch memory of the values that the phases alone read, by cell."""

Member = TypeVar("Member", bound=RegionStep | CallStep)


class Space(NamedTuple):
    """The rows that phases share: their number, and the shape whose last `axes` are one row."""

    shape: tuple[int, ...]
    axes: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return math.prod(self.shape[: len(self.shape) - self.axes])

    @property
    def length(self) -> int:
        """The number of elements of a row."""
        return math.prod(self.shape[len(self.shape) - self.axes :])

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one value a row, as it broadcasts to the rows."""
        return (*self.shape[: len(self.shape) - self.axes], *[1] * self.axes)


def is_as(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether two shapes differ in leading axes of size 1 alone."""
    short, long = sorted((shape, target), key=len)
    return (1,) * (len(long) - len(short)) + short == long


class FusedStep(PlanStep, Generic[Member]):
    """Several steps as one.

    `members` are the steps in order, and `views` the cells of views of their values. `writes` has
    the shape and dtype of each value, by cell. `results` are the cells of the values that other
    steps or the outputs read; the other values lie in scratch memory.
    """

    threads: int

    def __init__(
        self,
        members: Sequence[Member],
        writes: Mapping[int, tuple[tuple[int, ...], np.dtype[Any]]],
        views: Collection[int],
        results: Collection[int],
    ) -> None:
        self.members, self.writes = members, writes
        self.results = [cell for cell in writes if cell in results]
        reads = [cell for member in members for cell in member.reads]
        inside = {*writes, *views}
        self.reads = list(dict.fromkeys([cell for cell in reads if cell not in inside]))
        self._inner = [cell for cell in writes if cell not in results]
        self._keys = [*self._inner, *self.results, *self.reads]
        self._jobs: dict[Any, Job] = {}

    @property
    def has_native_threads(self) -> bool:
        """Whether threads share the rows or matrices."""
        return self.threads > 1

    @property
    def cells(self) -> list[int | None]:
        """The cells of the memories of the job; None for scratch memory."""
        return [None if cell in self._inner else cell for cell in self._keys]

    @property
    def sizes(self) -> dict[int, int]:
        """The bytes of the results, by cell."""
        both = [(cell, *self.writes[cell]) for cell in self.results]
        return {cell: math.prod(shape) * dtype.itemsize for cell, shape, dtype in both}


class PhasesStep(FusedStep[RegionStep]):
    """Regions over the same rows as one step.

    `aliases` maps the cell of each view of one value a row to the cell that it views.
    """

    def __init__(
        self,
        members: Sequence[RegionStep],
        space: Space,
        aliases: Mapping[int, int],
        results: Collection[int],
    ) -> None:
        writes = {cell: result for member in members for cell, result in member.results.items()}
        super().__init__(members, writes, aliases, results)
        self.space, self.aliases, self.shape = space, aliases, space.shape
        self.price = sum(member.price for member in members)
        self.threads = threads_of(members, self.price > COST.SECOND_THREAD)
        sizes = {cell: math.prod(n) * dtype.itemsize for cell, (n, dtype) in self.writes.items()}
        for member in members:
            sizes |= self._operand_sizes(member)
        self.bytes = sum(sizes.values())
        row = self.bytes / space.rows
        scratch = max(sum(member.body.widths) for member in members)
        self.block_rows = int(COST.CACHE / (row + scratch * space.length))
        self.native_block_rows = int(COST.NATIVE_ROWS / row) or max(
            1, int(COST.NATIVE_LONG_ROWS / row)
        )
        if NATIVE_SIDE * row <= COST.NATIVE_LONG_ROWS:
            self.native_block_rows = -(-self.native_block_rows // NATIVE_SIDE) * NATIVE_SIDE
        self.blocks = -(-space.rows // max(1, self.block_rows))
        self.needs: list[dict[int, Need]] = [{} for _ in members]
        sizes = [self.row(cell) * self.writes[cell][1].itemsize for cell in self._inner]
        self._offsets = [
            0,
            *accumulate(-(-self.native_block_rows * n // LINE) * LINE for n in sizes),
        ]

    @property
    def is_sequential(self) -> bool:
        """Whether all regions may become machine code."""
        return all(member.native is not None for member in self.members)

    def _operand_sizes(self, member: RegionStep) -> dict[int, int]:
        """Return the bytes of the operands that a region reads from outside, by cell.

        An operand that is broadcast to the rows stays in the cache, and does not count.
        """
        sizes: dict[int, int] = {}
        for symbol in member.body.inputs:
            cell, shape = member.cells[symbol.index], member.operand_shape(symbol)
            if cell in self.reads and shape == self.shape:
                sizes[cell] = math.prod(shape) * symbol.dtype.storage.itemsize
        return sizes

    # -- running

    def run(self, run: PlanRun) -> None:
        """Run all phases on each block of rows, all by machine code or all by NumPy."""
        start = perf_counter_ns()
        for cell in self.results:
            run.values[cell] = run.empty(cell, *self.writes[cell])
        if self._share(run):
            return
        blocks = Uniform(self.space.rows, self.block_rows)

        def work(workspace: Workspace, numbers: Iterator[int]) -> None:
            buffers: Buffers = {
                cell: np.empty(self.block_rows * self.row(cell), dtype)
                for cell, (_, dtype) in self.writes.items()
                if run.values[cell] is None
            }
            phases = [_NumpyPhase(self, k, run, buffers) for k in range(len(self.members))]
            for i in numbers:
                for phase in phases:
                    phase(workspace, *blocks[i])

        share(len(blocks), work, self.threads, run.workspace, run.memory.free)
        took = perf_counter_ns() - start
        # The phases become machine code at once, so those that wait for code share all time.
        waiting = [x.native for x in self.members if x.native and not x.native.pays]
        for native in waiting:
            native.charge(took / len(waiting))

    def row(self, cell: int) -> int:
        """Return the number of elements of a result for each row."""
        return math.prod(self.writes[cell][0]) // self.space.rows

    def _share(self, run: PlanRun) -> bool:
        """Run all phases in machine code without Python; return whether all have machine code."""
        if not all(member.native and member.native.pays for member in self.members):
            return False
        size = math.prod(self.shape)
        arrays = {cell: aligned(run.values[cell], size) for cell in self.reads}
        key = tuple([array.strides for array in arrays.values()])

        def make() -> Job | None:
            return self.job([arrays.get(cell, value) for cell, value in enumerate(run.values)])

        job = lookup(self._jobs, key, make, COST.KEPT_WALKS)
        if job is None:
            return False
        outer = [run.values[cell].ctypes.data for cell in self.results]
        job.run([*[0] * len(self._inner), *outer, *[x.ctypes.data for x in arrays.values()]])
        return True

    def job(self, values: Sequence[Any]) -> Job | None:
        """Return the phases in machine code for operands of some strides; None without kernels."""
        values = self._layouts(values)
        kernels: list[RowKernel] = []
        for member in self.members:
            kernel = member.native.placed(member, values, False)
            if kernel is None:
                return None
            operands = [self._operand(*item) for item in enumerate(kernel.cells)]
            rows, kernel = self.space.rows, kernel._replace(arrays=())
            kernels.append(RowKernel(kernel, kernel.record, operands, kernel.size // rows, rows))
        threads, block_rows = native_threads_of(self.members), self.native_block_rows
        blocks = -(-self.space.rows // (block_rows * COST.RANGES_PER_THREAD * threads))
        table = self.members[0].native.together(kernels, block_rows)
        inner = dict(enumerate(self._offsets[:-1]))
        return table.job(inner, self._offsets[-1], self.space.rows, blocks * block_rows, threads)

    def _operand(self, place: int, cell: int) -> RowOperand:
        cell = self.aliases.get(cell, cell)
        row = self.row(cell) * self.writes[cell][1].itemsize if cell in self._inner else 0
        return RowOperand(place, self._keys.index(cell), 0, row)

    def _layouts(self, cells: Sequence[Any]) -> list[Any]:
        """Return the cells with an array of the right layout, but no memory, for inner values."""
        values = [*cells]
        for cell, (shape, dtype) in self.writes.items():
            if values[cell] is None:
                values[cell] = in_order(shape, dtype)
        for member in self.members:
            for symbol in member.body.inputs:
                cell = member.cells[symbol.index]
                if cell in self.aliases:
                    source = values[self.aliases[cell]]  # in C order, so this is a view
                    values[cell] = source.reshape(member.operand_shape(symbol))
        return values


class _Operand(NamedTuple):
    """An operand of a phase in NumPy: what has its blocks, with the elements of a row in it.

    A block of an `inside` operand is the first part of scratch memory. `is_whole` operands are
    contiguous, with all elements of a row.
    """

    slot: int
    space: Operand
    elements: int
    inside: bool
    is_whole: bool


class _NumpyPhase:
    """A region as a function of a range of rows, on arrays with an axis of rows, for one thread."""

    def __init__(self, phases: PhasesStep, number: int, run: PlanRun, buffers: Buffers) -> None:
        step = self.step = phases.members[number]
        self.needs = phases.needs[number]
        self.each = step.size // phases.space.rows
        self.block_rows = phases.block_rows
        self.operands = [
            self._operand(slot, cell, dtype, phases, run, buffers) for slot, cell, dtype in step.ins
        ]
        self.results = [
            (k, self._memory(step.writes[index][0], run, buffers).view(dtype), cell_inside)
            for k, index, dtype in step.outs
            for cell_inside in [step.writes[index][0] in buffers]
        ]
        self.consumers = [
            (
                rows.place,
                Rows(
                    rows.symbol,
                    rows.settings,
                    [contiguous(run.values[cell]) for cell in rows.others],
                    step.length,
                    self._memory(rows.cell, run, buffers),
                ),
                rows.cell in buffers,
            )
            for rows in step.rows
        ]

    def _memory(self, cell: int, run: PlanRun, buffers: Buffers) -> Array:
        """Return the memory of a result: scratch memory, or the whole array."""
        return buffers[cell] if cell in buffers else run.values[cell].reshape(-1)

    def _operand(
        self,
        slot: int,
        cell: int,
        dtype: np.dtype[Any],
        phases: PhasesStep,
        run: PlanRun,
        buffers: Buffers,
    ) -> _Operand:
        cell = phases.aliases.get(cell, cell)
        array = buffers[cell] if cell in buffers else np.asarray(run.values[cell])
        if cell in phases.writes and cell not in buffers:
            body = self.step.body
            array = array.reshape(self.step.operand_shape(body.inputs[body.slots[slot].number]))
        if array.dtype != dtype:
            array = array.view(dtype)
        elements = self.each
        if cell in buffers:
            operand, elements = FlatSpace(array), phases.row(cell)
        elif array.shape == phases.space.row_shape and array.flags.c_contiguous:
            operand, elements = FlatSpace(array), 1
        else:
            operand = laid_out(array, self.step.shape, phases.block_rows * self.each)
        if slot in self.step.entering:
            operand = Entering(operand, self.step.entering[slot])
        is_whole = slot in contiguous_slots(self.step) and elements != self.each
        return _Operand(slot, operand, elements, cell in buffers, is_whole)

    def __call__(self, workspace: Workspace, first: int, end: int) -> None:
        """Compute the rows `first` to `end`."""
        n, each, step = end - first, self.each, self.step
        args: list[Any] = [None] * len(step.body.slots)
        if n not in self.needs:
            views = [ScratchView(slot, dtype, (n, each)) for _, slot, dtype in step.scratch]
            self.needs[n] = Need(views)
        for (k, _, _), view in zip(step.scratch, workspace.views(self.needs[n]), strict=True):
            args[k] = view
        for k, operand, elements, inside, is_whole in self.operands:
            start = 0 if inside else first
            block = operand.block(start * elements, (start + n) * elements)
            if block.ndim:
                block = block.reshape(n, elements)
            if is_whole and block.ndim:
                block = np.ascontiguousarray(np.broadcast_to(block, (n, each)))
            args[k] = block
        for k, array, inside in self.results:
            start = 0 if inside else first * each
            args[k] = array[start : start + n * each].reshape(n, each)
        step.body.function(*args)
        for place, consumer, inside in self.consumers:
            start = 0 if inside else first
            consumer.take(0, start * each, (start + n) * each, args[place])

"""The fusion of stencils over one another into one step: see runtime/program/wavefronts.py."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np

from graphir import ops
from graphir.hints import Array
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import VIEWS
from graphir.runtime.program.memory import long_axes
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep, Step
from graphir.runtime.program.wavefronts import (
    CopySource,
    CopyStage,
    RegionStage,
    RowMemory,
    RowPlacement,
    Stage,
    WavefrontStep,
    reach,
)


def fuse_wavefronts(
    steps: Sequence[Step], exit_cells: Collection[int], seeds: int | None = None
) -> list[Step]:
    """Return the steps with stencils over one another as one step, in an order that computes all.

    Updates must not be in place yet. `exit_cells` are the cells of the outputs. The rewrite looks
    at `seeds` regions at most that may be the first of a wavefront; the default is WAVEFRONT_SEEDS.
    """
    seeds = COST.WAVEFRONT_SEEDS if seeds is None else seeds
    for number, step in enumerate(steps):
        if not seeds:
            break
        if not isinstance(step, RegionStep) or not _is_member(step):
            continue
        seeds -= 1
        with suppress(MemoryError):
            if fused := _Fusion(steps, number, exit_cells).fuse(seeds):
                return fused
    return list(steps)


def _is_member(step: RegionStep) -> bool:
    """Whether a region can be a stage: it is elementwise, has rows, and may be machine code.

    NumPy takes longer for the rows of a stage than for a region in flat memory.
    """
    is_simple = not (step.rows or step.stores or step.trees or step.is_reshaped)
    return is_simple and bool(step.native) and bool(step.size) and bool(step.shape)


class _Fusion:
    """The regions and updates that can run together with a region, and the steps around them.

    `before` are the steps that depend on none of the members. `after` are the other steps; none of
    the members depends on them. `_arrays` has an array for each cell whose value lies in a memory:
    memory that is not touched, of which NumPy makes the views of the plan. `_roots` has the cell of
    that memory.
    """

    def __init__(self, steps: Sequence[Step], seed: int, exit_cells: Collection[int]) -> None:
        self.exit = exit_cells
        self.stages: list[Stage] = []
        self._steps: list[RegionStep | CallStep] = []
        self.memories: dict[int, RowMemory] = {}
        self._arrays: dict[int, Array] = {}
        self._bases: dict[int, Array] = {}
        self._roots: dict[int, int] = {}
        self._latest: dict[int, int] = {}
        self._views: dict[int, Step] = {}
        self._result_bytes = self._copy_bytes = 0
        self._readers: dict[int, list[Step]] = {}
        for step in steps:
            for cell in step.reads:
                self._readers.setdefault(cell, []).append(step)
        self.before, self.after = [*steps[:seed]], list[Step]()
        late: set[int] = set()
        for step in steps[seed:]:
            if late.isdisjoint(step.reads) and self._takes(step):
                self._steps.append(step)
                continue
            if late.isdisjoint(step.reads) and self._arrays.keys().isdisjoint(step.reads):
                self.before.append(step)
                continue
            late.update(step.results)
            self.after.append(step)

    # -- members

    def _takes(self, step: Step) -> TypeGuard[RegionStep | CallStep]:
        """Add a step to the members if it can run on blocks of rows."""
        if isinstance(step, RegionStep):
            return _is_member(step) and self._add_region(step)
        inner = not self._arrays.keys().isdisjoint(step.reads)
        if not inner or not isinstance(step, CallStep) or not step.fits:
            return False
        if step.symbol.op is ops.slice_update:
            return self._add_update(step)
        return step.symbol.op in VIEWS and self._add_view(step)

    def _add_view(self, step: CallStep) -> bool:
        """Add a view of a value in memory."""
        (cell,) = step.reads
        array = np.asarray(step.call(self._arrays[cell]))
        root = self._roots[cell]
        if array.size == 0 or not np.may_share_memory(array, self._bases[root]):
            return False
        self._arrays[step.write], self._roots[step.write] = array, root
        self._views[step.write] = step
        return True

    def _add_region(self, step: RegionStep) -> bool:
        """Add a region whose operands lie in rows of memories; False if it has to stay."""
        for is_row in (False, True):
            operands = self._operands(step, is_row)
            if operands is not None:
                break
        else:
            return False
        shape = (1, *step.shape) if is_row else step.shape
        if not operands and self.stages and not self._is_alike(step.shape):
            return False
        stage = RegionStage(shape[0], [*operands.values()], [], step, is_row, operands)
        for cell, dtype in step.writes:
            self._enter(cell, RowMemory(shape, dtype, is_row))
            stage.writes.append(_whole(cell, self.memories[cell]))
        self.stages.append(stage)
        if not self._fits():
            self.stages.pop()
            for cell, _ in step.writes:
                self._leave(cell)
            return False
        self._result_bytes += sum(step.size * dtype.itemsize for _, dtype in step.writes)
        return True

    def _operands(self, step: RegionStep, is_row: bool) -> dict[int, RowPlacement] | None:
        """Return the operands of a region in memories; None if they do not lie in rows."""
        operands: dict[int, RowPlacement] = {}
        for symbol in step.body.inputs:
            cell = step.cells[symbol.index]
            if cell not in self._arrays:
                continue
            array = self._arrays[cell]
            placement = self._place(cell, array[None] if is_row else array)
            if array.shape != step.shape or placement is None:
                return None
            operands[cell] = placement
        return operands if operands or not is_row else None

    def _is_alike(self, shape: tuple[int, ...]) -> bool:
        """Whether a region that reads no member has about as many rows as the first member."""
        first = self.stages[0].end
        return shape[0] > 1 and abs(shape[0] - first) * 16 <= first

    def _place(self, cell: int, array: Array) -> RowPlacement | None:
        """Return the placement of an array in the memory of a cell; None if rows do not match."""
        root = self._roots[cell]
        return _placement(root, self._bases[root], array, self.memories[root].row)

    def _enter(self, cell: int, memory: RowMemory) -> None:
        """Add the memory of a cell."""
        self.memories[cell], self._roots[cell], self._latest[cell] = memory, cell, cell
        self._bases[cell] = np.empty(memory.shape, memory.dtype)
        self._arrays[cell] = self._bases[cell][0] if memory.is_row else self._bases[cell]

    def _leave(self, cell: int) -> None:
        """Remove the memory of a cell."""
        del self.memories[cell], self._roots[cell], self._latest[cell], self._arrays[cell]

    @property
    def _rows(self) -> int:
        """The number of rows that threads share: that of the array of the last region with rows."""
        for stage in reversed(self.stages):
            cell = stage.writes[0].memory
            if isinstance(stage, RegionStage) and not stage.is_row and isinstance(cell, int):
                return self.memories[cell].shape[0]
        return 1

    def _fits(self) -> bool:
        """Whether the windows of all stages fit the cache."""
        windows = reach(self.stages, self.memories, (), self._rows)
        sizes = [(windows[cell].span + 1) * memory.row for cell, memory in self.memories.items()]
        return sum(sizes) <= COST.NATIVE_WINDOWS

    # -- updates

    def _add_update(self, step: CallStep) -> bool:
        """Add an update of a slice; False if it has to stay.

        The array after the update has memory of its own, into which the stage that computes the
        slice writes it, and to which the other elements are copied; unless nothing else reads the
        array before the update.
        """
        source, value = step.reads
        box, dtype = step.box, step.symbol.dtype.storage
        if not step.shape or any(by != 1 for by in box.step) or not math.prod(box.shape):
            return False
        state = self._state()
        parts: list[tuple[Array, Array | CopySource, tuple[Any, ...]]] = []
        if self._shares(step):
            root = self._roots[source]
            self._arrays[step.write], self._roots[step.write] = self._arrays[source], root
            self._latest[root] = step.write
        else:
            self._enter(step.write, RowMemory(step.shape, dtype))
            before = self._arrays.get(source, CopySource(source, step.shape))
            array = self._arrays[step.write]
            parts = [(array[key], before, key) for key in _around(step)]
            self._copy_bytes += sum(part.nbytes for part, _, _ in parts)
        target = self._arrays[step.write][box.key]
        if not self._stores(step, target):
            self._copy_bytes += target.nbytes
            array = self._arrays.get(value, CopySource(value, target.shape))
            if not isinstance(array, CopySource):
                array = np.broadcast_to(array, target.shape)
            parts.append((target, array, ()))
        cells = step.write, source, value
        if (
            self._copy_bytes <= COST.COPIED * self._result_bytes
            and all(self._copy(cells, *part) for part in parts)
            and self._fits()
        ):
            return True
        self._restore(state)
        return False

    def _shares(self, step: CallStep) -> bool:
        """Whether an array after an update can have the memory of the array before it.

        Nothing but the update may read the array before it; the update itself may read the same
        rows.
        """
        source, value = step.reads
        if self._latest.get(self._roots.get(source, -1)) != source or source in self.exit:
            return False
        cells = [value]
        while cells[-1] in self._views:
            cells += self._views[cells[-1]].reads
        if any(cell in self.exit for cell in cells[:-1]):
            return False
        readers = [reader for cell in {source, *cells[:-1]} for reader in self._readers[cell]]
        views = [self._views.get(cell) for cell in cells]
        if any(reader is not step and reader not in views for reader in readers):
            return False
        if value not in self._arrays or self._roots[value] != self._roots[source]:
            return value not in self._arrays or value not in self.memories
        target = self._arrays[source][step.box.key]
        both = self._place(value, np.broadcast_to(self._arrays[value], target.shape))
        own = self._place(source, target)
        return both is not None and own is not None and both.shift == own.shift

    def _stores(self, step: CallStep, target: Array) -> bool:
        """Let the stage that computes the slice of an update write into `target`, if it can."""
        value = step.reads[1]
        if value not in self.memories or value in self.exit or len(self._readers[value]) > 1:
            return False
        for stage in self.stages:
            cells = (
                [cell for cell, _ in stage.step.writes] if isinstance(stage, RegionStage) else []
            )
            if value not in cells or not isinstance(stage, RegionStage):
                continue
            if long_axes(stage.step.shape) != long_axes(target.shape):
                return False
            array = target.reshape(stage.shape)
            placement = self._place(step.write, array)
            if placement is None:
                return False
            stage.writes = [
                placement if cell == value else rows
                for cell, rows in zip(cells, stage.writes, strict=True)
            ]
            self._leave(value)
            return True
        return False

    def _copy(
        self,
        cells: tuple[int, int, int],
        target: Array,
        source: Array | CopySource,
        key: tuple[Any, ...],
    ) -> bool:
        """Add the copy of `source[key]` to a part of an array; False if rows do not match.

        `cells` are those of the array and of the operands of its update.
        """
        if not target.size:
            return True
        own = self._place(cells[0], target)
        if isinstance(source, CopySource):
            array = np.empty(source.shape, target.dtype)
            row = array.nbytes // array.shape[0]
            read = _placement(source, array, array[key], row)
        else:
            cell = cells[1] if key else cells[2]
            read = self._place(cell, source[key])
        if own is None or read is None:
            return False
        self.stages.append(CopyStage(target.shape[0], [read], [own], target.itemsize))
        return True

    def _state(self) -> tuple[Any, ...]:
        """Return a copy of the state that an update changes."""
        writes = [stage.writes for stage in self.stages]
        maps = self.memories, self._arrays, self._roots, self._latest
        return [*self.stages], writes, *map(dict, maps), self._copy_bytes

    def _restore(self, state: tuple[Any, ...]) -> None:
        """Take back what an update changed."""
        self.stages, writes, *maps, self._copy_bytes = state
        self.memories, self._arrays, self._roots, self._latest = maps
        for stage, own in zip(self.stages, writes, strict=True):
            stage.writes = own

    # -- the step

    def fuse(self, seeds: int) -> list[Step] | None:
        """Return all steps, the members as one; None unless that saves passes over memory."""
        regions = [stage for stage in self.stages if isinstance(stage, RegionStage)]
        if len(regions) < 2 or not any(stage.operands for stage in regions):
            return None
        cells = {*self.exit, *[cell for step in self.after for cell in step.reads]}
        views: list[Step] = []
        for cell, view in reversed(self._views.items()):
            if cell in cells:
                views.insert(0, view)
                cells.update(view.reads)
        results = {cell: root for root, cell in self._latest.items() if cell in cells}
        results, rows = self._apart(results), self._rows
        step = WavefrontStep(self._steps, self.stages, self.memories, results, rows)
        if step.bytes <= COST.CACHE or not step.native_block_rows:
            return None
        before = fuse_wavefronts(self.before, {*cells, *step.reads}, seeds)
        return [*before, step, *views, *fuse_wavefronts(self.after, self.exit, seeds)]

    def _apart(self, results: dict[int, int]) -> dict[int, int]:
        """Return the memories of results after those that threads share have become windows.

        If two threads compute the same rows of a memory, one may read what the other has not
        finished. So these rows are computed in windows, and copied when they are finished.
        """
        reach(self.stages, self.memories, frozenset(results.values()), self._rows)
        overlap = {
            rows.memory for stage in self.stages for rows in stage.writes if stage.high > stage.low
        }
        roots: dict[int, int] = {}
        for cell, root in results.items():
            if root in overlap:
                memory = self.memories[root]
                root, window = -1 - root, root
                self.memories[root] = memory
                both = [_whole(window, memory)], [_whole(root, memory)]
                copy = CopyStage(memory.shape[0], *both, memory.dtype.itemsize)
                self.stages.append(copy)
            roots[cell] = root
        return roots


def _whole(cell: int, memory: RowMemory) -> RowPlacement:
    """Return the placement of a memory in itself."""
    inner = [
        memory.dtype.itemsize * math.prod(memory.shape[k + 1 :])
        for k in range(1, len(memory.shape))
    ]
    return RowPlacement(cell, 0, 0, memory.shape, (memory.row, *inner))


def _placement(
    memory: int | CopySource, base: Array, array: Array, row: int
) -> RowPlacement | None:
    """Return the placement of an array in the memory of another; None if rows do not match."""
    shift, offset = divmod(array.ctypes.data - base.ctypes.data, row)
    if not array.ndim or (array.shape[0] > 1 and array.strides[0] != row):
        return None
    ends = [(size - 1) * by for size, by in zip(array.shape[1:], array.strides[1:], strict=True)]
    low, high = sum(min(0, end) for end in ends), sum(max(0, end) for end in ends)
    if offset + low < 0 or offset + high + array.itemsize > row:
        return None
    return RowPlacement(memory, shift, offset, array.shape, (row, *array.strides[1:]))


def _around(step: CallStep) -> Iterator[tuple[slice, ...]]:
    """Yield the indices of slices that together are all elements but the slice of an update."""
    before: list[slice] = []
    for size, first, end in zip(step.shape, step.box.start, step.box.stop, strict=True):
        for edge in (slice(0, first), slice(end, size)):
            if edge.start < edge.stop:
                yield (*before, edge)
        before.append(slice(first, end))

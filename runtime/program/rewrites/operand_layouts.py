"""Operands as they lie in memory: narrow integers, chains of views, stencils in flat memory.

`read_narrow` lets a product of integers read what a cast reads, and convert it by itself. Kernels
of products bring their operands into a layout of their own anyway, where an element of one byte
takes less time than the four or eight bytes that it is cast to.

`merge_views` makes one view of a slice and the reshapes that drop and insert axes of size 1, as
`a[i]` and `a[:, j, None]` are recorded. Each view costs a replay as much as arithmetic on a
thousand elements, and NumPy's basic indexing does a whole chain at once.

`Flattener` makes regions on boxes of arrays regions on ranges of elements. NumPy's loops over boxes
start anew in each row. If all operands of a region are boxes of arrays of one shape, each operand
lies at a fixed distance from the others: the region can run over the whole range of memory from the
first to the last element of the boxes, in one row. It also computes elements between the boxes'
rows, which nobody reads. A view of the range's result has the shape of the region. Machine code,
which takes contiguous arrays, profits likewise.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from graphir import ops
from graphir.runtime.program.codegen.tracing import assign, select
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import VIEWS
from graphir.runtime.program.memory import Box
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep, LayoutStep, Step, is_view


class FlatBox(NamedTuple):
    """The memory of a box in a contiguous array: its first element, and its strides in elements."""

    base: int
    first: int
    strides: tuple[int, ...]


class Flattener:
    """A rewrite of the stencils of a plan.

    `outputs` are the cells of the plan's outputs, and `count` is the number of cells. `origins` has
    the new cells, with the cell whose value each has in another shape.
    """

    def __init__(self, steps: Sequence[Step], outputs: Container[int], count: int) -> None:
        self.origins: dict[int, int] = {}
        self._count = count
        self._boxes: dict[int, FlatBox] = {}
        self._flat_bases: dict[int, int] = {}
        calls = {step.write: step for step in steps if isinstance(step, CallStep)}
        for cell, step in calls.items():
            if step.symbol.op is not ops.slice or not step.fits:
                continue
            source = calls.get(step.reads[0])
            if source is None or source.symbol.op not in VIEWS:
                self._boxes[cell] = _flat_box(step)
        uses = Counter([cell for step in steps for cell in step.reads])
        for step in calls.values():
            if step.symbol.op is ops.slice_update:
                uses[step.reads[1]] -= 1
        self._users = {cell for cell, count in uses.items() if count}
        self._outputs = outputs

    def flatten(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps with stencils in flat memory; views may be left that nothing reads."""
        return [flat_step for step in steps for flat_step in self._rewrite(step)]

    def is_stencil(self, region: RegionStep) -> bool:
        """Whether a region can run in flat memory."""
        return self._strides(region) is not None

    def _rewrite(self, step: Step) -> Iterator[Step]:
        """Yield the steps that do the work of one step."""
        strides = self._strides(step) if isinstance(step, RegionStep) else None
        if strides is None or not isinstance(step, RegionStep):
            yield step
            return
        size = 1 + sum((n - 1) * by for n, by in zip(step.shape, strides, strict=True))
        cells: dict[int, int] = {}
        for _, cell, _ in step.ins:
            if cell in cells or cell not in self._boxes:
                continue
            box = self._boxes[cell]
            if box.base not in self._flat_bases:
                self._flat_bases[box.base] = self._new(box.base)
                flat = self._flat_bases[box.base]
                yield LayoutStep(box.base, flat, (), "{0}.reshape(-1)")
            cells[cell] = self._new(cell)
            text = f"{{0}}[{box.first}:{box.first + size}]"
            yield LayoutStep(self._flat_bases[box.base], cells[cell], (size,), text)
        cells |= {cell: self._new(cell) for cell, _ in step.writes}
        symbols = {index: cells[cell] for index, cell in step.cells.items() if cell in cells}
        yield step.reshaped((size,), ChainMap(symbols, dict(step.cells)))
        for cell, dtype in step.writes:
            by = tuple([stride * dtype.itemsize for stride in strides])
            values = np.ndarray, step.shape, dtype, by
            yield LayoutStep(cells[cell], cell, step.shape, "{1}({2}, {3}, {0}, 0, {4})", values)

    def _new(self, origin: int) -> int:
        cell = self._count + len(self.origins)
        self.origins[cell] = origin
        return cell

    def _strides(self, region: RegionStep) -> tuple[int, ...] | None:
        """Return the common strides of a region's operands; None if it stays as it is."""
        if region.rows or region.stores or len(region.shape) < 2 or not region.size:
            return None
        if any(cell in self._users or cell in self._outputs for cell, _ in region.writes):
            return None
        functions = [function for function, _, _ in region.body.calls]
        if not all(isinstance(x, np.ufunc) or x in (assign, select) for x in functions):
            return None
        dtypes = [dtype for _, dtype in region.writes]
        boxes: set[tuple[int, ...]] = set()
        for k, cell, _ in region.ins:
            symbol = region.body.inputs[region.body.slots[k].number]
            if not symbol.rank:
                continue
            box = self._boxes.get(cell)
            if box is None or region.operand_shape(symbol) != region.shape:
                return None
            boxes.add(box.strides)
        if len(boxes) != 1 or any(dtype.isbuiltin != 1 for dtype in dtypes) or region.entering:
            return None
        (strides,) = boxes
        size = 1 + sum((n - 1) * by for n, by in zip(region.shape, strides, strict=True))
        rows = region.size // region.shape[-1]
        return strides if 0 < size - region.size <= COST.ROW_START * rows else None


def _flat_box(step: CallStep) -> FlatBox:
    """Return the memory of a slice of a contiguous array."""
    shape = step.source_shape
    array_strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    first = sum(a * by for a, by in zip(step.box.start, array_strides, strict=True))
    strides = tuple([by * step for by, step in zip(array_strides, step.box.step, strict=True)])
    return FlatBox(step.reads[0], first, strides)


def merge_views(steps: Sequence[Step], outputs: Container[int]) -> list[Step]:
    """Return the steps with one view of an array in place of each chain of views.

    `outputs` are the cells of the plan's outputs.
    """
    boxes: dict[int, tuple[int, Box]] = {}
    merged_steps: list[Step] = []
    for step in steps:
        if isinstance(step, CallStep) and step.symbol.op is ops.slice and step.fits:
            boxes[step.write] = step.reads[0], step.box
        elif isinstance(step, CallStep) and step.symbol.op is ops.reshape:
            source, box = boxes.get(step.reads[0], (-1, None))
            key = box and box.key_in(step.shape)
            if box and key:
                boxes[step.write] = source, box
                step = LayoutStep(source, step.write, step.shape, "{0}[{1}]", [key])
        merged_steps.append(step)
    return _live(merged_steps, outputs)


def _live(steps: Sequence[Step], outputs: Container[int]) -> list[Step]:
    """Return the steps without the views that nothing reads."""
    live: list[Step] = []
    reads: set[int] = set()
    for step in reversed(steps):
        if not is_view(step) or step.write in reads or step.write in outputs:
            reads.update(step.reads)
            live.append(step)
    return live[::-1]


def read_narrow(steps: Sequence[Step], outputs: Container[int]) -> Sequence[Step]:
    """Return the steps without the regions of casts that large products of integers alone read.

    The products read the operands of these casts. `outputs` are the cells of the plan's outputs.
    """
    if not any(isinstance(step, CallStep) and step.is_large_product for step in steps):
        return steps
    readers: dict[int, list[Step]] = {}
    for step in steps:
        for cell in step.reads:
            readers.setdefault(cell, []).append(step)
    others: list[Step] = []
    for step in steps:
        sources = _widening_casts(step)
        products = [reader for cell in sources for reader in readers.get(cell, ())]
        if (
            sources
            and not any(cell in outputs for cell in sources)
            and all(isinstance(reader, CallStep) and reader.is_large_product for reader in products)
        ):
            for product in products:
                product.reads[:] = [sources.get(cell, cell) for cell in product.reads]
        else:
            others.append(step)
    return others


def _widening_casts(step: Step) -> dict[int, int]:
    """Return the cells of a region's results and of their operands, if all are widening casts."""
    if not isinstance(step, RegionStep) or step.rows:
        return {}
    sources: dict[int, int] = {}
    for result in step.body.outs:
        source = result.args[0] if result.op is ops.cast else result
        is_widened = source.dtype.storage.kind in "biu" and result.dtype.storage.kind in "iu"
        is_widened &= source is not result and source.dtype.exact_in(result.dtype)
        if not is_widened or source.index not in step.cells:
            return {}
        sources[step.cells[result.index]] = step.cells[source.index]
    return sources

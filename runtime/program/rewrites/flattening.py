"""Stencils in flat memory: regions on boxes of arrays become regions on ranges of elements.

NumPy's loops over boxes start anew in each row. If all operands of a region are boxes of arrays of
one shape, each operand lies at a fixed distance from the others: the region can run over the whole
range of memory from the first to the last element of the boxes, in one row. It also computes
elements between the boxes' rows, which nobody reads. A view of the range's result has the shape of
the region. Machine code, which takes contiguous arrays, profits likewise.
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
from graphir.runtime.program.steps import CallStep, LayoutStep, RegionStep, Step


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
    whole = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    first = sum(a * by for a, by in zip(step.box.start, whole, strict=True))
    strides = tuple([by * step for by, step in zip(whole, step.box.step, strict=True)])
    return FlatBox(step.reads[0], first, strides)

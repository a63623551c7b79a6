"""The fusion of steps that share rows, matrices or columns into one step.

Steps over the same rows become phases, products of matrices batches (see runtime/program/phases.py
and batches.py).

Reductions over outer axes run block by block: the array that they reduce never exists as a whole.
NumPy reduces an outer axis of a contiguous array row by row: each result takes one element of each
row, in the order of the rows. A `ColumnsStep` computes a block of rows by its region, adds the rows
of the block to the results, and goes on with the next block, so a block stays in the cache. Each
thread has results of its own: those of some leading elements, or some of the lanes. NumPy alone
gains nothing by blocks (whole_programs, column_moments): the step is for machine code, and until
there is some its members run one after another.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np

from graphir.runtime.program.batches import (
    MOVES,
    BatchStep,
    Member,
    Shape,
    batch_axes,
    is_product,
    moved_axes,
    multiplies_vector,
)
from graphir.runtime.program.codegen.assembly import assemble
from graphir.runtime.program.codegen.instructions import RegionCode
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import VIEWS, Region
from graphir.runtime.program.phases import PhasesStep, Space, is_as
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.updates import RESHAPES
from graphir.runtime.program.rows import ColumnSpace, column_space, finish_columns, neutral
from graphir.runtime.program.steps import CallStep, PlanRun, Step, is_view

if TYPE_CHECKING:
    from graphir.runtime.native.kernels import Kernels
    from graphir.runtime.program.program import Program


AnyStep: TypeAlias = "Step | PhasesStep | BatchStep"


def fuse_phases(steps: Sequence[AnyStep], exit_cells: Collection[int]) -> list[AnyStep]:
    """Return the steps with regions over the same rows as one step, in an order that computes all.

    A plan with updates in place keeps its order, and so its steps. `exit_cells` are the cells of
    the outputs.
    """
    for number, step in enumerate(steps):
        if not isinstance(step, RegionStep) or not step.size or not step.rows:
            continue
        if step.trees or step.stores:
            continue
        if fusion := _PhaseFusion(steps, number).fuse(exit_cells):
            return fusion
    return list(steps)


class _PhaseFusion:
    """The regions that can run together with a region of rows, and the steps around them.

    `before` are the steps that depend on none of the members. `after` are the other steps; none of
    the members depends on them.
    """

    def __init__(self, steps: Sequence[AnyStep], seed: int) -> None:
        region = steps[seed]
        assert isinstance(region, RegionStep)
        self.space = Space(region.shape, region.axes)
        self.members, self._operands = [region], set(region.reads)
        self.before, self.after = [*steps[:seed]], list[AnyStep]()
        self._shapes = region.result_shapes
        self._views: dict[int, tuple[int, AnyStep]] = {}
        late: set[int] = set()
        for step in steps[seed + 1 :]:
            if not late.isdisjoint(step.reads):
                late.update(step.results)
                self.after.append(step)
            elif isinstance(step, RegionStep) and self._takes(step):
                self.members.append(step)
                self._operands.update(step.reads)
                self._shapes |= step.result_shapes
            elif self._shapes.keys().isdisjoint(step.reads):
                self.before.append(step)
            elif view := self._viewed(step):
                self._views[view[1]] = self._views.get(view[0], view)[0], step
                self._shapes[view[1]] = step.shape
            else:
                late.update(step.results)
                self.after.append(step)

    def _takes(self, step: RegionStep) -> bool:
        """Whether a region can be a phase: it has the rows, or one value for each row."""
        space, is_whole = self.space, step.shape == self.space.shape
        if step.stores or step.is_reshaped or step.trees:
            return False
        if step.axes not in (0, space.axes) if is_whole else step.rows or step.size != space.rows:
            return False
        if self._operands.isdisjoint(step.reads) and self._shapes.keys().isdisjoint(step.reads):
            return False
        if any(cell in self._shapes for rows in step.rows for cell in rows.others):
            return False
        return all(
            is_as(own, self._shapes[cell])
            and is_as(own, step.shape if math.prod(own) == step.size else space.row_shape)
            for symbol in step.body.inputs
            if (cell := step.cells[symbol.index]) in self._shapes
            and (own := step.operand_shape(symbol))
        )

    def _viewed(self, step: AnyStep) -> tuple[int, int] | None:
        """Return the cell that a view views, and its own; the view has one value for each row."""
        if not is_view(step):
            return None
        cell, count = step.reads[0], self.space.rows
        shape = self._shapes[cell]
        if math.prod(shape) != count or math.prod(step.shape) != count:
            return None
        rows = np.arange(count)
        in_order = np.array_equal(np.asarray(step.call(rows.reshape(shape))).reshape(-1), rows)
        return (cell, step.write) if in_order else None

    def fuse(self, exit_cells: Collection[int]) -> list[AnyStep] | None:
        """Return all steps, the members as one; None unless that saves passes over memory."""
        if sum(step.shape == self.space.shape for step in self.members) < 2:
            return None
        cells = {*exit_cells, *[cell for step in self.after for cell in step.reads]}
        views: list[AnyStep] = []
        for cell, (_, view) in reversed(self._views.items()):
            if cell in cells:
                views.insert(0, view)
                cells.update(view.reads)
        aliases = {cell: source for cell, (source, _) in self._views.items()}
        step = PhasesStep(self.members, self.space, aliases, cells)
        if step.bytes <= COST.CACHE or step.block_rows == 0:
            return None
        before = fuse_phases(self.before, {*cells, *step.reads})
        return [*before, step, *views, *fuse_phases(self.after, exit_cells)]


def fuse_batches(steps: Sequence[Step], exit_cells: Collection[int]) -> list[AnyStep]:
    """Return the steps with products of many matrices, and the regions around them, as one step.

    The steps come in an order that computes all. `exit_cells` are the cells of the outputs.
    """
    for number, step in enumerate(steps):
        is_seed = is_product(step) and batch_axes(step) > 0 and math.prod(step.shape)
        if is_seed and (fusion := _BatchFusion(steps, number).fuse(exit_cells)):
            return fusion
    return list(steps)


class _BatchFusion:
    """The members of a batch around the product with number `seed`, and the steps around them.

    `before` are the steps that depend on none of the members. `after` are the other steps; none of
    the members depends on them.
    """

    def __init__(self, steps: Sequence[Step], seed: int) -> None:
        product = steps[seed]
        assert isinstance(product, CallStep)
        self.lead = product.shape[: batch_axes(product)]
        self.members: list[Member] = []
        self._inside: dict[int, Shape] = {}
        self._views: dict[int, CallStep] = {}
        self._outside: dict[int, set[tuple[Shape, int]]] = {}
        self.before, self.after = [*steps[:seed]], list[Step]()
        self._early: Sequence[Step] = ()
        late: set[int] = set()
        for step in steps[seed:]:
            reads_inside = not self._inside.keys().isdisjoint(step.reads)
            if not late.isdisjoint(step.reads):
                late.update(step.results)
                self.after.append(step)
            elif (reads_inside or step is product) and self._add(step):
                continue
            elif not reads_inside:
                self.before.append(step)
            else:
                late.update(step.results)
                self.after.append(step)

    def _add(self, step: Step, first: bool = False) -> bool:
        """Add a step to the members, if it is a function of the matrices with the same number.

        A step that comes `first` computes operands of the other members.
        """
        depth = len(self.lead)
        if step.shape[:depth] != self.lead or not self._is_member(step):
            return False
        operands = [*_operands(step)]
        for cell, shape, offset in operands:
            is_inside = cell in self._inside
            if is_inside and (offset or self._inside[cell] != shape or shape[:depth] != self.lead):
                return False
        for cell, shape, offset in operands:
            if cell not in self._inside:
                self._outside.setdefault(cell, set()).add((shape, offset))
        self._inside |= step.result_shapes
        self.members.insert(0 if first else len(self.members), step)
        if isinstance(step, CallStep) and not is_product(step):
            self._views[step.write] = step
        return True

    def _is_member(self, step: Step) -> TypeGuard[Member]:
        """Whether a step computes the matrices of a batch one by one, or is a view of them."""
        depth = len(self.lead)
        if isinstance(step, RegionStep):
            is_plain = not (step.stores or step.is_reshaped or step.trees) and step.size > 0
            others = any(rows.others for rows in step.rows)
            return is_plain and not others and len(step.shape) - step.axes >= depth
        if is_product(step):
            return batch_axes(step) >= depth
        if not isinstance(step, CallStep) or step.symbol.op not in VIEWS:
            return False
        if step.source_shape[:depth] != self.lead:
            return False
        if step.symbol.op in MOVES:
            return moved_axes(step)[:depth] == tuple(range(depth))
        return step.symbol.op in RESHAPES

    def _add_producers(self, exit_cells: Collection[int]) -> None:
        """Add the regions, and views of their results, that compute operands of members alone."""
        before, self.before = self.before, list[Step]()
        self._early = before
        read_cells = {*exit_cells, *[cell for step in self.after for cell in step.reads]}
        for step in reversed(before):
            cells = step.results
            is_used = any(cell in self._outside for cell in cells)
            is_needed = any(cell in read_cells for cell in cells)
            if is_used and not is_needed and self._adds_producer(step):
                continue
            self.before.insert(0, step)
            read_cells.update(step.reads)

    def _adds_producer(self, step: Step) -> bool:
        """Add a region, or a view of a region's result, whose matrices the members take apart."""
        depth, shapes = len(self.lead), step.result_shapes
        if any(self._outside.get(cell, set()) - {(shape, 0)} for cell, shape in shapes.items()):
            return False
        if is_product(step) or any(shape[:depth] != self.lead for shape in shapes.values()):
            return False
        if not isinstance(step, RegionStep) and not self._views_region(step):
            return False
        if not self._add(step, first=True):
            return False
        for cell in shapes:
            self._outside.pop(cell, None)
        return True

    def _views_region(self, step: Step) -> bool:
        """Whether a step views the result of a region that no other step reads."""
        cells = set(step.reads)
        sources = [other for other in self._early if not cells.isdisjoint(other.results)]
        readers = [other for other in self._early if not cells.isdisjoint(other.reads)]
        is_region = len(sources) == 1 and isinstance(sources[0], RegionStep)
        return is_region and readers == [step] and self._is_member(sources[0])

    def fuse(self, exit_cells: Collection[int]) -> list[AnyStep] | None:
        """Return all steps, the members as one; None unless that pays."""
        if not self.members:
            return None
        self._add_producers(exit_cells)
        cells = {*exit_cells, *[cell for step in self.after for cell in step.reads]}
        views: list[Step] = []
        for cell, view in reversed(self._views.items()):
            if cell in cells and view.reads[0] in self._inside:
                views.insert(0, view)
                cells.update(view.reads)
        step = BatchStep(self.members, self.lead, cells)
        if not step.pays:
            return None
        before = fuse_batches(self.before, {*cells, *step.reads})
        return [*before, step, *views, *fuse_batches(self.after, exit_cells)]


def _operands(step: Member) -> Iterator[tuple[int, Shape, int]]:
    """Yield the cell and the shape of each operand, and the axis of the result where it begins."""
    rank = len(step.shape)
    if isinstance(step, RegionStep):
        for symbol in step.body.inputs:
            shape = step.operand_shape(symbol)
            yield step.cells[symbol.index], shape, rank - len(shape)
        return
    for number, (cell, shape) in enumerate(zip(step.reads, step.operand_shapes, strict=True)):
        if is_product(step) and multiplies_vector(step):
            yield cell, shape, rank if number else 0  # no axis of the batch is one of the vector
        else:
            yield cell, shape, rank - len(shape) if is_product(step) else 0


# -- reductions over outer axes


class ColumnsStep(RegionStep):
    """A region whose row-wise symbols are reductions over outer axes.

    It replaces the steps `members`: the region `source`, and the calls of the reductions. `exits`
    are the cells that other steps or the outputs read.
    """

    def __init__(
        self,
        step: RegionStep,
        calls: Sequence[CallStep],
        space: ColumnSpace,
        exits: Collection[int],
        program: Program,
    ) -> None:
        self.source, self.members = step, [step, *calls]
        self.space = self.columns = space
        symbols = step.region.symbols
        indices = {step.cells[symbol.index]: symbol.index for symbol in step.body.outs}
        outs = {index for cell, index in indices.items() if cell in exits}
        rows = [call.symbol for call in calls]
        region = Region(step.region.shape, symbols, rows)
        code = RegionCode(region, outs, bits=True)
        options = program.threads, program.block, program.codes.compiled(region, outs)
        super().__init__(
            region, partial(assemble, code), step.shape, step.cells, step.sizes, *options
        )

    def run(self, run: PlanRun) -> None:
        """Compute and reduce all rows in machine code, or run the members one by one."""
        if self.native and self._run_together(self.native, run):
            return
        start = perf_counter_ns()
        for member in self.members:
            member.run(run)
        for cell in self.source.results.keys() - self.results.keys():
            run.values[cell] = None
        self._spend(start)

    def _run_together(self, native: Kernels, run: PlanRun) -> bool:
        """Compute and reduce all rows in machine code, if it can, and return whether it did."""
        lead, _, lanes = self.space
        outs = [self._out(run, index, True) for index in range(len(self.writes))]
        sums = [run.empty(rows.cell, rows.shape, rows.symbol.dtype.storage) for rows in self.rows]
        matrices = [array.reshape(lead, lanes) for array in sums]
        for rows, array in zip(self.rows, matrices, strict=True):
            array[...] = neutral(rows.symbol)
        threads = native.threads(self)
        if not native.columns(self, self.space, run.values, outs, matrices, threads):
            return False
        for rows, array in zip(self.rows, sums, strict=True):
            finish_columns(rows.symbol, self.space, array)
            run.values[rows.cell] = array
        for (cell, _), out in zip(self.writes, outs, strict=True):
            run.values[cell] = out
        return True


def fuse_columns(
    steps: Sequence[AnyStep], exit_cells: Collection[int], program: Program
) -> list[AnyStep]:
    """Return the steps with each large region and the reductions of its outer axes as one step.

    `exit_cells` are the cells of the outputs.
    """
    fused = list(steps)
    for step in steps:
        if isinstance(step, RegionStep) and (columns := _columns(step, fused, exit_cells, program)):
            at = fused.index(step)
            fused[at] = columns
            fused = [other for other in fused if other not in columns.members]
    return fused


def _columns(
    step: RegionStep, steps: Sequence[AnyStep], exit_cells: Collection[int], program: Program
) -> ColumnsStep | None:
    if step.rows or step.stores or step.is_reshaped or not step.size or not step.native:
        return None
    result_cells = {cell for cell, _ in step.writes}
    groups: dict[ColumnSpace, list[CallStep]] = {}
    for call in steps:
        if isinstance(call, CallStep) and call.reads and result_cells.issuperset(call.reads):
            space = column_space(call.symbol, call.source_shape)
            if space and call.source_shape == step.shape:
                groups.setdefault(space, []).append(call)
    if not groups:
        return None
    space, calls = max(groups.items(), key=lambda group: len(group[1]))
    cells = {*exit_cells, *[c for other in steps if other not in calls for c in other.reads]}
    calls += _sibling_reductions(step, steps, space)
    columns = ColumnsStep(step, calls, space, cells, program)
    bytes_moved = step.size * sum(dtype.itemsize for _, dtype in step.writes)
    return columns if bytes_moved > COST.CACHE and len(columns.ranges) > 1 else None


def _sibling_reductions(
    step: RegionStep, steps: Sequence[AnyStep], space: ColumnSpace
) -> Iterator[CallStep]:
    """Yield the calls after a region that reduce its operands in the same way."""
    operands = {step.cells[symbol.index] for symbol in step.body.inputs}
    for call in steps[steps.index(step) + 1 :]:
        if not isinstance(call, CallStep) or not call.reads or not operands.issuperset(call.reads):
            continue
        if call.source_shape == step.shape and column_space(call.symbol, step.shape) == space:
            yield call

"""Reductions over outer axes, block by block: the array that they reduce never exists as a whole.

NumPy reduces an outer axis of a contiguous array row by row: each result takes one element of each
row, in the order of the rows. A `ColumnsStep` computes a block of rows by its region, adds the rows
of the block to the results, and goes on with the next block, so a block stays in the cache. Each
thread has results of its own: those of some leading elements, or some of the lanes. NumPy alone
gains nothing by blocks (whole_programs, column_moments): the step is for machine code, and until
there is some its members run one after another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

from graphir.runtime.program.codegen.assembly import assemble
from graphir.runtime.program.codegen.instructions import RegionCode
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Region
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.fusion import AnyStep
from graphir.runtime.program.rows import ColumnSpace, column_space, finish_columns, neutral
from graphir.runtime.program.steps import CallStep, PlanRun

if TYPE_CHECKING:
    from graphir.runtime.native.kernels import Kernels
    from graphir.runtime.program.program import Program


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


# -- the rewrite


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

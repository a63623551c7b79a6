"""The pipelines of the planner: the passes over a lowered graph, and the rewrites of bound steps.

`PLANNING` prepares a lowered graph for its partition into steps. Each of its passes keeps the bits
of all outputs, and returns the same graph if no symbol of it is concerned.

`STEP_REWRITES` changes the steps of a plan once the sizes of all dims are bound, and `STEP_FUSIONS`
then makes one step of several that share their rows or matrices. Each entry has its precondition
beside it: a rewrite whose precondition fails is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphir import GraphError
from graphir.passes.pipeline import Pass, Pipeline
from graphir.runtime.program.codegen.straight import ends
from graphir.runtime.program.cutting import UPDATES
from graphir.runtime.program.graph_rewrites.early_slices import (
    slice_operands,
    slice_overlapping_operands,
)
from graphir.runtime.program.graph_rewrites.expansion import (
    call_loops,
    expand_composites,
    multiply_squares,
    sum_vector_products,
    update_pads,
)
from graphir.runtime.program.graph_rewrites.hoisting import hoist_constants
from graphir.runtime.program.graph_rewrites.reductions import (
    recompute_cheap_values,
    split_reductions,
    split_short_axes,
)
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.columns import fuse_columns
from graphir.runtime.program.rewrites.fusion import AnyStep, fuse_batches, fuse_phases
from graphir.runtime.program.rewrites.operands import Flattener, merge_views, read_narrow
from graphir.runtime.program.rewrites.updates import (
    Memory,
    donated_carries,
    limit_copies,
    mark_updates,
    merge_stores,
    read_inputs,
)
from graphir.runtime.program.rewrites.wavefronts import fuse_wavefronts
from graphir.runtime.program.steps import CallStep, Step

if TYPE_CHECKING:
    from graphir.runtime.program.program import Program

PLANNING: tuple[Pass, ...] = (
    call_loops,
    hoist_constants,
    multiply_squares,
    sum_vector_products,
    expand_composites,
    update_pads,
    split_reductions,
    recompute_cheap_values,
    split_short_axes,
    slice_operands,
)
"""The passes over a lowered graph for a program that runs in NumPy."""

NATIVE_PLANNING: tuple[Pass, ...] = (*PLANNING[:-1], slice_overlapping_operands)
"""The passes for a program whose regions may become machine code."""

plan_for_numpy, plan_for_native = Pipeline(PLANNING), Pipeline(NATIVE_PLANNING)
"""The pipelines that programs run. Tests set `verify_each`."""


class PlanDraft:
    """The steps of a plan while the rewrites of this module change them.

    `steps` are the bound steps, in an order that computes all, and `fused` the same after
    `STEP_FUSIONS`. `inputs` and `outputs` are the cells of the plan's inputs and outputs. `carries`
    are pairs of cells of arrays: an input, and the output that is this input of the next run.
    `donated` are the inputs whose memory the plan may write to. `origins` has the cells that stand
    for no symbol, with the cell whose value each has in another shape.
    """

    def __init__(
        self, steps: Sequence[Step], program: Program, carries: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.steps: Sequence[Step] = steps
        self.fused: Sequence[AnyStep] = ()
        schedule = self._schedule = program.schedule
        self.inputs, self.outputs = frozenset(schedule.entry), frozenset(schedule.exit)
        self.carries, self.donated = carries, frozenset[int]()
        self.origins: dict[int, int] = {}
        self._program = program
        self._memory = Memory(self._schedule.storages)

    # -- preconditions

    def always(self) -> bool:
        """The precondition of a rewrite that looks for its steps by itself."""
        return True

    def has_several_steps(self) -> bool:
        """Whether there are steps to put together."""
        return len(self.steps) > 1

    def updates_arrays(self) -> bool:
        """Whether a step updates an array: in place, into a slice, or in a copy."""
        return any(map(_updates, self.steps))

    def updates_nothing(self) -> bool:
        """Whether the steps may change their order, on which updates in place rely."""
        return not self.updates_arrays()

    # -- rewrites

    def read_narrow_operands(self) -> None:
        """Let products of integers read the operands of casts."""
        self.steps = read_narrow(self.steps, self.outputs)

    def fuse_wavefronts(self) -> None:
        """Run stencils over one another together."""
        self.steps = fuse_wavefronts(self.steps, self.outputs)

    def donate_carries(self) -> None:
        """Take the memory of the carries of a loop that each iteration leaves to the next."""
        settings = self.carries, self._schedule.storages
        self.donated = donated_carries(self.steps, self.outputs, *settings)

    def read_inputs(self) -> None:
        """Let slices of updated inputs read the inputs themselves, where these have no update."""
        read_inputs(self.steps, self.inputs - self.donated)

    def mark_updates(self) -> None:
        """Let updates write into their operand where nothing reads it later."""
        settings = self._schedule.storages, self.donated
        self._memory = mark_updates(self.steps, self.outputs, *settings)

    def store_and_flatten(self) -> None:
        """Let regions write into slices, or run in flat memory, which is faster for stencils."""
        flattener = Flattener(self.steps, self.outputs, len(self._schedule.cells))
        settings = self._memory, flattener.is_stencil
        self.steps = merge_stores(self.steps, self.outputs, *settings)
        self.steps, self.origins = flattener.flatten(self.steps), flattener.origins

    def limit_copies(self) -> None:
        """Copy only the rows of an updated array that a step reads before an update."""
        limit_copies(self.steps, self.outputs)

    def merge_views(self) -> None:
        """Make one view of each chain of views."""
        self.steps = merge_views(self.steps, self.outputs)

    def fuse_batches(self) -> None:
        """Run products of many matrices and the regions around them on a few matrices at a time."""
        self.fused = fuse_batches(self.steps, self.outputs)

    def fuse_phases(self) -> None:
        """Run regions over the same rows on a few rows at a time."""
        self.fused = fuse_phases(self.fused, self.outputs)

    def fuse_columns(self) -> None:
        """Run large regions and the reductions of their outer axes on a few rows at a time."""
        self.fused = fuse_columns(self.fused, self.outputs, self._program)

    # -- running

    def rewrite(self, verify_each: bool | None = None) -> PlanDraft:
        """Apply all rewrites whose preconditions hold, and return the draft.

        With `verify_each`, by default as in `plan_for_numpy`, the steps are verified after each.
        """
        verify = plan_for_numpy.verify_each if verify_each is None else verify_each
        for rewrite in STEP_REWRITES:
            rewrite.apply(self, verify)
        self.fused = [*self.steps]
        for fusion in STEP_FUSIONS:
            fusion.apply(self, verify)
        return self

    def verify(self) -> None:
        """Raise GraphError unless the steps compute all that they read, and all outputs.

        No step may read an array into which an earlier step has written an update.
        """
        for steps in (self.steps, self.fused) if self.fused else (self.steps,):
            values = {*self.inputs, *self._schedule.constants}
            for step in steps:
                reads, writes = ends(step)
                if not values.issuperset(reads):
                    raise GraphError(f"{step!r} reads cells without values", got=str(reads))
                values -= {*_overwritten(step)} - {*writes}
                values.update(writes)
            if not values.issuperset(self.outputs):
                missing = sorted(self.outputs - values)
                raise GraphError("no step computes some outputs", got=f"cells {missing}")


def _updates(step: Step) -> bool:
    is_update = isinstance(step, CallStep) and step.symbol.op in UPDATES
    return is_update or (isinstance(step, RegionStep) and bool(step.stores))


def _overwritten(step: AnyStep) -> Iterator[int]:
    """Yield the cells whose arrays a step changes."""
    if isinstance(step, CallStep) and step.in_place:
        yield step.reads[0]
    elif isinstance(step, RegionStep):
        yield from [store.source for store in step.stores.values() if store.in_place]


class StepRewrite(NamedTuple):
    """A rewrite of the steps of a plan, and its precondition."""

    change: Callable[[PlanDraft], None]
    when: Callable[[PlanDraft], bool]

    def apply(self, draft: PlanDraft, verify: bool) -> None:
        """Rewrite the steps of a draft if the precondition holds; GraphError if they are wrong."""
        if not self.when(draft):
            return
        self.change(draft)
        if verify:
            try:
                draft.verify()
            except GraphError as error:
                raise GraphError.like(error).within(f"in rewrite {self.change.__name__}") from error


STEP_REWRITES = (
    StepRewrite(PlanDraft.read_narrow_operands, PlanDraft.always),
    StepRewrite(PlanDraft.fuse_wavefronts, PlanDraft.has_several_steps),
    StepRewrite(PlanDraft.donate_carries, PlanDraft.updates_arrays),
    StepRewrite(PlanDraft.read_inputs, PlanDraft.updates_arrays),
    StepRewrite(PlanDraft.mark_updates, PlanDraft.updates_arrays),
    StepRewrite(PlanDraft.store_and_flatten, PlanDraft.updates_arrays),
    StepRewrite(PlanDraft.limit_copies, PlanDraft.updates_arrays),
    StepRewrite(PlanDraft.merge_views, PlanDraft.has_several_steps),
)
"""The rewrites of the bound steps of a plan, in order."""

STEP_FUSIONS = (
    StepRewrite(PlanDraft.fuse_batches, PlanDraft.updates_nothing),
    StepRewrite(PlanDraft.fuse_phases, PlanDraft.updates_nothing),
    StepRewrite(PlanDraft.fuse_columns, PlanDraft.updates_nothing),
)
"""The rewrites that make one step of several, in order."""

"""The pipelines of the planner: the passes over a lowered graph, and the rewrites of bound steps.

`PLANNING` prepares a lowered graph for its partition into steps. Each of its passes keeps the bits
of all outputs, and returns the same graph if no symbol of it is concerned.

`rewrite_steps` changes the steps of a plan once the sizes of all dims are bound, and then makes one
step of several that share their rows or matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphir.passes.pipeline import Pass, Pipeline
from graphir.runtime.program.cutting import UPDATES
from graphir.runtime.program.rewrites.early_slices import (
    slice_operands,
    slice_overlapping_operands,
)
from graphir.runtime.program.rewrites.expansion import (
    call_loops,
    expand_composites,
    multiply_squares,
    sum_vector_products,
)
from graphir.runtime.program.rewrites.fusion import AnyStep, fuse_batches, fuse_columns, fuse_phases
from graphir.runtime.program.rewrites.hoisting import hoist_constants
from graphir.runtime.program.rewrites.operand_layouts import Flattener, merge_views, read_narrow
from graphir.runtime.program.rewrites.reductions import (
    recompute_cheap_values,
    split_reductions,
    split_short_axes,
)
from graphir.runtime.program.rewrites.updates import (
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


class RewrittenSteps(NamedTuple):
    """The steps of a plan after the rewrites, in an order that computes all.

    `fused` are the same steps with several of them as one where that pays. `donated` are the inputs
    whose memory the plan may write to. `origins` has the cells that stand for no symbol, with the
    cell whose value each has in another shape.
    """

    steps: Sequence[Step]
    fused: Sequence[AnyStep]
    donated: frozenset[int]
    origins: Mapping[int, int]


def rewrite_steps(
    steps: Sequence[Step], program: Program, carries: Sequence[tuple[int, int]] = ()
) -> RewrittenSteps:
    """Return the bound steps of a plan of a program after all rewrites.

    `carries` are pairs of cells of arrays: an input, and the output that is this input of the next
    run. Steps that update arrays keep their order, on which updates in place rely; other steps that
    share rows or matrices become one.
    """
    schedule = program.schedule
    inputs, outputs = frozenset(schedule.entry), frozenset(schedule.exit)
    steps = read_narrow(steps, outputs)
    if len(steps) > 1:
        steps = fuse_wavefronts(steps, outputs)
    donated, origins = frozenset[int](), dict[int, int]()
    updates = any(map(_updates, steps))
    if updates:
        donated = donated_carries(steps, outputs, carries, schedule.storages)
        read_inputs(steps, inputs - donated)
        memory = mark_updates(steps, outputs, schedule.storages, donated)
        flattener = Flattener(steps, outputs, len(schedule.cells))
        steps = merge_stores(steps, outputs, memory, flattener.is_stencil)
        steps, origins = flattener.flatten(steps), flattener.origins
        limit_copies(steps, outputs)
    if len(steps) > 1:
        steps = merge_views(steps, outputs)
    if updates:
        return RewrittenSteps(steps, steps, donated, origins)
    fused = fuse_phases(fuse_batches(steps, outputs), outputs)
    return RewrittenSteps(steps, fuse_columns(fused, outputs, program), donated, origins)


def _updates(step: Step) -> bool:
    """Whether a step updates an array: in place, into a slice, or in a copy."""
    return isinstance(step, CallStep) and step.symbol.op in UPDATES

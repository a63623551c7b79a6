"""The verification of the steps of plans, which all tests of the planner run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphir import GraphError
from graphir.runtime import Program
from graphir.runtime.program.codegen.straight import ends
from graphir.runtime.program.planning import RewrittenSteps, rewrite_steps
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep


def rewrite_verified(steps: Any, program: Program, carries: Any = ()) -> RewrittenSteps:
    """Rewrite steps as a plan does, and verify the result."""
    rewritten = rewrite_steps(steps, program, carries)
    verify(rewritten, program)
    return rewritten


def verify(rewritten: RewrittenSteps, program: Program) -> None:
    """Raise GraphError unless the steps compute all that they read, and all outputs.

    No step may read an array into which an earlier step has written an update.
    """
    schedule = program.schedule
    for steps in (rewritten.steps, rewritten.fused):
        values = {*schedule.entry, *schedule.constants}
        for step in steps:
            reads, writes = ends(step)
            if not values.issuperset(reads):
                raise GraphError(f"{step!r} reads cells without values", got=str(reads))
            values -= {*_overwritten(step)} - {*writes}
            values.update(writes)
        if not values.issuperset(schedule.exit):
            missing = sorted({*schedule.exit} - values)
            raise GraphError("no step computes some outputs", got=f"cells {missing}")


def _overwritten(step: Any) -> Iterator[int]:
    """Yield the cells whose arrays a step changes."""
    if isinstance(step, CallStep) and step.in_place:
        yield step.reads[0]
    elif isinstance(step, RegionStep):
        yield from [store.source for store in step.stores.values() if store.in_place]

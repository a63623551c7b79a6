"""Tier-up: machine code in place of the function of a plan, or of parts of it, once it is compiled.

From time to time a plan looks whether the tier has compiled its regions by now. In a plan of one
step, or of steps that are a sequence, machine code replaces the whole plan; in other plans it
replaces single steps of the Python function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir import ops
from graphir.runtime.program.codegen.sequences import ArrayCell, View, is_sort, sequence_of
from graphir.runtime.program.codegen.straight import machine_ends
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep, ScalarStep, Step, is_view, shape_of

if TYPE_CHECKING:
    from graphir.runtime.program.plans import Plan
    from graphir.runtime.program.program import Program

Entry = Callable[..., Any]
"""The machine code of a step or of a plan, a function of arrays."""


@dataclass(slots=True)
class TierUpState:
    """What a plan keeps from one look for machine code to the next.

    `calls` is the number of calls until this look, and `time` their nanoseconds in all. `looks`
    counts the looks, and `tries` those for a sequence. `entries` is the machine code of steps.
    `values` and `views` are those of `TierUp.layouts`.
    """

    calls: int = 0
    time: float = 0.0
    looks: int = 0
    tries: int = 0
    entries: dict[Step, Entry] = field(default_factory=dict[Step, Entry])
    values: list[Any] = field(default_factory=list[Any])
    views: dict[int, View] = field(default_factory=dict[int, View])


class TierUp:
    """One look of a plan for machine code."""

    def __init__(self, plan: Plan, program: Program) -> None:
        self.plan, self.program, self.state = plan, program, plan.tier_up
        # Of sorts alone, there are only sequences.
        self.regions = [
            step
            for step in plan.bound
            if isinstance(step, (ScalarStep, RegionStep)) and step.native and not is_sort(step)
        ]

    def look(self) -> None:
        """Charge the calls since the last look to the regions, and take new machine code."""
        plan, state, regions = self.plan, self.state, self.regions
        time_spent = state.calls * plan.price
        state.time += time_spent
        state.looks += 1
        is_stepwise = not plan.straight and len(plan.bound) > 1
        if is_stepwise:  # a small region that has no kernel keeps all steps apart
            for step in regions:
                if not step.native.pays:
                    step.native.charge(state.calls * COST.STEP * len(plan.fused))
        may_be_sequence = self.take_sequence()
        if not regions or is_stepwise:
            pause = COST.LOOK_STEPS << state.tries if may_be_sequence else COST.LOOK_CALLS
            plan.left = state.calls = min(pause, COST.LOOK_CALLS)
            return
        prices = sum(step.price for step in regions) or 1
        for step in regions:
            step.native.charge(time_spent * step.price / prices)
        # Without a price, the steps charge their regions.
        pause = max(COST.LOOK_TIME, COST.LOOK_REGION * len(regions))
        calls = int(pause / plan.price) if plan.price else 1 << state.looks
        plan.left = state.calls = max(1, min(COST.LOOK_CALLS, calls))
        regions = [step for step in regions if step.native.pays and step not in state.entries]
        if regions:
            self._replace_steps(regions, time_spent)

    def _replace_steps(self, regions: Sequence[ScalarStep | RegionStep], time_spent: float) -> None:
        """Replace steps of the function by the machine code of regions, or run step by step."""
        plan, state, values = self.plan, self.state, self.layouts()
        fit = regions if self._is_single else [step for step in regions if not _is_large(step)]
        self._take_entries(fit, values)
        # The first price is that of the first call, which fills caches.
        is_long = plan.price > plan.stepwise_price and time_spent > COST.LOOK_TIME / 2
        if is_long and state.looks > COST.FIRST_LOOKS and not plan.prefers_steps:
            others = [step for step in regions if step.shape and step not in state.entries]
            plan.prefers_steps = any(step.native.task(step, values) for step in others)

    def _take_entries(
        self, regions: Sequence[ScalarStep | RegionStep], values: Sequence[Any]
    ) -> None:
        """Take the machine code of regions; `values` are those of `layouts`."""
        plan, schedule = self.plan, self.program.schedule
        symbols, single = schedule.graph.symbols, self._is_single
        indices = [*schedule.cells]  # in the order of the cells
        entries: dict[Step, Entry] = {}
        for step in regions:
            ends = (schedule.entry, schedule.exit) if single else machine_ends(step)
            both = [
                [symbols[indices[plan.origins.get(cell, cell)]] for cell in cells] for cells in ends
            ]
            entry = step.native.entry(step, *both, values, plan.empty)
            entries |= {step: entry} if entry else {}
        self.state.entries |= entries
        if entries and not single:
            plan.write_straight(schedule)
        elif entries:
            plan.native = entries[plan.bound[0]]

    @property
    def _is_single(self) -> bool:
        """Whether machine code of one step can replace the whole plan."""
        step = self.plan.bound[0]
        has_stores = isinstance(step, RegionStep) and step.stores
        is_whole = self.program.schedule.owns_outputs and not self.plan.inner
        return is_whole and len(self.plan.bound) == 1 and not has_stores

    # -- sequences

    def take_sequence(self) -> bool:
        """Take the plan as a sequence, once all of its regions have earned machine code.

        The answer is whether a later look may take it.
        """
        plan, state, tier = self.plan, self.state, self.program.native
        if tier is None or plan.native or plan.inner or plan.origins:
            return False
        if not all(step.native.pays for step in self.regions):
            return True
        if not plan.may_be_sequence:
            return False
        if plan.straight and not tier.pays(state.time):
            return True
        if state.tries > COST.SEQUENCE_TRIES and state.looks % COST.RARE_TRIES:
            return False
        state.tries += 1
        schedule, values = self.program.schedule, self.layouts()
        inputs = zip(schedule.entry, schedule.graph.inputs, plan.inputs, strict=True)
        outputs = zip(schedule.exit, schedule.graph.outputs, plan.shapes, strict=True)
        arrays = [
            ArrayCell(cell, schedule.graph.concrete_dtype(symbol.dtype).storage, shape)
            for cell, symbol, shape in (*inputs, *outputs)
        ]
        operands = schedule.constants, values, state.views
        count = len(schedule.entry)
        plan.native = sequence_of(plan.fused, tier, arrays, count, *operands, plan.empty)
        return plan.native is None

    def layouts(self) -> list[Any]:
        """Return the cells with constants, and with views in arrays without values.

        Machine code needs the strides of views; all other cells are contiguous, and None.
        """
        state, plan, schedule = self.state, self.plan, self.program.schedule
        if state.values:
            return state.values
        symbols, indices = schedule.graph.symbols, [*schedule.cells]
        values = schedule.values([None] * len(schedule.entry), len(plan.origins))
        layouts = values.copy()
        regions = [step for step in plan.bound if isinstance(step, RegionStep)]
        flat = {cell: (step.shape, dtype) for step in regions for cell, dtype in step.writes}
        for step in filter(is_view, plan.bound):
            (cell,) = step.reads
            if layouts[cell] is None and cell in flat:
                layouts[cell] = np.empty(*flat[cell])
            elif layouts[cell] is None:
                symbol = symbols[indices[cell]]
                layouts[cell] = np.empty(shape_of(symbol, plan.sizes), symbol.dtype.storage)
            is_reshape = isinstance(step, CallStep) and step.symbol.op is ops.reshape
            if not is_reshape or layouts[cell].flags.c_contiguous:  # else NumPy may copy
                view = layouts[step.write] = values[step.write] = step.call(layouts[cell])
                offset = view.ctypes.data - layouts[cell].ctypes.data
                state.views[step.write] = View(cell, offset)
        state.values = values
        return values


def _is_large(step: ScalarStep | RegionStep) -> bool:
    """Whether machine code of a step would make results whose memory is recycled otherwise."""
    if isinstance(step, ScalarStep):
        return False
    values = [step.results[cell] for cell in machine_ends(step)[1]]
    sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in values]
    return max(sizes, default=0) >= COST.RECYCLED

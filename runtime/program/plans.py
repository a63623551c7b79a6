"""Plans: the steps of a program for inputs of certain shapes, and single functions that run them.

A plan of few small steps becomes one Python function, since the steps themselves would cost more
than the arithmetic. Machine code may replace the function later (see tier_up.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.decorators import lazy
from graphir.ir.liveness import dim_names
from graphir.public import ExecutionError
from graphir.runtime.program.batches import BatchStep
from graphir.runtime.program.codegen.sequences import is_sort
from graphir.runtime.program.codegen.straight import Straight, alone, ends, fits
from graphir.runtime.program.control import ControlStep
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Call, Region
from graphir.runtime.program.phases import PhasesStep
from graphir.runtime.program.planning import rewrite_steps
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.fusion import AnyStep
from graphir.runtime.program.schedule import Schedule
from graphir.runtime.program.steps import PlanRun, ScalarStep, Step, shape_of
from graphir.runtime.program.tier_up import TierUpState
from graphir.runtime.program.wavefronts import WavefrontStep
from graphir.runtime.results import require_declared

if TYPE_CHECKING:
    from graphir.runtime.program.memory import Workspace
    from graphir.runtime.program.program import Program


class Plan:
    """The steps of a program for inputs of certain shapes, with all sizes bound.

    `bound` are the steps in order, and `fused` the same with several of them as one where that
    pays. `straight` is a Python function that runs all steps, if these are few and small. `native`
    is machine code that replaces it. `left` is the number of calls before the next look for machine
    code (see tier_up.py), and `price` is the time of a `straight` call in nanoseconds. A plan with
    large results runs its steps one by one, because steps reuse memory (see `Recycler`). `empty`
    makes the memory of results. The `straight` function of an `inner` plan, of a graph of control
    flow, has no guards, and 0-d values come and go as NumPy scalars. The first `carries` inputs of
    such a plan are the first outputs of the run before; `donated` are those whose memory the plan
    may write to.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        sizes: Mapping[str, int],
        program: Program,
        inner: bool = False,
        carries: int = 0,
    ) -> None:
        schedule = program.schedule
        self.sizes, self.inner, self.exit = sizes, inner, frozenset(schedule.exit)
        self.shapes = [shape_of(symbol, sizes) for symbol in schedule.graph.outputs]
        self.inputs = [shape_of(symbol, sizes) for symbol in schedule.graph.inputs]
        self._storages = [schedule.storages[cell] for cell in schedule.exit]
        self.checked: tuple[Any, ...] = ()
        ends = zip(schedule.entry[:carries], schedule.exit, self.inputs, strict=False)
        arrays = [(source, target) for source, target, shape in ends if shape]
        self.bound, self.fused, self.donated, self.origins = rewrite_steps(steps, program, arrays)
        self.empty = program.memory.recycler.empty
        self.native: Callable[..., Any] | None = None
        self.tier_up = TierUpState()
        self.left, self.price, self.prefers_steps = 0, 0.0, False
        self.stepwise_price = max(COST.STEPWISE, COST.STEP * (len(self.bound) - 1))
        self._step_calls, self._least_steps = 0, inf
        self.straight: Straight | None = None
        if fits(self.bound) and len(self.fused) == len(self.bound):
            self.write_straight(schedule)
        self.blocks = sum(step.blocks for step in self.fused)
        both = zip(self.shapes, schedule.graph.outputs, strict=True)
        self.is_large = any(
            math.prod(shape) * symbol.dtype.storage.itemsize >= COST.RECYCLED
            for shape, symbol in both
        )

    def check(
        self, outputs: Sequence[Any], function: Callable[..., Any] | Straight | None = None
    ) -> None:
        """Raise ExecutionError unless outputs have the dtypes and shapes that the graph declares.

        The outputs are those of `straight` or `native`, the `function`, or of the steps one by one.
        A function fixes the dtypes and shapes of its results when it is written or compiled, for
        all inputs that its guards let pass. So the program checks the first results of a function,
        which is then in `checked`, and all results of steps.
        """
        require_declared(outputs, self._storages, self.shapes)
        if function is not None:
            current = self.straight, self.native
            self.checked = (*[other for other in self.checked if other in current], function)

    @lazy
    def may_be_sequence(self) -> bool:
        """Whether machine code of a sequence can replace the whole plan."""
        step = self.bound[0] if len(self.bound) == 1 else None
        if isinstance(step, ScalarStep) and step.native:
            return False
        is_kernel = isinstance(step, RegionStep) and step.native and not is_sort(step)
        if isinstance(step, RegionStep) and is_kernel and not step.has_long_rows:
            return False  # threads have nothing to join
        return all(step.is_sequential for step in self.fused)

    @property
    def stepwise(self) -> bool:
        """Whether to run the plan step by step, because only its steps can call machine code.

        Steps pay if a `straight` call takes longer than STEPWISE, and than the steps' own cost: an
        estimate first, and the least time of a call once there have been STEPWISE_CALLS.
        """
        if self._step_calls >= COST.STEPWISE_CALLS and self._least_steps > self.price:
            return False
        may_pay = self.native is not None or self.prefers_steps
        return may_pay and self.price > self.stepwise_price

    def count_stepwise(self, time: float) -> None:
        """Count a call step by step, which took some nanoseconds."""
        self._step_calls += 1
        self._least_steps = min(self._least_steps, time)

    def write_straight(self, schedule: Schedule) -> None:
        """Write the function of all steps, anew once the tier has machine code for some."""
        types, scalars = None, set[int]()
        both = schedule.entry, schedule.exit
        if self.inner:
            shapes = zip((*both[0], *both[1]), (*self.inputs, *self.shapes), strict=True)
            scalars = {cell for cell, shape in shapes if not shape}
        else:
            graph = schedule.graph
            types = [
                (graph.concrete_dtype(symbol.dtype).storage, shape)
                for symbol, shape in zip(graph.inputs, self.inputs, strict=True)
            ]
        settings = schedule.constants, types, self.tier_up.entries, self.empty, scalars
        self.straight = Straight(self.bound, *both, *settings)
        self.price, self.prefers_steps = 0.0, False
        self._step_calls, self._least_steps = 0, inf

    @lazy
    def dead(self) -> list[list[int]]:
        """The dead cells after each of `steps`: no later one reads them, and no output has them."""
        cells_by_step: list[list[int]] = [[] for _ in self.steps]
        for cell, number in _last_reads(self.steps).items():
            if cell not in self.exit:
                cells_by_step[number].append(cell)
        return cells_by_step

    @lazy
    def steps(self) -> list[Straight | RegionStep | PhasesStep | BatchStep | WavefrontStep]:
        """The steps in the form in which they run one by one; small steps in a row are one step."""
        forms: list[Straight | RegionStep | PhasesStep | BatchStep | WavefrontStep] = []
        last = _last_reads(self.fused)
        for (is_small, _), group in groupby(range(len(self.fused)), self._group):
            numbers = list(group)
            if is_small:
                forms.append(self._join(numbers[0], numbers[-1] + 1, last))
                continue
            for step in [self.fused[number] for number in numbers]:
                if isinstance(step, RegionStep) and step.blocks == 1:
                    step.small = alone(step, self.empty)
                if not isinstance(step, (RegionStep, PhasesStep, BatchStep, WavefrontStep)):
                    step = alone(step, self.empty)
                forms.append(step)
        return forms

    def _group(self, number: int) -> tuple[bool, int]:
        """Return a key that is equal for steps in a row that can be one function.

        A region that may become machine code stays by itself, unless the plan always runs step by
        step and a step would cost more than the region.
        """
        step = self.fused[number]
        if isinstance(step, (PhasesStep, BatchStep, WavefrontStep)):
            return False, number
        is_small = step.blocks == 1 and math.prod(step.shape) <= COST.BLOCK_MOST
        if isinstance(step, RegionStep) and step.native:
            runs_by_step = self.blocks > len(self.bound) or len(self.bound) > COST.STRAIGHT_STEPS
            is_small &= runs_by_step and step.price < COST.STEP
        return is_small, number // COST.STRAIGHT_STEPS

    def _join(self, begin: int, end: int, last: Mapping[int, int]) -> Straight:
        """Return the steps of a range of numbers as one function.

        `last` has the number of the last step that reads each cell.
        """
        steps = [
            step
            for step in self.fused[begin:end]
            if not isinstance(step, (PhasesStep, BatchStep, WavefrontStep))
        ]
        reads: dict[int, None] = {}
        writes: dict[int, None] = {}
        for step in steps:
            sources, targets = ends(step)
            reads |= dict.fromkeys([cell for cell in sources if cell not in writes])
            writes |= dict.fromkeys(targets)
        live = [cell for cell in writes if cell in self.exit or last.get(cell, begin) >= end]
        return Straight(steps, [*reads], live, empty=self.empty)


def _last_reads(steps: Iterable[AnyStep | Straight]) -> dict[int, int]:
    """Return the number of the last step that reads each cell."""
    return {cell: number for number, step in enumerate(steps) for cell in step.reads}


class LateRuns:
    """The runs of a program whose calls bind dims.

    Such a program runs step by step. It binds each step when the calls before it have run, and
    keeps the bound steps by the sizes that they need. Once two runs in a row have had the same
    sizes, the program runs by a plan for these, whose calls refuse results of other sizes.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = [_dim_names_of(step) for step in program.steps]
        self.clear()

    def clear(self) -> None:
        """Drop all bound steps and plans."""
        self._steps: dict[Any, Step | Straight] = {}
        self._sizes: dict[Any, Mapping[str, int]] = {}
        self._plans: dict[Any, Plan] = {}

    def outputs(
        self,
        workspace: Workspace,
        inputs: Sequence[Any],
        sizes: Mapping[str, int],
    ) -> Sequence[Any]:
        """Return the outputs for inputs as arrays, which bind some sizes."""
        program, inputs = self._program, list(map(np.asarray, inputs))
        key = tuple([(x.dtype, x.shape) for x in inputs]), frozenset(sizes.items())
        plan = self._plans.get(key)
        if plan is not None:
            try:
                return program.outputs_by(plan, workspace, inputs)
            except ExecutionError:  # other sizes, or an error that the steps raise too
                self._plans.pop(key, None)
        values, sizes = program.schedule.values(inputs), dict(sizes)
        run = PlanRun(values, workspace, program.memory, {})
        for number, part in enumerate(program.steps):
            self._step(number, part, sizes).run(run)
        outputs = tuple([values[cell] for cell in program.schedule.exit])
        shapes = [shape_of(symbol, sizes) for symbol in program.lowered.outputs]
        require_declared(
            outputs, [program.schedule.storages[cell] for cell in program.schedule.exit], shapes
        )
        if self._sizes.get(key) == sizes:
            _limit(self._plans, COST.KEPT_PLANS)
            self._plans[key] = program.plan(sizes)
        _limit(self._sizes, COST.KEPT_PLANS)
        self._sizes[key] = sizes
        return outputs

    def _step(self, number: int, part: Region | Call, sizes: dict[str, int]) -> Any:
        """Return a step bound to sizes; a call that binds further sizes adds them when it runs."""
        names = self._names[number]
        key = number, *[sizes.get(name) for name in names]
        step = self._steps.get(key)
        if step is None:
            is_late = not sizes.keys() >= set(names)
            step = self._program.bind_step(number, part, sizes if is_late else dict(sizes))
            if not isinstance(step, (ControlStep, RegionStep)) or (
                isinstance(step, RegionStep) and not step.size
            ):
                step = alone(step)
            if not is_late:
                _limit(self._steps, COST.KEPT_PLANS * len(self._names))
                self._steps[key] = step
        return step


def _dim_names_of(step: Region | Call) -> Sequence[str]:
    """Return the names of the dims that a step needs, or binds."""
    symbols = [step.symbol] if isinstance(step, Call) else [*step.symbols, *step.rows]
    types = [arg.type for symbol in symbols for arg in (symbol, *symbol.args)]
    attrs = [value for symbol in symbols for value in symbol.attrs.values()]
    return sorted({name for value in (*types, *attrs) for name in dim_names(value)})


def _limit(cache: dict[Any, Any], count: int) -> None:
    """Drop the oldest entries, so that one more fits."""
    while len(cache) >= count:
        cache.pop(next(iter(cache)), None)

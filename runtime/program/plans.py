"""Plans: the steps of a program for inputs of certain shapes, and single functions that run them.

A plan of few small steps becomes one Python function, since the steps themselves would cost more
than the arithmetic. From time to time a plan looks whether the tier has compiled its regions by
now, and replaces the function, or parts of it, by machine code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir import ExecutionError, ops
from graphir.decorators import lazy
from graphir.ir.liveness import dim_names
from graphir.runtime.program.batches import BatchStep
from graphir.runtime.program.codegen.sequences import (
    ArrayCell,
    View,
    has_long_rows,
    is_sequential,
    is_sort,
    sequence_of,
)
from graphir.runtime.program.codegen.straight import Straight, alone, ends, fits, machine_ends
from graphir.runtime.program.control import ControlStep
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import UPDATES
from graphir.runtime.program.phases import PhasesStep
from graphir.runtime.program.rewrites.batches import fuse_batches
from graphir.runtime.program.rewrites.columns import fuse_columns
from graphir.runtime.program.rewrites.copies import limit_copies, read_inputs
from graphir.runtime.program.rewrites.flattening import Flattener
from graphir.runtime.program.rewrites.operands import read_narrow
from graphir.runtime.program.rewrites.ownership import donated_carries, mark_updates
from graphir.runtime.program.rewrites.phases import fuse_phases
from graphir.runtime.program.rewrites.stores import merge_stores
from graphir.runtime.program.rewrites.views import merge_views
from graphir.runtime.program.rewrites.wavefronts import fuse_wavefronts
from graphir.runtime.program.steps import (
    CallStep,
    PlanRun,
    RegionStep,
    ScalarStep,
    Step,
    is_view,
    shape_of,
)
from graphir.runtime.program.wavefronts import WavefrontStep
from graphir.runtime.results import require_declared

if TYPE_CHECKING:
    from graphir.runtime.program.memory import Lane, Recycler
    from graphir.runtime.program.program import Program


class Plan:
    """The steps of a program for inputs of certain shapes, with all sizes bound.

    `straight` is a Python function that runs all steps, if these are few and small. `native` is
    machine code that replaces it. `left` is the number of calls before the next look for machine
    code, and `price` is the time of a `straight` call in nanoseconds. A plan with large results
    runs its steps one by one, because steps reuse memory (see `Recycler`). `empty` makes the memory
    of results. The `straight` function of an `inner` plan, of a graph of control flow, has no
    guards, and 0-d values come and go as NumPy scalars. The first `carries` inputs of such a plan
    are the first outputs of the run before; `donated` are those whose memory the plan may write to.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        sizes: Mapping[str, int],
        program: Program,
        empty: Callable[..., Any],
        inner: bool = False,
        carries: int = 0,
    ) -> None:
        self.exit = frozenset(program.exit)
        self.shapes = [shape_of(symbol, sizes) for symbol in program.lowered.outputs]
        self.inputs = [shape_of(symbol, sizes) for symbol in program.lowered.inputs]
        self._storages = [program.storages[cell] for cell in program.exit]
        self.checked: tuple[Any, ...] = ()
        self.donated = frozenset[int]()
        steps = read_narrow(steps, self.exit)
        self.origins: dict[int, int] = {}
        if len(steps) > 1:
            steps = fuse_wavefronts(steps, self.exit)
        updates = any(isinstance(step, CallStep) and step.symbol.op in UPDATES for step in steps)
        if updates:
            pairs = zip(program.entry[:carries], program.exit, strict=False)
            arrays = [pair for pair, shape in zip(pairs, self.inputs, strict=False) if shape]
            self.donated = donated_carries(steps, self.exit, arrays, program.storages)
            read_inputs(steps, frozenset(program.entry) - self.donated)
            memory = mark_updates(steps, self.exit, program.storages, self.donated)
            flattener = Flattener(steps, self.exit, len(program.cells))
            steps = merge_stores(steps, self.exit, memory, flattener.is_stencil)
            steps, self.origins = flattener.flatten(steps), flattener.origins
            limit_copies(steps, self.exit)
        if len(steps) > 1:
            steps = merge_views(steps, self.exit)
        self.bound = steps
        # Updates in place rely on the order of the steps.
        self.fused = [*steps]
        if not updates:
            phases = fuse_phases(fuse_batches(steps, self.exit), self.exit)
            self.fused = fuse_columns(phases, self.exit, program)
        self._entries: dict[Step, Callable[..., Any]] = {}
        self.native: Callable[..., Any] | None = None
        self.left = self._calls_counted = 0
        self.price = self._time = 0.0
        self._looks = self._tries = 0
        self._stepwise_price = max(COST.STEPWISE, COST.STEP * (len(steps) - 1))
        self._step_calls, self._least_steps = 0, inf
        self._apart, self._inner, self._owns = False, inner, program.owns_outputs
        self._sizes, self._values = sizes, list[Any]()
        self._views: dict[int, View] = {}
        self._empty = empty
        is_straight = fits(steps) and len(self.fused) == len(steps)
        self.straight = self._write_straight(program) if is_straight else None
        self.blocks = sum(step.blocks for step in self.fused)
        sizes_of = zip(self.shapes, program.lowered.outputs, strict=True)
        self.is_large = any(
            math.prod(n) * each.dtype.storage.itemsize >= COST.RECYCLED for n, each in sizes_of
        )

    def check(self, outputs: Sequence[Any], function: Any = None) -> None:
        """Raise ExecutionError unless outputs have the dtypes and shapes that the graph declares.

        The outputs are those of `straight` or `native`, the `function`, or of the steps one by one.
        A function fixes the dtypes and shapes of its results when it is written or compiled, for
        all inputs that its guards let pass. So the program checks the first results of a function,
        which is then in `checked`, and all results of steps.
        """
        require_declared(outputs, self._storages, self.shapes)
        if function is not None:
            others = [each for each in self.checked if each in (self.straight, self.native)]
            self.checked = (*others, function)

    def look(self, program: Program) -> None:
        """Charge the calls since the last look to the regions, and adopt new machine code.

        In a plan of one step, or of steps that are a sequence, machine code replaces the whole
        plan; in other plans it replaces single steps of the Python function.
        """
        regions = self._compiled_regions
        time_spent = self._calls_counted * self.price
        self._time += time_spent
        self._looks += 1
        is_stepwise = not self.straight and len(self.bound) > 1
        if is_stepwise:  # a small region that has no kernel keeps all steps apart
            for step in regions:
                if not step.native.worth:
                    step.native.spend(self._calls_counted * COST.STEP * len(self.fused))
        may_be_sequence = self._adopt_sequence(program)
        if not regions or is_stepwise:
            pause = COST.LOOK_STEPS << self._tries if may_be_sequence else COST.LOOK_CALLS
            self.left = self._calls_counted = min(pause, COST.LOOK_CALLS)
            return
        prices = sum(step.price for step in regions) or 1
        for step in regions:
            step.native.spend(time_spent * step.price / prices)
        # Without a price, the steps charge their regions.
        pause = max(COST.LOOK_TIME, COST.LOOK_REGION * len(regions))
        calls = int(pause / self.price) if self.price else 1 << self._looks
        self.left = self._calls_counted = max(1, min(COST.LOOK_CALLS, calls))
        regions = [step for step in regions if step.native.worth and step not in self._entries]
        if not regions:
            return
        values = self._layouts(program)
        fit = regions if self._is_single else [step for step in regions if not _is_large(step)]
        self._take_entries(program, fit, values)
        # The first price is that of the first call, which fills caches.
        is_long = self.price > self._stepwise_price and time_spent > COST.LOOK_TIME / 2
        if is_long and self._looks > COST.FIRST_LOOKS and not self._apart:
            others = [step for step in regions if step.shape and step not in self._entries]
            self._apart = any(step.native.task(step, values) for step in others)

    def _take_entries(
        self, program: Program, regions: Sequence[ScalarStep | RegionStep], values: Sequence[Any]
    ) -> None:
        """Adopt the machine code of regions; `values` are those of `_layouts`."""
        symbols = program.lowered.symbols
        indices = [*program.cells]  # in the order of the cells
        entries: dict[Step, Callable[..., Any]] = {}
        for step in regions:
            single = self._is_single
            reads, writes = (program.entry, program.exit) if single else machine_ends(step)
            both = [
                [symbols[indices[self.origins.get(cell, cell)]] for cell in cells]
                for cells in (reads, writes)
            ]
            options = values, program.constants, self._empty, not single
            entry = step.native.entry(step, *both, *options)
            entries |= {step: entry} if entry else {}
        self._entries |= entries
        if entries and not self._is_single:
            self.straight = self._write_straight(program)
            self.price, self._apart = 0.0, False
            self._step_calls, self._least_steps = 0, inf
        elif entries:
            self.native = entries[self.bound[0]]

    @lazy
    def _is_sequence(self) -> bool:
        """Whether machine code of a sequence can replace the whole plan."""
        is_region = len(self.bound) == 1 and bool(self._compiled_regions)
        if is_region and isinstance(step := self.bound[0], RegionStep):
            is_region = not has_long_rows(step)  # whose parts threads would have to join
        return not is_region and all(map(is_sequential, self.fused))

    def _adopt_sequence(self, program: Program) -> bool:
        """Adopt the plan as a sequence, once all of its regions have earned machine code.

        The answer is whether a later look may adopt it.
        """
        tier, regions = program.native, self._compiled_regions
        if tier is None or self.native or self._inner or self.origins:
            return False
        if not all(step.native.worth for step in regions):
            return True
        if not self._is_sequence:
            return False
        if self.straight and not tier.pays(self._time):
            return True
        if self._tries > COST.SEQUENCE_TRIES and self._looks % COST.RARE_TRIES:
            return False
        self._tries += 1
        values, lowered = self._layouts(program), program.lowered
        inputs = zip(program.entry, lowered.inputs, self.inputs, strict=True)
        outputs = zip(program.exit, lowered.outputs, self.shapes, strict=True)
        arrays = [
            ArrayCell(cell, lowered.concrete_dtype(symbol.dtype).storage, shape)
            for cell, symbol, shape in (*inputs, *outputs)
        ]
        operands = program.constants, values, self._views
        count = len(program.entry)
        self.native = sequence_of(self.fused, tier, arrays, count, *operands, self._empty)
        return self.native is None

    def _layouts(self, program: Program) -> list[Any]:
        """Return the cells with constants, and with views in arrays without values.

        Machine code needs the strides of views; all other cells are contiguous, and None.
        """
        if self._values:
            return self._values
        symbols, indices = program.lowered.symbols, [*program.cells]
        values = program.values([None] * len(program.entry), len(self.origins))
        layouts = values.copy()
        regions = [step for step in self.bound if isinstance(step, RegionStep)]
        flat = {cell: (step.shape, dtype) for step in regions for cell, dtype in step.writes}
        for step in filter(is_view, self.bound):
            (cell,) = step.reads
            if layouts[cell] is None and cell in flat:
                layouts[cell] = np.empty(*flat[cell])
            elif layouts[cell] is None:
                symbol = symbols[indices[cell]]
                layouts[cell] = np.empty(shape_of(symbol, self._sizes), symbol.dtype.storage)
            is_reshape = isinstance(step, CallStep) and step.symbol.op is ops.reshape
            if not is_reshape or layouts[cell].flags.c_contiguous:  # else NumPy may copy
                view = layouts[step.write] = values[step.write] = step.call(layouts[cell])
                offset = view.ctypes.data - layouts[cell].ctypes.data
                self._views[step.write] = View(cell, offset)
        self._values = values
        return values

    @property
    def _is_single(self) -> bool:
        """Whether machine code of one step can replace the whole plan."""
        step = self.bound[0]
        has_stores = isinstance(step, RegionStep) and step.stores
        is_whole = self._owns and not self._inner
        return is_whole and len(self.bound) == 1 and not has_stores

    @lazy
    def _compiled_regions(self) -> list[ScalarStep | RegionStep]:
        """The steps that machine code may replace; of sorts alone, there are only sequences."""
        return [
            step
            for step in self.bound
            if isinstance(step, (ScalarStep, RegionStep)) and step.native and not is_sort(step)
        ]

    @property
    def stepwise(self) -> bool:
        """Whether to run the plan step by step, because only its steps can call machine code.

        Steps pay if a `straight` call takes longer than STEPWISE, and than the steps' own cost: an
        estimate first, and the least time of a call once there have been STEPWISE_CALLS.
        """
        if self._step_calls >= COST.STEPWISE_CALLS and self._least_steps > self.price:
            return False
        return self.price > self._stepwise_price and (self.native is not None or self._apart)

    def spend_stepwise(self, time: float) -> None:
        """Take the nanoseconds of a call step by step."""
        self._step_calls += 1
        self._least_steps = min(self._least_steps, time)

    def _write_straight(self, program: Program) -> Straight:
        types, scalars = None, set[int]()
        both = program.entry, program.exit
        if self._inner:
            shapes = zip((*both[0], *both[1]), (*self.inputs, *self.shapes), strict=True)
            scalars = {cell for cell, shape in shapes if not shape}
        else:
            types = [
                (program.lowered.concrete_dtype(symbol.dtype).storage, shape)
                for symbol, shape in zip(program.lowered.inputs, self.inputs, strict=True)
            ]
        settings = program.constants, types, self._entries, self._empty, scalars
        return Straight(self.bound, *both, *settings)

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
                    step.small = alone(step, self._empty)
                if not isinstance(step, (RegionStep, PhasesStep, BatchStep, WavefrontStep)):
                    step = alone(step, self._empty)
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
        return Straight(steps, [*reads], live, empty=self._empty)


def _is_large(step: ScalarStep | RegionStep) -> bool:
    """Whether machine code of a step would make results whose memory is recycled otherwise."""
    if isinstance(step, ScalarStep):
        return False
    values = [step.results[cell] for cell in machine_ends(step)[1]]
    sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in values]
    return max(sizes, default=0) >= COST.RECYCLED


def _last_reads(steps: Iterable[Step | PhasesStep | BatchStep | Straight]) -> dict[int, int]:
    """Return the number of the last step that reads each cell."""
    return {cell: number for number, step in enumerate(steps) for cell in step.reads}


class LateRuns:
    """The runs of a program whose calls bind dims.

    Such a program runs step by step. It binds each step when the calls before it have run, and
    keeps the bound steps by the sizes that they need. Once two runs in a row have had the same
    sizes, the program runs by a plan for these, whose calls refuse results of other sizes.
    """

    def __init__(self, program: Program, free: list[Lane], recycler: Recycler) -> None:
        self._program, self._free, self._recycler = program, free, recycler
        self._names = [_dim_names_of(step) for step in program.steps]
        self.clear()

    def clear(self) -> None:
        """Drop all bound steps and plans, because they may reference a kernel that is evicted."""
        self._steps: dict[Any, Step | Straight] = {}
        self._sizes: dict[Any, Mapping[str, int]] = {}
        self._plans: dict[Any, Plan] = {}

    def outputs(
        self,
        lane: Lane,
        inputs: Sequence[Any],
        sizes: Mapping[str, int],
        progress: Callable[[int, int], None] | None = None,
    ) -> Sequence[Any]:
        """Return the outputs for inputs as arrays, which bind some sizes."""
        program, inputs = self._program, list(map(np.asarray, inputs))
        key = tuple([(x.dtype, x.shape) for x in inputs]), frozenset(sizes.items())
        plan = None if progress else self._plans.get(key)
        if plan is not None:
            try:
                return program.outputs_by(plan, lane, inputs)
            except ExecutionError:  # other sizes, or an error that the steps raise too
                self._plans.pop(key, None)
        values, sizes = program.values(inputs), dict(sizes)
        run = PlanRun(values, lane, self._free, self._recycler, {})
        for number, part in enumerate(program.steps):
            self._step(number, part, sizes).run(run)
            if progress:
                progress(number + 1, len(program.steps))
        outputs = tuple([values[cell] for cell in program.exit])
        shapes = [shape_of(symbol, sizes) for symbol in program.lowered.outputs]
        require_declared(outputs, [program.storages[cell] for cell in program.exit], shapes)
        if self._sizes.get(key) == sizes and not progress:
            _limit(self._plans, COST.KEPT_PLANS)
            self._plans[key] = program.plan(sizes)
        _limit(self._sizes, COST.KEPT_PLANS)
        self._sizes[key] = sizes
        return outputs

    def _step(self, number: int, part: Any, sizes: dict[str, int]) -> Any:
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


def _dim_names_of(step: Any) -> Sequence[str]:
    """Return the names of the dims that a step needs, or binds."""
    symbols = [step.symbol] if hasattr(step, "symbol") else [*step.symbols, *step.rows]
    types = [arg.type for symbol in symbols for arg in (symbol, *symbol.args)]
    attrs = [value for symbol in symbols for value in symbol.attrs.values()]
    return sorted({name for value in (*types, *attrs) for name in dim_names(value)})


def _limit(cache: dict[Any, Any], count: int) -> None:
    """Make room for one entry more, by dropping the oldest ones."""
    while len(cache) >= count:
        cache.pop(next(iter(cache)), None)

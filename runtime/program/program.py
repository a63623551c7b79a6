"""Program: a graph planned once, called many times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from operator import attrgetter
from time import perf_counter_ns
from typing import Any, TypeAlias
from weakref import WeakMethod

import numpy as np

from graphir import Graph, ops
from graphir.escape import printable
from graphir.gc_pause import uncollected
from graphir.semantics.evaluation import contiguous
from passes import lower
from runtime.binding import bind
from runtime.program.blocks import cores, require_count
from runtime.program.codegen.assembly import RegionBody, assemble
from runtime.program.codegen.instructions import RegionCode, entering, materialized
from runtime.program.codegen.scalars import Scalars
from runtime.program.cost_model import BIT_ARITHMETIC, KEPT_PLANS
from runtime.program.cutting import Call, Region, cut
from runtime.program.expansion import expanded
from runtime.program.memory import Lane, Recycler
from runtime.program.outputs import check_outputs, writable_at_once
from runtime.program.plans import Plan, Step
from runtime.program.report import MachineCode, Profile, explain, machine_code, profile
from runtime.program.steps import CallStep, PlanRun, RegionStep, ScalarStep, shape_of
from runtime.program.tier import CompiledRegion, Mode, tier
from runtime.results import owned, require_outputs

Progress: TypeAlias = Callable[[int, int], None]

_signature = attrgetter("__class__", "dtype", "shape")


class Program:
    """A graph made ready to run: `Program(graph)(*inputs)` is what `interpret` gives, to the bit.

    The graph is lowered if it is not. `threads` is how many may work on one call (as many as there
    are cores to use); `block`, in elements, replaces the size that fits the cache. Any number of
    threads may call one program at the same time. `beside` is another program, whose scratch memory
    and kept memory this one uses too. `native`: regions become machine code, where llvmlite is
    installed, once it pays ("auto"), at once ("now") or never ("off").
    """

    @uncollected
    def __init__(
        self,
        graph: Graph,
        threads: int | None = None,
        block: int | None = None,
        native: Mode = "auto",
        beside: Program | None = None,
    ) -> None:
        require_outputs(graph)
        self.graph, lowered_graph = graph, lower(graph)
        self.threads = require_count("threads", threads) or cores()
        self.block = require_count("block", block)
        self._options = threads, block, native
        self.native, self.why_numpy = tier(native)
        self.lowered = expanded(lowered_graph) if self.native else lowered_graph
        steps = cut(self.lowered)
        self.materialized = materialized(self.lowered, steps)
        fills = [Call(each) for each in self.lowered.symbols if each.op is ops.full]
        self.steps = [
            each
            for each in (*fills, *steps)
            if isinstance(each, Region) or each.symbol.index in self.materialized
        ]
        stored_indices = self.materialized | {symbol.index for symbol in self.lowered.inputs}
        self.cells = {index: cell for cell, index in enumerate(sorted(stored_indices))}
        self.entry = [self.cells[symbol.index] for symbol in self.lowered.inputs]
        self.exit = [self.cells[symbol.index] for symbol in self.lowered.outputs]
        self.constants = {
            self.cells[symbol.index]: contiguous(symbol.attrs["value"])
            for symbol in self.lowered.symbols
            if symbol.op is ops.constant and symbol.index in self.cells
        }
        self.entry_roundings = self._entry_roundings()
        self._own = self._has_own_outputs()
        self._plans: dict[Any, tuple[Plan, bool]] = {}
        self._bodies: dict[tuple[int, bool], RegionBody] = {}
        self._scalars: dict[int, Scalars] = {}
        self._kernels: dict[int, CompiledRegion] = {}
        self._single = len(self.exit) == 1
        self._recent: Plan | None = None
        self._native: Callable[..., Any] | None = None
        self._free: list[Lane] = beside._free if beside else []
        self._recycler = beside._recycler if beside else Recycler()

    def _entry_roundings(self) -> dict[int, Callable[[Any], Any]]:
        """What is done to those inputs that are not read by regions alone, which do it."""
        indices_read = {symbol.index for symbol in self.lowered.outputs}
        for step in self.steps:
            if isinstance(step, Call):
                indices_read.update([arg.index for arg in step.symbol.args])
            else:
                indices_read.update([arg.index for row in step.rows for arg in row.args])
        return {
            place: function
            for place, symbol in enumerate(self.lowered.inputs)
            if symbol.index in indices_read and (function := entering(symbol))
        }

    def _has_own_outputs(self) -> bool:
        """Whether each output is the result of a region, with memory of its own."""
        results_indices = {
            each.index
            for step in self.steps
            if isinstance(step, Region)
            for each in (*step.symbols, *step.rows)
        }
        outputs = [symbol.index for symbol in self.lowered.outputs]
        return results_indices.issuperset(outputs) and len(set(outputs)) == len(outputs)

    # -- calls

    def __call__(self, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        """The outputs for these inputs; one output is an array, several are a tuple.

        Inputs are given by position or name, as to `execute`. No result shares memory with an
        input or another. `out`, an array or a tuple of them, is where results are written; it is
        returned. Raises ExecutionError.
        """
        native = self._native
        if native is not None and out is None and not keywords:
            outputs = native(*inputs)
            if outputs is not None:
                return outputs
        free = self._free
        try:
            lane = free.pop()
        except IndexError:
            lane = Lane()
        try:
            recent = self._recent
            if recent and recent.left > 0 and recent.straight and out is None and not keywords:
                outputs = lane.run(recent.straight.function, lane, *inputs)
                if outputs is not None:
                    recent.left -= 1
                    return outputs[0] if self._single else outputs
            return lane.run(self._run, lane, inputs, keywords, out, None)
        finally:
            free.append(lane)

    def watched(self, progress: Progress, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        """The same as a call; `progress` is called with the blocks done and those there are."""
        lane = Lane()
        outside = copy_context()
        tell = partial(outside.run, progress)
        return lane.run(self._run, lane, inputs, keywords, out, tell)

    def _run(
        self, lane: Lane, inputs: Sequence[Any], keywords: Any, out: Any, progress: Progress | None
    ) -> Any:
        plan, inputs = self._prepare(inputs, keywords)
        dtypes = [symbol.dtype for symbol in self.lowered.outputs]
        arrays = [] if out is None else check_outputs(out, dtypes, plan.shapes)
        outputs = None if progress else self._at_once(plan, lane, inputs)
        if outputs is None:
            targets = {
                cell: np.asarray(array)
                for cell, array in zip(self.exit, arrays, strict=False)
                if self._own and writable_at_once(array, inputs)
            }
            outputs = self._stepwise(plan, lane, inputs, targets, progress)
        outputs = outputs if self._own else owned(outputs, inputs)
        if out is None:
            return outputs[0] if self._single else outputs
        for array, value in zip(arrays, outputs, strict=True):
            if not np.may_share_memory(array, value):
                array[...] = value
        return out

    def _at_once(self, plan: Plan, lane: Lane, inputs: Sequence[Any]) -> tuple[Any, ...] | None:
        """The outputs without steps, where the plan is small or one call of machine code."""
        plan.left -= 1
        if plan.left < 0 and self._own:
            plan.look(self)
            if plan is self._recent:
                self._use(plan)
        if plan.native:
            outputs = plan.native(*inputs)
            if outputs is not None:
                return (outputs,) if self._single else outputs
        if plan.straight is None or plan.stepwise:
            return None
        start = perf_counter_ns()
        outputs = plan.straight.function(lane, *inputs)
        took = perf_counter_ns() - start
        plan.price = min(plan.price or took, took)
        return outputs

    def _stepwise(
        self,
        plan: Plan,
        lane: Lane,
        inputs: Sequence[Any],
        targets: Mapping[int, Any],
        progress: Progress | None,
    ) -> tuple[Any, ...]:
        values = self.values(inputs)
        run = PlanRun(values, lane, self._free, self._recycler, targets, progress, plan.blocks)
        for step, dead in zip(plan.steps, plan.dead, strict=True):
            step.run(run)
            run.blocks_done += step.blocks
            run.tell(0)
            for cell in dead:
                values[cell] = None
        return tuple([values[cell] for cell in self.exit])

    def values(self, inputs: Sequence[Any]) -> list[Any]:
        """The cells as a call begins: constants and inputs."""
        cells: list[Any] = [None] * len(self.cells)
        for cell, array in (*self.constants.items(), *zip(self.entry, inputs, strict=True)):
            cells[cell] = array
        return cells

    def _prepare(self, inputs: Sequence[Any], keywords: Any) -> tuple[Plan, Sequence[Any]]:
        """The plan for these inputs, and these as it takes them."""
        try:
            key = None if keywords else tuple(map(_signature, inputs))
            plan, ready = self._plans.get(key, (None, False))
        except (AttributeError, TypeError):
            key = plan = None
            ready = False
        if plan is None:
            arrays, sizes = bind(self.graph, inputs, keywords)
            plan = self._plan_for(tuple(map(_signature, arrays)), arrays, sizes)
            if key is not None:
                self._plans[key] = plan, self._are_ready(inputs)
            return plan, arrays
        if not ready:
            return plan, self._entering(inputs)
        if self._own:
            self._use(plan)
        return plan, inputs

    def _use(self, plan: Plan) -> None:
        """Try this plan first from now on; it takes inputs as they are given."""
        self._native = plan.native
        self._recent = None if plan.stepwise else plan

    def _plan_anew(self) -> None:
        """Forget the plans, which may hold what is to be freed."""
        self._native = self._recent = None
        self._plans.clear()

    def _plan_for(self, key: Any, arrays: Sequence[Any], sizes: Mapping[str, int]) -> Plan:
        """The plan for arrays that were given otherwise: by name, or as Python numbers."""
        plan, _ = self._plans.get(key, (None, False))
        if plan is None:
            plan = Plan(self.bound(sizes), sizes, self)
            for old in list(self._plans)[: len(self._plans) + 1 - KEPT_PLANS]:
                self._plans.pop(old, None)
            self._plans[key] = plan, self._are_ready(arrays)
        return plan

    def _are_ready(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs of these types need no conversion."""
        return not self.entry_roundings and all(type(value) is np.ndarray for value in inputs)

    def _entering(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Inputs of known dtypes and shapes as arrays, rounded where steps need that."""
        arrays = [np.asarray(value) for value in inputs]
        for place, function in self.entry_roundings.items():
            arrays[place] = function(arrays[place])
        return arrays

    # -- plans

    @uncollected
    def bound(self, sizes: Mapping[str, int], threads: int | None = None) -> list[Step]:
        """The steps with their symbolic dims bound to sizes."""
        return [
            self._bound(number, step, sizes, threads or self.threads)
            for number, step in enumerate(self.steps)
        ]

    def _bound(
        self, number: int, step: Region | Call, sizes: Mapping[str, int], threads: int
    ) -> Step:
        if isinstance(step, Call):
            return CallStep(step.symbol, self.cells, sizes)
        if not step.shape and not step.rows:
            scalars = self._scalar(number, step)
            return ScalarStep(scalars, self.cells, sizes, self.kernels(number))
        shape = shape_of(step.symbols[0] if step.symbols else step.rows[0].args[0], sizes)
        body = self.body(number, math.prod(shape) > BIT_ARITHMETIC or bool(self.block))
        native = self.kernels(number)
        return RegionStep(body, shape, step.axes, self.cells, sizes, threads, self.block, native)

    def _scalar(self, number: int, region: Region) -> Scalars:
        code = self._scalars.get(number)
        if code is None:
            code = self._scalars[number] = Scalars(
                RegionCode(region, self.materialized, bits=False)
            )
        return code

    def kernels(self, number: int) -> CompiledRegion | None:
        """The machine code of a region, by the number of its step, in the native tier."""
        if self.native is None:
            return None
        compiled_region = self._kernels.get(number)
        if compiled_region is None:
            region, anew = self.steps[number], WeakMethod(self._plan_anew)
            assert isinstance(region, Region)
            compiled_region = self._kernels[number] = self.native(region, self.materialized, anew)
        return compiled_region

    def body(self, number: int, bits: bool) -> RegionBody:
        """The body of a region, by the number of its step; `bits` as for Code."""
        assembled_body = self._bodies.get((number, bits))
        if assembled_body is None:
            region = self.steps[number]
            assert isinstance(region, Region)
            assembled_body = self._bodies[number, bits] = assemble(
                RegionCode(region, self.materialized, bits)
            )
        return assembled_body

    # -- questions

    def explain(self, *inputs: Any, **keywords: Any) -> str:
        """The plan as text: steps, instructions, slots; for given inputs also blocks and bytes.

        Of each region it says which tier runs it, and why NumPy does where it does.
        """
        return explain(self, inputs, keywords)

    def ir(self, step: int, /, *inputs: Any, **keywords: Any) -> MachineCode:
        """The LLVM IR and assembly of a region, by its number in what `explain` tells.

        It depends on how inputs lie: as these do, or contiguous. Raises ExecutionError where the
        step is no region, or has no machine code.
        """
        return machine_code(self, step, inputs, keywords)

    def profile(self, *inputs: Any, **keywords: Any) -> Profile:
        """The time of one call on one thread, by step and op; the clock itself costs some."""
        return profile(self, *bind(self.graph, inputs, keywords))

    def __reduce__(self) -> tuple[type[Program], tuple[Any, ...]]:
        return Program, (self.graph, *self._options)

    def __repr__(self) -> str:
        size = f"{len(self.steps)} steps, {self.threads} threads"
        return f"<Program {printable(self.graph.name)}, {size}>"

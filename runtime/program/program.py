"""`Program`: a graph that is planned once and called many times; `execute`, which keeps it.

The planner lowers the graph, partitions it into steps (fused regions and calls of kernels) and
gives each materialized symbol a cell. For the shapes of each new set of inputs it binds the steps
to sizes and keeps the result as a plan. A call takes the fastest way that its plan has: machine
code, one Python function for small steps, or the steps one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from graphir.decorators import uncollected
from graphir.display import printable
from graphir.hints import ArrayOrNumber
from graphir.ir.liveness import binders_of
from graphir.passes import lower
from graphir.passes.rewriter import bodies_of
from graphir.public import ExecutionError, Graph, OutOfMemoryError, Symbol, ops
from graphir.runtime.binding import bind
from graphir.runtime.program.blocks import cores, require_count
from graphir.runtime.program.codegen.straight import Straight
from graphir.runtime.program.control import BoundBody, ControlStep, carries_of
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Call, Region
from graphir.runtime.program.memory import (
    ProgramMemory,
    Workspace,
    check_outputs,
    take,
    writable_at_once,
)
from graphir.runtime.program.planning import plan_for_native, plan_for_numpy
from graphir.runtime.program.plans import LateRuns, Plan, Step
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.report import MachineCode, explain, machine_code
from graphir.runtime.program.schedule import RegionCodes, Schedule, signature
from graphir.runtime.program.steps import CallStep, PlanRun, ScalarStep, shape_of
from graphir.runtime.program.tier import Mode, tier
from graphir.runtime.program.tier_up import TierUp
from graphir.runtime.results import Out, Outputs, owned, require_outputs

if TYPE_CHECKING:
    from graphir.runtime.native.kernels import Kernels
    from graphir.runtime.native.scalar_loops import ScalarLoop


class Program:
    """A compiled graph: `Program(graph)(*inputs)` has the bits of `interpret(graph, *inputs)`.

    The constructor lowers the graph unless it is lowered already. Any number of threads may call
    one program at the same time.

    `threads` is the number of threads that may work on one call; the default is the number of
    available cores. `block` is the number of elements of a block; the default is the number that
    fits the cache. `native` says when regions become machine code, if llvmlite is installed:
    "auto" once compilation pays, "now" at once, "off" never. `memory` is that of another program,
    which this program shares. `outer` is the program of the graph around a graph of control flow.

    `schedule` has the steps of the lowered graph, and `codes` the code of its regions.

    Raises ExecutionError for `threads` or `block` below 1, for an unknown `native`, and for a graph
    without outputs.
    """

    @uncollected
    def __init__(
        self,
        graph: Graph,
        threads: int | None = None,
        block: int | None = None,
        native: Mode = "auto",
        memory: ProgramMemory | None = None,
        outer: Program | None = None,
    ) -> None:
        require_outputs(graph)
        self.graph = graph
        self.threads = require_count("threads", threads) or cores()
        self.block = require_count("block", block)
        self._options = threads, block, native
        self.native, self.why_numpy = tier(native)
        plan_graph = plan_for_native if self.native else plan_for_numpy
        self.schedule = Schedule(plan_graph(lower(graph)))
        self.lowered, self.steps = self.schedule.graph, self.schedule.steps
        self.codes = RegionCodes(self.schedule, self.native)
        self.memory = memory or (outer.memory if outer else ProgramMemory())
        self._outer = outer
        self._plans: dict[Any, tuple[Plan, bool]] = {}
        self._loops: dict[int, ScalarLoop] = {}
        self._body_programs: dict[Graph, Program] = {}
        self._single = len(self.schedule.exit) == 1
        self._recent: Plan | None = None
        self.machine_code: Callable[..., Any] | None = None
        """The machine code of the plan of the last call, which returns None for other inputs."""
        self.late_runs = LateRuns(self) if binders_of(self.lowered) else None

    # -- calls

    @overload
    def __call__(self, *inputs: ArrayOrNumber, out: Out, **keywords: ArrayOrNumber) -> Out: ...
    @overload
    def __call__(
        self, *inputs: ArrayOrNumber, out: None = None, **keywords: ArrayOrNumber
    ) -> Outputs: ...
    def __call__(self, *inputs: ArrayOrNumber, out: Any = None, **keywords: ArrayOrNumber) -> Any:
        """Return the outputs for some inputs: the array of a single output, or a tuple of arrays.

        The caller passes inputs by position or by name, as to `execute`. No result shares memory
        with an input or with another result. If the caller passes `out`, an array or a tuple of
        arrays with the dtypes and shapes of the outputs, the program writes the results there and
        returns `out`. Raises ExecutionError for unfit inputs or `out`, and if a kernel refuses
        its operands; and OutOfMemoryError, which is a MemoryError too, for memory that is refused.
        """
        is_plain = out is None and not keywords
        native = self.machine_code  # other threads set it
        if is_plain and native is not None:
            outputs = native(*inputs)  # None for other inputs, or fewer of them
            if outputs is not None:
                return outputs
        if self.graph.defaults and not keywords:
            inputs = _with_defaults(self.graph, inputs)
        if is_plain:
            outputs = self.attempt(*inputs)
            if outputs is not None:
                return outputs
        workspace = take(self.memory.free)
        try:
            return workspace.run(self._run, workspace, inputs, keywords, out)
        finally:
            self.memory.free.append(workspace)

    def attempt(self, *inputs: ArrayOrNumber) -> Any:
        """Return the outputs by the Python function of the plan of the last call, without errors.

        The answer is None if there is no such function, and if the inputs have other types.
        """
        recent, free = self._recent, self.memory.free
        if recent is None or recent.left <= 0 or recent.straight is None:
            return None
        try:
            workspace = free.pop()
        except IndexError:
            workspace = Workspace()
        try:
            outputs = workspace.run(recent.straight.function, workspace, *inputs)
        except MemoryError:  # the steps, one by one, name the op
            outputs = None
        finally:
            free.append(workspace)
        if outputs is None:
            return None
        recent.left -= 1
        return outputs[0] if self._single else outputs

    def _run(self, *settings: Any) -> Any:
        """Run as `_outputs` does; any MemoryError is an ExecutionError too."""
        try:
            return self._outputs(*settings)
        except MemoryError as error:
            raise OutOfMemoryError.of(error) from None

    def _outputs(
        self,
        workspace: Workspace,
        inputs: Sequence[Any],
        keywords: Mapping[str, Any],
        out: NDArray[Any] | Sequence[NDArray[Any]] | None,
    ) -> Any:
        dtypes = [symbol.dtype for symbol in self.lowered.outputs]
        if self.late_runs:
            bound, sizes = bind(self.graph, inputs, keywords)
            outputs = self.late_runs.outputs(workspace, self.schedule.load(bound), sizes)
            shapes = [x.shape for x in outputs]
            arrays = [] if out is None else check_outputs(out, dtypes, shapes)
            return self._results(owned(outputs, bound), arrays, out)
        plan, inputs = self._prepare(inputs, keywords)
        arrays = [] if out is None else check_outputs(out, dtypes, plan.shapes)
        # Large results go into `out` at once, if the plan runs step by step.
        is_large, owns_outputs = bool(arrays) and plan.is_large, self.schedule.owns_outputs
        outputs = None if is_large else self._at_once(plan, workspace, inputs)
        if outputs is None:
            targets = {
                cell: np.asarray(array)
                for cell, array in zip(self.schedule.exit, arrays, strict=False)
                if owns_outputs and writable_at_once(array, inputs)
            }
            outputs = self._stepwise(plan, workspace, inputs, targets)
        outputs = outputs if owns_outputs else owned(outputs, inputs)
        return self._results(outputs, arrays, out)

    def _results(self, outputs: Sequence[Any], arrays: Sequence[Any], out: Any) -> Any:
        """Return the outputs, or write them into the arrays of `out`."""
        if out is None:
            return outputs[0] if self._single else outputs
        for array, value in zip(arrays, outputs, strict=True):
            if not np.may_share_memory(array, value):
                array[...] = value
        return out

    def _at_once(
        self, plan: Plan, workspace: Workspace, inputs: Sequence[Any]
    ) -> tuple[Any, ...] | None:
        """Return the outputs of a plan by one function, of Python or machine code.

        The answer is None if the plan has to run step by step.
        """
        plan.left -= 1
        if plan.left < 0:
            TierUp(plan, self).look()
            if plan is self._recent:
                self._use(plan)
        if plan.native:
            native = plan.native
            outputs = native(*inputs)
            if outputs is not None:
                outputs = (outputs,) if self._single else outputs
                if native not in plan.checked:
                    self._check(plan, outputs, native)
                return outputs
        if plan.straight is None or plan.stepwise:
            return None
        straight, start = plan.straight, perf_counter_ns()
        try:
            outputs = straight.function(workspace, *inputs)
        except MemoryError:
            if plan.donated:
                raise
            return None  # step by step, the error names the op
        took = perf_counter_ns() - start
        plan.price = min(plan.price or took, took)
        if outputs is not None and straight not in plan.checked:
            self._check(plan, outputs, straight)
        return outputs

    def _check(
        self,
        plan: Plan,
        outputs: Sequence[Any],
        function: Callable[..., Any] | Straight | None = None,
    ) -> None:
        """Check the outputs of a plan (see `Plan.check`); give up all plans if they are unfit."""
        try:
            plan.check(outputs, function)
        except ExecutionError:
            self._plan_anew()
            raise

    def outputs_of(self, plan: Plan, workspace: Workspace, values: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs of an inner plan; 0-d values come and go as NumPy scalars.

        Outputs may share memory with operands and with each other.
        """
        outputs = self._at_once(plan, workspace, values)
        if outputs is None:
            arrays = self._stepwise(plan, workspace, list(map(np.asarray, values)), {})
            outputs = tuple([x if x.ndim else x[()] for x in arrays])
        return outputs

    def outputs_by(self, plan: Plan, workspace: Workspace, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs of a plan for inputs that are arrays of its types."""
        outputs = self._at_once(plan, workspace, inputs)
        return self._stepwise(plan, workspace, inputs, {}) if outputs is None else outputs

    def _stepwise(
        self,
        plan: Plan,
        workspace: Workspace,
        inputs: Sequence[Any],
        targets: Mapping[int, Any],
    ) -> tuple[Any, ...]:
        values = self.schedule.values(inputs, len(plan.origins))
        run = PlanRun(values, workspace, self.memory, targets)
        start = perf_counter_ns()
        for step, dead in zip(plan.steps, plan.dead, strict=True):
            step.run(run)
            for cell in dead:
                values[cell] = None
        plan.count_stepwise(perf_counter_ns() - start)
        outputs = tuple([values[cell] for cell in self.schedule.exit])
        self._check(plan, outputs)
        return outputs

    def _prepare(
        self, inputs: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Plan, Sequence[Any]]:
        """Return the plan for some inputs, and the inputs in the form that the plan takes."""
        try:
            key = None if keywords else tuple(map(signature, inputs))
            plan, ready = self._plans.get(key, (None, False))
        except (AttributeError, TypeError):
            key = plan = None
            ready = False
        if plan is None:
            arrays, sizes = bind(self.graph, inputs, keywords)
            plan = self._plan_for(arrays, sizes)
            if key is not None and len(inputs) == len(arrays):
                self._plans[key] = plan, self.schedule.takes(inputs)
            return plan, arrays
        if (
            plan.native and not self.schedule.load_conversions
        ):  # machine code takes NumPy's scalars too
            self.machine_code = plan.native
        if not ready:
            return plan, self.schedule.load(inputs)
        if self.schedule.owns_outputs:
            self._use(plan)
        return plan, inputs

    def _use(self, plan: Plan) -> None:
        """Let the next calls try this plan first; it must take inputs without conversion."""
        self.machine_code = plan.native
        self._recent = None if plan.stepwise else plan

    def _plan_anew(self) -> None:
        """Drop all plans, because the outputs of one are unfit."""
        self.machine_code = self._recent = None
        self._plans.clear()
        if self.late_runs:
            self.late_runs.clear()
        if self._outer:
            self._outer._plan_anew()

    # -- plans

    @property
    def plans(self) -> list[Plan]:
        """The plans of the latest calls."""
        return list(dict.fromkeys([plan for plan, _ in self._plans.values()]))

    def plan_for(self, *inputs: ArrayOrNumber, **keywords: ArrayOrNumber) -> Plan:
        """Return the plan of calls with inputs of these types and shapes; make it if necessary.

        The plan has the steps as they run, and says which machine code has replaced them. Raises
        ExecutionError for unfit inputs, and for a program whose calls bind sizes: it plans while it
        runs.
        """
        if self.late_runs:
            raise ExecutionError(
                f"{self!r} has no plan for inputs", fix="call it: its sizes follow from values"
            )
        return self._plan_for(*bind(self.graph, inputs, keywords))

    def _plan_for(self, arrays: Sequence[Any], sizes: Mapping[str, int]) -> Plan:
        """Return the plan for bound arrays; plan anew unless a plan for their types exists.

        The caller may have passed the inputs in another form: by name, or as Python numbers.
        """
        key = tuple(map(signature, arrays))
        plan, _ = self._plans.get(key, (None, False))
        if plan is None:
            plan = self.plan(sizes)
            for old in list(self._plans)[: len(self._plans) + 1 - COST.KEPT_PLANS]:
                self._plans.pop(old, None)
            self._plans[key] = plan, self.schedule.takes(arrays)
        return plan

    @uncollected
    def plan(self, sizes: Mapping[str, int], inner: bool = False, carries: int = 0) -> Plan:
        """Return a new plan; `inner` and `carries` are those of `Plan`."""
        return Plan(list(self.bound(sizes)), sizes, self, inner, carries)

    def bound(self, sizes: Mapping[str, int]) -> Iterator[Step]:
        """Yield the steps with their symbolic dims bound to sizes, and to those of calls before."""
        sizes = dict(sizes)
        for number, step in enumerate(self.steps):
            yield self.bind_step(number, step, sizes)

    def bind_step(self, number: int, step: Region | Call, sizes: dict[str, int]) -> Step:
        """Return a step bound to sizes; a call adds those that its results bind."""
        threads, cells = self.threads, self.schedule.cells
        if isinstance(step, Call):
            if step.symbol.op.kind != "control":
                return CallStep(step.symbol, cells, sizes, self.native, threads)
            programs = map(self.body_program, bodies_of(step.symbol))
            counts = carries_of(step.symbol)
            bodies = [BoundBody(*body, sizes) for body in zip(programs, counts, strict=True)]
            loop = self.loop(number, step.symbol)
            return ControlStep(step.symbol, cells, sizes, bodies, self.memory.free, loop)
        if not step.shape and not step.rows:
            scalars = self.codes.scalars(number)
            pays = len(self.steps) <= COST.SCALAR_KERNELS or len(step.symbols) >= COST.SCALARS
            pays &= self._outer is None or len(step.symbols) >= COST.SCALAR_BODY
            return ScalarStep(scalars, cells, sizes, self.kernels(number) if pays else None)
        shape = shape_of(step.symbols[0] if step.symbols else step.rows[0].args[0], sizes)
        bits = math.prod(shape) > COST.BIT_ARITHMETIC or bool(self.block)
        body = partial(self.codes.body, number, bits)
        options = threads, self.block, self.kernels(number)
        return RegionStep(step, body, shape, cells, sizes, *options)

    def loop(self, number: int, symbol: Symbol) -> ScalarLoop | None:
        """Return an op of control flow as a loop over scalars, by its step; None without a tier."""
        if self.native is None or symbol.op not in (ops.control.while_loop, ops.control.scan):
            return None
        loop = self._loops.get(number)
        if loop is None:
            loop = self._loops[number] = self.native.loop(symbol, self)
        return loop

    def body_program(self, graph: Graph) -> Program:
        """Return the program of a graph of control flow."""
        program = self._body_programs.get(graph)
        if program is None:
            program = self._body_programs[graph] = Program(graph, *self._options, outer=self)
        return program

    def kernels(self, number: int) -> Kernels | None:
        """Return the compiled region of a step, by the step's number; None without a tier."""
        return self.codes.kernels(number)

    # -- questions

    def is_one_call(self, *inputs: ArrayOrNumber) -> bool:
        """Whether one call of machine code runs all steps for inputs of these shapes by now."""
        plan, _ = self._plans.get(tuple(map(signature, inputs)), (None, False))
        return plan is not None and plan.native is not None

    def explain(self, *inputs: ArrayOrNumber, **keywords: ArrayOrNumber) -> str:
        """Return the plan as text: the steps, their instructions and their scratch slots.

        For given inputs the text also has blocks, threads and bytes. For each region it names the
        tier that runs the region, and the reason if that is NumPy.
        """
        return explain(self, inputs, keywords)

    def ir(self, step: int, /, *inputs: ArrayOrNumber, **keywords: ArrayOrNumber) -> MachineCode:
        """Return the LLVM IR and the assembly of a region, by the step number in `explain`.

        Machine code depends on the memory layout of the inputs: the layout is that of the given
        inputs, or contiguous if there are none. Raises ExecutionError if the step does not exist,
        is not a region, or has no machine code.
        """
        return machine_code(self, step, inputs, keywords)

    def __reduce__(self) -> tuple[type[Program], tuple[Any, ...]]:
        return Program, (self.graph, *self._options)

    def __repr__(self) -> str:
        size = f"{len(self.steps)} steps, {self.threads} threads"
        return f"<Program {printable(self.graph.name)}, {size}>"


def _with_defaults(graph: Graph, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return inputs by position with the graph's values of those that the caller omits."""
    names, defaults = graph.input_names[len(inputs) :], graph.defaults
    if not all(name in defaults for name in names):
        return inputs
    return (*inputs, *[defaults[name] for name in names])


@overload
def execute(
    graph: Graph,
    /,
    *inputs: ArrayOrNumber,
    out: Out,
    **keywords: ArrayOrNumber,
) -> Out: ...
@overload
def execute(
    graph: Graph,
    /,
    *inputs: ArrayOrNumber,
    out: None = None,
    **keywords: ArrayOrNumber,
) -> Outputs: ...
def execute(
    graph: Graph,
    /,
    *inputs: ArrayOrNumber,
    out: Any = None,
    **keywords: ArrayOrNumber,
) -> Any:
    """Run a graph on inputs and return its outputs; lowers the graph first if necessary.

    The inputs come by position or by name. Each must have its declared dtype (float32 for
    tensor_float32, uint64 for index and address); a Python number may stand for a 0-d input whose
    dtype can represent it. Returns an array for one output and a tuple for several. No output
    shares memory with an input or another output.

    `out` is an array, or a tuple of arrays, that receives the results. Pass an input
    named `out` by position. Raises ExecutionError that names the wrong input and the mismatch.
    """
    require_outputs(graph)
    program = graph.memo("program")
    if program is None:
        program = Program(graph)
        graph.memo("program", program)
    return program(*inputs, out=out, **keywords)

"""Control flow in a program: graphs among the attributes of an op are programs of their own.

Their dims have the names of the graph around them, so a plan binds them to its own sizes. A body
therefore has one plan for all iterations, whose function needs no guards and keeps 0-d values as
NumPy scalars. What a body gives may share memory with its operands: the program copies the results
of a call at the end.

A `call` may bind dims: see `LateRuns`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.ir.liveness import dim_names
from graphir.passes.rewriter import bodies_of
from graphir.public import Symbol, TensorType, ops
from graphir.runtime.program.codegen.scalars import Statements, inline_scan, inline_while_loop
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import Workspace, take
from graphir.runtime.program.steps import CallStep, shape_of
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics.control_flow import ControlCall
from graphir.semantics.evaluation import contiguous

if TYPE_CHECKING:
    from graphir.runtime.native.scalar_loops import ScalarLoop
    from graphir.runtime.program.program import Program

Values: TypeAlias = Sequence[Any]


class ControlStep(CallStep):
    """A call of an op of control flow, whose value is a tuple, or of `part`.

    `bodies` are the programs of the graphs among the op's attributes, each bound to sizes. `free`
    are the free workspaces of the program. `loop` is the op in the tier, as a loop over scalars.
    """

    def __init__(
        self,
        symbol: Symbol,
        cells: Mapping[int, int],
        sizes: dict[str, int],
        bodies: Sequence[BoundBody],
        free: list[Workspace],
        loop: ScalarLoop | None = None,
    ) -> None:
        self.symbol, self._sizes = symbol, sizes
        self.reads = [cells[arg.index] for arg in symbol.args]
        self.write = cells[symbol.index]
        self.results = (self.write,)
        self.settings, self.fits = {}, False
        parts = [part for part in symbol.type.parts if type(part) is TensorType]
        is_call = symbol.op is ops.control.call
        late = is_call and not sizes.keys() >= set(dim_names(symbol.type))
        shapes = [shape_of(symbol, sizes, part) for part in parts if not late]
        self.part_shapes = shapes
        self.shape = max(shapes, key=np.prod, default=())  # of the largest part
        self._bodies, self._free = bodies, free
        self._inlined: tuple[list[Statements | None], Any] = [], None
        self.in_python = loop is None
        self.loop = None if late or (loop and loop.why) else loop
        self._function: Any = None if late or not is_call else symbol.attrs["callee"].function
        each_shape = iter(shapes)
        self._parts: list[tuple[Any, tuple[int, ...]] | None] = [
            (part.dtype.storage, next(each_shape, ())) if type(part) is TensorType else None
            for part in symbol.type.parts
        ]
        if symbol.op is ops.control.part:
            self.kernel = itemgetter(symbol.attrs["index"])
        elif self._function:
            self.kernel = self._call_results
        else:
            self.kernel = self._results

    @property
    def is_sequential(self) -> bool:
        """Whether the op takes a part of a tuple, or is a loop that may become machine code."""
        return self.symbol.op is ops.control.part or self.loop is not None

    @property
    def length(self) -> int | None:
        """The number of rows of a `scan`; None for other ops."""
        if self.symbol.op is not ops.control.scan:
            return None
        operands = [np.empty(shape, np.void) for shape in self.operand_shapes]
        return self._call().length(operands)

    def _call(self) -> ControlCall:
        symbol = self.symbol
        return ControlCall(symbol.op, symbol.attrs, symbol.type.parts, self._sizes, ())

    @property
    def inlined(self) -> list[Statements] | None:
        """The statements of the graphs of a `cond`, or of a `while_loop` that stays in Python.

        The answer is None unless they are few, and unless all results are scalars.
        """
        op, bodies = self.symbol.op, [body.statements for body in self._bodies]
        is_loop = op is ops.control.while_loop and self.in_python
        statements = [statement for statement in bodies if statement]
        if not (is_loop or op is ops.control.cond) or len(statements) < len(bodies):
            return None
        is_scalar = all(
            type(part) is TensorType and not part.rank for part in self.symbol.type.parts
        )
        lines = [line for statement in statements for line in statement.lines]
        needs_scratch = any("workspace" in line for line in lines)
        is_short = len(lines) <= COST.INLINED_LINES
        return statements if is_scalar and is_short and not needs_scratch else None

    def _call_results(self, *operands: NDArray[Any]) -> tuple[Any, ...]:
        """Return the results of a `call` whose sizes are bound."""
        try:
            results = tuple(self._function(*operands))
            for x, part in zip(results, self._parts, strict=False):
                if part is None:  # no array
                    continue
                dtype, shape = part
                if type(x) is not np.ndarray or x.dtype != dtype or x.shape != shape:
                    return self._call().bound(results)
            return results if len(results) == len(self._parts) else self._call().bound(results)
        except REFUSAL_ERRORS as error:
            raise refused(error, self.symbol) from None

    def _results(self, *operands: NDArray[Any]) -> tuple[Any, ...]:
        symbol, workspace = self.symbol, take(self._free)
        values = _unboxed(operands) if self._bodies else list(operands)
        call = self._call()
        results: Sequence[Any]
        try:
            if symbol.op is ops.control.while_loop:
                results = self._while_loop(call, values, workspace)
            elif symbol.op is ops.control.scan:
                results = self._scan(call, values, workspace)
            else:
                functions = [body.on(workspace) for body in self._bodies]
                results = call._replace(bodies=functions)(values)
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol) from None
        finally:
            self._free.append(workspace)
        return tuple([np.asarray(x) if _is_scalar(x) else x for x in results])

    def _native(self, values: Values, length: int | None = None) -> Values | None:
        """Return the results by machine code, if the loop has it, and if no op refuses."""
        if self.loop and self.loop.is_compiled:
            results = self.loop.run(values, length)
            if results is None:
                self.loop = None  # Python raises the error
            return results
        return None

    def _owned(self, values: list[Any]) -> list[Any]:
        """Return operands with copies of those to which the bodies may write."""
        for place in {place for body in self._bodies for place in body.donated}:
            values[place] = np.array(values[place], order="C")
        return values

    def _while_loop(self, call: ControlCall, values: list[Any], workspace: Workspace) -> Values:
        results = self._native(values)
        if results is not None:
            return results
        condition, body = self._bodies
        runs = [body.on(workspace) for body in self._bodies]
        values, count = self._owned(values), len(call.types)
        captured = values[count:]
        while True:
            iterations = min(COST.LOOP_LOOK, condition.iterations, body.iterations)
            write = partial(inline_while_loop, carries=count)
            run = self._inline_iterations(write) if iterations else None
            if run:
                start = perf_counter_ns()
                carries, ends = run(workspace, iterations, *values)
                if ends:
                    return carries
                values = [*carries, *captured]
                results = self._count(iterations, start, values, None)
                if results is not None:
                    return results
            if not runs[0](values)[0]:
                return values[:count]
            values = [*runs[1](values), *captured]

    def _scan(self, call: ControlCall, operands: list[Any], workspace: Workspace) -> Values:
        attrs, (body,) = call.attrs, self._bodies
        carries, end = attrs["carries"], attrs["carries"] + attrs["scanned"]
        length = call.length(operands)
        results = self._native(operands, length)
        if results is not None:
            return results
        operands, run = self._owned(operands), body.on(workspace)
        rows, captured = [*map(contiguous, operands[carries:end])], operands[end:]
        values: Values = operands[:carries]
        places = range(length)[::-1] if attrs["reverse"] else range(length)
        stacked = call.no_rows() if not length else list[Any]()
        number = 0
        while number < length:
            iterations = min(COST.LOOP_LOOK, body.iterations, length - number) if number else 0
            write = partial(inline_scan, carries=carries, scanned=end - carries)
            function = self._inline_iterations(write) if iterations else None
            if function:
                start = perf_counter_ns()
                part = places[number : number + iterations]
                values = function(workspace, part, rows, stacked, *values, *captured)
                number += iterations
                rest = slice(None, length - number) if attrs["reverse"] else slice(number, None)
                values = [*values, *[x[rest] for x in rows], *captured]
                results = self._count(iterations, start, values, length - number)
                values = values[:carries]
                if results is not None:
                    for array, ys in zip(stacked, results[carries:], strict=True):
                        array[rest] = ys
                    return [*results[:carries], *stacked]
                continue
            place = places[number]
            outputs = run([*values, *[x[place] for x in rows], *captured])
            if not number:
                stacked = [call.stack(length, y) for y in outputs[carries:]]
            for array, y in zip(stacked, outputs[carries:], strict=True):
                array[place] = y
            values, number = outputs[:carries], number + 1
        return [*values, *stacked]

    def _inline_iterations(self, write: Callable[..., Any]) -> Any:
        """Return the function of several iterations, if the bodies can be inlined.

        `write` returns the function for the statements of the bodies.
        """
        statements = [body.statements for body in self._bodies]
        before, function = self._inlined
        if not before or any(a is not b for a, b in zip(before, statements, strict=True)):
            function = write(*statements) if all(statements) else None
            self._inlined = statements, function
        return function

    def _count(
        self, iterations: int, start: int, values: Values, length: int | None
    ) -> Values | None:
        """Count iterations in Python; return the results of later ones if the loop is compiled.

        `start` is the time at which the iterations began, in nanoseconds of `perf_counter_ns`.
        `values` and `length` are those of the iterations to come.
        """
        for body in self._bodies:
            body.count(iterations)
        if self.loop:
            self.loop.charge(perf_counter_ns() - start)
        return self._native(values, length)


class BoundBody:
    """The program of a graph of control flow, with its dims bound to sizes.

    The first `carries` inputs are the first outputs of the run before. `donated` are those to which
    the program may write.
    """

    def __init__(self, program: Program, carries: int, sizes: dict[str, int]) -> None:
        self._program, self._sizes = program, sizes
        self._plan = None if program.late_runs else program.plan(sizes, True, carries)
        cells = self._plan.donated if self._plan else ()
        self.donated = [place for place, cell in enumerate(program.schedule.entry) if cell in cells]

    @property
    def statements(self) -> Statements | None:
        """The statements of the function that runs the program as a whole, if there is one."""
        plan = self._plan
        return plan.straight.statements if plan and plan.straight and not plan.stepwise else None

    @property
    def iterations(self) -> int:
        """The number of runs of `statements` before the next look for machine code."""
        return max(0, self._plan.left) if self._plan else 0

    def count(self, iterations: int) -> None:
        """Count runs of `statements`."""
        if self._plan:
            self._plan.left -= iterations

    def on(self, workspace: Workspace) -> Callable[[Values], Values]:
        """Return the function of operands that runs the program with a workspace.

        Operands have the right types; 0-d values come and go as NumPy scalars. Outputs may share
        memory with operands and with each other.
        """
        plan, program = self._plan, self._program
        if plan is None and program.late_runs:
            runs = program.late_runs
            return lambda values: _unboxed(runs.outputs(workspace, values, self._sizes))
        assert plan is not None
        return partial(program.outputs_of, plan, workspace)


def carries_of(symbol: Symbol) -> Sequence[int]:
    """Return the numbers of carries of the graphs of an op of control flow, in order."""
    if symbol.op is ops.control.while_loop:
        return 0, len(symbol.type.parts)
    return [symbol.attrs.get("carries", 0)] * len(bodies_of(symbol))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, np.generic)


def _unboxed(values: Values) -> list[Any]:
    """Return values with NumPy scalars in place of 0-d arrays."""
    return [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in values]

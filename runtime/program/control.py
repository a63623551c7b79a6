"""Control flow in a program: graphs among the attributes of an op are programs of their own.

Their dims have the names of the graph around them, so a plan binds them to its own sizes. A body
therefore has one plan for all iterations, whose function needs no guards and keeps 0-d values as
NumPy scalars. What a body gives may share memory with its operands: the program copies the results
of a call at the end.

A `call` may bind dims. A program with such a call has no plan: it binds and runs step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphir import Graph, Symbol, TensorType, ops
from graphir.ops.dims import Dim
from graphir.semantics.control import ControlCall
from passes.rewriter import bodies_of
from runtime.program.memory import Lane, take
from runtime.program.steps import CallStep, shape_of
from runtime.results import REFUSAL_ERRORS, refused

if TYPE_CHECKING:
    from runtime.program.plans import Plan
    from runtime.program.program import Program

Values: TypeAlias = Sequence[Any]


class ControlStep(CallStep):
    """A call of an op of control flow, whose value is a tuple, or of `part`.

    `bodies` are the programs of the graphs among the op's attributes, each bound to sizes. `free`
    are the free lanes of the program.
    """

    def __init__(
        self,
        symbol: Symbol,
        cells: Mapping[int, int],
        sizes: dict[str, int],
        bodies: Sequence[BoundBody],
        free: list[Lane],
    ) -> None:
        self.symbol, self._sizes = symbol, sizes
        self.reads = [cells[arg.index] for arg in symbol.args]
        self.write = cells[symbol.index]
        self.settings, self.fits = {}, False
        parts = [part for part in symbol.type.parts if type(part) is TensorType]
        late = set(own_dims(symbol)).difference(sizes)
        shapes = [shape_of(symbol, sizes, part) for part in parts if not late]
        self.shape = max(shapes, key=np.prod, default=())  # of the largest part
        self._bodies, self._free = bodies, free
        is_part = symbol.op is ops.control.part
        self.kernel = itemgetter(symbol.attrs["index"]) if is_part else self._results

    def _results(self, *operands: Any) -> tuple[Any, ...]:
        symbol, lane = self.symbol, take(self._free)
        functions = [body.on(lane) for body in self._bodies]
        run = ControlCall(symbol.op, symbol.attrs, symbol.type.parts, self._sizes, functions)
        values = _unboxed(operands) if functions else list(operands)
        for place in {place for body in self._bodies for place in body.donated}:
            values[place] = np.array(values[place], order="C")
        try:
            results = run(values)
        except REFUSAL_ERRORS as error:
            raise refused(error, symbol) from None
        finally:
            self._free.append(lane)
        return tuple([np.asarray(x) if isinstance(x, np.generic) else x for x in results])


class BoundBody:
    """The program of a graph of control flow, with its dims bound to sizes.

    The first `carries` inputs are the first outputs of the run before. `donated` are those to which
    the program may write.
    """

    def __init__(self, program: Program, carries: int, sizes: dict[str, int]) -> None:
        self._program, self._sizes = program, sizes
        self._plan = None if program.binds_late else program.plan(sizes, True, carries)
        cells = self._plan.donated if self._plan else ()
        self.donated = [place for place, cell in enumerate(program.entry) if cell in cells]

    def on(self, lane: Lane) -> Callable[[Values], Values]:
        """Return the function of operands that runs the program with a lane.

        Operands have the right types; 0-d values come and go as NumPy scalars. Outputs may share
        memory with operands and with each other.
        """
        plan, outputs_of = self._plan, self._program.outputs_of
        if plan is None:
            return lambda values: _unboxed(self._program.bind_and_run(lane, values, self._sizes))
        function = _function_of(plan)

        def run(values: Values) -> Values:
            nonlocal function
            if function and plan.left > 0:
                plan.left -= 1
                try:
                    return function(lane, *values)
                except MemoryError:
                    if plan.donated:
                        raise  # step by step, the error names the op, but operands may have changed
            outputs = outputs_of(plan, lane, values)
            function = _function_of(plan)
            return outputs

        return run


def binds_dims(graph: Graph) -> bool:
    """Whether a `call` of a graph gives arrays with dims that no input of the graph has."""
    bound = {name for symbol in graph.inputs for name in _names(symbol.type)}
    return any(not bound.issuperset(own_dims(symbol)) for symbol in graph.symbols)


def own_dims(symbol: Symbol) -> Iterator[str]:
    """Yield the names of the dims of a `call`'s results."""
    if symbol.op is ops.control.call:
        for part in symbol.type.parts:
            if type(part) is TensorType:
                yield from _names(part)


def _names(type_: TensorType) -> Iterator[str]:
    for dim in type_.shape:
        if isinstance(dim, Dim):
            yield from dim.names()


def _function_of(plan: Plan) -> Callable[..., Any] | None:
    """Return the function that runs all steps of a plan, unless they had better run one by one."""
    return plan.straight.function if plan.straight and not plan.stepwise else None


def carries_of(symbol: Symbol) -> Sequence[int]:
    """Return the numbers of carries of the graphs of an op of control flow, in order."""
    if symbol.op is ops.control.while_loop:
        return 0, len(symbol.type.parts)
    return [symbol.attrs.get("carries", 0)] * len(bodies_of(symbol))


def _unboxed(values: Values) -> list[Any]:
    """Return values with NumPy scalars in place of 0-d arrays."""
    return [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in values]

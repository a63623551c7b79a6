"""A lowered graph as a schedule: its steps in order, a cell for each value in memory, their code.

A schedule depends on no sizes. Plans bind its steps to the sizes of a call, and all plans share the
code of its regions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from graphir.public import Graph, TensorType, ops
from graphir.runtime.program.codegen.assembly import RegionBody, assemble
from graphir.runtime.program.codegen.instructions import RegionCode, entering, materialized
from graphir.runtime.program.codegen.scalars import Scalars
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cutting import Call, Region, cut
from graphir.runtime.program.rewrites.updates import FRESH
from graphir.semantics.evaluation import contiguous

if TYPE_CHECKING:
    from graphir.runtime.native import NativeTier
    from graphir.runtime.native.kernels import Kernels

signature = attrgetter("__class__", "dtype", "shape")
"""What a plan depends on of an input."""


class Schedule:
    """The steps of a lowered graph, and a cell for each value that lies in memory.

    `materialized` are the indices of the symbols with such values, and `cells` has their cells.
    `storages` has the dtype of the array in each cell, or None for other values. `entry` are the
    cells of the inputs, `exit` those of the outputs, and `constants` has the arrays of constants by
    cell. `load_conversions` has those of inputs that a call, a row-wise op or an output reads, by
    the position of the input; regions convert the inputs that they load themselves. With
    `owns_outputs`, each output is a distinct result of a region or of an op that makes memory.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, steps = graph, cut(graph)
        self.materialized = materialized(graph, steps)
        late = {step.symbol.index for step in steps if isinstance(step, Call)}
        fills = [
            Call(symbol)
            for symbol in graph.symbols
            if symbol.op is ops.full and symbol.index not in late
        ]
        self.steps = [
            step
            for step in (*fills, *steps)
            if isinstance(step, Region) or step.symbol.index in self.materialized
        ]
        stored_indices = self.materialized | {symbol.index for symbol in graph.inputs}
        self.cells = {index: cell for cell, index in enumerate(sorted(stored_indices))}
        self.storages = [self._storage(index) for index in self.cells]
        self.entry = [self.cells[symbol.index] for symbol in graph.inputs]
        self.exit = [self.cells[symbol.index] for symbol in graph.outputs]
        self.constants = {
            self.cells[symbol.index]: contiguous(symbol.attrs["value"])
            for symbol in graph.symbols
            if symbol.op is ops.constant and symbol.index in self.cells
        }
        self.load_conversions = self._load_conversions()
        self.owns_outputs = self._has_own_outputs()

    def _storage(self, index: int) -> Storage | None:
        """Return the dtype of the array that a symbol is in memory; None for other values."""
        type_ = self.graph.symbols[index].type
        if type(type_) is not TensorType:
            return None
        return self.graph.concrete_dtype(type_.dtype).storage

    def _load_conversions(self) -> dict[int, Callable[[Any], Any]]:
        indices_read = {symbol.index for symbol in self.graph.outputs}
        for step in self.steps:
            if isinstance(step, Call):
                indices_read.update([arg.index for arg in step.symbol.args])
            else:
                indices_read.update([arg.index for row in step.rows for arg in row.args])
        return {
            place: function
            for place, symbol in enumerate(self.graph.inputs)
            if symbol.index in indices_read and (function := entering(symbol))
        }

    def _has_own_outputs(self) -> bool:
        result_indices = {
            symbol.index
            for step in self.steps
            if isinstance(step, Region)
            for symbol in (*step.symbols, *step.rows)
        }
        result_indices |= {
            step.symbol.index
            for step in self.steps
            if isinstance(step, Call) and step.symbol.op in FRESH
        }
        outputs = [symbol.index for symbol in self.graph.outputs]
        return result_indices.issuperset(outputs) and len(set(outputs)) == len(outputs)

    def values(self, inputs: Sequence[Any], new: int = 0) -> list[Any]:
        """Return the cells at the start of a call; all but constants and inputs are None.

        `new` is the number of cells of the plan that stand for no symbol.
        """
        cells: list[Any] = [None] * (len(self.cells) + new)
        for cell, array in (*self.constants.items(), *zip(self.entry, inputs, strict=True)):
            cells[cell] = array
        return cells

    def takes(self, inputs: Sequence[Any]) -> bool:
        """Whether a plan can take inputs of these types without conversion."""
        return not self.load_conversions and all(type(value) is np.ndarray for value in inputs)

    def load(self, inputs: Sequence[Any]) -> list[Any]:
        """Return inputs as arrays, after the load conversions that the steps need.

        The inputs must have the dtypes and shapes of a plan.
        """
        arrays = [np.asarray(value) for value in inputs]
        for place, function in self.load_conversions.items():
            arrays[place] = function(arrays[place])
        return arrays


class RegionCodes:
    """The code of the regions of a schedule, by the number of the step; all plans share it.

    `tier` compiles regions.
    """

    def __init__(self, schedule: Schedule, tier: NativeTier | None) -> None:
        self._schedule, self._tier = schedule, tier
        self._bodies: dict[tuple[int, bool, frozenset[int]], RegionBody] = {}
        self._scalars: dict[int, Scalars] = {}
        self._kernels: dict[int, Kernels] = {}
        self._shared: dict[Any, Any] = {}

    def scalars(self, number: int) -> Scalars:
        """Return the code of a region of 0-d values."""
        code = self._scalars.get(number)
        if code is None:
            code = self._scalars[number] = Scalars(self._code(number, bits=False))
        return code

    def body(self, number: int, bits: bool, slice_outs: frozenset[int] = frozenset()) -> RegionBody:
        """Return the body of a region.

        `bits` is that of `RegionCode`, and `slice_outs` that of `assemble`.
        """
        key = number, bits, slice_outs
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = assemble(self._code(number, bits), slice_outs)
        return body

    def kernels(self, number: int) -> Kernels | None:
        """Return the compiled region of a step; None without a tier."""
        kernels = self._kernels.get(number)
        if kernels is None:
            kernels = self.compiled(self._region(number), self._schedule.materialized)
            if kernels:
                self._kernels[number] = kernels
        return kernels

    def compiled(self, region: Region, materialized: Collection[int]) -> Kernels | None:
        """Return a compiled region; None without a tier.

        `materialized` are the indices of symbols whose values lie in memory.
        """
        if self._tier is None:
            return None
        return self._tier(region, materialized, self._shared)

    def _code(self, number: int, bits: bool) -> RegionCode:
        return RegionCode(self._region(number), self._schedule.materialized, bits)

    def _region(self, number: int) -> Region:
        region = self._schedule.steps[number]
        assert isinstance(region, Region)
        return region

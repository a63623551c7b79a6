"""Sequences: the steps of a small plan as one call of machine code over scratch memory.

A sequence has the kernels of regions, and NumPy's products of contiguous operands. Views of arrays
cost nothing: the kernels read them at an offset, by their strides. The other results than those of
the sequence lie in scratch memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from graphir import ops
from graphir.semantics.products import uses_blas
from runtime.program.codegen.tracing import Storage
from runtime.program.cost_model import NUMPY_TERM, RELEASED_LOCK, SEQUENCE_SCRATCH
from runtime.program.cutting import VIEWS
from runtime.program.steps import CallStep, LayoutStep, RegionStep, ScalarStep, Step
from runtime.program.tier import MemoryPlace, Product, ProductOperand, SequencePart, Tier

_LINE = 64
"""The alignment of a value in scratch memory, in bytes."""


class ArrayCell(NamedTuple):
    """An input or a result of a sequence: its cell, dtype and shape."""

    cell: int
    dtype: Storage
    shape: tuple[int, ...]


class View(NamedTuple):
    """The cell that a view is about, and the bytes between the first elements of both."""

    source: int
    offset: int


def is_sequential(step: Step) -> bool:
    """Whether a sequence can have a step, provided that the tier has machine code for it."""
    if isinstance(step, ScalarStep):
        return step.native is not None
    if isinstance(step, RegionStep):
        can_be_kernel = step.native is not None and step.size > 0
        return can_be_kernel and step.threads == 1 and not step.stores
    if not isinstance(step, CallStep):
        return isinstance(step, LayoutStep)
    return step.symbol.op in VIEWS or step.symbol.op is ops.full or step.multiplies


class SequenceWriter:
    """The parts of a sequence, and the places of all cells.

    `arrays` are the inputs, `inputs` of them, and then the results. `apart` are the pairs of inputs
    that must not lie at one address. `values` are the cells with their constants, and with arrays
    that have the strides of views. `views` has the cells that are views.
    """

    def __init__(
        self,
        arrays: Sequence[ArrayCell],
        inputs: int,
        constants: Mapping[int, Any],
        values: Sequence[Any],
        views: Mapping[int, View],
    ) -> None:
        self._inputs, self._values, self._views = inputs, [*values], views
        self._places: dict[int, Any] = {**constants}
        self._places |= {each.cell: MemoryPlace(k, 0) for k, each in enumerate(arrays)}
        self.parts: list[SequencePart] = []
        self.scratch, self.price = 0, 0.0
        self.apart: list[tuple[int, int]] = []

    def add(self, step: Step) -> bool:
        """Add a step; the answer is False if the sequence cannot have it, or not yet."""
        if isinstance(step, (RegionStep, ScalarStep)):
            return self._add_region(step)
        if isinstance(step, LayoutStep):
            return self._add_view(step)
        if not isinstance(step, CallStep):
            return False
        if step.symbol.op in VIEWS:
            return self._add_view(step)
        if step.symbol.op is ops.full:
            self._places[step.write] = self._values[step.write] = step.call()
            return True
        return self._add_product(step)

    def _add_region(self, step: RegionStep | ScalarStep) -> bool:
        kernel = step.native.placed(step, self._values, copies=False)
        if kernel is None:
            return False
        for cell, size in _sizes(step):
            self._allocate(cell, size)
        places = [self._places[cell] for cell in kernel.cells]
        for number, array in enumerate(kernel.arrays):
            if not isinstance(places[number], MemoryPlace):
                places[number] = array  # which is aligned
        self.parts.append(SequencePart(kernel, places))
        self.price += step.price
        return True

    def _add_view(self, step: CallStep | LayoutStep) -> bool:
        view = self._views.get(step.write)
        if view is None:
            return False
        place = self._places[view.source]
        if isinstance(place, MemoryPlace):
            self._places[step.write] = MemoryPlace(place.array, place.offset + view.offset)
        else:
            self._places[step.write] = self._values[step.write]
        return True

    def _add_product(self, step: CallStep) -> bool:
        left, right = operands = [
            self._operand(cell, shape, step.symbol.dtype.storage)
            for cell, shape in zip(step.reads, step.operand_shapes, strict=True)
        ]
        places = [self._places[cell] for cell in step.reads]
        if not all(math.prod(each.shape) for each in operands):
            return False
        if not self._are_laid_out(step, operands, places):
            return False
        dtype = step.symbol.dtype.storage
        self._allocate(step.write, math.prod(step.shape) * dtype.itemsize)
        places.append(self._places[step.write])
        self.parts.append(SequencePart(Product(dtype, left, right), places))
        self.price += math.prod(step.shape) * left.shape[-1] * NUMPY_TERM
        return True

    def _operand(self, cell: int, shape: tuple[int, ...], dtype: Storage) -> ProductOperand:
        value = self._values[cell]
        if value is None:
            return ProductOperand(shape, _in_order(shape))
        strides = [step // dtype.itemsize for step in value.strides]
        return ProductOperand(shape, tuple(strides))

    def _are_laid_out(
        self, step: CallStep, operands: Sequence[ProductOperand], places: Sequence[Any]
    ) -> bool:
        """Whether operands have the strides that a product demands, and share no memory.

        NumPy calls another function of BLAS for a matrix and its own transpose, in one memory.
        """
        layout = step.symbol.attrs["layout"]
        orders = map(_in_order, step.operand_shapes)
        function, *demands, is_gram = layout or ("matmul", *orders, False)
        for (shape, strides), demand in zip(operands, demands, strict=True):
            axes = zip(shape, strides, demand, strict=True)
            differs = any(size > 1 and stride != other for size, stride, other in axes)
            if differs and uses_blas(step.symbol.dtype.storage):
                return False
        if function != "matmul" or is_gram:
            return False
        left, right = operands
        if layout is None or left.strides[-2:] != right.strides[-2:][::-1]:
            return True
        x, y = places
        if not (isinstance(x, MemoryPlace) and isinstance(y, MemoryPlace)) or x == y:
            return False
        if x.array == y.array or min(x.array, y.array) < 0:
            return True
        self.apart.append((x.array, y.array))
        return x.offset == y.offset and max(x.array, y.array) < self._inputs

    def _allocate(self, cell: int, size: int) -> None:
        """Give the value of a cell scratch memory, unless it is a result of the sequence."""
        if cell not in self._places:
            # The arrays of a sequence have the numbers from 0, and scratch memory has -1.
            self._places[cell] = MemoryPlace(-1, self.scratch)
            self.scratch += -(-size // _LINE) * _LINE


def sequence_of(
    steps: Sequence[Step],
    tier: Tier,
    arrays: Sequence[ArrayCell],
    inputs: int,
    constants: Mapping[int, Any],
    values: Sequence[Any],
    views: Mapping[int, View],
) -> Callable[..., Any] | None:
    """Return a built-in function that runs steps; None if there is none, or none yet.

    The first `inputs` of `arrays` are the inputs, and the others the results. The function returns
    None for inputs that are not plain, contiguous arrays. The other arguments are those of
    SequenceWriter.
    """
    writer = SequenceWriter(arrays, inputs, constants, values, views)
    if not all(map(writer.add, steps)) or writer.scratch > SEQUENCE_SCRATCH or not writer.parts:
        return None
    types = [(each.dtype, each.shape) for each in arrays]
    sizes = inputs, writer.scratch
    return tier.sequence(writer.parts, types, *sizes, writer.apart, writer.price > RELEASED_LOCK)


def _sizes(step: RegionStep | ScalarStep) -> list[tuple[int, int]]:
    """Return the cells that a region writes, with their bytes."""
    if isinstance(step, ScalarStep):
        outs = step.scalars.outs
        return [(step.cells[each.index], each.dtype.storage.itemsize) for each in outs]
    sizes = [(cell, step.size * dtype.itemsize) for cell, dtype in step.writes]
    for rows in step.rows:
        sizes.append((rows.cell, math.prod(rows.shape) * rows.symbol.dtype.storage.itemsize))
    return sizes


def _in_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of an array in C order, in elements."""
    return tuple([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])

"""The steps of a plan with their sizes bound: a call of a program runs these objects.

The step of a region is in region_steps.py, and steps that run several others in phases.py,
batches.py, wavefronts.py and rewrites/fusion.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from graphir.decorators import lazy
from graphir.hints import Array
from graphir.ops.dims import evaluate
from graphir.public import DType, GraphirError, Op, Symbol, TensorType, ops
from graphir.runtime.program.codegen.scalars import Scalars
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import ACCUMULATIONS, VIEWS
from graphir.runtime.program.memory import Box, ProgramMemory, Workspace
from graphir.runtime.program.rows import ColumnSpace, caller, column_space
from graphir.runtime.program.tier import Accumulation, Multiply
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics import data_movement as movement
from graphir.semantics import integer_products
from graphir.semantics import matrix_products as products
from graphir.semantics.evaluation import contiguous, settings_of
from graphir.semantics.sums import layout_of_sum

if TYPE_CHECKING:
    from graphir.runtime.native import NativeTier
    from graphir.runtime.program.region_steps import RegionStep
    from graphir.runtime.program.wavefronts import WavefrontStep

Settings: TypeAlias = dict[str, Any]


class PlanRun:
    """The state of one call: values by cell, output arrays, and scratch memory.

    `targets` are the arrays of the caller into which results go, by cell.
    """

    def __init__(
        self,
        values: list[Any],
        workspace: Workspace,
        memory: ProgramMemory,
        targets: Mapping[int, Array],
    ) -> None:
        self.values, self.workspace, self.memory, self.targets = values, workspace, memory, targets

    def empty(self, cell: int, shape: tuple[int, ...], dtype: Storage) -> Array:
        """Return memory for the value of a cell: the caller's `out` array, or a new array."""
        target = self.targets.get(cell)
        return self.memory.recycler.empty(shape, dtype) if target is None else target


class PlanStep:
    """The base of the steps of a plan.

    A step computes the values of the cells `results` from those of the cells `reads`. `shape` is
    the shape of its result, or its iteration space. `blocks` is the number of its parts, and
    `price` the estimated nanoseconds of the step in NumPy.
    """

    reads: list[int]
    results: Any  # a collection of cells
    shape: tuple[int, ...]
    blocks = 1
    price: float = 0

    @property
    def result_shapes(self) -> dict[int, tuple[int, ...]]:
        """The shapes of the results, by cell."""
        cells: Iterable[int] = self.results
        return dict.fromkeys(cells, self.shape)

    @property
    def is_sequential(self) -> bool:
        """Whether a sequence of machine code can have the step, once the tier has code for it."""
        return False

    @property
    def has_native_threads(self) -> bool:
        """Whether threads share the step in machine code."""
        return False


class ScalarStep(PlanStep):
    """A region of 0-d values with its cells bound."""

    shape, axes, size, length, threads, most_threads = (), 0, 1, 1, 1, 1

    def __init__(
        self,
        scalars: Scalars,
        cells: Mapping[int, int],
        sizes: Mapping[str, int],
        native: Any = None,
    ) -> None:
        self.scalars, self.cells, self.sizes, self.native = scalars, cells, sizes, native
        self.reads = [cells[symbol.index] for symbol in scalars.inputs]
        self.results = [cells[symbol.index] for symbol in scalars.outs]
        self.price = COST.PYTHON_STEP

    @property
    def is_sequential(self) -> bool:
        """Whether the region may become machine code."""
        return self.native is not None

    def operand_shape(self, symbol: Symbol) -> tuple[int, ...]:
        """Return the shape of an operand or a result."""
        return shape_of(symbol, self.sizes)


class CallStep(PlanStep):
    """A call of a kernel on whole arrays; operands that are not contiguous are copied first.

    With `in_place`, an update writes into its first operand (see updates.py). `copied_rows` are
    the rows that the copy of an update has to have (see updates.py), or None for all rows.
    """

    in_place = False
    multiply: Multiply = staticmethod(products.matmul)
    copied_rows: Sequence[slice] | None = None

    def __init__(
        self,
        symbol: Symbol,
        cells: Mapping[int, int],
        sizes: Mapping[str, int],
        tier: NativeTier | None = None,
        threads: int = 1,
    ) -> None:
        self.symbol = symbol
        self.reads = [cells[arg.index] for arg in symbol.args]
        self.write = cells[symbol.index]
        self.results: Sequence[int] = (self.write,)
        self.settings = bound_settings(symbol, sizes)
        self.fits = _fits(symbol, self.settings, sizes)
        self.shape = shape_of(symbol, sizes)
        self._sizes, self.most_threads = sizes, threads
        if tier and self.is_shared_product:
            self.multiply = tier.float_product(products.matmul, threads)
        self.kernel = self._kernel(tier)

    def _kernel(self, tier: NativeTier | None) -> Callable[..., Any]:
        """Return the function of the step: NumPy's, or that of the tier for large operands."""
        symbol, threads = self.symbol, self.most_threads
        multiply = None if self.multiply is products.matmul else self.multiply
        kernel = caller(symbol, self.settings, multiply)
        if self.is_large_product:
            dtype = symbol.dtype.storage
            product = partial(_integer_product, dtype)
            return tier.product(product, dtype, threads) if tier else product
        if tier is None:
            return kernel
        if (space := self.space) and math.prod(space) >= COST.COLUMN_ELEMENTS:
            return tier.columns(kernel, symbol, space, self.shape, threads)
        if self.accumulation and math.prod(self.shape) >= COST.COLUMN_ELEMENTS:
            return tier.accumulation(kernel, self.accumulation)
        return kernel

    @property
    def is_sequential(self) -> bool:
        """Whether the op is a view, or one for which sequences have machine code."""
        op = self.symbol.op
        if op in VIEWS or op is ops.full or self.multiplies or self.is_shared_product:
            return True
        if op in ELEMENT_MOVES and math.prod(self.shape) <= COST.SEQUENCE_MOVES:
            return True
        return self.space is not None or self.accumulation is not None

    @property
    def has_native_threads(self) -> bool:
        """Whether threads share matrices of a product."""
        return self.is_shared_product

    @lazy
    def is_large_product(self) -> bool:
        """Whether the kernel is a product of integers that is faster than NumPy's loop.

        The operands of such a product may have any integer dtypes that the product's dtype holds.
        """
        symbol = self.symbol
        if symbol.op is not ops.matmul or symbol.attrs["layout"]:
            return False
        left, right = self.operand_shapes
        return integer_products.pays(left, right, symbol.dtype.storage)

    @lazy
    def space(self) -> ColumnSpace | None:
        """The space of the operand, if the kernel reduces its outer axes."""
        return column_space(self.symbol, self.source_shape) if self.symbol.args else None

    @property
    def columns(self) -> ColumnSpace | None:
        """The same, if the operand is so small that a call of its own in machine code is slower."""
        return self.space if self.space and math.prod(self.space) < COST.COLUMN_ELEMENTS else None

    @lazy
    def accumulation(self) -> Accumulation | None:
        """The accumulation that the kernel is, if machine code can be that."""
        symbol = self.symbol
        if symbol.op not in ACCUMULATIONS or symbol.args[0].dtype is not symbol.dtype:
            return None
        dtype, axis = symbol.dtype.storage, self.settings["axis"]
        is_plain = dtype.char in "bBhHiIlLqQfd" and symbol.dtype is not DType.tensor_float32
        if not is_plain or not math.prod(self.shape):
            return None
        space = ColumnSpace.of(self.shape, axis, axis + 1)
        return Accumulation(symbol.op.name, dtype, space, self.most_threads)

    @property
    def multiplies(self) -> bool:
        """Whether NumPy's product of the operands is the result, without conversion."""
        return self._is_plain_product and self.multiply is products.matmul

    @lazy
    def _is_plain_product(self) -> bool:
        symbol = self.symbol
        if symbol.op is not ops.matmul or self.is_large_product:
            return False
        return {operand.dtype for operand in symbol.args} == {symbol.dtype}

    @property
    def is_shared_product(self) -> bool:
        """Whether threads can share real matrices for each of which BLAS uses threads."""
        if not self._is_plain_product or self.symbol.dtype.storage.char not in "fd":
            return False
        left, right = self.operand_shapes
        if min(len(left), len(right)) == 1 or self.most_threads == 1:
            return False
        *batch, m, n = self.shape
        terms = m * n * left[-1]
        if math.prod(batch) >= self.most_threads:
            return terms > COST.BLAS_THREADS
        return COST.PANEL_LEAST <= terms < COST.PANEL_MOST

    @property
    def operand_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the operands."""
        return [shape_of(arg, self._sizes) for arg in self.symbol.args]

    @property
    def source_shape(self) -> tuple[int, ...]:
        """The shape of the first operand."""
        return shape_of(self.symbol.args[0], self._sizes)

    @property
    def box(self) -> Box:
        """The slice that a slice or its update is about."""
        return Box(*[self.settings[name] for name in Box._fields])

    def run(self, run: PlanRun) -> None:
        """Call the kernel on the values of the cells that the step reads, and store its result."""
        run.values[self.write] = self.call(*[run.values[cell] for cell in self.reads])

    def call(self, *operands: Array) -> Array:
        """Return the result of the kernel for some operands."""
        copies = self.symbol.op.computes and "layout" not in self.settings
        if copies and not self._reduces_windows(operands):
            operands = tuple(map(contiguous, operands))
        if self.in_place:
            write = WRITERS[self.symbol.op]
            try:
                return write(*operands, **self.settings)
            except REFUSAL_ERRORS as error:
                raise refused(error, self.symbol) from None
        return self.kernel(*operands)

    def _reduces_windows(self, operands: Sequence[Array]) -> bool:
        """Whether the step reduces elements that overlap, with the bits of a contiguous copy.

        The copy of windows has many times the elements of their array.
        """
        op, x = self.symbol.op, operands[0]
        if op.kind != "reduction" or x.flags.c_contiguous or not x.flags.aligned:
            return False
        low, high = np.lib.array_utils.byte_bounds(x)
        if x.nbytes <= high - low:
            return False
        return op in _ORDERLESS or (
            op is ops.sum and layout_of_sum(x, self.settings["axis"], np.array(True)) is None
        )


_ORDERLESS = frozenset({ops.max, ops.min, ops.any, ops.all})
"""The reductions whose results do not depend on the order of the elements."""


ELEMENT_MOVES = (ops.stack, ops.concat, ops.tile, ops.repeat, ops.roll)
"""The ops whose results have elements of their operands, at places that the shapes tell."""


def _integer_product(dtype: Storage, x: Array, y: Array) -> Array:
    """Return the product of operands of integer dtypes in a dtype that holds them."""
    exact = integer_products.product(x, y, dtype)
    if exact is not None:
        return exact
    return np.matmul(x.astype(dtype, copy=False), y.astype(dtype, copy=False))


class LayoutStep(PlanStep):
    """A view of an array in the memory of a cell, which no symbol of the graph stands for.

    `text` is the view as a Python expression, with {0} for the array and further numbers for
    `values`. With `shape` () the view has all elements of the array.
    """

    def __init__(
        self, read: int, write: int, shape: tuple[int, ...], text: str, values: Sequence[Any] = ()
    ) -> None:
        self.reads, self.write, self.shape = [read], write, shape
        self.text, self.values, self.results = text, values, (write,)

    @property
    def is_sequential(self) -> bool:
        """True, since views cost nothing."""
        return True

    def call(self, array: Array) -> Array:
        """Return the view of an array."""
        names = {f"v{k}": value for k, value in enumerate((array, *self.values))}
        return eval(self.text.format(*names), names)


def is_view(step: PlanStep) -> TypeGuard[CallStep | LayoutStep]:
    """Whether the result of a step is a view of its operand, without arithmetic."""
    is_op = isinstance(step, CallStep) and step.symbol.op in VIEWS
    return is_op or isinstance(step, LayoutStep)


WRITERS: dict[Op, Callable[..., Array]] = {
    ops.slice_update: movement.write_slice,
    ops.index_update: movement.write_indices,
    ops.index_add: movement.add_at_indices,
}
"""The updates in place, by op."""


def _fits(symbol: Symbol, settings: Settings, sizes: Mapping[str, int]) -> bool:
    """Whether the bounds of a slice, an item or an update of a slice lie in the first operand."""
    if "index" in settings:
        low = settings["index"]
        high = [at + 1 for at in low]
    elif "start" in settings and symbol.args:
        low, high = settings["start"], settings["stop"]
    else:
        return True
    bounds = zip(low, high, shape_of(symbol.args[0], sizes), strict=True)
    return all(0 <= a <= b <= n for a, b, n in bounds)


def shape_of(
    symbol: Symbol, sizes: Mapping[str, int], part: TensorType | None = None
) -> tuple[int, ...]:
    """Return the shape of a symbol, or of a part of it, with its dims bound to `sizes`."""
    try:
        return tuple([evaluate(dim, sizes) for dim in (part or symbol).shape])
    except GraphirError as error:
        raise refused(error, symbol) from None


def bound_settings(symbol: Symbol, sizes: Mapping[str, int]) -> Settings:
    """Return the keyword arguments of a symbol's kernel, with its dims bound to `sizes`."""
    try:
        return settings_of(symbol.op, symbol.dtype, symbol.attrs, sizes, symbol.graph.tf32)
    except GraphirError as error:
        raise refused(error, symbol) from None


Step: TypeAlias = "ScalarStep | CallStep | LayoutStep | RegionStep | WavefrontStep"
"""A step of a plan before fusions."""

"""Batches: products of many small matrices, and the regions between them, a few at a time.

Machine code multiplies matrices of a batch, computes on the rows of each product, and multiplies
again, for some matrices before the next ones. A value that no other step reads has scratch memory
for these matrices alone, and threads take different matrices. NumPy gains nothing by parts of a
batch (whole_programs, attention): until there is machine code, the members run one after another.

Each product is one call of BLAS for each matrix, with the memory layout of the whole batch: a panel
of a matrix would have other bits, and so would a call with other strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from graphir import ops
from graphir.decorators import lazy
from graphir.hints import Array
from graphir.runtime.program.blocks import in_order, strided
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.phases import FusedStep
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep, PlanRun, PlanStep
from graphir.runtime.program.tier import Product, ProductOperand, RowKernel, RowOperand
from graphir.semantics.matrix_products import Layout, blas_threads, uses_blas

if TYPE_CHECKING:
    from graphir.runtime.native.drivers.thread_pool import Job

Storage: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = tuple[int, ...]
Member: TypeAlias = RegionStep | CallStep
"""A region, a product, or a view of a value of the batch."""

MOVES = frozenset({ops.permute, ops.transpose})
"""The views whose result has the axes of the operand in another order."""

_MATRIX = 2


class BatchStep(FusedStep[Member]):
    """Products and regions over the same matrices as one step.

    `members` are regions, products and views in order. `lead` are the leading axes of the batch.
    """

    blocks = 2  # more than one: the step is no part of a Python function

    def __init__(self, members: Sequence[Member], lead: Shape, results: Collection[int]) -> None:
        writes: dict[int, tuple[Shape, np.dtype[Any]]] = {}
        views: set[int] = set()
        for member in members:
            if isinstance(member, RegionStep):
                writes |= member.results
            elif is_product(member):
                writes[member.write] = member.shape, member.symbol.dtype.storage
            else:
                views.add(member.write)
        super().__init__(members, writes, views, results)
        self.lead, self.shape, self._dead = lead, members[0].shape, [*self._inner, *views]
        self._regions = [member for member in members if isinstance(member, RegionStep)]
        self._count, products = math.prod(lead), list(filter(is_product, members))
        times = [terms_of(x) * x.symbol.dtype.storage.itemsize for x in products]
        self.price = sum(times) * COST.BLAS_TERM + sum(region.price for region in self._regions)
        is_large = any(terms_of(x) > _threads_above(x) * self._count for x in products)
        self._has_blas_threads = is_large and blas_threads() != 1
        self.most_threads = max(member.most_threads for member in members)
        pays = self.price > COST.SECOND_THREAD
        self.threads = min(self.most_threads, self._count) if pays else 1

    @lazy
    def _rows(self) -> dict[int, int]:
        """The bytes of a matrix of each value, by cell."""
        both = self.writes.items()
        return {cell: math.prod(n) * dtype.itemsize // self._count for cell, (n, dtype) in both}

    @property
    def is_sequential(self) -> bool:
        """Whether machine code may run all members: there is a region, and matrices are small."""
        if self._has_blas_threads or sum(self._rows.values()) > COST.NATIVE_LONG_ROWS:
            return False
        return bool(self._regions) and all(region.native for region in self._regions)

    @property
    def pays(self) -> bool:
        """Whether a few matrices at a time are faster than whole arrays, or take less memory."""
        size = self._count * sum(self._rows[cell] for cell in self._inner)
        return self.is_sequential and (self.threads > 1 or size > COST.BATCH)

    def run(self, run: PlanRun) -> None:
        """Run all members on a few matrices at a time in machine code, or one by one."""
        if not self._share(run):
            for member in self.members:
                member.run(run)
            for cell in self._dead:
                run.values[cell] = None

    def _share(self, run: PlanRun) -> bool:
        """Run all members in machine code without Python; return whether all have machine code."""
        arrays = [run.values[cell] for cell in self.reads]
        is_earned = all(region.native.pays for region in self._regions)
        if not is_earned or not all(array.flags.aligned for array in arrays):
            return False
        key = tuple([array.strides for array in arrays])
        job = lookup(self._jobs, key, partial(self.job, run.values), COST.KEPT_WALKS)
        if job is None:
            return False
        for cell in self.results:
            run.values[cell] = run.empty(cell, *self.writes[cell])
        job.run([0 if cell is None else run.values[cell].ctypes.data for cell in self.cells])
        return True

    def job(self, values: Sequence[Any]) -> Job | None:
        """Return all members in machine code, on a few small matrices at a time.

        A value that is None has C order. The answer is None without kernels, and if a product
        copies an operand.
        """
        count, inner, rows = self._count, self._inner, self._rows
        block_rows = max(1, COST.BATCH_ROWS // sum(rows.values()))
        offsets = [
            0,
            *itertools.accumulate(-(-block_rows * rows[cell] // LINE) * LINE for cell in inner),
        ]
        layouts, views = self._layouts(values)
        keys = self._keys
        kernels: list[RowKernel] = []
        native = self._regions[0].native
        for member in self.members:
            if isinstance(member, RegionStep):
                kernel = member.native.placed(member, layouts, False)
            elif is_product(member):
                product = _product(member, [layouts[cell] for cell in member.reads])
                kernel = product and native.matrices(product, [*member.reads, member.write])
            else:
                continue
            if not kernel or kernel.size % count:
                return None
            operands: list[RowOperand] = []
            for place, cell in enumerate(kernel.cells):
                root, offset = views.get(cell, (cell, 0))
                row = rows[root] if root in inner else 0
                operands.append(RowOperand(place, keys.index(root), offset, row))
            kernel = kernel._replace(arrays=())
            kernels.append(RowKernel(kernel, kernel.record, operands, kernel.size // count, count))
        blocks = -(-count // (block_rows * COST.RANGES_PER_THREAD * self.most_threads))
        memories = dict(zip(map(keys.index, inner), offsets, strict=False))
        threads = self.most_threads if self.price > COST.NATIVE_SECOND_THREAD else 1
        table = native.together(kernels, block_rows)
        return table.job(memories, offsets[-1], count, blocks * block_rows, threads)

    def _layouts(self, values: Sequence[Any]) -> tuple[list[Any], dict[int, tuple[int, int]]]:
        """Return the cells with arrays of the right layouts, and the places of views.

        The place of a view is the cell that it views, and the bytes from its first element.
        """
        layouts, views = [*values], dict[int, tuple[int, int]]()
        for member in self.members:
            for cell, shape, dtype in _operands(member):
                if layouts[cell] is None and cell in self.reads:
                    layouts[cell] = in_order(shape, dtype)
            for cell in member.results:
                if cell in self.writes:
                    layouts[cell] = in_order(*self.writes[cell])
            if isinstance(member, CallStep) and not is_product(member):
                (read,) = member.reads
                view = layouts[member.write] = member.call(layouts[read])
                root, offset = views.get(read, (read, 0))
                offset += view.ctypes.data - layouts[read].ctypes.data
                views[member.write] = root, offset
        return layouts, views


def _operands(member: Member) -> Iterator[tuple[int, Shape, Storage]]:
    """Yield the cell, the shape and the dtype of each operand."""
    if isinstance(member, RegionStep):
        for symbol in member.body.inputs:
            shape = member.operand_shape(symbol)
            yield member.cells[symbol.index], shape, symbol.dtype.storage
        return
    for cell, shape, arg in zip(
        member.reads, member.operand_shapes, member.symbol.args, strict=True
    ):
        yield cell, shape, arg.dtype.storage


def _product(step: CallStep, operands: Sequence[Array]) -> Product | None:
    """Return a product of operands as they lie; None if it copies one, or may be of a Gram matrix.

    NumPy calls another function of BLAS for a matrix and its own transpose, in one memory.
    """
    left, right = both = [*map(ProductOperand.of, operands)]
    mirrored = layout_of(step) and left.strides[-2:] == right.strides[-2:][::-1]
    if mirrored or not multiplies_in_place(step, both):
        return None
    return Product(step.symbol.dtype.storage, left, right)


def multiplies_in_place(step: CallStep, operands: Sequence[ProductOperand]) -> bool:
    """Whether np.matmul of operands as they lie in memory is a product, without a copy."""
    dtype = step.symbol.dtype.storage
    orders = [ProductOperand.of(in_order(x.shape, dtype)).strides for x in operands]
    function, *demands, is_gram = layout_of(step) or ("matmul", *orders, False)
    if function != "matmul" or is_gram:
        return False
    return not uses_blas(dtype) or all(map(ProductOperand.lies, operands, demands))


def is_product(step: PlanStep) -> TypeGuard[CallStep]:
    """Whether a step multiplies matrices by BLAS, into memory that the caller may choose."""
    if not isinstance(step, CallStep) or step.symbol.op is not ops.matmul:
        return False
    symbol, layout = step.symbol, layout_of(step)
    if {x.dtype for x in symbol.args} != {symbol.dtype} or (layout and layout[0] != "matmul"):
        return False
    left, right = [arg.rank for arg in symbol.args]
    is_of_matrices = left >= _MATRIX and (right >= _MATRIX or left > _MATRIX)
    return is_of_matrices and uses_blas(symbol.dtype.storage)


def multiplies_vector(product: CallStep) -> bool:
    """Whether the right operand of a product is one vector for all matrices."""
    return len(product.operand_shapes[1]) == 1


def batch_axes(product: CallStep) -> int:
    """Return the number of axes of the result before those of each product."""
    return len(product.shape) - (1 if multiplies_vector(product) else _MATRIX)


def layout_of(product: CallStep) -> Layout | None:
    """Return the layout of the operands of a product; None for C order."""
    return product.settings.get("layout")


def _threads_above(product: CallStep) -> int:
    """Return the multiplications of one product above which BLAS uses threads."""
    return COST.BLAS_VECTOR_THREADS if multiplies_vector(product) else COST.BLAS_THREADS


def terms_of(product: CallStep) -> int:
    """Return the multiplications of all matrices of a product."""
    return math.prod(product.shape) * product.operand_shapes[0][-1]


def moved_axes(step: CallStep) -> tuple[int, ...]:
    """Return the axes of the operand in the order of the result of a permute or transpose."""
    rank = len(step.shape)
    # A probe of another dtype would be converted, and so copied.
    probe = np.empty(1, step.symbol.dtype.storage)
    marked = strided(probe, step.source_shape, range(1, rank + 1))
    return tuple([stride - 1 for stride in step.call(marked).strides])

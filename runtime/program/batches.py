"""Batches: products of many matrices, and the regions between them, a few matrices at a time.

Attention multiplies the matrices of a batch, computes on the rows of each product, and multiplies
again. A `BatchStep` runs all of that for some matrices before the next ones. A value that no other
step reads has scratch memory for these matrices alone, and threads take different matrices. Where
BLAS uses threads of its own, matrices follow each other, and regions have the threads inside.

Each product is one call of BLAS for each matrix, with the memory layout of the whole batch: a panel
of a matrix would have other bits, and so would a call with other strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.decorators import lazy
from graphir.runtime.program.blocks import in_order, share, strided
from graphir.runtime.program.codegen.straight import alone
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.program.memory import Need, ScratchView, Workspace, lookup
from graphir.runtime.program.phases import FusedStep
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.steps import CallStep, LayoutStep, PlanRun, PlanStep
from graphir.runtime.program.tier import Product, ProductOperand, RowKernel, RowOperand
from graphir.runtime.results import REFUSAL_ERRORS, refused
from graphir.semantics import matrix_products as products
from graphir.semantics.evaluation import contiguous
from graphir.semantics.matrix_products import Layout

if TYPE_CHECKING:
    from graphir.runtime.native.drivers.jobs import Job

Array: TypeAlias = NDArray[Any]
Storage: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = tuple[int, ...]
Part: TypeAlias = tuple[slice, ...]
"""A slice of each leading axis of a batch."""

Axes: TypeAlias = tuple[int | None, ...]
"""For each axis of an operand, the axis of the batch that it is; None for any other axis."""

Member: TypeAlias = RegionStep | CallStep
"""A region, a product, or a view of a value of the batch."""

MOVES = frozenset({ops.permute, ops.transpose})
"""The views whose result has the axes of the operand in another order."""

_MATRIX = 2


class ProductStep:
    """A product of some matrices of a batch; `shape` is the shape of the result."""

    blocks = 1

    def __init__(self, step: CallStep, shape: Shape) -> None:
        self.symbol, self.reads, self.write, self.shape = step.symbol, step.reads, step.write, shape
        self._layout, self._multiply = layout_of(step), step.multiply
        self.results = step.results

    def run(self, run: PlanRun) -> None:
        """Multiply the matrices into the memory of the result."""
        out = run.empty(self.write, self.shape, self.symbol.dtype.storage)
        x, y = [run.values[cell] for cell in self.reads]
        if self._layout is None:
            x, y = contiguous(x), contiguous(y)
        try:
            run.values[self.write] = self._multiply(x, y, self._layout, out)
        except REFUSAL_ERRORS as error:
            raise refused(error, self.symbol) from None


def parts(lead: Shape, count: int) -> list[Part]:
    """Return the parts of a batch of at most `count` matrices, or of one, in order.

    A part has the last axes of the batch whole, a range of one axis, and one place of the others.
    """
    axis, inner = len(lead), 1
    while axis and inner * lead[axis - 1] <= count:
        axis -= 1
        inner *= lead[axis]
    inner_axes = [slice(0, size) for size in lead[axis:]]
    if not axis:
        return [tuple(inner_axes)]
    size = lead[axis - 1]
    number = -(-size // max(1, count // inner))
    bounds = [size * i // number for i in range(number + 1)]
    return [
        (*[slice(i, i + 1) for i in place], slice(a, b), *inner_axes)
        for place in itertools.product(*map(range, lead[: axis - 1]))
        for a, b in itertools.pairwise(bounds)
    ]


class Body(NamedTuple):
    """The steps for parts of one shape, and the scratch memory of their values.

    `memory` maps the cell of each value to a view, and `need` has the views.
    """

    steps: Sequence[Any]
    memory: Mapping[int, int]
    need: Need


class BatchStep(FusedStep[Member]):
    """Products and regions over the same matrices as one step.

    `members` are regions, products and views in order. `lead` are the leading axes of the batch.
    `axes` has the operands from outside of which a part reads a part. `fuse` fuses the regions of a
    part over rows.
    """

    def __init__(
        self,
        members: Sequence[Member],
        lead: Shape,
        axes: Mapping[int, Axes],
        results: Collection[int],
        fuse: Callable[[Sequence[Any], Collection[int]], Sequence[Any]],
    ) -> None:
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
        self.lead, self.axes, self._fuse, self.shape = lead, axes, fuse, members[0].shape
        self._regions = [member for member in members if isinstance(member, RegionStep)]
        # Products read these in C order, whatever order a part of them may be in by itself.
        self._ordered = {
            cell
            for member in members
            if is_product(member) and layout_of(member) is None
            for cell in member.reads
            if cell in self.reads
        }
        self.most_threads = max(member.most_threads for member in members)
        self._cut()
        self._bodies: dict[Shape, Body] = {}

    def _cut(self) -> None:
        """Choose the parts, and whether threads take different parts."""
        count, multiplications = math.prod(self.lead), list(filter(is_product, self.members))
        terms = [terms_of(product) for product in multiplications]
        regions = [member.price for member in self.members if isinstance(member, RegionStep)]
        sizes = [product.symbol.dtype.storage.itemsize for product in multiplications]
        times = [n * COST.BLAS_TERM * size for n, size in zip(terms, sizes, strict=True)]
        self.price = price = sum(times) + sum(regions)
        limits = [_threads_above(product) * count for product in multiplications]
        is_large = any(n > limit for n, limit in zip(terms, limits, strict=True))
        self.is_serial = is_large and products.blas_threads() != 1
        pays = price > COST.SECOND_THREAD and not self.is_serial
        self.threads = min(self.most_threads, count) if pays else 1
        self.bytes = self._memory(self.members, (1,) * len(self.lead))[1].bytes
        part_size = max(1, COST.BATCH // max(1, self.bytes))
        if self.threads > 1:
            part_count = min(COST.RANGES_PER_THREAD * self.threads, int(price / COST.BATCH_PART))
            part_count = max(self.threads, part_count)
            part_size = min(max(1, part_size // self.threads), -(-count // part_count))
        self.parts = parts(self.lead, part_size)
        self.blocks = len(self.parts)

    @property
    def pays(self) -> bool:
        """Whether parts are faster than whole arrays, or take less memory."""
        return self.blocks > 1

    # -- parts

    def body(self, part: Part) -> Body:
        """Return the steps of a part."""
        lead = tuple([extent.stop - extent.start for extent in part])
        body = self._bodies.get(lead)
        if body is None:
            body = self._bodies[lead] = self._bound(lead)
        return body

    def _bound(self, lead: Shape) -> Body:
        depth, steps = len(lead), list[Any]()
        for member in self.members:
            shape = (*lead, *member.shape[depth:])
            if isinstance(member, RegionStep):
                shapes = self._shapes(member, lead)
                threads = 1 if self.threads > 1 else self.most_threads
                steps.append(member.resized(shape, shapes, threads))
            elif is_product(member):
                steps.append(ProductStep(member, shape))
            else:
                steps.append(_view(member, shape))
        steps = [*self._fuse(steps, self.results)]
        forms = [alone(step) if isinstance(step, LayoutStep) else step for step in steps]
        return Body(forms, *self._memory(steps, lead))

    def _shapes(self, region: RegionStep, lead: Shape) -> dict[int, Shape]:
        """Return the shapes of the operands and row-wise results of a region for a part."""
        depth, shapes = len(lead), dict[int, Shape]()
        for symbol in region.body.inputs:
            cell, own = region.cells[symbol.index], region.operand_shape(symbol)
            if cell in self.axes:
                places = zip(own, self.axes[cell], strict=True)
                shapes[symbol.index] = tuple([n if k is None else lead[k] for n, k in places])
            elif cell not in self.reads:
                shapes[symbol.index] = (*lead, *own[depth:])
            else:
                shapes[symbol.index] = own
        for rows in region.rows:
            shapes[rows.symbol.index] = (*lead, *rows.shape[depth:])
        return shapes

    def _memory(self, steps: Sequence[Any], lead: Shape) -> tuple[dict[int, int], Need]:
        """Return the scratch memory of the values of a part, and all of its views.

        Values of one size share a slot if one is dead before a step writes the other.
        """
        roots: dict[int, int] = {}
        last: dict[int, int] = {}
        for number, step in enumerate(steps):
            reads: list[int] = step.reads
            last |= {roots.get(cell, cell): number for cell in reads}
            roots |= {cell: roots.get(reads[0], reads[0]) for cell in self._views_of(step)}
        regions = self._regions
        first = max([0, *[len(region.body.widths) for region in regions]])
        memory, views = dict[int, int](), list[ScratchView]()
        slots: dict[int, tuple[int, int]] = {}
        free: dict[int, list[int]] = {}
        for number, step in enumerate(steps):
            for cell in step.results:
                if cell in self.results or cell not in self.writes:
                    continue
                shape, dtype = self.writes[cell]
                shape = (*lead, *shape[len(lead) :])
                size = math.prod(shape) * dtype.itemsize
                slot = free[size].pop() if free.get(size) else first + len(views)
                slots[cell], memory[cell] = (size, slot), len(views)
                views.append(ScratchView(slot, dtype, shape))
            for cell in [cell for cell in slots if last.get(cell, number) <= number]:
                size, slot = slots.pop(cell)
                free.setdefault(size, []).append(slot)
        return memory, Need(views)

    def _views_of(self, step: Any) -> Collection[int]:
        """Return the cells that a step writes as views of its first operand."""
        return [cell for cell in step.results if cell not in self.writes]

    # -- running

    def run(self, run: PlanRun) -> None:
        """Run all members on each part of the batch."""
        results: dict[int, Array] = {}
        for cell in self.results:
            results[cell] = run.values[cell] = run.empty(cell, *self.writes[cell])
        values = run.values.copy()
        for cell in self._ordered.difference(self.axes):
            values[cell] = contiguous(values[cell])
        if run.progress is None and self._share(values):
            return
        for region in self._regions:  # each part costs Python the time of a step, or more
            if region.native and not region.native.pays:
                region.native.charge(COST.STEP * self.blocks)

        def work(workspace: Workspace, numbers: Iterator[int]) -> None:
            own = PlanRun(values.copy(), workspace, run.memory, {})
            for number in numbers:
                part = self.parts[number]
                self._run_part(own, part, values, results)

        share(
            self.blocks,
            work,
            self.threads,
            run.workspace,
            run.memory.free,
            run.progress and run.tell,
        )

    # -- machine code

    def _share(self, values: Sequence[Any]) -> bool:
        """Run all members in machine code without Python; return whether all have machine code."""
        if not self.is_sequential or not all(region.native.pays for region in self._regions):
            return False
        arrays = [values[cell] for cell in self.reads]
        if not all(array.flags.aligned for array in arrays):
            return False
        key = tuple([array.strides for array in arrays])
        job = lookup(self._jobs, key, partial(self.job, values), COST.KEPT_WALKS)
        if job is None:
            return False
        places = [None if cell is None else values[cell] for cell in self.cells]
        job.run([0 if array is None else array.ctypes.data for array in places])
        return True

    @lazy
    def _rows(self) -> dict[int, int]:
        """The bytes of a matrix of each value, by cell."""
        count, both = math.prod(self.lead), self.writes.items()
        return {cell: math.prod(n) * dtype.itemsize // count for cell, (n, dtype) in both}

    @property
    def is_sequential(self) -> bool:
        """Whether machine code may run all members: there is a region, and matrices are small."""
        is_small = sum(self._rows.values()) <= COST.NATIVE_LONG_ROWS and not self.is_serial
        return is_small and bool(self._regions) and all(region.native for region in self._regions)

    def job(self, values: Sequence[Any]) -> Job | None:
        """Return all members in machine code, on a few small matrices at a time.

        A value that is None has C order. The answer is None without kernels, for large matrices,
        and if a product copies an operand.
        """
        if not self.is_sequential:
            return None
        count, inner, rows = math.prod(self.lead), self._inner, self._rows
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

    def _run_part(
        self, own: PlanRun, part: Part, values: Sequence[Any], results: Mapping[int, Array]
    ) -> None:
        """Run all members on a part, with the views of operands and results that it takes."""
        body = self.body(part)
        for cell in self._inner:  # a PhasesStep makes memory for the values that are None
            own.values[cell] = None
        for cell, axes in self.axes.items():
            array = np.asarray(values[cell])
            array = array[tuple([slice(None) if k is None else part[k] for k in axes])]
            if cell in self._ordered and not (array.flags.c_contiguous and array.flags.aligned):
                array = array.copy("C")
            own.values[cell] = array
        targets = {cell: array[part] for cell, array in results.items()}
        views = own.workspace.views(body.need)
        own.targets = targets | {cell: views[k] for cell, k in body.memory.items()}
        for step in body.steps:
            step.run(own)
        for cell, target in targets.items():
            if own.values[cell] is not target:
                target[...] = own.values[cell].reshape(target.shape)


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
    return not products.uses_blas(dtype) or all(map(ProductOperand.lies, operands, demands))


def is_product(step: PlanStep) -> TypeGuard[CallStep]:
    """Whether a step multiplies matrices by BLAS, into memory that the caller may choose."""
    if not isinstance(step, CallStep) or step.symbol.op is not ops.matmul:
        return False
    symbol, layout = step.symbol, layout_of(step)
    if {x.dtype for x in symbol.args} != {symbol.dtype} or (layout and layout[0] != "matmul"):
        return False
    left, right = [arg.rank for arg in symbol.args]
    is_of_matrices = left >= _MATRIX and (right >= _MATRIX or left > _MATRIX)
    return is_of_matrices and products.uses_blas(symbol.dtype.storage)


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


def _view(step: CallStep, shape: Shape) -> LayoutStep:
    """Return the view of a part of the operand."""
    (read,) = step.reads
    if step.symbol.op in MOVES:
        axes = moved_axes(step)
        return LayoutStep(read, step.write, shape, "{0}.transpose({1})", [axes])
    return LayoutStep(read, step.write, shape, "{0}.reshape({1})", [shape])


def moved_axes(step: CallStep) -> tuple[int, ...]:
    """Return the axes of the operand in the order of the result of a permute or transpose."""
    rank = len(step.shape)
    # A probe of another dtype would be converted, and so copied.
    probe = np.empty(1, step.symbol.dtype.storage)
    marked = strided(probe, step.source_shape, range(1, rank + 1))
    return tuple([stride - 1 for stride in step.call(marked).strides])

"""The reduction of the rows of a matrix into one row by machine code, in the order of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.public import DType, Symbol
from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.column_tiles import (
    ColumnTile,
    Steps,
    reduction_of,
    steps_of,
    tile_job,
    tile_kernel,
    tiles_of,
)
from graphir.runtime.native.compilation import PaidKernels, submit
from graphir.runtime.native.drivers.jobs import Job
from graphir.runtime.native.drivers.row_phases import PhaseTable, PlacedKernel
from graphir.runtime.native.instruction_selection import NativeCode
from graphir.runtime.native.probe import engine, features
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.native.row_reductions import Reduction
from graphir.runtime.program.blocks import Range
from graphir.runtime.program.cost_model import COST, LINE
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.rows import ColumnSpace, finish_columns, neutral
from graphir.runtime.program.tier import RowKernel, RowOperand

Array: TypeAlias = NDArray[Any]


def reduction_kernel(reduction: Reduction, tile: ColumnTile) -> Kernel:
    """Return the kernel of a reduction of one matrix (see `tile_kernel`)."""
    lines: list[str] = []

    def load(vector: str) -> list[str]:
        at = f"$(getelementptr {reduction.kind}, ptr %p0, i64 %at{vector})"
        lines.append(f"  %y{vector} = load {reduction.kinds(tile.lanes)}, ptr {at}, align 1")
        return [f"%y{vector}"]

    tile_kernel(tile, 1, [reduction], lines, load)
    return Kernel(words_of("\n".join(lines)), ())


class ColumnReduction(PaidKernels[ColumnTile, Any]):
    """The kernels of reductions by one op in one dtype, by tile."""

    def __init__(self, name: str, dtype: DType) -> None:
        super().__init__(now=False)
        self.reduction = reduction_of(name, dtype.storage)
        self._jobs: dict[tuple[ColumnSpace, int], Job] = {}

    def compiled(self, kind: ColumnTile) -> Any:
        """Return the kernel of a tile."""
        return engine().Compiled(reduction_kernel(self.reduction, kind))

    def tiles(self, space: ColumnSpace, threads: int) -> tuple[ColumnTile, Sequence[Range]]:
        """Return the tiles that cover the lanes."""
        sizes = [self.reduction.dtype.itemsize]
        return tiles_of(space, threads, sizes, True, features())

    def job(self, space: ColumnSpace, threads: int, now: bool) -> Job | None:
        """Return the reduction of a contiguous array on at most some threads.

        The answer is None if LLVM fails, and unless `now`, as long as the kernel is not compiled.
        """
        size = math.prod(space) * self.reduction.dtype.itemsize
        threads = threads if size * COST.COLUMN_BYTE > COST.NATIVE_SECOND_THREAD else 1

        def bind() -> Job | None:
            tile, ranges = self.tiles(space, threads)
            if not now and tile not in self.kernels:
                if not self.why:
                    submit(self.compile, tile)
                return None
            if not (kernel := self.compile(tile)):
                return None
            records = np.array([[0, 0, *self.words(space, *lanes)] for lanes in ranges], np.int64)
            return tile_job(kernel, records, 2, space, threads)

        return lookup(self._jobs, (space, threads), bind, COST.KEPT_PLANS)

    def words(self, space: ColumnSpace, first: int, end: int) -> list[int]:
        """Return the record of a kernel for some lanes, without addresses."""
        size = self.reduction.dtype.itemsize
        row = space.lanes * size
        return [first, end - first, space.rows, row, space.rows * row, size, row]


@cache
def column_reductions(name: str, dtype: DType) -> ColumnReduction:
    """Return the reductions of this process by one op in one dtype."""
    return ColumnReduction(name, dtype)


def reduced(
    job: Job, symbol: Symbol, space: ColumnSpace, shape: tuple[int, ...], x: Array
) -> Array:
    """Return the reduction of a contiguous array by a job, in a shape."""
    result = np.full(shape, neutral(symbol), symbol.dtype.storage)
    job.run([x.ctypes.data, result.ctypes.data])
    finish_columns(symbol, space, result)
    return result


def columns_together(
    region: PlacedKernel,
    code: NativeCode,
    shape: tuple[int, ...],
    space: ColumnSpace,
    arrays: Sequence[Array],
    threads: int,
) -> Job | None:
    """Return the computation of the rows of a region, and their reductions.

    `arrays` are the operands and results of the region. The memories are theirs, and those of the
    results of the reductions. Threads take different leading elements. The rows of a block lie in
    scratch memory, except those of operands and results. The answer is None if LLVM fails, and if
    the lanes of an operand of a reduction are no neighbours.
    """
    count, places = space.lead * space.rows, len(arrays)
    sizes = [code.dtypes[register].itemsize * space.lanes for register in code.buffered]
    block_rows = max(1, COST.COLUMN_BLOCK // max(1, sum(sizes)))
    inner = places + len(code.rows)
    outer = [RowOperand(place, place) for place in range(places)]
    buffers = [RowOperand(places + k, inner + k, 0, size) for k, size in enumerate(sizes)]
    operands = [*outer, *buffers]
    kernels = [RowKernel(region, region.record, operands, region.size // count, count)]
    scratch = dict(zip(code.buffered, buffers, strict=True))
    bases = [*code.inputs, *map(code.bases.__getitem__, code.outs.values())]
    for number, (symbol, register) in enumerate(code.rows, places):
        reduction = column_reductions(symbol.op.name, symbol.dtype)
        tile, ranges = reduction.tiles(ColumnSpace(1, count, space.lanes), 1)
        kernel, size = reduction.compile(tile), reduction.reduction.dtype.itemsize
        steps = Steps(size, space.lanes * size, space.rows * space.lanes * size)
        operand = scratch.get(register)
        if operand is None:
            if code.bases[register] not in bases:
                return None
            place = bases.index(code.bases[register])
            operand, steps = outer[place], steps_of(arrays[place], shape, space)
        if kernel is None or steps is None or steps.lane != size:
            return None
        for first, end in ranges:
            words = [0, 0, *reduction.words(space, first, end)]
            words[5:7] = steps.row, steps.lead
            fold = PlacedKernel(kernel, words, (), (), count)
            both = [operand._replace(place=0), RowOperand(1, number)]
            kernels.append(RowKernel(fold, words, both, 1, count))
    ends = [0, *accumulate(-(-block_rows * size // LINE) * LINE for size in sizes)]
    block = -(-space.lead // threads) * space.rows
    table = PhaseTable(kernels, block_rows)
    return table.job(dict(enumerate(ends[:-1], inner)), ends[-1], count, block, threads)

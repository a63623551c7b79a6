"""The reduction of the rows of a matrix into one row by machine code, in the order of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter_ns
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol
from graphir.runtime.native.assembly import words_of
from graphir.runtime.native.background import LOCK, submit
from graphir.runtime.native.column_tiles import (
    ColumnTile,
    ColumnTiles,
    Steps,
    parts_of,
    reduction_of,
    steps_of,
    tile_job,
    tile_kernel,
    tiles_of,
)
from graphir.runtime.native.drivers.jobs import Job
from graphir.runtime.native.drivers.row_phases import PhaseTable, PlacedKernel
from graphir.runtime.native.instruction_selection import NativeCode
from graphir.runtime.native.probe import engine, failure_reason
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.native.row_reductions import Reduction
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import lookup
from graphir.runtime.program.rows import ColumnSpace, finish_columns, neutral
from graphir.runtime.program.tier import RangeCall, RowKernel, RowOperand

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


class ColumnReduction:
    """Reductions by one op in one dtype: the kernels, and the time in NumPy by which they pay.

    With `now`, the first use compiles a kernel.
    """

    def __init__(self, now: bool, name: str, dtype: DType) -> None:
        self.now, self.numpy_time, self.why = now, 0.0, ""
        self.reduction = reduction_of(name, dtype.storage)
        self.kernels: dict[ColumnTile, Any] = {}
        self._jobs: dict[tuple[ColumnSpace, int], Job] = {}

    def compile(self, tile: ColumnTile) -> Any:
        """Return the kernel of a tile; None if LLVM fails: `why` has the reason."""
        with LOCK:
            if tile not in self.kernels and not self.why:
                try:
                    self.kernels[tile] = engine().Compiled(reduction_kernel(self.reduction, tile))
                except Exception as error:  # any failure of LLVM: NumPy is the fallback
                    self.why = failure_reason(error)
            return self.kernels.get(tile)

    def tiles(self, space: ColumnSpace, threads: int) -> ColumnTiles:
        """Return the tiles that cover the lanes."""
        sizes = [self.reduction.dtype.itemsize]
        return tiles_of(space, threads, sizes, True, engine().processor().features)

    def job(self, space: ColumnSpace, threads: int) -> Job:
        """Return the reduction of a contiguous array by the compiled kernel."""

        def bind() -> Job:
            tile, ranges = self.tiles(space, threads)
            records = np.array([[0, 0, *self.words(space, *lanes)] for lanes in ranges], np.int64)
            return tile_job(self.kernels[tile], records, 2, space, threads)

        job = lookup(self._jobs, (space, threads), bind, COST.KEPT_PLANS)
        assert job
        return job

    def words(self, space: ColumnSpace, first: int, end: int, lanes: int = 0) -> list[int]:
        """Return the record of a kernel for some lanes, without addresses.

        A row of the results has `lanes` lanes, or those of the space.
        """
        size = self.reduction.dtype.itemsize
        row = space.lanes * size
        return [first, end - first, space.rows, row, space.rows * row, size, (lanes * size) or row]

    def reduce(
        self,
        reduce: Callable[[Any], Any],
        symbol: Symbol,
        space: ColumnSpace,
        shape: tuple[int, ...],
        threads: int,
        x: Array,
    ) -> Array:
        """Return the reduction of an array; `reduce` does the same in NumPy.

        Windows, whose elements overlap, come as they lie: machine code takes contiguous arrays.
        """
        is_plain = x.flags.c_contiguous and x.flags.aligned
        job = self.ready_job(space, threads) if is_plain else None
        if job is None:
            start = perf_counter_ns()
            result = reduce(x)
            self.numpy_time += perf_counter_ns() - start
            return result
        result = np.full(shape, neutral(symbol), symbol.dtype.storage)
        job.run([x.ctypes.data, result.ctypes.data])
        finish_columns(symbol, space, result)
        return result

    def ready_job(self, space: ColumnSpace, threads: int) -> Job | None:
        """Return the reduction of a contiguous array on at most some threads; None if not ready."""
        size = math.prod(space) * self.reduction.dtype.itemsize
        threads = threads if size * COST.COLUMN_BYTE > COST.NATIVE_SECOND_THREAD else 1
        return self.job(space, threads) if self._is_ready(space, threads) else None

    def _is_ready(self, space: ColumnSpace, threads: int) -> bool:
        """Whether there is a kernel; an earned one is submitted to the background thread."""
        if self.why or not (self.now or self.numpy_time > COST.COMPILE_COST):
            return False
        if (space, threads) in self._jobs:
            return True
        tile, _ = self.tiles(space, threads)
        if self.now:
            self.compile(tile)
        elif tile not in self.kernels:
            submit(self.compile, tile)
        return tile in self.kernels


@cache
def column_reductions(now: bool, name: str, dtype: DType) -> ColumnReduction:
    """Return the reductions of this process by one op in one dtype."""
    return ColumnReduction(now, name, dtype)


def columns_together(
    region: PlacedKernel,
    code: NativeCode,
    shape: tuple[int, ...],
    space: ColumnSpace,
    outs: Sequence[Array],
    sums: Sequence[Array],
    threads: int,
) -> Sequence[RangeCall] | None:
    """Return the calls that compute rows of a region and reduce them into `sums`.

    Threads take different leading elements. The rows of a block lie in scratch memory, except those
    of operands and results. The answer is None if LLVM fails, and if the lanes of an operand of a
    reduction are no neighbours.
    """
    count = space.lead * space.rows
    arrays = [*region.arrays, *outs]
    sizes = [code.dtypes[register].itemsize * space.lanes for register in code.buffered]
    block_rows = max(1, COST.COLUMN_BLOCK // max(1, sum(sizes)))
    places = len(arrays) + len(sizes)
    record = [*[array.ctypes.data for array in arrays], *[0] * len(sizes), *region.record[places:]]
    inner = [RowOperand(len(arrays) + k, k, 0, size) for k, size in enumerate(sizes)]
    kernels = [RowKernel(region, record, inner, region.size // count, count)]
    scratch = dict(zip(code.buffered, inner, strict=True))
    lies = dict(
        zip([*code.inputs, *map(code.bases.__getitem__, code.outs.values())], arrays, strict=True)
    )
    for (symbol, register), result in zip(code.rows, sums, strict=True):
        reduction = column_reductions(True, symbol.op.name, symbol.dtype)
        tile, ranges = reduction.tiles(ColumnSpace(1, count, space.lanes), 1)
        kernel, x, size = reduction.compile(tile), 0, result.itemsize
        steps = Steps(size, space.lanes * size, space.rows * space.lanes * size)
        if register not in scratch:
            array = lies.get(code.bases[register])
            its_steps = None if array is None else steps_of(array, shape, space)
            if array is None or its_steps is None or its_steps.lane != size:
                return None
            x, steps = array.ctypes.data, its_steps
        if kernel is None:
            return None
        operands = [scratch[register]._replace(place=0)] if register in scratch else []
        for first, end in ranges:
            words = reduction.words(space, first, end, result.strides[0] // size)
            words[3:5] = steps.row, steps.lead
            words = [x, result.ctypes.data, *words]
            fold = PlacedKernel(kernel, words, (), (), count)
            kernels.append(RowKernel(fold, words, operands, 1, count))
    table, calls = PhaseTable(kernels, block_rows), list[RangeCall]()
    for first, end in parts_of(space, 1, threads):
        buffers = [np.empty(block_rows * size, np.uint8) for size in sizes]
        call = table.call([buffer.ctypes.data for buffer in buffers], (arrays, buffers))
        calls.append(call._replace(first=first, end=end))
    return calls

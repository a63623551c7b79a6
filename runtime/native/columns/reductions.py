"""The reduction of the rows of a matrix into one row by machine code, in the order of the rows.

A tile of the row lies in registers while the kernel goes through as many rows as the inner cache
holds. The first tiles have eight registers; the last ones have half of that, a quarter, and so on
down to one element.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from ctypes import c_int64
from functools import cache
from time import perf_counter_ns
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, Symbol
from runtime.native.background import LOCK, submit
from runtime.native.code import NativeCode
from runtime.native.phases import PhaseTable, PlacedKernel
from runtime.native.probe import engine, failure_reason
from runtime.native.regions import Kernel
from runtime.native.rows import Reduction
from runtime.native.threads import share_calls
from runtime.native.vectors import words_of
from runtime.program.blocks import Range, Uniform
from runtime.program.cost_model import COLUMN_BYTE, COMPILE_COST, SECOND_THREAD
from runtime.program.rows import ColumnSpace, Fold, finish_columns, neutral
from runtime.program.tier import RangeCall, RowKernel, RowOperand

Array: TypeAlias = NDArray[Any]

_TILE = 256
"""The bytes of the widest tile."""

_SHARE = 32
"""The lanes of which threads take multiples."""

_BLOCK = 1 << 15
"""The most bytes of scratch memory of a block of rows."""

_PART, _ROWS = 1 << 14, 8
"""The bytes of the rows that the tiles go through one after another, and the least rows."""

_START = """
define void @kernel(ptr %record, ptr %context, i64 %begin, i64 %limit) {
entry:
  %results = get ptr, %record[0]
  %matrix = get ptr, %record[1]
  %first = get i64, %record[2]
  %end = get i64, %record[3]
  %step = get i64, %record[4]
  %whole = get i64, %record[5]
  %each = get i64, %record[6]
  %most = get i64, %record[7]
  br i1 $(icmp ult i64 %begin, %limit), label %part, label %exit
part:
  %at = phi i64 [ %begin, %entry ], [ %next, %after ]
  %left = sub i64 %limit, %at
  %room = sub i64 %each, $(urem i64 %at, %each)
  %fit = call i64 @llvm.umin(i64 %most, i64 %room)
  %rows = call i64 @llvm.umin(i64 %left, i64 %fit)
  %next = add i64 %at, %rows
  %values = getelementptr i8, ptr %matrix, i64 $(mul i64 %at, %step)
  %sums = getelementptr i8, ptr %results, i64 $(mul i64 $(udiv i64 %at, %each), %whole)
  br label %tile{widest}"""
"""The kernel reduces rows %begin to %limit of the matrix, %each rows into each row of the results.

The rows of the matrix lie %step bytes apart, and those of the results %whole bytes. The kernel
reduces lanes %first to %end of each row, and goes through at most %most rows at once."""

_TILES = """
tile{w}:
  %at{w} = phi i64 [ {start}, %{before} ], [ %end{w}, %last{w} ]
  %end{w} = add i64 %at{w}, {w}
  br i1 $(icmp ule i64 %end{w}, %end), label %load{w}, label %done{w}
load{w}:
  %to{w} = getelementptr {T}, ptr %sums, i64 %at{w}
  %from{w} = getelementptr {T}, ptr %values, i64 %at{w}
  %old{w} = load {V}, ptr %to{w}, align 1
  br label %row{w}
row{w}:
  %r{w} = phi i64 [ 0, %load{w} ], [ %next_r{w}, %row{w} ]
  %p{w} = phi ptr [ %from{w}, %load{w} ], [ %next_p{w}, %row{w} ]
  %x{w} = phi {V} [ %old{w}, %load{w} ], [ %new{w}, %row{w} ]
  %y{w} = load {V}, ptr %p{w}, align 1
  %new{w} = {join}
  %next_p{w} = getelementptr i8, ptr %p{w}, i64 %step
  %next_r{w} = add i64 %r{w}, 1
  br i1 $(icmp ult i64 %next_r{w}, %rows), label %row{w}, label %last{w}
last{w}:
  store {V} %new{w}, ptr %to{w}, align 1
  br label %tile{w}
done{w}:
  br label %{after}"""

_END = """
after:
  br i1 $(icmp ult i64 %next, %limit), label %part, label %exit
exit:
  ret void
}"""


def column_kernel(reduction: Reduction) -> Kernel:
    """Return the kernel of a reduction."""
    widest = width = _TILE // reduction.dtype.itemsize
    lines, before, start = [_START.replace("{widest}", f"{widest}")], "part", "%first"
    while width:
        vector = reduction.kinds(width)
        after = f"tile{width // 2}" if width > 1 else "after"
        join = reduction.join(f"%x{width}", f"%y{width}", width)
        names = {"w": width, "T": reduction.kind, "V": vector, "join": join, "after": after}
        lines.append(_TILES.format(**names, start=start, before=before))
        before, start, width = f"done{width}", f"%at{width}", width // 2
    return Kernel(words_of("\n".join([*lines, _END])), ())


class ColumnReduction:
    """Reductions by one op in one dtype: the kernel, and the time in NumPy by which it pays.

    With `now`, the first use compiles the kernel.
    """

    def __init__(self, now: bool, name: str, dtype: DType) -> None:
        storage = dtype.storage
        self.now, self.numpy_time, self.why = now, 0.0, ""
        self.reduction = Reduction(name, np.dtype("u1") if storage == np.bool_ else storage)
        self.kernel: Any = None

    def compile(self) -> None:
        """Compile the kernel, unless LLVM fails: `why` has the reason."""
        with LOCK:
            if self.kernel or self.why:
                return
            try:
                self.kernel = engine().Compiled(column_kernel(self.reduction))
            except Exception as error:  # any failure of LLVM: NumPy is the fallback
                self.why = failure_reason(error)

    def fold(self, sums: Array, rows: Array) -> None:
        """Reduce the rows of a matrix into an array of as many elements; both are contiguous."""
        record = self.record(ColumnSpace(1, *rows.shape), (0, sums.size))
        record[:2] = sums.ctypes.data, rows.ctypes.data
        self.run(record, 0, len(rows))

    def record(self, space: ColumnSpace, part: Range, lanes: int = 0) -> list[int]:
        """Return the record of the kernel for some lanes of the results, without addresses.

        A row of the results has `lanes` lanes, or those of the space.
        """
        size = self.reduction.dtype.itemsize
        step = space.lanes * size
        return [0, 0, *part, step, (lanes * size) or step, space.rows, max(_ROWS, _PART // step)]

    def run(self, record: Sequence[int], first: int, end: int) -> None:
        """Run the kernel on rows `first` to `end`."""
        self.kernel.function((c_int64 * 8)(*record), self.kernel.context, first, end)

    def reduce(
        self,
        reduce: Callable[[Any], Any],
        symbol: Symbol,
        space: ColumnSpace,
        shape: tuple[int, ...],
        threads: int,
        x: Array,
    ) -> Array:
        """Return the reduction of a contiguous array; `reduce` does the same in NumPy."""
        if not self._is_ready():
            start = perf_counter_ns()
            result = reduce(x)
            self.numpy_time += perf_counter_ns() - start
            return result
        result = np.full(shape, neutral(symbol), symbol.dtype.storage)
        lead, rows, lanes = space
        threads = threads if x.nbytes * COLUMN_BYTE > SECOND_THREAD else 1
        each = -(-lanes // (threads * _SHARE)) * _SHARE if lead < threads else lanes
        parts = [
            (each_lead, part)
            for each_lead in Uniform(lead, lead if lead < threads else -(-lead // threads))
            for part in Uniform(lanes, each)
        ]

        calls: list[RangeCall] = []
        for (first, end), part in parts:
            record = self.record(space, part)
            record[:2] = result.ctypes.data, x.ctypes.data
            bounds = first * rows, end * rows
            calls.append(RangeCall(self.kernel, np.array(record, np.int64), *bounds))
        share_calls(calls, threads)
        finish_columns(symbol, space, result)
        return result

    def _is_ready(self) -> bool:
        """Whether there is a kernel; an earned one is submitted to the background thread."""
        if self.now and not self.kernel:
            self.compile()
        elif not self.kernel and not self.why and self.numpy_time > COMPILE_COST:
            submit(self.compile)
        return self.kernel is not None


@cache
def column_reductions(now: bool, name: str, dtype: DType) -> ColumnReduction:
    """Return the reductions of this process by one op in one dtype."""
    return ColumnReduction(now, name, dtype)


def column_fold(symbol: Symbol) -> Fold | None:
    """Return the function that reduces the rows of a matrix into an array; None if LLVM fails."""
    reduction = column_reductions(True, symbol.op.name, symbol.dtype)
    reduction.compile()
    return reduction.fold if reduction.kernel else None


def columns_together(
    region: PlacedKernel,
    code: NativeCode,
    shape: tuple[int, ...],
    space: ColumnSpace,
    outs: Sequence[Array],
    sums: Sequence[Array],
) -> RangeCall | None:
    """Return the call that computes rows of a region and reduces them into `sums`.

    The rows of a block lie in scratch memory, except those of operands and results. The answer is
    None if LLVM fails, and if an operand of a reduction has no rows at equal distances.
    """
    count = space.lead * space.rows
    arrays = [*region.arrays, *outs]
    sizes = [code.dtypes[each].itemsize * space.lanes for each in code.buffered]
    room = max(1, _BLOCK // max(1, sum(sizes)))
    buffers = [np.empty(room * size, np.uint8) for size in sizes]
    record = [*[each.ctypes.data for each in (*arrays, *buffers)], *region.record]
    del record[len(arrays) + len(buffers) : 2 * (len(arrays) + len(buffers))]
    inner = [RowOperand(len(arrays) + k, k, 0, size) for k, size in enumerate(sizes)]
    kernels = [RowKernel(region, record, inner, region.size // count, count)]
    scratch = dict(zip(code.buffered, inner, strict=True))
    lies = dict(
        zip([*code.inputs, *map(code.bases.__getitem__, code.outs.values())], arrays, strict=True)
    )
    for (symbol, register), result in zip(code.rows, sums, strict=True):
        reduction = column_reductions(True, symbol.op.name, symbol.dtype)
        reduction.compile()
        words = reduction.record(space, (0, space.lanes), result.strides[0] // result.itemsize)
        words[0] = result.ctypes.data
        if register not in scratch:
            x = lies.get(code.bases[register])
            step = None if x is None else _row_step(x, shape, space)
            if x is None or step is None:
                return None
            words[1], words[4] = x.ctypes.data, step
        if reduction.kernel is None:
            return None
        operands = [scratch[register]._replace(place=1)] if register in scratch else []
        fold = PlacedKernel(reduction.kernel, words, (), (), count)
        kernels.append(RowKernel(fold, words, operands, 1, count))
    addresses = [each.ctypes.data for each in buffers]
    return PhaseTable(kernels, room).call(addresses, (arrays, buffers))


def _row_step(x: Array, shape: tuple[int, ...], space: ColumnSpace) -> int | None:
    """Return the bytes between rows of an operand; None if the rows are not equally far apart."""
    lanes, count = 1, len(shape)
    while lanes < space.lanes:
        count -= 1
        lanes *= shape[count]
    if x.shape != shape or not x[(0,) * count].flags.c_contiguous:
        return None
    steps = [(n, by) for n, by in zip(x.shape[:count], x.strides, strict=False) if n > 1]
    for (_, outer), (size, by) in itertools.pairwise(steps):
        if outer != size * by:
            return None
    return steps[-1][1] if steps else space.lanes * x.itemsize

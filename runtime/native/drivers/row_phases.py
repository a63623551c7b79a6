"""Kernels one after another on each block of rows, in one call of machine code.

A table of 64-bit words says what to run: the number of rows of a block, the rows by which the first
kernel runs ahead, and the numbers of kernels and of moves. For each kernel follow its address (0 is
a copy of rows), its context, its record, its elements for each row, its lead (see `RowKernel`), and
the number of its operands; then, for each operand, its place in the record, the address of its
memory, and its bytes for each row. Scratch memory has the rows of one block, so the base address in
the record moves backwards from block to block. For each move follow an address, a distance and a
number of bytes: after a block, the rows that the next block reads again move to the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p, cast
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime.native.drivers.jobs import OWN, SCRATCH, Driver, Job, driver
from graphir.runtime.native.drivers.records import SharedRanges
from graphir.runtime.native.drivers.thread_pool import shared_ranges
from graphir.runtime.program.cost_model import PAGE
from graphir.runtime.program.tier import RangeCall, RowKernel, RowMove

_TEXT = """
define internal void @copy(ptr %record, ptr %context, i64 %first, i64 %end) {
entry:
  %target = get ptr, %record[0]
  %source = get ptr, %record[1]
  %to_row = get i64, %record[2]
  %from_row = get i64, %record[3]
  %count = get i64, %record[4]
  br i1 $(icmp eq i64 %count, 0), label %whole, label %row
whole:
  %to_all = getelementptr i8, ptr %target, i64 $(mul i64 %first, %to_row)
  %from_all = getelementptr i8, ptr %source, i64 $(mul i64 %first, %from_row)
  %all = mul i64 $(sub i64 %end, %first), %to_row
  call void @llvm.memcpy.p0.p0.i64(ptr %to_all, ptr %from_all, i64 %all, i1 false)
  br label %exit
row:
  %i = phi i64 [ %first, %entry ], [ %i1, %done ]
  %to = getelementptr i8, ptr %target, i64 $(mul i64 %i, %to_row)
  %from = getelementptr i8, ptr %source, i64 $(mul i64 %i, %from_row)
  br label %run
run:
  %k = phi i64 [ 0, %row ], [ %k1, %run ]
  %piece = getelementptr i64, ptr %record, i64 $(mul i64 %k, 3)
  %to_at = get i64, %piece[5]
  %from_at = get i64, %piece[6]
  %bytes = get i64, %piece[7]
  %into = getelementptr i8, ptr %to, i64 %to_at
  %out_of = getelementptr i8, ptr %from, i64 %from_at
  call void @llvm.memcpy.p0.p0.i64(ptr %into, ptr %out_of, i64 %bytes, i1 false)
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %count), label %run, label %done
done:
  %i1 = add i64 %i, 1
  br i1 $(icmp ult i64 %i1, %end), label %row, label %exit
exit:
  ret void
}
define void @phases(ptr %table, ptr %unused, i64 %first, i64 %end) {
entry:
  %room = get i64, %table[0]
  %ahead = get i64, %table[1]
  %count = get i64, %table[2]
  %moves = get i64, %table[3]
  %kernels = getelementptr i64, ptr %table, i64 4
  %begin = sub i64 %first, %ahead
  br i1 $(icmp slt i64 %first, %end), label %block, label %exit
block:
  %a = phi i64 [ %begin, %entry ], [ %b, %next ]
  %b = add i64 %a, $(call i64 @llvm.smin(i64 %room, i64 $(sub i64 %end, %a)))
  br label %phase
phase:
  %k = phi i64 [ 0, %block ], [ %k1, %done ]
  %at = phi ptr [ %kernels, %block ], [ %operand, %done ]
  %kernel = get ptr, %at[0]
  %context = get ptr, %at[1]
  %record = get ptr, %at[2]
  %each = get i64, %at[3]
  %low = get i64, %at[4]
  %high = get i64, %at[5]
  %start = get i64, %at[6]
  %stop = get i64, %at[7]
  %inner = get i64, %at[8]
  %operands = getelementptr i64, ptr %at, i64 9
  %least = call i64 @llvm.smax(i64 %start, i64 $(add i64 %first, %low))
  %from = call i64 @llvm.smax(i64 %least, i64 $(add i64 %a, %high))
  %to = call i64 @llvm.smin(i64 %stop, i64 $(add i64 %b, %high))
  br label %move
move:
  %j = phi i64 [ 0, %phase ], [ %j1, %moved ]
  %operand = phi ptr [ %operands, %phase ], [ %after, %moved ]
  br i1 $(icmp ult i64 %j, %inner), label %moved, label %placed
moved:
  %place = get i64, %operand[0]
  %memory = get i64, %operand[1]
  %row = get i64, %operand[2]
  put i64 $(sub i64 %memory, $(mul i64 %a, %row)), %record[%place]
  %after = getelementptr i64, ptr %operand, i64 3
  %j1 = add i64 %j, 1
  br label %move
placed:
  br i1 $(icmp slt i64 %from, %to), label %run, label %done
run:
  %function = select i1 $(icmp eq ptr %kernel, null), ptr @copy, ptr %kernel
  %element = mul i64 %from, %each
  %elements = mul i64 %to, %each
  call void %function(ptr %record, ptr %context, i64 %element, i64 %elements)
  br label %done
done:
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %count), label %phase, label %kept
kept:
  br i1 $(icmp slt i64 %b, %end), label %keep, label %exit
keep:
  %m = phi i64 [ 0, %kept ], [ %m1, %shift ]
  %window = phi ptr [ %operand, %kept ], [ %window1, %shift ]
  br i1 $(icmp ult i64 %m, %moves), label %shift, label %next
shift:
  %into = get ptr, %window[0]
  %distance = get i64, %window[1]
  %size = get i64, %window[2]
  %out_of = getelementptr i8, ptr %into, i64 %distance
  call void @llvm.memmove.p0.p0.i64(ptr %into, ptr %out_of, i64 %size, i1 false)
  %window1 = getelementptr i64, ptr %window, i64 3
  %m1 = add i64 %m, 1
  br label %keep
next:
  br label %block
exit:
  ret void
}"""


_APART = 32
"""The words between the tables of two threads, which write to them: the processor moves a line of
the cache, or two, from one core to the other."""


class PlacedKernel(NamedTuple):
    """A kernel of a region, its record without addresses, and the cells of the record's operands.

    `arrays` are the inputs, the first operands, aligned. `size` is the number of elements of the
    region. `compiled` is the machine code, and `shared` says how threads share the elements.
    """

    compiled: Any
    record: Sequence[int]
    cells: Sequence[int]
    arrays: Sequence[Any]
    size: int
    shared: SharedRanges | None = None


class PhaseTable:
    """Kernels on blocks of rows, as machine code that takes the addresses of all memories."""

    def __init__(
        self, kernels: Sequence[RowKernel], room: int, moves: Sequence[RowMove] = ()
    ) -> None:
        ahead = max([kernel.high - kernel.low for kernel in kernels], default=0)
        table, records = [room, ahead, len(kernels), len(moves)], list[int]()
        patches: list[tuple[int, int]] = []
        starts: list[tuple[int, int]] = []
        for kernel in kernels:
            table += [0, 0]
            if kernel.kernel:
                context = cast(kernel.kernel.compiled.context, c_void_p).value or 0
                table[-2:] = kernel.kernel.compiled.address, context
            starts.append((len(table), len(records)))
            table += [0, kernel.each, kernel.low, kernel.high, kernel.first, kernel.end]
            table.append(len(kernel.operands))
            for operand in kernel.operands:
                patches.append((len(table) + 1, operand.memory))
                table += [operand.place, operand.offset, operand.row]
            records += kernel.record
        for move in moves:
            patches.append((len(table), move.memory))
            table += [0, move.distance, move.size]
        for position, record in starts:
            table[position] = 8 * (len(table) + record)
            patches.append((position, OWN))
        self._kernels = kernels  # which the table has by address alone
        self._template = np.array([*table, *records], np.int64)
        self._positions, self._numbers = np.array(patches, np.int64).reshape(-1, 2).T

    def placed(self, addresses: Sequence[int]) -> Callable[[int, int], None]:
        """Return the function that runs the kernels on a range of rows, for one thread at a time.

        `addresses` are those of all memories.
        """
        call = self.call(addresses)
        function, address = call.kernel.function, call.record.ctypes.data

        def run(first: int, end: int) -> None:
            function(address, None, first, end)
            _ = call  # the code and the records, which the function has by address alone

        return run

    def call(self, addresses: Sequence[int], alive: Any = None) -> RangeCall:
        """Return the call that runs the kernels, as yet on no row."""
        words = self._template.copy()
        words[self._positions] += np.array([*addresses, words.ctypes.data])[self._numbers]
        return RangeCall(_driver(), words, 0, 0, (self, alive))

    def job(
        self, inner: Mapping[int, int], scratch: int, rows: int, block: int, threads: int
    ) -> Job:
        """Return the kernels on all rows, in ranges of `block` rows, on several threads.

        `inner` has the places of memories in the scratch memory of a thread, by their numbers.
        """
        size, room = len(self._template), -(-scratch // PAGE) * PAGE
        tables = np.zeros((threads, size + _APART), np.int64)
        tables[:, :size] = self._template
        patches: list[tuple[int, int]] = []
        for thread, words in enumerate(tables):
            start = thread * len(words)
            for position, number in zip(self._positions, self._numbers, strict=True):
                if number == OWN:
                    words[position] += 8 * start
                elif number in inner:
                    words[position] += thread * room + inner[number]
                patches.append((start + position, SCRATCH if number in inner else number))
        shared = shared_ranges(block, threads - 1)
        return Job(_driver(), tables, rows, shared, patches, threads * room, alive=self)


@cache
def _driver() -> Driver:
    return driver(_TEXT, "phases")

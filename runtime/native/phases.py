"""Kernels one after another on each block of rows, in one call of machine code.

A table of 64-bit words says what to run: the number of rows of a block, the number of kernels, and
for each kernel its address, its context, its record, its elements for each row, and the number of
its inner operands; then, for each inner operand, its place in the record, the address of its
scratch memory, and its bytes for each row. Scratch memory has the rows of one block, so the base
address in the record moves backwards from block to block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, addressof, c_int64, c_void_p, cast
from functools import cache
from typing import Any, NamedTuple

from runtime.native.background import LOCK
from runtime.native.probe import engine
from runtime.native.vectors import words_of

_TEXT = """
define void @phases(ptr %table, i64 %first, i64 %end) {
entry:
  %room = get i64, %table[0]
  %count = get i64, %table[1]
  %kernels = getelementptr i64, ptr %table, i64 2
  br i1 $(icmp ult i64 %first, %end), label %block, label %exit
block:
  %a = phi i64 [ %first, %entry ], [ %b, %next ]
  %left = sub i64 %end, %a
  %b = add i64 %a, $(call i64 @llvm.umin(i64 %room, i64 %left))
  br label %phase
phase:
  %k = phi i64 [ 0, %block ], [ %k1, %run ]
  %at = phi ptr [ %kernels, %block ], [ %operand, %run ]
  %function = get ptr, %at[0]
  %context = get ptr, %at[1]
  %record = get ptr, %at[2]
  %each = get i64, %at[3]
  %inner = get i64, %at[4]
  %operands = getelementptr i64, ptr %at, i64 5
  br label %move
move:
  %j = phi i64 [ 0, %phase ], [ %j1, %moved ]
  %operand = phi ptr [ %operands, %phase ], [ %after, %moved ]
  br i1 $(icmp ult i64 %j, %inner), label %moved, label %run
moved:
  %place = get i64, %operand[0]
  %memory = get i64, %operand[1]
  %row = get i64, %operand[2]
  put i64 $(sub i64 %memory, $(mul i64 %a, %row)), %record[%place]
  %after = getelementptr i64, ptr %operand, i64 3
  %j1 = add i64 %j, 1
  br label %move
run:
  %from = mul i64 %a, %each
  %to = mul i64 %b, %each
  call void %function(ptr %record, ptr %context, i64 %from, i64 %to)
  %k1 = add i64 %k, 1
  br i1 $(icmp ult i64 %k1, %count), label %phase, label %next
next:
  br i1 $(icmp ult i64 %b, %end), label %block, label %exit
exit:
  ret void
}"""


class PlacedKernel(NamedTuple):
    """A kernel of a region, its record without addresses, and the cells of the record's operands.

    `arrays` are the inputs, the first operands, aligned. `size` is the number of elements of the
    region. `compiled` is the machine code.
    """

    compiled: Any
    record: Sequence[int]
    cells: Sequence[int]
    arrays: Sequence[Any]
    size: int


def together(
    kernels: Sequence[tuple[Any, Sequence[int], Sequence[tuple[int, int, int]]]],
    room: int,
    count: int,
) -> Callable[[int, int], None]:
    """Return the function that runs kernels on a range of rows, `room` rows at a time.

    Each PlacedKernel comes with its record, in which the addresses of outer operands stand, and
    with its inner operands: the place in the record, the address of memory for the rows of a block,
    and the bytes of a row. `count` is the number of all rows. One thread at a time may call the
    function.
    """
    driver = _driver()
    words, alive = [room, len(kernels)], list[Any]([driver])
    for kernel, filled, inner in kernels:
        record = (c_int64 * len(filled))(*filled)
        context = cast(kernel.compiled.context, c_void_p).value
        each = kernel.size // count
        words += [kernel.compiled.address, context, addressof(record), each, len(inner)]
        words += [word for operand in inner for word in operand]
        alive += [record, kernel.compiled]
    table = (c_int64 * len(words))(*words)

    def run(first: int, end: int) -> None:
        driver.function(table, first, end)
        assert alive  # the records and the code of the kernels, by address alone in the table

    return run


class _Driver(NamedTuple):
    """The function `phases`, and its code, which lives as long as a caller holds this object.

    Two threads that ask for it at once may both compile it, and the cache keeps one.
    """

    code: Any
    function: Callable[..., None]


@cache
def _driver() -> _Driver:
    with LOCK:
        code = engine().CompiledCode(words_of(_TEXT), "phases")
    return _Driver(code, CFUNCTYPE(None, c_void_p, c_int64, c_int64)(code.address))

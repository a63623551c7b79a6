"""Searches in sorted vectors in machine code: several values take each step of a search together.

NumPy's search branches at each step, and processors predict every other branch wrongly. Here a step
is a load and a selection, which values of several lanes take without branches. The vector must be
sorted, as a pass over it checks; of other vectors NumPy's result depends on its algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.array_ops import PaidKernels
from graphir.runtime.native.assembly import lane, words_of
from graphir.runtime.native.drivers.jobs import share
from graphir.runtime.native.drivers.records import (
    WordRecord,
    record,
    with_numbers,
    words_of_records,
)
from graphir.runtime.native.drivers.thread_pool import shared_ranges
from graphir.runtime.native.probe import engine
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.program.cost_model import COST

if TYPE_CHECKING:
    from graphir.runtime.native.engine import Compiled

Array: TypeAlias = NDArray[Any]
Search: TypeAlias = Callable[[Array, Array], Array]

_LANES = 32
"""The values that take a step together, so that their loads overlap."""


class SearchKind(NamedTuple):
    """A kind of search: the dtype of both operands, and the side of equal elements."""

    dtype: np.dtype[Any]
    side: str


_TEXT = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  %line = get ptr, %record[SearchRecord.line]
  %values = get ptr, %record[SearchRecord.values]
  %places = get ptr, %record[SearchRecord.places]
  %size = get i64, %record[SearchRecord.size]
  %count = get i64, %record[SearchRecord.count]
  %last = sub i64 %count, {lanes}
  br label %block
block:
  %number = phi i64 [ %first, %entry ], [ %number1, %ready ]
  %i = call i64 @llvm.umin(i64 $(mul i64 %number, {lanes}), i64 %last)
  %v = load {vector}, ptr $(getelementptr {kind}, ptr %values, i64 %i), align 1
  br label %step
step:
  %rest = phi i64 [ %size, %block ], [ %rest1, %halve ]
  %base = phi {indices} [ zeroinitializer, %block ], [ %base1, %halve ]
  br i1 $(icmp ugt i64 %rest, 1), label %halve, label %ready
halve:
  %half = lshr i64 %rest, 1
  %middle_line = getelementptr {kind}, ptr %line, i64 $(sub i64 %half, 1)
  %at = getelementptr {kind}, ptr %middle_line, {indices} %base
  %x = call {vector} @llvm.masked.gather(<{lanes} x ptr> %at, {every}, {vector} poison)
  %less = {compare} {vector} %x, %v
  %half_i = insertelement {indices} poison, i32 $(trunc i64 %half to i32), i64 0
  %halves = shufflevector {indices} %half_i, {indices} poison, {indices} zeroinitializer
  %next = add {indices} %base, %halves
  %base1 = select <{lanes} x i1> %less, {indices} %next, {indices} %base
  %rest1 = sub i64 %rest, %half
  br label %step
ready:
  %ends = getelementptr {kind}, ptr %line, {indices} %base
  %y = call {vector} @llvm.masked.gather(<{lanes} x ptr> %ends, {every}, {vector} poison)
  %is_below = {compare} {vector} %y, %v
  %place = add {indices} %base, $(zext <{lanes} x i1> %is_below to {indices})
  %wide = zext {indices} %place to <{lanes} x i64>
  store <{lanes} x i64> %wide, ptr $(getelementptr i64, ptr %places, i64 %i), align 1
  %number1 = add i64 %number, 1
  br i1 $(icmp ult i64 %number1, %end), label %block, label %exit
exit:
  ret void
}}"""
"""The search. An element below a value, or as great on the right side, is to the left of it; every
element is below NaN. The last block of values may overlap the one before."""


@record
class SearchRecord(WordRecord):
    """The addresses of the sorted vector, the values and the places, and two sizes.

    The sizes are those of the vector and of the values.
    """

    fields = "line values places size count"


def search_kernel(kind: SearchKind) -> Kernel:
    """Return the kernel of a kind of search, which takes blocks of values."""
    sign = {"f": "fcmp u", "i": "icmp s"}.get(kind.dtype.kind, "icmp u")
    words = {
        "lanes": _LANES,
        "kind": lane(kind.dtype),
        "vector": f"<{_LANES} x {lane(kind.dtype)}>",
        "indices": f"<{_LANES} x i32>",
        "every": f"i32 {kind.dtype.itemsize}, <{_LANES} x i1> splat (i1 true)",
        "compare": f"{sign}{'lt' if kind.side == 'left' else 'le'}",
    }
    return Kernel(words_of(with_numbers(_TEXT.format(**words), SearchRecord)), ())


class Searches(PaidKernels[SearchKind, None]):
    """The searches of a process by machine code."""

    def search(self, search: Search, side: str, threads: int, line: Array, values: Array) -> Array:
        """Return the places of values in a sorted vector, both contiguous, of one dtype.

        `search` finds them where there is no machine code.
        """
        kind = SearchKind(line.dtype, side)
        is_worth = line.dtype.char in _CHARS and values.size >= max(_LANES, line.size)
        entry = self.kernel(kind) if is_worth and 0 < line.size < 1 << 31 else None
        if entry and bool((line[1:] >= line[:-1]).all()) and bool(line[0] == line[0]):
            return run(entry[0], line, values, threads)
        return self.by_numpy(kind, search, line, values) if is_worth else search(line, values)

    def compiled(self, kind: SearchKind) -> tuple[Any, None]:
        """Return the kernel of a kind."""
        return engine().compile_kernel(search_kernel(kind)), None


_CHARS = "fdbBhHiIlLqQ"
"""The dtypes in which machine code searches."""


@cache
def searches(now: bool) -> Searches:
    """Return the searches of this process."""
    return Searches(now)


def run(kernel: Compiled, line: Array, values: Array, threads: int) -> Array:
    """Return the places (int64) of values in a sorted vector, found on at most some threads."""
    places = np.empty(values.shape, np.int64)
    addresses = [array.ctypes.data for array in (line, values, places)]
    words = words_of_records([SearchRecord(*addresses, line.size, values.size)])
    pays = values.size * int(line.size).bit_length() * COST.SEARCH_STEP > COST.NATIVE_SECOND_THREAD
    helpers = threads - 1 if pays else 0
    share(kernel, words, -(-values.size // _LANES), shared_ranges(COST.SEARCH_BLOCK, helpers))
    return places

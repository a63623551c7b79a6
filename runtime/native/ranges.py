"""The ranges of elements of one call of a kernel, which threads take from a counter in memory.

A thread calls machine code once, without the interpreter lock, and that code runs the kernel on one
range after another. A range may thus be short, so that all threads end at about the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from typing import Any

from runtime.native.background import LOCK
from runtime.native.probe import engine
from runtime.native.vectors import words_of

_TEXT = """
define void @take_ranges(ptr %kernel, ptr %record, ptr %context, ptr %next, i64 %size, i64 %block) {
entry:
  br label %take
take:
  %first = atomicrmw add ptr %next, i64 %block seq_cst
  br i1 $(icmp ult i64 %first, %size), label %run, label %exit
run:
  %end = call i64 @llvm.umin(i64 $(add i64 %first, %block), i64 %size)
  call void %kernel(ptr %record, ptr %context, i64 %first, i64 %end)
  br label %take
exit:
  ret void
}
"""


@cache
def _take_ranges() -> tuple[Any, Any]:
    with LOCK:
        code = engine().CompiledCode(words_of(_TEXT), "take_ranges")
    p, n = c_void_p, c_int64
    return CFUNCTYPE(None, p, p, p, p, n, n)(code.address), code


def range_taker(kernel: Any, record: Any, size: int, block: int) -> Callable[[], None]:
    """Return the function by which each thread takes ranges of `block` elements until `size`.

    `record` is the record of the kernel, an array of ctypes, which all threads read.
    """
    function, _ = _take_ranges()
    counter = (c_int64 * 1)()
    return lambda: function(kernel.address, record, kernel.context, counter, size, block)

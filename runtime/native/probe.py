"""The probe of the native tier: on first use it verifies the tier's assumptions on this machine.

The probe compiles a small kernel with vectors and a NumPy inner loop, runs it, and compares its
results with NumPy's.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from graphir.gc_pause import uncollected
from runtime.native.abi.entry import Spec, assembly
from runtime.native.abi.loops import loop_of
from runtime.native.abi.structs import arrays_are_as_declared, ufuncs_are_as_declared
from runtime.native.background import LOCK
from runtime.native.regions import Kernel
from runtime.native.vectors import words_of

_TEXT = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {
  %counts = get ptr, %record[2]
  %steps = get ptr, %record[3]
  %data = get ptr, %context[1]
  call void $(get ptr, %context[0])(ptr %record, ptr %counts, ptr %steps, ptr %data)
  %to = get ptr, %record[1]
  %x = load <32 x float>, ptr $(get ptr, %record[0]), align 4
  %product = fmul <32 x float> $(load <32 x float>, ptr %to, align 4), %x
  store <32 x float> $(fadd <32 x float> %product, %x), ptr %to, align 4
  ret void
}
"""
"""A kernel with all parts of real kernels: vectors, an inner loop of NumPy, and addresses in a
record and a context."""


class UnusableError(Exception):
    """Raised if this process cannot use machine code; the message says why."""


def engine() -> Any:
    """Return the module `engine` after a successful probe. Raises UnusableError if it failed."""
    with LOCK:
        module, why = _start()
    if why:
        raise UnusableError(why)
    return module


def failure_reason(error: Exception) -> str:
    """Return an error of LLVM as a reason to stay in NumPy, and log the first in the process."""
    why = str(error) if isinstance(error, UnusableError) else f"{type(error).__name__}: {error}"
    if not _logged:
        import logging

        log = logging.getLogger("graphir.native")
        log.warning("no machine code, NumPy computes instead: %s", why)
        _logged.append(why)
    return why


_logged: list[str] = []


@cache
@uncollected
def _start() -> tuple[Any, str]:
    """Return the module `engine`, or None, and the problem as text, empty for none.

    The cache must not keep a KeyboardInterrupt, which says nothing about the machine; the function
    therefore catches Exception alone.
    """
    try:
        module = import_module("runtime.native.engine")
        return module, _problem(module)
    except Exception as error:  # any failure: NumPy is the fallback
        return None, f"llvmlite fails, {type(error).__name__}: {error}"


def _problem(module: Any) -> str:
    """Return the problem of this machine as text, or "".

    The function calls a small kernel by its address and compares the values; it then calls it by an
    entry. If only the entry fails, the engine does without entries.
    """
    single = np.dtype(np.float32)
    loop = loop_of(np.exp, single, single) if ufuncs_are_as_declared() else None
    if loop is None:
        return "the C structure of this NumPy's ufuncs is another one"
    kernel = module.Compiled(Kernel(words_of(_TEXT), loop))
    x = np.linspace(-90, 90, 32, dtype=single)
    with np.errstate(all="ignore"):
        expected = (np.exp(x) * x + x).tobytes()
    output, numbers = np.empty_like(x), np.array([x.size, x.itemsize, x.itemsize], np.int64)
    record = [array.ctypes.data for array in (x, output, numbers, numbers[1:])]
    kernel.function((ctypes.c_void_p * len(record))(*record), kernel.context, 0, x.size)
    if output.tobytes() != expected:
        return "machine code computes other values than NumPy"
    if arrays_are_as_declared():
        module.call = module.CompiledCode(assembly(), "call", 0)
        entry = kernel.entry(
            [Spec(single, x.shape, place) for place in (0, 1)], 1, record, 32, False
        )
        if any(np.asarray(entry(x)).tobytes() != expected for _ in range(3)):
            module.call = None
    return ""

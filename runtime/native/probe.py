"""The probe of the native tier: on first use it verifies the tier's assumptions on this machine.

The probe compiles a small kernel with vectors and a NumPy inner loop, runs it, and compares its
results with NumPy's. Another kernel does the same for each function of
`graphir.runtime.native.functions` that a region or a loop calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.decorators import uncollected
from graphir.runtime.native.abi import (
    ArraySpec,
    EntryCall,
    arrays_are_as_declared,
    assembly,
    loop_of,
    ufuncs_are_as_declared,
)
from graphir.runtime.native.assembly import VectorWriter, words_of
from graphir.runtime.native.compilation import LOCK, UnusableError
from graphir.runtime.native.emitters import LlvmValue
from graphir.runtime.native.functions import INLINE, extension_of, inline
from graphir.runtime.native.region_writer import Kernel
from graphir.runtime.program.cost_model import NATIVE_VECTOR
from graphir.runtime.workers import IMPORTS

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


def engine() -> Any:
    """Return the module `engine` after a successful probe. Raises UnusableError if it failed."""
    with LOCK:
        module, why = _start()
    if why:
        raise UnusableError(why)
    return module


def features() -> set[str]:
    """Return the extensions of the processor; none if this process cannot use machine code."""
    with LOCK:
        module, why = _start()
    return set() if why else module.processor().features


@cache
@uncollected
def _start() -> tuple[Any, str]:
    """Return the module `engine`, or None, and the problem as text, empty for none.

    The cache must not keep a KeyboardInterrupt, which says nothing about the machine; the function
    therefore catches Exception alone.
    """
    try:
        with IMPORTS:
            module = import_module("graphir.runtime.native.engine")
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
        module.call = module.CompiledCode(assembly(), "call", opt=0)
        specs = [ArraySpec(single, x.shape, word) for word in (0, 1)]
        entry = kernel.entry(EntryCall(specs, 1, record, x.size, False))
        if any(np.asarray(entry(x)).tobytes() != expected for _ in range(3)):
            module.call = None
    return ""


# -- functions in vector code

_FUNCTION = """
define void @kernel(ptr %record, ptr %context, i64 %first, i64 %end) {{
entry:
  %from = get ptr, %record[0]
  %to = get ptr, %record[1]
  br label %vector
vector:
  %i = phi i64 [ %first, %entry ], [ %next, %last ]
  %x = load {T}, ptr $(getelementptr {element}, ptr %from, i64 %i), align 4
{lines}
  store {T} {y}, ptr $(getelementptr {element}, ptr %to, i64 %i), align 4
  br label %last
last:
  %next = add i64 %i, {width}
  br i1 $(icmp ult i64 %next, %end), label %vector, label %exit
exit:
  ret void
}}
"""


def compiled_code(text: str, *names: str) -> Any:
    """Return the code of functions of a module with the abbreviations of `words_of`."""
    with LOCK:
        return engine().CompiledCode(words_of(text), *names)


def extensions(calls: Iterable[tuple[Any, str]]) -> set[str]:
    """Return the extensions of the processor, with the functions whose emitters have NumPy's bits.

    `calls` are the functions that a region calls, with the code of the operand's dtype; the first
    question about each runs its emitter on 200,000 numbers. The caller must hold compilation.LOCK.
    """
    known, functions = features(), set[str]()
    for call in calls:
        required = [extension for extension in INLINE.get(call, ()) if extension in known]
        first = next(
            (extension for extension in required if _has_the_bits_of_numpy(*call, extension)), None
        )
        functions |= {extension_of(*call, first)} if first else set()
    return known | functions


@cache
def _has_the_bits_of_numpy(function: np.ufunc, code: str, required: str) -> bool:
    vectors = VectorWriter(NATIVE_VECTOR, ["fma", extension_of(function, code, required)])
    x = function_inputs(code)
    y = inline(function)(x.dtype, LlvmValue(vectors, "%x", x.dtype))
    names = {"T": y.type, "element": y.lane, "y": y.name, "width": NATIVE_VECTOR}
    text = _FUNCTION.format(lines="\n".join(vectors.lines), **names)
    kernel = engine().Compiled(Kernel(words_of(text), tuple(vectors.context)))
    output = np.empty_like(x)
    record = (ctypes.c_void_p * 2)(x.ctypes.data, output.ctypes.data)
    kernel.function(record, kernel.context, 0, x.size)
    with np.errstate(all="ignore"):
        expected = function(x)
    word = f"i{x.itemsize}"
    unequal = output.view(word) != expected.view(word)
    return bool(np.isnan(output[unequal]).all() and np.isnan(expected[unequal]).all())


def function_inputs(code: str) -> NDArray[Any]:
    """Return floats of all magnitudes, most where exp is finite or log is small."""
    dtype = np.dtype(code)
    word, width = np.dtype(f"u{dtype.itemsize}"), 8 * dtype.itemsize
    patterns = np.arange(1 << 16).astype(word) * word.type(65_521 << (width - 32))
    limits = np.finfo(dtype)
    bounds = [0, limits.smallest_subnormal, limits.tiny, limits.max, np.inf, 1, 2**0.5, 2**-0.5]
    logs = np.log(np.array([limits.max, limits.tiny, limits.smallest_subnormal], np.float64))
    logs = np.append(logs, logs[2] - np.log(2)).astype(dtype)
    edges = np.concatenate([np.array(bounds, dtype), logs])
    near = edges.view(word)[:, None] + np.arange(-8, 8).astype(word)
    signs = np.concatenate([near, near ^ word.type(1 << (width - 1))]).reshape(-1)
    ranges = (logs[2] - 2, logs[0] + 2), (0.5, 2), (-1, 1)
    usual = [np.linspace(a, b, 1 << 16, dtype=dtype) for a, b in ranges]
    powers = np.ldexp(np.ones(1, dtype), np.arange(-64, 64))
    x = np.concatenate([patterns.view(dtype), signs.view(dtype), *usual, powers, powers - 1])
    return x[: x.size // NATIVE_VECTOR * NATIVE_VECTOR]

"""Functions as vector code, with the bits of the NumPy loops that kernels would call without them.

NumPy's loops depend on the processor, on NumPy's version and on the C library, so
`graphir.runtime.native.probe` compares an emitter with the loop on this machine before a kernel
uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.runtime.native.assembly import Vector
from graphir.runtime.native.functions import c_library_double, intel_svml, numpy_loops

INLINE: dict[tuple[np.ufunc, str], dict[str, Callable[..., Any]]] = {
    (np.exp, "f"): {"avx512f": numpy_loops.emit_exp_avx512, "fma": numpy_loops.emit_exp},
    (np.log, "f"): {"fma": numpy_loops.emit_log},
    (np.exp, "d"): {"avx512f": intel_svml.emit_exp, "fma": c_library_double.emit_exp},
    (np.log, "d"): {"avx512f": intel_svml.emit_log, "fma": c_library_double.emit_log},
}
"""The emitters of ufuncs by the code of the dtype, then by the extension of the processor that they
require. A kernel uses the first one with the bits of NumPy's loop: `extension_of` then stands among
the processor's extensions."""

INLINE_BYTES = 64
"""Bytes of a vector in an emitter; its values then fit the registers of AVX2."""


def extension_of(function: np.ufunc, code: str, required: str) -> str:
    """Return the name, among the extensions of a processor, for an emitter with NumPy's bits."""
    return f"numpy.{function.__name__}.{code}.{required}"


def inline(function: np.ufunc) -> Callable[..., Vector]:
    """Return the emitter of a function that kernels may use after the probe."""

    def emit(_: Vector, x: Vector) -> Vector:
        code = x.dtype.char
        for required, emitter in INLINE.get((function, code), {}).items():
            if x.code.has(extension_of(function, code, required)):
                return x.in_parts(INLINE_BYTES // x.dtype.itemsize, emitter)
        return None

    return emit

"""Functions as vector code, with the bits of the NumPy loops that kernels would call without them.

NumPy's loops depend on the processor, on NumPy's version and on the C library, so
`runtime.native.probe` compares an emitter with the loop on this machine before a kernel uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.native.functions import c_library_double, c_library_single, numpy_loops

INLINE: dict[tuple[np.ufunc, str], Callable[..., Any]] = {
    (np.exp, "f"): numpy_loops.emit_exp,
    (np.log, "f"): numpy_loops.emit_log,
    (np.exp, "d"): c_library_double.emit_exp,
    (np.log, "d"): c_library_double.emit_log,
    (np.power, "d"): c_library_double.emit_pow,
    (np.log1p, "f"): c_library_single.emit_log1p,
    (np.expm1, "f"): c_library_single.emit_expm1,
    (np.power, "f"): c_library_single.emit_pow,
}
"""The emitters of ufuncs by the code of the dtype. A kernel uses one if the processor has the
extension `fma`, and NumPy's loop its bits: the extension `extension_of` then stands among the
processor's."""

INLINE_BYTES = 64
"""Bytes of a vector in an emitter; its values then fit the registers of AVX2."""


def extension_of(function: np.ufunc, code: str) -> str:
    """Return the name, among the extensions of a processor, for an emitter with NumPy's bits."""
    return f"numpy.{function.__name__}.{code}"


def inline(function: np.ufunc) -> Callable[..., Any]:
    """Return the emitter of a function that kernels may use after the probe."""

    def emit(_: Any, x: Any, *others: Any) -> Any:
        code = x.dtype.char
        if any(other.dtype != x.dtype for other in others):
            return None
        if (function, code) not in INLINE or not x.code.has(extension_of(function, code)):
            return None
        return x.in_parts(INLINE_BYTES // x.dtype.itemsize, INLINE[function, code], *others)

    return emit

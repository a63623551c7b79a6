"""Names of operands, dtypes and versions for the rows of the table."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from graphir import DType
from tests.peers.steps import Value

JAX = "jax jax_x32 jax_strict"
NUMPY = "numpy numpy_legacy dask"
TENSORFLOW = "tensorflow tf_all tf_safe tf_legacy"
F4, F16, F32, F64 = DType.float4_e2m1fn, DType.float16, DType.float32, DType.float64
E4M3, E8M0 = DType.float8_e4m3fn, DType.float8_e8m0fnu
BOOL, INT8, INT32, INT64 = DType.bool, DType.int8, DType.int32, DType.int64
C64, C128 = DType.complex64, DType.complex128
WEAK_INT, WEAK_FLOAT = DType.weak_int, DType.weak_float
X, Y, Z, NAN, INF = Value(0), Value(1), Value(2), float("nan"), float("inf")
X86 = platform.machine() in ("x86_64", "AMD64")
SVML = not {"AVX512_SKX", "X86_V4"}.isdisjoint(
    np.show_config("dicts")["SIMD Extensions"].get("found", ())
)
"""Whether NumPy computes by Intel's vector library of mathematical functions."""
NUMPY_VERSION = tuple(map(int, np.__version__.split(".")[:2]))
JAX_VERSION = (0, 0)
with suppress(PackageNotFoundError):
    JAX_VERSION = tuple(map(int, version("jax").split(".")[:2]))

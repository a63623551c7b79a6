"""jit with Python numbers beside the live libraries: eager PyTorch, and jax.jit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing is compared with it")
pytest.importorskip("torch", reason="PyTorch is not installed, so nothing is compared with it")

import jax
import torch

from graphir import DType, GraphirError, runtime
from tests.peers.jax_ import settings
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore")

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "eq", "lt"),
        *("and_", "lshift"),
    )
}


# -- jit with Python numbers

UNDER_TORCH: dict[str, Callable[[Any, Any], Any]] = {
    **{f"x {name} k": function for name, function in OPERATORS.items()},
    **{
        f"k {name} x": lambda x, k, f=function: f(k, x)
        for name, function in OPERATORS.items()
        if name in ("add", "sub", "mul", "truediv", "eq", "lt")
    },
    "(k + 1) * x": lambda x, k: (k + 1) * x,
    "k * k + x": lambda x, k: k * k + x,
    "k // 3 + x": lambda x, k: k // 3 + x,
    "x if k > 2": lambda x, k: x if k > 2 else x + x,
    "min(k, 5) + x": lambda x, k: min(k, 5) + x,
    "int(k) + x": lambda x, k: int(k) + x,
}
TAKEN = [0, 1, -1, 3, 127, 128, -129, 300, 65505, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]
TAKEN += [2**63, 2**64, 10**30, 0.5, -1.5, 1e30, float("inf"), float("nan"), 2j]


def _half_in_float32(name: str, dtype: DType) -> bool:
    """PyTorch keeps a number beside a half in float32 (as test_peer_torch.py has it)."""
    return dtype is DType.float16 and (
        "mul" in name or "div" in name or "*" in name or "mod" in name
    )


def _refused_by_one(name: str, dtype: DType, k: Any) -> bool:
    """What PyTorch or graphir alone refuses, as tests/peers/test_peer_torch.py has it."""
    by_zero = "floordiv" in name or "mod" in name
    halves = " eq " in name and dtype is DType.float16 and isinstance(k, complex)
    return by_zero or halves or k == 2**63


@every("name", UNDER_TORCH)
def test_jit_takes_numbers_as_pytorch_does(name: str):
    function, count = UNDER_TORCH[name], 0
    for dtype in (DType.bool, DType.int8, DType.uint8, DType.int32, DType.int64, DType.float16,
                  DType.float32, DType.float64, DType.complex64):  # fmt: skip
        x = np.array([0, 1, 3, 100]).astype(dtype.storage)
        jitted, tensor = runtime.jit(function, rules="torch"), torch.from_numpy(x.copy())
        for k in (*TAKEN, *reversed(TAKEN)):
            theirs: Any
            try:
                theirs = function(tensor, k).numpy()
            except (TypeError, RuntimeError, OverflowError, ValueError, ZeroDivisionError):
                theirs = None
            try:
                found = jitted(x, k)
            except (GraphirError, TypeError, OverflowError, ValueError):
                found = None
            count += 1
            if found is None or theirs is None:
                assert found is theirs or _refused_by_one(name, dtype, k), (dtype, k, found, theirs)
            elif not (_half_in_float32(name, dtype) or isinstance(k, complex)):
                same = np.allclose(found, theirs, rtol=1e-6, equal_nan=True)
                assert found.dtype == theirs.dtype, (dtype, k, found, theirs)
                assert same or dtype is DType.complex64, (dtype, k, found, theirs)
    assert count > 300


# -- jit with Python numbers, which jax.jit makes weak arrays

UNDER_JAX: dict[str, Callable[[Any, Any], Any]] = {
    "x + k": lambda x, k: x + k,
    "k - x": lambda x, k: k - x,
    "x * k": lambda x, k: x * k,
    "x >= k": lambda x, k: x >= k,
    "k == x": lambda x, k: k == x,
    "(k + 1) * x": lambda x, k: (k + 1) * x,
    "k * k + x": lambda x, k: k * k + x,
    "-k < x": lambda x, k: -k < x,
    "x / k": lambda x, k: x / k,
}


@every("name", UNDER_JAX)
def test_jit_takes_numbers_as_jax_jit_does(name: str):
    """They wrap, beside arrays and among themselves, and 2**63 is too great for one."""
    function = UNDER_JAX[name]
    for dtype in map(DType, ("int8", "uint8", "int64", "float32")):
        x = np.array([1, 2, 3, 100], dtype.storage)
        ours_, theirs_ = runtime.jit(function, rules="jax"), jax.jit(function)
        for k in (1, 3, 127, 128, 300, 2**31, 2**62, 2**63 - 1, 2**63, 10**30, 1.5, -2.0, 1e300):
            with settings():
                try:
                    theirs = np.asarray(theirs_(x, k))
                except (TypeError, OverflowError):
                    theirs = None
            try:
                found = ours_(x, k)
            except GraphirError:
                found = None
            assert (found is None) == (theirs is None), (dtype, k)
            if theirs is not None and found is not None:
                assert found.dtype == theirs.dtype, (dtype, k)
                np.testing.assert_allclose(found, theirs, rtol=1e-5, err_msg=f"{dtype} {k}")

"""NumPy 1.26 in a process of its own: `NUMPY_1=/path/to/python` names an interpreter that has it.

Arrays stay there. A call sends names and numbers, and gets a reference, a dtype and bytes; the
process runs tests/peers/numpy_legacy.py, which needs nothing but NumPy.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphir import DType
from tests.peers.numpy_ import DTYPES as NUMPY_DTYPES

DTYPES: dict[DType, np.dtype[Any]] = dict(NUMPY_DTYPES)


class RefusedError(Exception):
    """What NumPy 1 raised, by the name of its class and its text."""


class Remote(NamedTuple):
    """An array of the other process, and a copy of its values."""

    reference: int
    values: np.ndarray[Any, Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


def interpreter() -> str | None:
    """The Python that has NumPy 1, if the environment names one."""
    return os.environ.get("NUMPY_1")


@cache
def _process() -> subprocess.Popen[bytes]:
    python = interpreter()
    assert python, "NUMPY_1 names no interpreter"
    script = Path(__file__).with_name("numpy_legacy.py")
    pipe = subprocess.PIPE
    return subprocess.Popen([python, str(script), "serve"], stdin=pipe, stdout=pipe)


def _asked(*message: Any) -> Any:
    process = _process()
    assert process.stdin and process.stdout
    pickle.dump(message, process.stdin, protocol=4)
    process.stdin.flush()
    answer = pickle.load(process.stdout)
    if answer[0] == "refused":
        raise RefusedError(*answer[1:])
    _, reference, char, shape, raw = answer
    return Remote(reference, np.frombuffer(raw, np.dtype(char)).reshape(shape).copy())


def _sent(x: Any) -> Any:
    """An operand as plain data: a reference, a scalar of NumPy, a dtype, a list or a number."""
    if isinstance(x, Remote):
        return "array", x.reference
    if isinstance(x, np.generic):
        return "scalar", x.dtype.char, x.item()
    if isinstance(x, np.dtype):
        return "dtype", x.char
    return ("list", [_sent(each) for each in x]) if isinstance(x, list) else ("number", x)


def made(x: np.ndarray[Any, Any]) -> Remote:
    """A copy of an array in the other process; one of rank 0 stays an array there."""
    return _asked("make", x.dtype.char, x.shape, x.tobytes())


def call(name: str, *operands: Any, **attrs: Any) -> Remote:
    """A function or operator of NumPy 1, by the name of our op."""
    return _asked("call", name, [_sent(x) for x in operands], attrs)


def _calling(*names: str) -> dict[str, Callable[..., Any]]:
    return {name: partial(call, name) for name in names}


OPERATORS = _calling(
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "bitwise_invert"),
    *("negative", "positive", "abs"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"),
    *("iand", "ior", "ixor", "ilshift", "irshift"),
)
OPS = _calling(
    *("maximum", "minimum", "where", "clip", "sign", "square", "reciprocal", "sqrt"),
    *("floor", "ceil", "trunc", "round", "is_nan", "is_inf", "is_finite", "signbit"),
    *("logical_not", "real", "imag", "conj", "sum", "prod", "max", "min", "mean", "any", "all"),
    *("argmax", "argmin", "sort", "argsort", "cumulative_sum", "cumulative_prod"),
    *("reshape", "broadcast_to", "transpose", "flip", "unsqueeze", "concat", "stack"),
)

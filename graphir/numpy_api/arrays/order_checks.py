"""Refusals: NumPy's functions whose order of operations no op has.

NumPy's compiled code adds, rounds or compares in an order of its own: float16 step by step, einsum
label by label, vectors along their strides. The functions here raise OrderError for such a call of
floats. Then `jit` calls NumPy's code instead, or the error says what to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphir.errors import GraphError
from graphir.hints import ArrayOrNumber
from graphir.numpy_api.arrays.call_operands import (
    arrays_of,
    dtype_of,
    is_known,
    memory_among,
    plains,
)
from graphir.numpy_api.arrays.elementwise_loops import has_own_loop, has_plain_layout
from graphir.numpy_api.arrays.memory import OrderError, TracedValue
from graphir.numpy_api.products import summed_labels
from graphir.numpy_api.traced_numbers import TracedNumber
from graphir.semantics.library_calls import Function, Keywords
from graphir.semantics.numpy_loops import LIKE_POWERS

_EXTREMES = (np.maximum, np.minimum, np.fmax, np.fmin)
"""The ufuncs whose reductions choose one of two equal zeros, otherwise for float16 than ops do."""
_COMPARING_HALVES = np.sort, np.argsort, np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin
"""The functions that compare float16 in float16, where ops compute in float32."""
_ROUNDING_HALVES = (
    *(np.cumsum, np.cumprod, np.cumulative_sum, np.cumulative_prod),
    *(np.nancumsum, np.nancumprod, np.linalg.matrix_power),
)
"""The functions that round each step to float16, or to the dtype that `dtype=` names."""
_OWN_CODE = (
    *(np.quantile, np.percentile, np.nanquantile, np.nanpercentile, np.nanmedian),
    *(np.convolve, np.correlate),
)
"""The functions whose partitions or products add floats, and give zeros their signs."""
_PAIR = 2


def check_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Keywords) -> None:
    """Raise OrderError for a call of a ufunc, or of its method, if no op has NumPy's order."""
    operand, dtype = inputs[0], kwargs.get("dtype")
    if method == "__call__" and dtype is not None and memory_among([inputs, kwargs]).runs_here:
        op_has_bits = all(map(has_plain_layout, inputs)) and ufunc not in LIKE_POWERS
        if not op_has_bits or has_own_loop(ufunc, inputs):
            raise OrderError("NumPy computes in a loop of its own", fix="leave out dtype=")
    if method in ("accumulate", "reduceat") or (method == "reduce" and ufunc in _EXTREMES):
        _check_halves(operand, dtype)
    if ufunc.signature:
        _check_halves(operand)
    if ufunc.__name__ in ("vecdot", "matvec", "vecmat"):
        for array in arrays_of(list(inputs)):
            if not array.in_order and not array.element.is_integer:
                raise OrderError(
                    f"np.{ufunc.__name__} of a strided array has other bits than that of its copy",
                    fix="pass x.copy()",
                )


def check_function(function: Function, args: Sequence[Any], kwargs: Keywords) -> None:
    """Raise OrderError for a call of a function that is no ufunc, if no op has NumPy's order."""
    if kwargs.get("overwrite_input"):
        raise OrderError("NumPy leaves the order of the overwritten input open", fix="leave it out")
    if function is np.einsum:
        _check_einsum(*args, optimize=kwargs.get("optimize"))
    elif function is np.clip:
        _check_bounds([*args[:3], *map(kwargs.get, ("a", "a_min", "a_max", "min", "max"))])
    elif function in _COMPARING_HALVES:
        _check_halves(args[0])
    elif function in _ROUNDING_HALVES:
        _check_halves(args[0], kwargs.get("dtype", args[2] if len(args) > 2 else None))
    elif function in _OWN_CODE:
        _check_own_code(function.__name__, args[:2])


def _check_own_code(name: str, operands: Sequence[Any]) -> None:
    """Raise OrderError for floats where `jit` can call NumPy's own code instead."""
    symbolic = [x for x in operands if isinstance(x, TracedValue) and x.memory.runs_here]
    if {dtype_of(x).kind for x in symbolic} & {"f", "c"}:
        raise OrderError(f"np.{name} adds or orders zeros by its own code")


def _check_halves(x: Any, dtype: Any = None) -> None:
    """Raise OrderError for float16 where `jit` can call NumPy's own loop instead."""
    is_here = isinstance(x, TracedValue) and x.memory.runs_here
    if is_here and np.dtype(dtype or dtype_of(x)) == np.float16:
        raise OrderError("no op computes in float16", fix="use .astype(np.float32)")


def _check_bounds(operands: Sequence[Any]) -> None:
    """Raise OrderError for np.clip where `jit` can call NumPy's loop, which chooses signs of zeros.

    The operands are the array and its bounds. Beside numbers without a dtype of their own, ops have
    NumPy's signs.
    """
    x, *bounds = operands = [value for value in operands if value is not None]
    is_here = any(isinstance(value, TracedValue) and value.memory.runs_here for value in operands)
    dtypes = [dtype_of(value) for value in operands if type(value) is not TracedNumber]
    kinds = {dtype.kind for dtype in dtypes}
    if not is_here or not bounds or not kinds & {"f", "c"}:
        return
    weak = [type(bound) in (int, float, TracedNumber) for bound in bounds]
    is_of_ops = dtype_of(x).kind == "f" and all(weak)
    if len(bounds) == 1:
        is_of_ops = np.float16 not in dtypes  # np.maximum or np.minimum
    zeros = [not is_known(bound) or (np.asarray(plains(bound)) == 0).any() for bound in bounds]
    if "c" in kinds or (any(zeros) and not is_of_ops):
        raise OrderError("NumPy's loops choose the signs of zeros", fix="use np.minimum(x, high)")


def _check_einsum(subscripts: str | ArrayOrNumber, *operands: ArrayOrNumber, optimize: Any) -> None:
    """Raise OrderError if einsum would sum floats: its loops add in an order of their own.

    With `optimize` NumPy multiplies several factors in another order, two at a time.
    """
    if not isinstance(subscripts, str):
        raise GraphError("np.einsum takes subscripts as text here")
    is_reordered = bool(optimize) and len(operands) > _PAIR
    sums_floats = summed_labels(subscripts) and {dtype_of(x).kind for x in operands} & {"f", "c"}
    if is_reordered or sums_floats:
        raise OrderError(
            "np.einsum multiplies and adds in an order of its own",
            fix="write x @ y, (x * y).sum(axis) or np.vecdot",
        )

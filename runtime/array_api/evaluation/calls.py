"""Evaluation of single ops: a cached kernel for each combination of op, attributes and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.conversions import convert
from graphir.public import DType, ops
from graphir.runtime.array_api.evaluation.lazy import TAPE, Lazy
from graphir.semantics.evaluation import contiguous, settings_of
from graphir.semantics.kernels import KERNELS

Array: TypeAlias = NDArray[Any]
Call: TypeAlias = Callable[..., Array]

_MANY = 1 << 12
_CALLS: dict[Any, Call] = {}


def call_of(symbol: Lazy, args: tuple[Lazy, ...]) -> Call:
    """Return the function that computes a symbol from its operands' values, as `interpret` does.

    Its result is C-contiguous. Call the function inside `np.errstate(all="ignore")`.
    """
    key = (symbol.op, symbol.attrs, *[arg.type for arg in args])
    entry = _CALLS.get(key)
    if entry is None:
        if len(_CALLS) >= _MANY:
            _CALLS.clear()
        entry = _CALLS[key] = _make_call(symbol, args)
    return entry


def _make_call(symbol: Lazy, args: tuple[Lazy, ...]) -> Call:
    """Return the kernel of a symbol, with conversions of its operands if necessary.

    Kernels compute in all dtypes of the standard directly, so that no legalization is needed.
    """
    result = symbol.dtype
    if symbol.op is ops.cast:
        return partial(_cast, args[0].dtype, result)
    target_dtypes = TAPE.builder.infer(symbol.op, args, symbol.attrs).operands
    settings = settings_of(symbol.op, result, symbol.attrs, {}, TAPE.tf32)
    kernel = partial(KERNELS[symbol.op.name], **settings)
    casts = [(arg.dtype, to) for arg, to in zip(args, target_dtypes, strict=True)]
    if all(source is to for source, to in casts):
        return partial(_call, kernel, result)
    return partial(_call_cast, casts, kernel, result)


def _cast(source: DType, target: DType, x: Array) -> Array:
    return contiguous(convert(x, source, target))


def _call(kernel: Call, result: DType, *operands: Array) -> Array:
    result_array = np.asarray(kernel(*operands))
    if result_array.dtype != result.storage:  # kernels return indices as int64
        result_array = convert(result_array, DType.from_numpy(result_array.dtype), result)
    return contiguous(result_array)


def _call_cast(
    casts: list[tuple[DType, DType]], kernel: Call, result: DType, *operands: Array
) -> Array:
    pairs = zip(operands, casts, strict=True)
    return _call(kernel, result, *[contiguous(convert(x, *cast)) for x, cast in pairs])

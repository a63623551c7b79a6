"""One op on values: its kernel, made ready once for each combination of attributes and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir import DType, ops
from graphir.conversions import convert
from graphir.semantics.evaluation import contiguous, settings_of
from graphir.semantics.kernels import KERNELS
from runtime.array_api.evaluation.lazy import TAPE, Lazy

Array: TypeAlias = NDArray[Any]
Call: TypeAlias = Callable[..., Array]

_MANY = 1 << 12
_CALLS: dict[Any, Call] = {}


def call_of(symbol: Lazy, args: tuple[Lazy, ...]) -> Call:
    """The function that computes a symbol from the values of its operands, as `interpret` does.

    The result is contiguous. Call it inside `np.errstate(all="ignore")`.
    """
    key = (symbol.op, symbol.attrs, *[one.type for one in args])
    found = _CALLS.get(key)
    if found is None:
        if len(_CALLS) >= _MANY:
            _CALLS.clear()
        found = _CALLS[key] = _made(symbol, args)
    return found


def _made(symbol: Lazy, args: tuple[Lazy, ...]) -> Call:
    """All dtypes of the standard are computed in as they are, so conversions are all there is."""
    result = symbol.dtype
    if symbol.op is ops.cast:
        return partial(_cast, args[0].dtype, result)
    wanted = TAPE.builder.infer(symbol.op, args, symbol.attrs).operands
    settings = settings_of(symbol.op, result, symbol.attrs, {}, TAPE.tf32)
    kernel = partial(KERNELS[symbol.op.name], **settings)
    casts = [(one.dtype, to) for one, to in zip(args, wanted, strict=True)]
    if all(source is to for source, to in casts):
        return partial(_call, kernel, result)
    return partial(_call_cast, casts, kernel, result)


def _cast(source: DType, target: DType, x: Array) -> Array:
    return contiguous(convert(x, source, target))


def _call(kernel: Call, result: DType, *operands: Array) -> Array:
    made = np.asarray(kernel(*operands))
    if made.dtype != result.storage:  # places, which are made as int64
        made = convert(made, DType.from_numpy(made.dtype), result)
    return contiguous(made)


def _call_cast(
    casts: list[tuple[DType, DType]], kernel: Call, result: DType, *operands: Array
) -> Array:
    pairs = zip(operands, casts, strict=True)
    return _call(kernel, result, *[contiguous(convert(x, *cast)) for x, cast in pairs])

"""Dtypes, constants and casts as expressions of NumPy."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.conversions import convert
from runtime.binding import numpy_name

_WRITTEN = 64
"""Constants of more elements are written as the bytes they are."""


def plain(dtype: DType) -> DType:
    """The dtype of NumPy itself in which values of `dtype` are exact."""
    if dtype.is_integer and dtype.narrow:
        return DType.int8 if dtype.family == "int" else DType.uint8
    if dtype.is_float and dtype.bits < 32:
        return DType.float32
    return DType.from_numpy(dtype.storage)


def number(value: Any) -> str:
    """A Python number as an expression."""
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float) and (value != value or value in (np.inf, -np.inf)):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def word(value: str) -> str:
    """A string as an expression, in ASCII."""
    text = ascii(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text


def constant(array: NDArray[Any], dtype: DType) -> str:
    """Known values as an expression."""
    name, wide = numpy_name(dtype), plain(dtype)
    if array.size > _WRITTEN:
        text = base64.b85encode(np.ascontiguousarray(array).tobytes()).decode()
        raw = f'np.frombuffer(base64.b85decode("{text}"), np.uint8)'
        return f"{raw}.view({name}).reshape({array.shape})"
    values = convert(array, dtype, wide) if dtype is not DType.tensor_float32 else array
    if not array.ndim and name.startswith("np."):
        return f"{name}({number(values.item())})"
    made = f"np.array({_nested(values.tolist())}, {numpy_name(wide)})"
    made = made if array.size else f"np.zeros({array.shape}, {numpy_name(wide)})"
    return made if numpy_name(wide) == name else f"{made}.astype({name})"


def _nested(values: Any) -> str:
    return f"[{', '.join(map(_nested, values))}]" if isinstance(values, list) else number(values)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def converted(x: str, source: DType, target: DType, tf32: str, uses: set[str]) -> str:
    """The expression that casts a value, as graphir.conversions does; notes what it uses."""
    if source.storage == target.storage and target is not DType.tensor_float32:
        return x
    if source.is_complex or (source.storage == target.storage and not source.is_float):
        return _as(x, source, target)
    if target.is_complex:
        return _as(converted(x, source, target.part, tf32, uses), target.part, target)
    loaded = _as(x, source, plain(source))
    if target.is_integer:
        whole = plain(target)
        if source.is_float:
            loaded = f"saturated({loaded}, {numpy_name(whole)}, {target.min}, {target.max})"
            uses.add("saturated")
        else:
            loaded = _as(loaded, plain(source), whole)
        return _as(loaded, whole, target)
    if target.family == "bool" or target in _ROUNDED_BY_NUMPY:
        return _as(loaded, plain(source), target)
    return _narrowed(loaded, source, target, tf32, uses)


_ROUNDED_BY_NUMPY = {DType.float16, DType.float32, DType.float64}


def _narrowed(loaded: str, source: DType, target: DType, tf32: str, uses: set[str]) -> str:
    """The one rounding that NumPy has not, from a plain dtype."""
    if source.exact_in(DType.float32):
        loaded = _as(loaded, plain(source), DType.float32)
    else:
        uses.add("to_odd")
        loaded = f"to_odd({loaded})"
    if target is DType.tensor_float32:
        uses.add("round_to_tf32")
        return f"round_to_tf32({loaded}, {word(tf32)})"
    if target is DType.bfloat16:
        return _as(loaded, DType.float32, target)
    helper = "scaled" if target is DType.float8_e8m0fnu else "narrowed"
    uses.add(helper)
    return f"{helper}({loaded}, {numpy_name(target)})"


def _as(x: str, source: DType, target: DType) -> str:
    return x if source.storage == target.storage else f"{x}.astype({numpy_name(target)})"

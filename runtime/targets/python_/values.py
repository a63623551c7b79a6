"""Constants and casts as NumPy expressions."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir import DType
from graphir.conversions import (
    Conversions,
    Step,
    convert,
    plain,
    round_to_odd,
    rounding,
    same_value,
    sticky,
)
from graphir.runtime.binding import numpy_name

_MAX_WRITTEN = 64
"""The most elements of a constant that is written number by number; larger ones are bytes."""


def number(value: Any) -> str:
    """Return a Python number as an expression."""
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float) and (value != value or value in (np.inf, -np.inf)):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def literal(value: Any) -> str:
    """Return a number or a string as an expression."""
    return word(value) if isinstance(value, str) else number(value)


def word(value: str) -> str:
    """Return a string as an expression, in ASCII."""
    text = ascii(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text


def constant(array: NDArray[Any], dtype: DType) -> str:
    """Return an array of known values as an expression."""
    name, wide = numpy_name(dtype), plain(dtype)
    if array.size > _MAX_WRITTEN:
        text = base64.b85encode(np.ascontiguousarray(array).tobytes()).decode()
        raw = f'np.frombuffer(base64.b85decode("{text}"), np.uint8)'
        return f"{raw}.view({name}).reshape({array.shape})"
    values = convert(array, dtype, wide)
    if not array.ndim and name.startswith("np."):
        return f"{name}({number(values.item())})"
    array_text = f"np.array({_nested(values.tolist())}, {numpy_name(wide)})"
    array_text = array_text if array.size else f"np.zeros({array.shape}, {numpy_name(wide)})"
    return array_text if numpy_name(wide) == name else f"{array_text}.astype({name})"


def _nested(values: Any) -> str:
    return f"[{', '.join(map(_nested, values))}]" if isinstance(values, list) else number(values)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class PythonConversions(Conversions):
    """The steps of casts, each of which maps an expression to an expression.

    A step adds the helpers that its expression names to `uses`.
    """

    def __init__(self, uses: set[str]) -> None:
        self.uses = uses

    def cast(self, source: DType, target: DType) -> Step:
        """Return the step of the conversion by NumPy or ml_dtypes."""
        if source.storage == target.storage:
            return same_value
        return lambda x: f"{x}.astype({numpy_name(target)})"

    def widen(self, source: DType) -> Step:
        """Return the step of the conversion by NumPy or ml_dtypes to a wider dtype."""
        return self.cast(source, plain(source))

    def saturate(self, target: DType) -> Step:
        """Return the step that calls `saturated` of graphir.conversions."""
        limits = f"{target.min}, {target.max}"
        return self._call("saturated", numpy_name(plain(target)), limits)

    def to_odd(self, source: DType) -> tuple[Step, ...]:
        """Return the steps that call `sticky` and `round_to_odd` of graphir.conversions."""
        functions: dict[Any, Step] = {
            sticky: self._call("sticky"),
            round_to_odd: self._call("round_to_odd"),
        }
        return tuple([functions.get(step, step) for step in super().to_odd(source)])

    def narrow(self, target: DType, tf32: str) -> Step:
        """Return the step that calls a rounding of graphir.conversions, and stores by ml_dtypes."""
        if target is DType.bfloat16:
            return self.cast(DType.float32, target)
        function = rounding(target, tf32)
        settings = [f"{name}={literal(value)}" for name, value in function.keywords.items()]
        round_call, store = (
            self._call(function.func.__name__, *settings),
            self.cast(plain(target), target),
        )
        return lambda x: store(round_call(x))

    def _call(self, function: str, *settings: str) -> Step:
        """Return the step that calls a helper; the step adds the helper to `uses` when it runs."""

        def call(x: str) -> str:
            self.uses.add(function)
            return f"{function}({', '.join([x, *settings])})"

        return call


def cast_expression(x: str, source: DType, target: DType, tf32: str, uses: set[str]) -> str:
    """Return the expression that casts `x` with the bits of graphir.conversions.

    The helpers that the expression names are added to `uses`.
    """
    return PythonConversions(uses).convert(x, source, target, tf32)

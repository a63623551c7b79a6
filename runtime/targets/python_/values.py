"""Dtypes, constants and casts as expressions of NumPy."""

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
from runtime.binding import numpy_name

_MAX_WRITTEN = 64
"""Constants of more elements are written as the bytes they are."""


def number(value: Any) -> str:
    """A Python number as an expression."""
    if isinstance(value, complex):
        return f"complex({number(value.real)}, {number(value.imag)})"
    if isinstance(value, float) and (value != value or value in (np.inf, -np.inf)):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def literal(value: Any) -> str:
    """A number or a string as an expression."""
    return word(value) if isinstance(value, str) else number(value)


def word(value: str) -> str:
    """A string as an expression, in ASCII."""
    text = ascii(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text


def constant(array: NDArray[Any], dtype: DType) -> str:
    """Known values as an expression."""
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
    """The steps of each cast as expressions of an expression; `uses` are the helpers they name."""

    def __init__(self, uses: set[str]) -> None:
        self.uses = uses

    def cast(self, source: DType, target: DType) -> Step:
        """NumPy's and ml_dtypes' own conversion."""
        if source.storage == target.storage:
            return same_value
        return lambda x: f"{x}.astype({numpy_name(target)})"

    def widen(self, source: DType) -> Step:
        """NumPy's and ml_dtypes' own conversion."""
        return self.cast(source, plain(source))

    def saturate(self, target: DType) -> Step:
        """A call of the function of graphir.conversions."""
        limits = f"{target.min}, {target.max}"
        return self._call("saturated", numpy_name(plain(target)), limits)

    def to_odd(self, source: DType) -> tuple[Step, ...]:
        """Calls of functions of graphir.conversions."""
        functions: dict[Any, Step] = {
            sticky: self._call("sticky"),
            round_to_odd: self._call("round_to_odd"),
        }
        return tuple([functions.get(step, step) for step in super().to_odd(source)])

    def narrow(self, target: DType, tf32: str) -> Step:
        """A call of a function of graphir.conversions, whose values ml_dtypes stores."""
        if target is DType.bfloat16:
            return self.cast(DType.float32, target)
        function = rounding(target, tf32)
        settings = [f"{name}={literal(value)}" for name, value in function.keywords.items()]
        rounded, store = (
            self._call(function.func.__name__, *settings),
            self.cast(plain(target), target),
        )
        return lambda x: store(rounded(x))

    def _call(self, function: str, *settings: str) -> Step:
        """A call of a helper, which is noted where the step is taken."""

        def call(x: str) -> str:
            self.uses.add(function)
            return f"{function}({', '.join([x, *settings])})"

        return call


def converted(x: str, source: DType, target: DType, tf32: str, uses: set[str]) -> str:
    """The expression that casts a value, as graphir.conversions does; notes what it uses."""
    return PythonConversions(uses).converted(x, source, target, tf32)

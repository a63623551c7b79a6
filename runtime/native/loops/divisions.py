"""Division of integers in machine code, which processors do one element at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphir.runtime.native.vectors import splat, where


def _divided(divide: str, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return whether y is 0, and quotient and remainder, toward zero, by a y that is no trap."""
    signed = x.dtype.kind == "i"
    unfit = zero = np.equal(y, x.dtype.type(0))
    if signed:
        least = x.dtype.type(np.iinfo(x.dtype).min)
        unfit = zero | (np.equal(x, least) & np.equal(y, x.dtype.type(-1)))
    safe = where(unfit, x.dtype.type(1), y)
    prefix = "s" if signed else "u"
    return zero, safe, x.emit_value(f"{prefix}{divide} {x.type} {x.name}, {safe.name}", x.dtype)


def _is_below(rest: Any, y: Any) -> Any:
    """Whether the quotient toward zero is above the floor."""
    none = rest.dtype.type(0)
    return np.not_equal(rest, none) & np.less(rest ^ y, none)


def _bits(y: Any) -> int | None:
    """Return the bits below a constant that is a power of two; None for other divisors."""
    value = 0 if y.number is None else int(y.number)
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _floor_divide(x: Any, y: Any) -> Any:
    bits = _bits(y)
    if bits is not None:
        shift, count = "ashr" if x.dtype.kind == "i" else "lshr", splat(bits, x.dtype)
        return x.emit_value(f"{shift} {x.type} {x.name}, {count}", x.dtype)
    zero, safe, quotient = _divided("div", x, y)
    if x.dtype.kind == "i":
        rest = x - quotient * safe
        quotient = where(_is_below(rest, safe), quotient - x.dtype.type(1), quotient)
    return where(zero, x.dtype.type(0), quotient)


def _remainder(x: Any, y: Any) -> Any:
    bits = _bits(y)
    if bits is not None:
        return x & x.dtype.type((1 << bits) - 1)
    zero, safe, rest = _divided("rem", x, y)
    if x.dtype.kind == "i":
        rest = where(_is_below(rest, safe), rest + safe, rest)
    return where(zero, x.dtype.type(0), rest)


DIVISIONS: Mapping[Any, Callable[[Any, Any], Any]] = {
    np.floor_divide: _floor_divide,
    np.remainder: _remainder,
}
"""The emitters of the divisions, for two integers of one dtype."""

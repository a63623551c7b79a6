"""How much damage casts do, as far as dtypes tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passes.analysis.casts.conversion import CastConversion


def relative_error(conversion: CastConversion) -> float:
    """The relative error that a conversion gives a value, estimated from its dtypes.

    Of a known number, its own. Else the unit roundoff of the target where significant bits go, and
    little for a range or a sign that values seldom leave. A fraction that the user makes an integer
    is none. Integers are as often of each number of bits (Benford's law, in base 2).
    """
    loss, target = conversion.loss, conversion.target
    if loss.exact:
        return 0.0
    if conversion.kind == "literal":
        return _error_of(loss.witness, loss.becomes)
    by_user = conversion.kind == "explicit" and target.format is None
    rounding = {} if by_user else {"precision": 2.0**-target.precision * _rounded_share(conversion)}
    errors = {**_SELDOM, **rounding}
    return sum(errors[kind] for kind in loss.kinds if kind in errors)


_SELDOM = {"sign": 2.0**-12, "range": 2.0**-16, "underflow": 2.0**-30, "special": 2.0**-40}


def _rounded_share(conversion: CastConversion) -> float:
    """The part of the values whose bits are more than the target has."""
    source, target = conversion.source, conversion.target
    return 1.0 if source.format else max(1 - target.precision / source.precision, 0.0)


def _error_of(number: complex | None, result: complex | None) -> float:
    if number is None or result is None or not number:
        return 0.0
    error = abs(result - number) / abs(number)
    return min(error, 1.0) if math.isfinite(error) else 1.0

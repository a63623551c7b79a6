"""A static estimate of the relative error that a cast introduces, from its dtypes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.conversion import CastConversion


def relative_error(conversion: CastConversion) -> float:
    """Return the relative error of a converted value, estimated from the conversion's dtypes.

    A Python number has its actual relative error. Otherwise the estimate is a sum over the kinds of
    loss: the unit roundoff of the target for lost significant bits, and a small constant for range,
    sign, underflow and special values, which few values lose. A float that the program, or a NumPy
    function, casts to an integer has no rounding error here. The model assumes that integers of
    each bit length are equally frequent (Benford's law in base 2).
    """
    loss, target = conversion.loss, conversion.target
    if loss.exact:
        return 0.0
    if conversion.kind == "literal":
        return _error_of(loss.witness, loss.becomes)
    truncates = conversion.on_request and target.format is None
    rounding = (
        {} if truncates else {"precision": 2.0**-target.precision * _rounded_share(conversion)}
    )
    errors = {**_SELDOM, **rounding}
    return sum(errors[kind] for kind in loss.kinds if kind in errors)


_SELDOM = {"sign": 2.0**-12, "range": 2.0**-16, "underflow": 2.0**-30, "special": 2.0**-40}


def _rounded_share(conversion: CastConversion) -> float:
    """Return the share of values with more significant bits than the target's precision."""
    source, target = conversion.source, conversion.target
    return 1.0 if source.format else max(1 - target.precision / source.precision, 0.0)


def _error_of(number: complex | None, result: complex | None) -> float:
    if number is None or result is None or not number:
        return 0.0
    error = abs(result - number) / abs(number)
    return min(error, 1.0) if math.isfinite(error) else 1.0

"""How much damage casts do, as far as dtypes tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passes.casts.rows import Conversion


def relative_error(conversion: Conversion) -> float:
    """The relative error that a conversion gives a value, estimated from its dtypes.

    Of a known number, its own. Else the unit roundoff of the target where significant bits go;
    little for a range or a sign that values seldom reach.
    """
    loss, target = conversion.loss, conversion.target
    if loss.exact:
        return 0.0
    if conversion.kind == "literal":
        return _error_of(loss.witness, loss.becomes)
    roundoff = 2.0**-target.precision if target.format else 2.0**-2
    found = {
        "precision": roundoff,
        "sign": 2.0**-4,
        "range": 2.0**-16,
        "underflow": 2.0**-30,
        "special": 2.0**-40,
    }
    return sum(found[kind] for kind in loss.kinds)


def _error_of(number: complex | None, made: complex | None) -> float:
    if number is None or made is None or not number:
        return 0.0
    error = abs(made - number) / abs(number)
    return min(error, 1.0) if math.isfinite(error) else 1.0

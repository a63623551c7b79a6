"""CastConversion: the facts shared by all casts of one operand kind, dtype pair and rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from graphir.location import ASSIGN, NUMPY, CastKind, kind_of_rule
from graphir.loss import Loss, literal_loss, loss
from graphir.public import DType, PromotionRules

Kind: TypeAlias = Literal[CastKind, "literal"]
"""The kind of a cast; "literal" is the conversion of a Python number, which needs no cast op."""

StepLoss: TypeAlias = Literal[
    "wrap",
    "overflow",
    "underflow",
    "invalid",
    "cancellation",
    "absorption",
    "accumulation",
    "rounding",
]
"""The kinds of losses in arithmetic.

"wrap": an integer result beyond its dtype. "overflow": a finite float result that became infinite
or NaN. "underflow": a nonzero result that became zero. "invalid": NaN of operands without NaN.
"cancellation": a difference of nearly equal operands, in which their errors are most of the result.
"absorption": a sum that lost half of its smaller operand or more. "accumulation": the sum of many
roundings, in a reduction or in a loop. "rounding": plain roundings that explain more of an output's
error than any cast or other loss.
"""

SILENT: tuple[Kind, ...] = ("implicit", "assignment")
"""The kinds of casts that a program does not spell out."""


@dataclass(frozen=True)
class CastConversion:
    """The facts shared by equal uses of casts: see the properties of CastRow."""

    kind: Kind | StepLoss
    op: str
    operand: str
    rule: str
    source: DType
    target: DType
    path: tuple[DType, ...]
    loss: Loss

    @property
    def stores(self) -> bool:
        """Whether the cast converts a result or a value stored in an array, not an operand."""
        return self.operand == "result" or self.rule == ASSIGN

    @property
    def is_silent(self) -> bool:
        """Whether policies and gates judge the cast: the program does not spell it out.

        A Python number that takes the dtype of its partner counts if it overflows or underflows.
        """
        if self.kind == "literal":
            return self.loss.kinds not in ((), ("precision",))
        return self.kind in SILENT

    @property
    def on_request(self) -> bool:
        """Whether the program asks for the cast, or a NumPy function by itself."""
        return self.kind == "explicit" or self.op.startswith(NUMPY)

    @cached_property
    def damage(self) -> float:
        """The relative error of a converted value, estimated from the dtypes; 0.0 if exact."""
        return relative_error(self)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The JSON fields that all rows with this conversion share."""
        exact, witness = self.loss.exact, self.loss.witness
        return {
            "kind": self.kind,
            "op": self.op,
            "operand": self.operand,
            "rule": self.rule,
            "from": str(self.source),
            "to": str(self.target),
            "path": [str(dtype) for dtype in self.path],
            "exact": exact,
            "witness": None if exact else str(witness),
            "loss": self.loss.to_json(),
            "bytes_before": self.source.storage.itemsize,
            "bytes_after": self.target.storage.itemsize,
            "damage": self.damage,
        }


def cast_conversion(
    operand: str,
    op: str,
    rule: str,
    source: DType,
    target: DType,
    number: complex | None,
    literal: bool = False,
    concrete: DType | None = None,
) -> CastConversion:
    """Return the conversion of an operand of an op under the rule of an Origin.

    `number` is the value of a constant operand, or None. `literal` is True if the program writes
    the number without a dtype. `concrete` is the dtype in which a weak target is computed.
    """
    kind: Kind = kind_of_rule(rule)
    path = (source, target)
    if literal:
        kind = "literal"
    elif kind == "implicit":
        path = PromotionRules.find(rule).path(source, target)
        kind = "literal" if source.weak and number is not None else kind
    losses = loss(source, concrete or target) if number is None else literal_loss(number, target)
    return CastConversion(kind, op, operand, rule, source, target, path, losses)


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
    # The share of values with more significant bits than the target's precision.
    source = conversion.source
    rounded_share = 1.0 if source.format else max(1 - target.precision / source.precision, 0.0)
    truncates = conversion.on_request and target.format is None
    rounding = {} if truncates else {"precision": 2.0**-target.precision * rounded_share}
    errors = {**_SELDOM, **rounding}
    return sum(errors[kind] for kind in loss.kinds if kind in errors)


_SELDOM = {"sign": 2.0**-12, "range": 2.0**-16, "underflow": 2.0**-30, "special": 2.0**-40}


def _error_of(number: complex | None, result: complex | None) -> float:
    if number is None or result is None or not number:
        return 0.0
    error = abs(result - number) / abs(number)
    return min(error, 1.0) if math.isfinite(error) else 1.0

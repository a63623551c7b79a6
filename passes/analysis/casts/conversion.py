"""What casts of one kind of operand between two dtypes under one rule have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from graphir import DType, rules
from graphir.location import ASSIGN, CastKind, kind_of_rule
from graphir.loss import Loss, literal_loss, loss
from passes.analysis.casts.damage import relative_error

Kind: TypeAlias = Literal[CastKind, "literal"]
"""The kind of a cast; "literal" of a Python number, which takes a dtype without one."""

SILENT: tuple[Kind, ...] = ("implicit", "assignment")
"""The kinds of casts that a program has without writing them."""


@dataclass(frozen=True)
class CastConversion:
    """What the uses of casts that are alike share: see the properties of CastRow."""

    kind: Kind
    op: str
    operand: str
    rule: str
    source: DType
    target: DType
    path: tuple[DType, ...]
    loss: Loss

    @property
    def stores(self) -> bool:
        """Whether it casts a result, or what is put into an array: no operand of an op."""
        return self.operand == "result" or self.rule == ASSIGN

    @cached_property
    def damage(self) -> float:
        """The relative error that it gives a value, as far as dtypes tell; 0.0 where exact."""
        return relative_error(self)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The fields of rows with this conversion as JSON has them."""
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
) -> CastConversion:
    """The conversion of an operand of an op under the rule of an Origin.

    `number` is the value of an operand that is known; `literal` where the program writes it without
    a dtype.
    """
    kind: Kind = kind_of_rule(rule)
    path = (source, target)
    if literal:
        kind = "literal"
    elif kind == "implicit":
        path = rules(rule).path(source, target)
        kind = "literal" if source.weak and number is not None else kind
    losses = loss(source, target) if number is None else literal_loss(number, target)
    return CastConversion(kind, op, operand, rule, source, target, path, losses)

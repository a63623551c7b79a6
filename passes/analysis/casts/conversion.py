"""The casts of a graph: CastConversion, the facts that equal casts share, and CastWalk.

The walk yields uses of casts, which reports and policies filter. A cast is written down or implied.
A written cast is a `cast` symbol, or a constant that a cast was folded into; its origins name its
uses. An implied cast converts an operand whose dtype differs from the dtype that its op's signature
names. A Python number that changes as it takes a dtype counts as a cast of kind "literal". The walk
derives the implied casts once for each kind of symbol (op, attributes, operand types).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from graphir.ir.implied_casts import ImpliedCast, implied
from graphir.ir.operands import number_of
from graphir.location import ASSIGN, CAST, LEGALIZE, NUMPY, CastKind, kind_of_rule
from graphir.loss import Loss, literal_loss, loss
from graphir.promotion.scalars import WEAK
from graphir.public import DType, Graph, Location, PromotionRules, Symbol, ops

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
        """The relative error of a converted value, estimated from the dtypes; 0.0 if exact.

        A Python number has its actual relative error. Otherwise the estimate is a sum over the
        kinds of loss: the unit roundoff of the target for lost significant bits, and a small
        constant for range, sign, underflow and special values, which few values lose. A float that
        the program, or a NumPy function, casts to an integer has no rounding error here. The model
        assumes that integers of each bit length are equally frequent (Benford's law in base 2).
        """
        loss, target = self.loss, self.target
        if loss.exact:
            return 0.0
        if self.kind == "literal":
            number, result = loss.witness, loss.becomes
            error = abs(result - number) / abs(number) if number and result is not None else 0.0
            return min(error, 1.0) if math.isfinite(error) else 1.0
        # The share of values with more significant bits than the target's precision.
        source = self.source
        rounded_share = 1.0 if source.format else max(1 - target.precision / source.precision, 0.0)
        truncates = self.on_request and target.format is None
        rounding = {} if truncates else {"precision": 2.0**-target.precision * rounded_share}
        errors = {**_SELDOM, **rounding}
        return sum(errors[kind] for kind in loss.kinds if kind in errors)

    @property
    def site_key(self) -> object:
        """What the rows of a site share: all of the conversion but a Python number."""
        if self.kind != "literal":
            return self
        return self.op, self.operand, self.rule, self.source, self.target

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


_SELDOM = {"sign": 2.0**-12, "range": 2.0**-16, "underflow": 2.0**-30, "special": 2.0**-40}


# -- the walk over the casts of a graph

ConversionUse: TypeAlias = tuple[CastConversion, Location, Symbol, int]
"""One use of one cast: (conversion, location, symbol, position); a plain tuple for speed.

For a written cast, the symbol is the cast and the position is -1. For an implied cast, the symbol
is the op, and the position is that of the cast operand (-1: the result is cast).
"""

_Origin: TypeAlias = tuple[str, str, Location, str, DType, DType]
"""An Origin as a plain tuple, which saves the Python call of a named tuple's constructor."""


_OperandCast: TypeAlias = tuple[CastConversion | None, ImpliedCast]
"""An implied cast of one kind of symbol, with its conversion.

The conversion is None for a 0-d operand, which may be a constant whose loss depends on its value.
"""


class CastWalk:
    """The uses of casts in a graph: all uses, or the uses whose conversions satisfy a predicate.

    With a predicate, the walk omits casts that the user wrote.
    """

    def __init__(
        self, graph: Graph, predicate: Callable[[CastConversion], bool] | None = None
    ) -> None:
        self.graph, self.predicate = graph, predicate
        # Cache of conversions; None marks a conversion that fails the predicate.
        self._conversions: dict[Any, CastConversion | None] = {}

    def casts(self, symbols: Collection[Symbol]) -> Iterator[ConversionUse]:
        """Yield the uses of the casts of `symbols`, in the order of the symbols."""
        implicit, cast, every = self.graph.rules.implicit, ops.cast, self.predicate is None
        plans: dict[Any, list[_OperandCast]] = {}
        for symbol, kind in zip(symbols, self.graph.kinds(symbols), strict=True):
            plan = plans.get(kind)
            if plan is None:
                is_inserted = not isinstance(symbol.source, Location)
                if is_inserted or (every and symbol.op is cast):
                    yield from self._uses_of_cast(symbol)
                if is_inserted or symbol.op is cast or not implicit or not symbol.args:
                    continue
                plan = plans[kind] = self._plan(symbol)
            for conversion, implied_cast in plan:
                if conversion is None:
                    conversion = self._of_operand(symbol, implied_cast)
                if conversion is not None:
                    yield conversion, symbol.location, symbol, implied_cast.position

    def literals(self, symbols: Collection[Symbol]) -> Iterator[ConversionUse]:
        """Yield the first use of each Python number whose value its dtype changes."""
        constant, rule = ops.constant, self.graph.rules.name
        pending = {x.index for x in symbols if x.op is constant and _is_changed(x)}
        for user in symbols if pending else ():
            for position, arg in enumerate(user.args):
                if arg.index in pending:
                    pending.remove(arg.index)
                    number, op = arg.attrs["literal"], user.op
                    source, operand = WEAK[type(number)], op.operand(position)
                    conversion = self._conversion(
                        operand, op.name, rule, source, arg.dtype, number, True
                    )
                    if conversion is not None:
                        yield conversion, user.location, user, position

    def _uses_of_cast(self, symbol: Symbol) -> Sequence[ConversionUse]:
        """Return the uses that an inserted cast serves; a user's cast is the one use of itself.

        In a graph of implicit casts, those of legalization are steps of a kernel.
        """
        source, number = symbol.source, None
        origins: Sequence[_Origin] = () if isinstance(source, Location) else source
        if symbol.op is ops.cast:
            x = symbol.args[0]
            number = number_of(x) if x.op is ops.constant else None
            if isinstance(source, Location):
                origins = (("x", "cast", source, CAST, x.type.dtype, symbol.type.dtype),)
        return [
            (conversion, location, symbol, -1)
            for operand, op, location, rule, before, after in origins
            if (before is not after or rule == CAST)
            and not (rule == LEGALIZE and self.graph.rules.implicit)
            and (conversion := self._conversion(operand, op, rule, before, after, number))
        ]

    def _plan(self, symbol: Symbol) -> list[_OperandCast]:
        """Return the implied casts of all symbols of the given symbol's kind."""
        casts_needed, plan = implied(self.graph, symbol), list[_OperandCast]()
        casts = list(casts_needed.casts)
        if casts_needed.result is not symbol.type:
            result = casts_needed.result.dtype
            casts.append(ImpliedCast(-1, "result", result, symbol.dtype))
        for cast in casts:
            scalar = cast.position >= 0 and not symbol.args[cast.position].shape
            conversion = None if scalar else self._of_operand(symbol, cast)
            if scalar or conversion is not None:
                plan.append((conversion, cast))
        return plan

    def _of_operand(self, symbol: Symbol, cast: ImpliedCast) -> CastConversion | None:
        """Return the conversion of an implied cast; the loss of a 0-d constant is its own."""
        position, operand, source, target = cast
        rule, arg = self.graph.rules.name, symbol if position < 0 else symbol.args[position]
        is_number = position >= 0 and arg.op is ops.constant and not arg.shape
        number = number_of(arg) if is_number else None
        literal = is_number and arg.attrs["literal"] is not None
        return self._conversion(operand, symbol.op.name, rule, source, target, number, literal)

    def _conversion(
        self,
        operand: str,
        op: str,
        rule: str,
        source: DType,
        target: DType,
        number: complex | None,
        literal: bool = False,
    ) -> CastConversion | None:
        """Return the cached conversion, or None if it fails the predicate."""
        key = operand, op, rule, source.code, target.code, number, literal
        try:
            return self._conversions[key]
        except KeyError:
            concrete = self.graph.concrete_dtype(target)
            result = cast_conversion(operand, op, rule, source, target, number, literal, concrete)
            rule_target = result if self.predicate is None or self.predicate(result) else None
            self._conversions[key] = rule_target
            return rule_target


def _is_changed(constant: Symbol) -> bool:
    """Whether the dtype of a constant changed the value of its Python number."""
    literal, dtype = constant.attrs["literal"], constant.dtype
    return literal is not None and not dtype.weak and not literal_loss(literal, dtype).exact

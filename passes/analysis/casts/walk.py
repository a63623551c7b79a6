"""The walk over the casts of a graph; reports and policies filter the uses that it yields.

A cast is written down or implied. A written cast is a `cast` symbol, or a constant that a cast was
folded into; its origins name its uses. An implied cast converts an operand whose dtype differs from
the dtype that its op's signature names. A Python number that changes as it takes a dtype counts as
a cast of kind "literal". The walk derives the implied casts once for each kind of symbol (op,
attributes, operand types).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeAlias

from graphir.ir.implied_casts import ImpliedCast, implied
from graphir.ir.operands import number_of
from graphir.location import CAST, LEGALIZE
from graphir.loss import literal_loss
from graphir.passes.analysis.casts.conversion import CastConversion, cast_conversion
from graphir.promotion.scalars import WEAK
from graphir.public import DType, Graph, Location, Symbol, ops

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

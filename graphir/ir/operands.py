"""What an op is called on: symbols, arrays and literals, made symbols of one graph."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphir import errors, ops
from graphir.dtypes import DType
from graphir.errors import GraphError, OperandInfo
from graphir.ir.foreign_arrays import is_foreign_array
from graphir.ir.literals import is_literal, literal_array
from graphir.ir.symbol import Symbol
from graphir.ops.op import GraphValue, Op
from graphir.ops.types import TensorType
from graphir.promotion.operands import Number, Place
from graphir.promotion.python import ruling
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import number_text

if TYPE_CHECKING:
    from graphir.ir.graph import Graph


def symbols_of(graph: Graph, op: Op, operands: Sequence[Any]) -> tuple[Symbol, ...]:
    """The operands as symbols: arrays keep their dtype, literals take their partners'."""
    for one in operands:
        if one.__class__ is not Symbol or one.graph is not graph:
            break
    else:
        return tuple(operands)
    operands = [one.read() if is_wrapper(one) else one for one in operands]
    enter = graph.rules.entering
    given = [enter(one) if isinstance(one, np.generic) else one for one in operands]
    joined = op.signature.joined
    places = range(len(given)) if joined is None else joined
    beside = [given[i].type for i in places if isinstance(given[i], Symbol)]
    made: list[Any] = [
        one if is_literal(one) else _symbol(graph, one, op, beside if i in places else ())
        for i, one in enumerate(given)
    ]
    if all(isinstance(one, Symbol) for one in made):
        return tuple(made)
    if graph.numbers is not None:
        return graph.numbers.entered(op, made)
    return tuple(
        one if isinstance(one, Symbol) else _constant(graph, one, *taken(graph.rules, op, made, i))
        for i, one in enumerate(made)
    )


def is_wrapper(value: Any) -> bool:
    """Whether a value is an array or scalar of a traced function, which `read()` makes a symbol."""
    return isinstance(value, GraphValue) and not isinstance(value, Symbol)


def taken(
    rules: PromotionRules,
    op: Op | None,
    operands: Sequence[Any],
    position: int,
    computed: bool = False,
) -> tuple[Any, DType]:
    """The number and dtype that a literal is taken as, among symbols, types and other literals.

    Without an op those that it has by itself; `computed` says that an op computed the first
    operand, where that is a type.
    """
    value = operands[position]
    if op is None:
        return value, rules.literal(value)
    joined = op.signature.joined
    if joined is not None:
        if position not in joined:
            return value, op.signature.other
        operands, position = [operands[i] for i in joined], joined.index(position)
    types = [
        one.type if isinstance(one, Symbol) else one if type(one) is TensorType else Number(one)
        for one in operands
    ]
    place = Place(types, position, op.name, computed or is_computed(operands))
    rules = ruling(rules, op.name, types)
    number = rules.literal_value(value, place)
    return number, rules.literal(number, place)


def is_computed(operands: Sequence[Any]) -> bool:
    """Whether the first operand is a symbol that an op computed."""
    return isinstance(operands[0], Symbol) and operands[0].op.kind != "creation"


def number_of(symbol: Symbol) -> complex | None:
    """The number that a symbol is known to be, a 0-d constant that is one in Python too."""
    if symbol.op is not ops.constant or symbol.shape or symbol.dtype.storage.kind not in "iufc":
        return None
    return symbol.attrs["value"].item()


def _constant(graph: Graph, literal: Any, number: Any, dtype: DType) -> Symbol:
    return graph.constant_of(literal_array(number, dtype, graph.rules, graph.tf32), literal)


def _symbol(graph: Graph, operand: Any, op: Op, partners: Sequence[TensorType]) -> Symbol:
    if isinstance(operand, Symbol):
        return own(graph, operand, op.name)
    if not _is_operand(operand):
        raise GraphError(
            f"an op does not take {brief(operand)}",
            fix="use a symbol, a number, or an array with a dtype, for example "
            "g.constant[DType....](...)",
        )
    made = graph.entering(operand)
    to = graph.rules.array(made.dtype, partners, op.name, operand)
    return made if to is made.dtype else made.cast(to)


def own(graph: Graph, symbol: Symbol, what: str) -> Symbol:
    """The symbol, if it is one of this graph; else GraphError."""
    if symbol.graph is not graph:
        raise GraphError(
            f"{what} in graph {graph.name!r} was given {symbol.name}: {symbol.type} ("
            f"{symbol.location}) of graph {symbol.graph.name!r}",
            fix="symbols of two graphs never mix: make it an input here",
        )
    return symbol


def operand_infos(op: Op, operands: Sequence[Any]) -> tuple[OperandInfo, ...]:
    """The operands of an op as an error has them: each by its name there, type and line."""
    return tuple(_info(op, i, operand) for i, operand in enumerate(operands))


def _info(op: Op, position: int, operand: Any) -> OperandInfo:
    named = position < len(op.operands) or op.variadic
    name = op.operand(position) if named else str(position)
    if isinstance(operand, Symbol):
        return OperandInfo(name, operand.type, operand.location)
    text = number_text(operand) if is_literal(operand) else brief(operand)
    return OperandInfo(name, value=text)


def call_text(op: Op, operands: Sequence[Any]) -> str:
    """A call as errors show it: the op, and each operand with its type and line."""
    return errors.call_text(op.name, operand_infos(op, operands))


def _is_operand(value: Any) -> bool:
    if isinstance(value, Symbol) or is_literal(value):
        return True
    if isinstance(value, GraphValue):
        return False  # which has its own say
    if hasattr(value, "dtype") and not isinstance(value, DType):
        return True
    return is_foreign_array(cast("type[Any]", type(value)))


def may_be_operand(value: Any) -> bool:
    """Whether an operator takes a value, or should tell of it.

    A list is no operand, but a mistake to tell of: Python would make `x == [1, 2]` False.
    """
    return _is_operand(value) or isinstance(value, (list, tuple))

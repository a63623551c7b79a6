"""The operands of an op: symbols, arrays and literals, converted to symbols of one graph."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from graphir import errors, ops
from graphir.decorators import refuses
from graphir.dtypes import DType
from graphir.errors import GraphError, OperandInfo
from graphir.hints import ArrayOrNumber
from graphir.ir.foreign_arrays import is_foreign_array
from graphir.ir.literals import is_literal, literal_array
from graphir.ir.symbol import Symbol
from graphir.ops.op import BodyGraph, GraphValue, Op
from graphir.ops.types import TensorType
from graphir.promotion.operands import Number, Place
from graphir.promotion.python import ruling
from graphir.promotion.rules import PromotionRules
from graphir.promotion.scalars import number_text

if TYPE_CHECKING:
    from graphir.ir.graph import Graph


def symbols_of(graph: Graph, op: Op, operands: Sequence[Any]) -> tuple[Symbol, ...]:
    """Convert the operands of an op to symbols of a graph.

    Arrays keep their dtype, or get the dtype that the rules give an array beside these partners.
    Literals get the dtype that the rules derive from their partners. Raises GraphError for symbols
    of another graph and for values that are not operands.
    """
    for operand in operands:
        if operand.__class__ is not Symbol or operand.graph is not graph:
            break
    else:
        return tuple(operands)
    operands = [symbol.read() if is_wrapper(symbol) else symbol for symbol in operands]
    enter = graph.rules.entering
    entered_operands = [
        enter(operand) if isinstance(operand, np.generic) else operand for operand in operands
    ]
    joined_positions = op.signature.promoted
    places = range(len(entered_operands)) if joined_positions is None else joined_positions
    partners = [entered_operands[i].type for i in places if isinstance(entered_operands[i], Symbol)]
    symbols: list[Any] = [
        operand
        if is_literal(operand)
        else _symbol(graph, operand, op, partners if i in places else ())
        for i, operand in enumerate(entered_operands)
    ]
    if all(isinstance(operand, Symbol) for operand in symbols):
        return tuple(symbols)
    numbers = graph.trace_state.numbers
    if numbers is not None:
        return tuple([own(graph, symbol, op.name) for symbol in numbers.entered(op, symbols)])
    return tuple(
        operand
        if isinstance(operand, Symbol)
        else _constant(graph, operand, *resolve_literal(graph.rules, op, symbols, i))
        for i, operand in enumerate(symbols)
    )


def is_wrapper(value: Any) -> bool:
    """Answer whether a value is an array or scalar of a traced function.

    `read()` of such a wrapper returns its symbol.
    """
    return isinstance(value, GraphValue) and not isinstance(value, Symbol)


def resolve_literal(
    rules: PromotionRules,
    op: Op | None,
    operands: Sequence[Any],
    position: int,
    is_result: bool = False,
) -> tuple[Any, DType]:
    """Return the number and the dtype that the rules make of the literal at a position.

    The other operands are symbols, types and literals. Without an op the answer is the literal and
    the dtype that it has without partners. `is_result` says that an op computed the first operand,
    for a first operand that is given as a type.
    """
    value = operands[position]
    if op is None:
        return value, rules.literal(value)
    joined_positions = op.signature.promoted
    if joined_positions is not None:
        if position not in joined_positions:
            return value, op.signature.other
        operands, position = (
            [operands[i] for i in joined_positions],
            joined_positions.index(position),
        )
    types = [
        operand.type
        if isinstance(operand, Symbol)
        else operand
        if type(operand) is TensorType
        else Number(operand)
        for operand in operands
    ]
    place = Place(types, position, op.name, is_result or is_computed(operands))
    rules = ruling(rules, op.name, types)
    number = rules.literal_value(value, place)
    return number, rules.literal(number, place)


def is_computed(operands: Sequence[Any]) -> bool:
    """Answer whether an op computed the first operand.

    Inputs, literals and symbols of creation ops such as constants are not computed.
    """
    return isinstance(operands[0], Symbol) and operands[0].op.kind != "creation"


def number_of(symbol: Symbol) -> complex | None:
    """Return the Python number of a symbol that is a 0-d numeric constant, else None."""
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
    symbol = graph.entering(operand)
    to = graph.rules.array(symbol.dtype, partners, op.name, operand)
    return symbol if to is symbol.dtype else symbol.cast(to)


def own(graph: Graph, symbol: Symbol, user: str) -> Symbol:
    """Return the symbol if it belongs to the graph; else raise GraphError.

    While a body of control flow is traced, the graph is that of the body, in which an input stands
    for an outer symbol. `user` names the op for the message.
    """
    if symbol.graph is not graph:
        if graph.trace_state.body is not None:
            return own(graph.innermost, symbol, user)
        captured = graph.captured(symbol)
        if captured is not None:
            return captured
        raise GraphError(
            f"{user} in graph {graph.name!r} was given {symbol.name}: {symbol.type} ("
            f"{symbol.location}) of graph {symbol.graph.name!r}",
            fix="return it from the function of control flow"
            if symbol.graph.is_body
            else "symbols of two graphs never mix: make it an input here",
        )
    return symbol


def operand_infos(op: Op, operands: Sequence[Any]) -> tuple[OperandInfo, ...]:
    """Describe the operands of an op for an error: the name, type and source line of each."""
    return tuple(_info(op, i, operand) for i, operand in enumerate(operands))


def _info(op: Op, position: int, operand: Any) -> OperandInfo:
    has_name = position < len(op.operands) or op.variadic
    name = op.operand(position) if has_name else str(position)
    if isinstance(operand, Symbol):
        return OperandInfo(name, operand.type, operand.location)
    text = number_text(operand) if is_literal(operand) else brief(operand)
    return OperandInfo(name, value=text)


def call_text(op: Op, operands: Sequence[Any]) -> str:
    """Format a call for an error message: the op, and each operand with its type and line."""
    return errors.call_text(op.name, operand_infos(op, operands))


def _is_operand(value: Any) -> bool:
    if isinstance(value, Symbol) or is_literal(value):
        return True
    if isinstance(value, GraphValue):
        return False  # such a wrapper has operators of its own
    if hasattr(value, "dtype") and not isinstance(value, DType):
        return True
    return is_foreign_array(cast("type[Any]", type(value)))


def may_be_operand(value: Any) -> bool:
    """Answer whether an operator accepts a value, or should raise an error that explains it.

    A list is a mistake that an operator should explain: if the operator returned NotImplemented,
    Python would answer `x == [1, 2]` with False.
    """
    return _is_operand(value) or isinstance(value, (list, tuple))


@refuses(
    lambda given: any(isinstance(x, BodyGraph) for x in given),
    "graphir.implicit_cast casts two operands to their common dtype",
    "write passes.implicit_cast(graph) to insert the casts of a graph",
)
def implicit_cast(a: ArrayOrNumber, b: ArrayOrNumber) -> tuple[Symbol, Symbol]:
    """Return two operands, both cast to their common dtype: `Graph.implicit_cast` of their graph.

    At least one operand is a Symbol. Raises GraphError where neither operand is a Symbol.
    """
    for operand in (a, b):
        if isinstance(operand, Symbol):
            return operand.graph.implicit_cast(a, b)
    raise GraphError("implicit_cast takes symbols", got=f"{a!r} and {b!r}")

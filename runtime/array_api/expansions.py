"""Expansions: NumPy's functions in terms of ops, for operands of given types.

A function of the table that all front ends share (graphir.numpy_api) runs once on the symbols of a
graph, for each combination of operand types and settings. A call records the ops of that graph on
its own operands, without inference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir.errors import OperandInfo
from graphir.ir.operators.indexing import index
from graphir.numpy_api.functions import FUNCTIONS
from graphir.numpy_api.pieces import unstack
from graphir.ops.attribute_record import NO_ATTRIBUTES, AttributeRecord
from graphir.public import Graph, GraphirError, Op, Symbol, TensorType, ops
from graphir.runtime.array_api.array import Array
from graphir.runtime.array_api.forcing import bounded
from graphir.runtime.array_api.lazy import ARRAYS, TAPE, Lazy
from graphir.runtime.array_api.views import MOVES, Steps, step_of, viewed

_MANY = 1 << 12
"""The most expansions in the cache; a further expansion clears the cache."""

_VIEWING = frozenset(
    (np.broadcast_arrays, np.diff, np.expand_dims, np.moveaxis, np.squeeze, index, unstack)
)
"""The functions whose results are views where they lie in the first array; others copy."""

_EXPANSIONS: dict[Any, Expansion] = {}


class Step(NamedTuple):
    """An op of an expansion; `args` are positions among the operands and then the steps."""

    op: Op
    args: tuple[int, ...]
    attrs: AttributeRecord
    type: TensorType
    value: NDArray[Any] | None


class Expansion(NamedTuple):
    """The steps of a function, and its results; a tuple of them if there are `several`.

    A result is its position, and the moves from the first operand if it is a view, else None.
    """

    steps: list[Step]
    results: list[tuple[int, Steps | None]]
    several: bool


def expanded(function: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """Return the result of a NumPy function, or of a function of symbols, on arrays.

    Arrays may stand in lists; other arguments are settings. Several results are a tuple. Where
    NumPy has views, a result whose elements lie in the first array is a view of it.
    """
    operands: list[Array] = []
    key = (function, *[_entry(arg, operands) for arg in args])
    if settings:
        key = (*key, *[(name, _entry(value, operands)) for name, value in settings.items()])
    return recorded(key, function, operands, args, settings)


def recorded(
    key: tuple[Any, ...],
    function: Callable[..., Any],
    operands: Sequence[Array],
    args: tuple[Any, ...],
    settings: Mapping[str, Any],
) -> Any:
    """Return the result of `expanded`, whose expansion is in the cache under a key."""
    symbols: list[Any] = []
    for x in operands:
        symbols.append(x.symbol)
    expansion = _EXPANSIONS.get(key)
    if expansion is None:
        if len(_EXPANSIONS) >= _MANY:
            _EXPANSIONS.clear()
        try:
            expansion = _expansion(function, symbols, args, settings)
        except GraphirError as error:
            site = TAPE.builder.locate(_getframe(1))
            infos = [OperandInfo("x", symbol.type, symbol.location) for symbol in symbols]
            raise error.at(site, function.__name__, infos) from None
        _EXPANSIONS[key] = expansion
    site = TAPE.builder.locate(_getframe(1))
    for op, places, attrs, type_, value in expansion.steps:
        if len(places) == 1:
            inputs = (symbols[places[0]],)
        else:
            inputs = tuple([symbols[place] for place in places])
        symbols.append(Lazy(TAPE, op, inputs, attrs, type_, site, value))
    results: list[Any] = []
    for place, moves in expansion.results:
        symbol = bounded(symbols[place])
        results.append(Array(symbol) if moves is None else viewed(operands[0], symbol, moves))
    return tuple(results) if expansion.several else results[0]


def _entry(value: Any, operands: list[Array]) -> Any:
    """Return the part of the cache key for an argument, and collect the arrays in it."""
    if isinstance(value, Array):
        operands.append(value)
        return value.type
    if isinstance(value, (list, tuple)):
        return tuple([_entry(part, operands) for part in cast("Sequence[Any]", value)])
    return value.__class__, value


def _expansion(
    function: Callable[..., Any],
    operands: Sequence[Lazy],
    args: tuple[Any, ...],
    settings: Mapping[str, Any],
) -> Expansion:
    graph = Graph("array_api", rules=TAPE.rules)
    graph.use_vocabulary(ARRAYS)
    inputs = [graph.input(symbol.type) for symbol in operands]
    remaining = iter(inputs)
    symbolic_args = [_symbolic(arg, remaining) for arg in args]
    keywords = {name: _symbolic(value, remaining) for name, value in settings.items()}
    result = FUNCTIONS.get(function, function)(*symbolic_args, **keywords)
    several = isinstance(result, (list, tuple))
    symbols: list[Symbol] = list(cast("Any", result)) if several else [result]
    places = {symbol: place for place, symbol in enumerate(inputs)}
    steps: list[Step] = []
    live: set[Symbol] = set(symbols)
    for symbol in reversed(graph.symbols):
        live.update(symbol.args if symbol in live else ())
    for symbol in graph.symbols:
        if symbol in live and symbol not in places:
            places[symbol] = len(places)
            steps.append(_step(symbol, [places[arg] for arg in symbol.args]))
    views = function in _VIEWING
    results = [(places[symbol], _moves(symbol, inputs[0]) if views else None) for symbol in symbols]
    return Expansion(steps, results, several)


def _symbolic(value: Any, inputs: Iterator[Symbol]) -> Any:
    if isinstance(value, Array):
        return next(inputs)
    if isinstance(value, (list, tuple)):
        parts = [_symbolic(part, inputs) for part in cast("Sequence[Any]", value)]
        return tuple(parts) if isinstance(value, tuple) else parts
    return value


def _step(symbol: Symbol, places: Sequence[int]) -> Step:
    if symbol.op is ops.constant:
        return Step(ops.input, (), NO_ATTRIBUTES, symbol.type, symbol.attrs["value"])
    return Step(symbol.op, tuple(places), symbol.attrs, symbol.type, None)


def _moves(symbol: Symbol, x: Symbol) -> Steps | None:
    """Return the moves from an operand to a view of it; None for the result of other ops."""
    moves: list[Any] = []
    while symbol is not x:
        if symbol.op not in MOVES:
            return None
        moves.append(step_of(symbol))
        symbol = symbol.args[0]
    return moves[::-1]

"""Optimizations: passes that drop work without a change of any result, each a function of a graph.

simplify_casts drops identity casts, and merges a lossless cast with the cast after it.
fold_constants evaluates ops on constants while the graph is compiled. common_subexpressions
computes equal subexpressions once. dead_code drops symbols that no output depends on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphir.decorators import uncollected
from graphir.ir.liveness import live_mask
from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.attributes import constant
from graphir.passes.rewriter import Rewriter, entering_bodies, merged_origins
from graphir.public import DType, ExecutionError, Graph, Op, ShapeError, Symbol, ops
from graphir.semantics.evaluation import Evaluation

# -- casts


@uncollected
@entering_bodies
def simplify_casts(graph: Graph) -> Graph:
    """Drop casts to the dtype that a value has; merge a lossless cast with the cast of its result.

    The pass keeps every cast that can lose information. The merge is sound because every conversion
    rounds once: if a value survives the first cast, the second cast converts it as a direct cast
    would. Returns the graph itself if no cast is redundant.
    """
    casts = (symbol for symbol in graph.symbols if symbol.op is ops.cast)
    if not any(_is_redundant(graph, cast, cast.args[0]) for cast in casts):
        return graph
    rewriter = Rewriter(graph)
    for symbol in graph.symbols:
        value = rewriter.values[symbol.args[0].index] if symbol.op is ops.cast else symbol
        if value is symbol or not _is_redundant(graph, symbol, value):
            rewriter.copy(symbol)
        elif value.dtype is symbol.dtype:
            rewriter.replace(value)
        else:
            rewriter.replace(_combine(rewriter.new, value, symbol))
    return rewriter.finish()


def _is_redundant(graph: Graph, cast: Symbol, value: Symbol) -> bool:
    """Whether a cast of `value` is an identity, or merges with `value`, itself a cast."""
    to, of = cast.type.dtype, value.type.dtype
    if of is to or value.op is not ops.cast:
        return of is to
    return _is_one_rounding(*map(graph.storage_dtype, (value.args[0], value, cast)))


@cache
def _is_one_rounding(first: DType, middle: DType, last: DType) -> bool:
    """Whether first -> middle -> last equals first -> last, bit for bit.

    An integer-to-integer cast wraps; a float-to-integer cast saturates. A float between two
    integers therefore stays unless the last integer dtype has every value of the first.
    """
    if not first.exact_in(middle):
        return False
    through_float = first.is_integer and not middle.is_integer and last.is_integer
    return not through_float or first.exact_in(last)


def _combine(graph: Graph, first: Symbol, second: Symbol) -> Symbol:
    value = first.args[0]
    if value.dtype is second.dtype:
        return value
    origins = first.origins or second.origins
    source = merged_origins((first, second)) if origins else second.source
    return graph.append(ops.cast, (value,), second.attrs, second.type, source)


# -- constants

LIMIT = 4096
"""The most elements of a folded result; larger results stay computed, so that graphs stay small."""


@uncollected
@entering_bodies
def fold_constants(graph: Graph, limit: int = LIMIT, creations: Collection[Op] = ()) -> Graph:
    """Replace each op on constants by its value, if the value has at most `limit` elements.

    The pass also folds the ops `creations`, which have no operands: `ops.range`, for example. The
    value is bit-equal to the result at run time. The constant keeps the origins of the casts that
    were folded into it. An op that raises (an integer to a negative power) stays in the graph, and
    raises when the graph runs. Weak constants stay: `weak_types` commits them.

    Returns the graph itself if no op is foldable.
    """
    if not any(_foldable(symbol, symbol.args, limit, creations) for symbol in graph.symbols):
        return graph
    rewriter = Rewriter(graph)
    with np.errstate(all="ignore"):
        for symbol in graph.symbols:
            args = [rewriter.values[arg.index] for arg in symbol.args]
            is_foldable = _foldable(symbol, args, limit, creations)
            constant_ = folded(rewriter.new, symbol, args) if is_foldable else None
            if constant_ is None:
                rewriter.copy(symbol)
            else:
                rewriter.replace(constant_)
    return rewriter.finish()


def _foldable(
    symbol: Symbol, args: Sequence[Symbol], limit: int, creations: Collection[Op]
) -> bool:
    for arg in args:
        if arg.op is not ops.constant or arg.weak:
            return False
    if symbol.op.kind == "control" or (not args and symbol.op not in creations):
        return False
    size = symbol.size
    return isinstance(size, int) and size <= limit and not symbol.weak


def folded(graph: Graph, symbol: Symbol, args: Sequence[Symbol]) -> Symbol | None:
    """Append the value of a symbol for constant `args`, and return it; None if the op raises."""
    inference = graph.infer(symbol.op, args, symbol.attrs)
    values = [arg.attrs["value"] for arg in args]
    try:
        sources = [arg.dtype for arg in args]
        run = Evaluation(symbol.op, inference, sources, {}, graph.tf32, graph.functions)
        value = run(values)
    except (ExecutionError, ShapeError):  # the op raises, or a run binds the dim
        return None
    attrs = {"dtype": symbol.dtype, "value": constant(value), "literal": None}
    # The constant has the loss of the folded casts, so that it keeps their origins for the report.
    source = tuple(dict.fromkeys(merged_origins([symbol, *args]))) or symbol.location
    return graph.append(ops.constant, (), attrs, symbol.type, source)


# -- common subexpressions


@uncollected
@entering_bodies
def common_subexpressions(graph: Graph) -> Graph:
    """Merge symbols that have the same op, equal operands and bit-equal attributes.

    The key of a commutative op ignores the order of its operands. A merged cast keeps the origins
    of all casts that it replaces; so does a merged constant that casts were folded into. In a graph
    whose casts are implicit, the result of an in-place operator merges only with results of
    in-place operators: rules may cast an in-place result to the dtype of the first operand.

    Returns the graph itself if no two symbols are equal.
    """
    first = _first_equals(graph)
    if first == list(range(len(first))):
        return graph
    rewriter = Rewriter(graph)
    duplicates: dict[int, list[Symbol]] = {}
    for symbol, place in zip(graph.symbols, first, strict=True):
        if place == symbol.index:
            rewriter.copy(symbol)
            continue
        rewriter.replace(rewriter.values[place])
        if symbol.op is ops.cast or symbol.origins:  # a folded constant has the origins of casts
            duplicates.setdefault(place, [graph.symbols[place]]).append(symbol)
    for place, equals in duplicates.items():
        if any(symbol.origins for symbol in equals):
            rewriter.values[place].source = merged_origins(equals)
    return rewriter.finish()


def _first_equals(graph: Graph) -> list[int]:
    """Return, for each symbol, the index of the first symbol that computes the same value."""
    first: list[int] = []
    first_by_key: dict[Any, int] = {}
    same: dict[Any, int] = {}  # bit-equal attributes share a number
    numbers: dict[AttributeRecord, int] = {}
    implicit = graph.rules.implicit
    for place, symbol in enumerate(graph.symbols):
        op, attrs = symbol.op, symbol.attrs
        if op is ops.input:
            first.append(place)
            continue
        number = numbers.get(attrs)
        if number is None:
            number = numbers[attrs] = same.setdefault(attrs.content, len(same))
        in_place = implicit and symbol.location.in_place
        key: list[Any] = [op, number, in_place]
        for arg in symbol.args:
            key.append(first[arg.index])
        if op.commutative and not in_place:
            key[3:] = sorted(key[3:])
        first.append(first_by_key.setdefault(tuple(key), place))
    return first


# -- dead code


@uncollected
@entering_bodies
def dead_code(graph: Graph) -> Graph:
    """Drop symbols that no output depends on; keep all inputs, which are part of the signature.

    Returns the graph itself if every symbol is live.
    """
    live = live_mask(graph, graph.outputs)
    if all(live):
        return graph
    rewriter = Rewriter(graph)
    rewriter.changed = True
    for symbol in graph.symbols:
        if live[symbol.index]:
            rewriter.copy(symbol)
        else:
            rewriter.values.append(symbol)  # a placeholder: no live symbol refers to it
    return rewriter.finish()

"""The values behind casts: an operand as the program has it, and what control flow demands."""

from __future__ import annotations

from graphir.ir.inlining import Junction
from graphir.location import ASSIGN
from graphir.passes.analysis.expressions import default_dtype, expression
from graphir.passes.rewriter import origins_of
from graphir.public import DType, Graph, Symbol, ops


def stores(symbol: Symbol) -> bool:
    """Whether a symbol is the cast of a value that the program stores in an array."""
    return symbol.op is ops.cast and bool(symbol.origins) and symbol.origins[0].rule == ASSIGN


def uncast(symbol: Symbol, stored: bool = False) -> Symbol:
    """Return a symbol without the casts that passes inserted for operands.

    A cast that a NumPy function makes is part of the program, and one that stores a value in an
    array too, unless the value as it was `stored` is asked for. An operand of control flow stands
    for the value that enters the graph.
    """
    while True:
        op = symbol.op
        origins = symbol.origins if op is ops.cast else ()
        is_of_program = not origins or origins[0].stores or origins[0].kind == "autocast"
        is_inserted = not is_of_program or (stored and stores(symbol))
        enters = type(op) is Junction and op.enters
        if not enters and (not is_inserted or in_call(symbol)):
            return symbol
        symbol = symbol.args[0]


def in_call(symbol: Symbol) -> bool:
    """Whether a symbol is a cast that a NumPy function makes by itself."""
    return symbol.op is ops.cast and any(origin.in_call for origin in symbol.origins)


def has_default_dtype(symbol: Symbol) -> bool:
    """Whether a cast is to `float` or `int`, whose width is a setting of the library."""
    rules = symbol.graph.rules_before or symbol.graph.rules.name
    if symbol.op is not ops.cast or symbol.origins or not rules.startswith("jax"):
        return False
    source = expression(symbol.location)
    return source is not None and default_dtype(source.text) is not None


def next_values(carry: Symbol) -> list[Symbol]:
    """Return what a loop's body gives for the junction of a carry; none for another symbol."""
    # The junction of a loop's result takes the value that the body gives, then the carry.
    junctions = (x for x in carry.graph.symbols if type(x.op) is Junction)
    return [x.args[0] for x in junctions if any(y is carry for y in x.args[1:2])]


def demanding(junction: Symbol, dtype: DType) -> Symbol | None:
    """Return the first op that makes a dtype to which a value enters or leaves control flow.

    That is the op in the body that widens a carry, or in the branch that widens a result. Returns
    None for other symbols.
    """
    if type(junction.op) is not Junction:
        return None
    candidates = list(junction.args[: len(junction.op.signature.promoted or ())])
    if junction.op.enters:
        candidates = next_values(junction)
    following = next((x for x in map(uncast, candidates) if x.dtype is dtype), None)
    symbol = following
    while following is not None:
        symbol = following
        if type(symbol.op) is Junction:
            inner = demanding(symbol, dtype)
            return symbol if inner is None else inner
        operands = (x for x in map(uncast, symbol.args) if x.dtype is dtype and x.args)
        following = next(operands, None)
    return symbol


def undone_casts(explicit: Graph) -> dict[int, Symbol]:
    """Return the casts to fewer digits, by index, that a promotion undoes, with its cast.

    The program writes the first cast, and promotes the result, or what elementwise ops make of it
    alone, back to more digits for an operand that kept them: the cast loses values and saves none.
    """
    narrowed: dict[int, Symbol] = {}
    undone: dict[int, Symbol] = {}
    numbers: dict[int, bool] = {}
    for symbol in explicit.symbols:
        if symbol.op is ops.cast:
            source, dtype = symbol.args[0], symbol.dtype
            kinds = {x.kind for x in origins_of(symbol)}
            if "explicit" in kinds and not in_call(symbol):
                if dtype.is_float and not source.dtype.exact_in(dtype):
                    narrowed[symbol.index] = symbol
            elif (
                source.index in narrowed and kinds == {"implicit"} and source.dtype.exact_in(dtype)
            ):
                undone.setdefault(narrowed[source.index].index, symbol)
        elif narrowed and symbol.op.kind in ("movement", "elementwise"):
            values = [x for x in symbol.args if x.dtype.is_float]
            for x in values:
                if x.index not in numbers:  # one cast of a loop's number has an origin a round
                    numbers[x.index] = uncast(x).op is ops.constant
            values = [x for x in values if not numbers[x.index]]
            if values and all(x.index in narrowed for x in values):
                narrowed[symbol.index] = narrowed[values[0].index]
    return undone

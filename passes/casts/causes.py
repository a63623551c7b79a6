"""Which casts are causes, and which are only what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphir import Graph, Symbol, ops
from graphir.location import LEGALIZE
from passes.casts.rows import CastRow


def find_causes(graph: Graph, rows: Mapping[int, Sequence[CastRow]]) -> None:
    """Note in each row of an explicit graph who uses its cast, and which row is its cause.

    `rows` are those of each cast, by its place. A cast is a consequence where the operand that asks
    for its dtype has that dtype only by an earlier implicit cast: the cause is that one's, or
    itself where it has none. A cast that the user wrote ends a cascade.
    """
    walk = _Walk(graph, rows)
    for symbol in graph.symbols:
        if symbol.args:
            walk.visit(symbol)


class _Walk:
    def __init__(self, graph: Graph, rows: Mapping[int, Sequence[CastRow]]) -> None:
        self.rows = rows
        # The row by which a symbol has its dtype, by place; others have theirs by themselves.
        self.made: dict[int, CastRow] = {}
        self._used: dict[int, int] = {}

    def visit(self, symbol: Symbol) -> None:
        made, rows = self.made, self.rows
        if symbol.op is ops.cast:
            self._cast(symbol)
            return
        asking: list[CastRow] | None = None
        for position, arg in enumerate(symbol.args):
            place = arg.index
            if place in rows:
                row = self._row(arg, symbol, position)
                if row is not None and row.kind != "literal":
                    asking = [row] if asking is None else [*asking, row]
        dtype = symbol.type.dtype
        if asking is None:
            if made:
                for arg in symbol.args:
                    if arg.index in made and arg.type.dtype is dtype:
                        made[symbol.index] = made[arg.index]
                        return
            return
        for row in asking:
            cause = self._cause(symbol, row)
            if cause is not row:
                row.cause = cause
            if row.conversion.target is dtype:
                made[symbol.index] = cause

    def _cast(self, cast: Symbol) -> None:
        """What a cast passes on: legalization what it was given, a result's cast itself."""
        given, origins = cast.args[0], cast.origins
        if not origins:
            return
        if origins[0].rule == LEGALIZE:
            if given.index in self.made:
                self.made[cast.index] = self.made[given.index]
        elif origins[0].operand == "result":
            self.made[cast.index] = self.rows[cast.index][0]

    def _row(self, cast: Symbol, user: Symbol, position: int) -> CastRow | None:
        """The row of a cast for this use of it: rows are in the order of uses, some merged."""
        rows = self.rows[cast.index]
        at = self._used.get(cast.index, 0)
        while at < len(rows):
            row = rows[at]
            at += 1
            if row.location is user.source or _serves(row, user, position):
                self._used[cast.index] = at
                row.user, row.position = user, position
                return row
        return None

    def _cause(self, user: Symbol, row: CastRow) -> CastRow:
        """The row by which an operand came to ask for a dtype."""
        target, made = row.conversion.target, self.made
        natural = [a for a in user.args if a.type.dtype is target and a.index not in self.rows]
        found = [made[a.index] for a in natural if a.index in made]
        if natural:
            return found[0] if len(found) == len(natural) else row
        # No operand has the dtype by itself: it is where those of all meet.
        values = [a.args[0] for a in user.args if a.index in self.rows and a.args]
        return next((made[a.index] for a in values if a.index in made), row)


def _serves(row: CastRow, user: Symbol, position: int) -> bool:
    one = row.conversion
    return (
        one.op == user.op.name
        and one.operand == user.op.operand(position)
        and row.location == user.location
    )

"""Who uses each cast, and which casts are causes: others are only what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from graphir import Graph, Symbol, ops
from graphir.location import LEGALIZE
from passes.casts.rows import CastRow


class Use(NamedTuple):
    """The symbol that a cast serves, at which operand, and the row that caused it if another."""

    user: Symbol | None = None
    position: int = 0
    cause: CastRow | None = None


class Uses:
    """Who uses the casts of an explicit graph that rows tell of; found when first asked.

    A cast is a consequence where the operand that asks for its dtype has that dtype only by an
    earlier implicit cast: the cause is that one's, or itself where it has none. A cast that the
    user wrote ends a cascade. Once a graph is legalized its ops have other dtypes, and most casts
    count as their own cause.
    """

    def __init__(self, graph: Graph, rows: Sequence[CastRow]) -> None:
        self.graph, self.rows = graph, rows

    def of(self, row: CastRow) -> Use:
        """The use that a row is about."""
        return self._found.get(row.place, _NONE)

    @cached_property
    def _found(self) -> dict[int, Use]:
        walk = _Walk(self.rows)
        for symbol in self.graph.symbols:
            if symbol.args:
                walk.visit(symbol)
        return walk.found


_NONE = Use()


class _Walk:
    def __init__(self, rows: Sequence[CastRow]) -> None:
        self.found: dict[int, Use] = {}
        self.rows: dict[int, list[CastRow]] = {}
        for row in rows:
            self.rows.setdefault(row.symbol.index, []).append(row)
        # The row by which a symbol has its dtype, by place; others have theirs by themselves.
        self.made: dict[int, CastRow] = {}
        self._used: dict[int, int] = {}

    def visit(self, symbol: Symbol) -> None:
        if symbol.op is ops.cast:
            self._pass_on(symbol)
            return
        rows, made, dtype = self.rows, self.made, symbol.type.dtype
        asking = [
            (row, position)
            for position, arg in enumerate(symbol.args)
            if arg.index in rows and (row := self._row(arg, symbol, position)) is not None
        ]
        for row, position in asking:
            implicit = row.kind == "implicit"
            cause = self._cause(symbol, row) if implicit else row
            self.found[row.place] = Use(symbol, position, None if cause is row else cause)
            if implicit and row.conversion.target is dtype:
                made[symbol.index] = cause
        if not asking and made:
            for arg in symbol.args:
                if arg.index in made and arg.type.dtype is dtype:
                    made[symbol.index] = made[arg.index]
                    return

    def _pass_on(self, cast: Symbol) -> None:
        """What a cast passes on: legalization what it was given, a result's cast itself."""
        given, origins = cast.args[0], cast.origins
        if origins and origins[0].rule == LEGALIZE and given.index in self.made:
            self.made[cast.index] = self.made[given.index]
        elif origins and origins[0].rule != LEGALIZE and origins[0].operand == "result":
            self.made[cast.index] = self.rows[cast.index][0]

    def _row(self, cast: Symbol, user: Symbol, position: int) -> CastRow | None:
        """The row of a cast for this use of it: rows are in the order of uses, some merged."""
        rows = self.rows[cast.index]
        for at in range(self._used.get(cast.index, 0), len(rows)):
            row = rows[at]
            if row.location is user.source or _serves(row, user, position):
                self._used[cast.index] = at + 1
                return row
        return None

    def _cause(self, user: Symbol, row: CastRow) -> CastRow:
        """The row by which an operand came to ask for a dtype."""
        target, made, rows = row.conversion.target, self.made, self.rows
        natural = [a for a in user.args if a.type.dtype is target and a.index not in rows]
        if natural:
            found = [made[a.index] for a in natural if a.index in made]
            return found[0] if len(found) == len(natural) else row
        # No operand has the dtype by itself: it is where those of all meet.
        values = [a.args[0] for a in user.args if a.index in rows and a.args]
        return next((made[a.index] for a in values if a.index in made), row)


def _serves(row: CastRow, user: Symbol, position: int) -> bool:
    one = row.conversion
    return (
        one.op == user.op.name
        and one.operand == user.op.operand(position)
        and row.location == user.location
    )

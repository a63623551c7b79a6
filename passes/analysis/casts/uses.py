"""Attribution of casts: the user of each cast, and the earlier cast that caused it, if any.

A cascade starts where an op casts an operand; its result then has a wider dtype, and later ops cast
their operands to that dtype in turn. One walk over the graph passes, from operand to result, the
row of the cast that gave a symbol its dtype.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

from graphir.location import LEGALIZE
from graphir.passes.analysis.casts.conversion import CastConversion
from graphir.passes.analysis.casts.rows import CastRow
from graphir.passes.analysis.expressions import Expression, expression
from graphir.public import DType, Graph, Location, Symbol, ops


class CastUse(NamedTuple):
    """The symbol that a cast serves, the operand's position, and the row that caused the cast.

    `cause` is None if the row is its own cause.
    """

    user: Symbol | None = None
    position: int = 0
    cause: CastRow | None = None


class Uses:
    """The uses of the casts in an explicit graph, computed at the first query.

    A cast is a consequence if the operand that demands its dtype has that dtype only through an
    earlier implicit cast. The cause of a consequence is the cause of that earlier cast, or the
    earlier cast itself if it has none. A cast that the user wrote ends a cascade. Legalization
    changes the dtypes of ops, so that most casts of a legalized graph count as their own cause.
    """

    def __init__(self, graph: Graph, rows: Sequence[CastRow]) -> None:
        self.graph, self.rows = graph, rows

        self._expressions: dict[int, tuple[Expression | None, Location]] = {}
        self._operands: dict[int, list[Symbol]] = {}
        self._storing: dict[int, frozenset[_UseKey]] = {}

    def of(self, row: CastRow) -> CastUse:
        """Return the use of a row."""
        return self._by_place.get(row.place, _NONE)

    def expression(self, location: Location) -> Expression | None:
        """Return the source expression at a location, cached by the location's id."""
        entry = self._expressions.get(id(location))
        if entry is None:  # the entry keeps the location alive: its id stays unique
            entry = self._expressions[id(location)] = expression(location), location
        return entry[0]

    def operands(self, user: Symbol) -> list[Symbol]:
        """Return the operands of a symbol before the casts that passes inserted for it."""
        operands = self._operands.get(user.index)
        if operands is None:
            operands = [self._uncast(user, position) for position in range(len(user.args))]
            self._operands[user.index] = operands
        return operands

    def _uncast(self, user: Symbol, position: int) -> Symbol:
        """Return an operand without the casts that passes inserted for this use.

        A cast that stores a value in an array is part of the operand, unless the cast serves this
        use too.
        """
        arg = user.args[position]
        if arg.op is ops.cast:
            key = _use_key(user, position)
            while arg.op is ops.cast and arg.origins and self._serves(arg, key):
                arg = arg.args[0]
        return arg

    def _serves(self, cast: Symbol, key: _UseKey) -> bool:
        """Whether an inserted cast serves the use `key`; True for any cast that stores nothing."""
        uses_served = self._storing.get(cast.index)
        if uses_served is None:
            stores = any(origin.stores for origin in cast.origins)
            uses = [
                (each.op, each.operand, each.location) for each in cast.origins if not each.stores
            ]
            uses_served = self._storing[cast.index] = frozenset(uses) if stores else _ANY
        return uses_served is _ANY or key in uses_served

    @cached_property
    def _by_place(self) -> dict[int, CastUse]:
        walk = _Walk(self.rows)
        for symbol in self.graph.symbols:
            if symbol.args:
                walk.visit(symbol)
        return walk.uses


class ImpliedUses(Uses):
    """The uses of the casts that a graph implies, recorded as the walk yields them."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, ())
        self._users: dict[int, CastUse] = {}

    def row(
        self, conversion: CastConversion, location: Location, symbol: Symbol, position: int
    ) -> CastRow:
        """Return the row of a use (see passes.analysis.casts.walk).

        The row of an implied cast has the operand as its symbol.
        """
        place = len(self._users)
        casts_implied = symbol.op is not ops.cast and bool(symbol.args)
        self._users[place] = CastUse(symbol, position) if casts_implied else _NONE
        value = symbol.args[position] if casts_implied and position >= 0 else symbol
        return CastRow(conversion, location, value, place, self)

    def of(self, row: CastRow) -> CastUse:
        """Return the use of a row."""
        return self._users[row.place]

    def operands(self, user: Symbol) -> list[Symbol]:
        """Return the operands of a symbol; the graph has no inserted casts."""
        return list(user.args)


_NONE = CastUse()

_UseKey: TypeAlias = tuple[str, str, Location]
"""The op name, operand name and location by which an origin identifies its use."""

_ANY: frozenset[_UseKey] = frozenset()


def _use_key(user: Symbol, position: int) -> _UseKey:
    return user.op.name, user.op.operand(position), user.location


class _Queues:
    """The rows of one cast in the order of its uses; `take` returns each row once."""

    def __init__(self, rows: Sequence[CastRow]) -> None:
        self.first = rows[0]
        self._uses: dict[_UseKey, deque[CastRow]] = {}
        self._places: dict[int, deque[CastRow]] = {}
        self._used_rows: set[int] = set()
        for row in rows:
            key = row.conversion.op, row.conversion.operand, row.location
            self._uses.setdefault(key, deque()).append(row)
            self._places.setdefault(id(row.location), deque()).append(row)

    def take(self, user: Symbol, position: int) -> CastRow | None:
        """Return the next row with the use's op and operand, else with its location, or None."""
        for queue in (
            self._uses.get(_use_key(user, position), ()),
            self._places.get(id(user.source), ()),
        ):
            while queue:
                row = queue.popleft()
                if row.place not in self._used_rows:
                    self._used_rows.add(row.place)
                    return row
        return None


class _Walk:
    def __init__(self, rows: Sequence[CastRow]) -> None:
        self.uses: dict[int, CastUse] = {}
        by_cast: dict[int, list[CastRow]] = {}
        for row in rows:
            by_cast.setdefault(row.symbol.index, []).append(row)
        self.rows = {index: _Queues(each) for index, each in by_cast.items()}
        # By index, the row of the cast that gave a symbol its dtype; absent without such a cast.
        self.causes: dict[int, CastRow] = {}

    def visit(self, symbol: Symbol) -> None:
        if symbol.op is ops.cast:
            self._pass_on(symbol)
            return
        rows, dtype_causes, dtype = self.rows, self.causes, symbol.type.dtype
        asking = [
            (row, position)
            for position, arg in enumerate(symbol.args)
            if arg.index in rows and (row := rows[arg.index].take(symbol, position)) is not None
        ]
        causes: dict[DType, CastRow | None] = {}
        for row, position in asking:
            implicit, target = row.kind == "implicit", row.conversion.target
            if implicit and target not in causes:
                causes[target] = self._cause(symbol, target)
            cause = (causes[target] if implicit else None) or row
            self.uses[row.place] = CastUse(symbol, position, None if cause is row else cause)
            if implicit and target is dtype:
                dtype_causes[symbol.index] = cause
        if not asking and dtype_causes:
            for arg in symbol.args:
                if arg.index in dtype_causes and arg.type.dtype is dtype:
                    dtype_causes[symbol.index] = dtype_causes[arg.index]
                    return

    def _pass_on(self, cast: Symbol) -> None:
        """Record the cause of a cast's dtype.

        A legalization cast has the cause of its operand; an implicit cast of a result, or of a
        NumPy function, is a cause. An identity of a NumPy function has no row.
        """
        source, origins = cast.args[0], cast.origins
        if origins and origins[0].rule == LEGALIZE and source.index in self.causes:
            self.causes[cast.index] = self.causes[source.index]
        elif (
            origins
            and origins[0].kind == "implicit"
            and (origins[0].operand == "result" or origins[0].in_call)
            and cast.index in self.rows
        ):
            self.causes[cast.index] = self.rows[cast.index].first

    def _cause(self, user: Symbol, target: DType) -> CastRow | None:
        """Return the row that gave an operand the dtype `target`; None if no cast gave it."""
        causes, rows = self.causes, self.rows
        natural = [a for a in user.args if a.type.dtype is target and a.index not in rows]
        if natural:
            operand_causes = [causes[a.index] for a in natural if a.index in causes]
            return operand_causes[0] if len(operand_causes) == len(natural) else None
        # No operand has the dtype before the casts: the dtype is the join of several operands.
        values = [a.args[0] for a in user.args if a.index in rows and a.args]
        return next((causes[a.index] for a in values if a.index in causes), None)

"""The report of casts: where each arose, by which rule, along which path, and what it can lose."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, overload

from graphir import DType, Graph, GraphError, Location, Origin, Symbol, ops, rules
from graphir.location import CAST, LEGALIZE
from graphir.promotion.scalars import survives
from graphir.promotion.tables import aligned
from passes.implicit_cast import implicit_cast
from passes.rewriting import origins_of

Kind = Literal["implicit", "explicit", "legalization"]


@dataclass(frozen=True, slots=True)
class CastRow:
    """One use of one cast: `operand` of `op` at `location`, from `source` to `target`.

    `path` is the way up the rule set's lattice; `witness` the simplest value that does not
    survive (of a literal: itself), None where the cast is exact. Bytes are of one element in
    storage.
    """

    kind: Kind
    op: str
    operand: str
    location: Location
    source: DType
    target: DType
    rule: str
    path: tuple[DType, ...]
    witness: complex | None
    bytes_before: int
    bytes_after: int

    @property
    def exact(self) -> bool:
        """Whether every value survives."""
        return self.witness is None

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it: dtypes by name, the witness as text."""
        row = {name: getattr(self, name) for name in ("kind", "op", "operand", "rule")}
        return {
            **row,
            "location": self.location.to_json(),
            "from": str(self.source),
            "to": str(self.target),
            "path": [str(dtype) for dtype in self.path],
            "exact": self.exact,
            "witness": None if self.exact else str(self.witness),
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
        }


class CastReport(Sequence[CastRow]):
    """The uses of casts in a graph, in its order: `str()` a table, `.to_json()` its data."""

    def __init__(self, graph: str, rows: Sequence[CastRow], of: int | None = None) -> None:
        self.graph, self.rows = graph, tuple(rows)
        self.of = len(rows) if of is None else of
        """The number of rows from which these were chosen."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> CastRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[CastRow]: ...
    def __getitem__(self, at: int | slice) -> CastRow | Sequence[CastRow]:
        return self.rows[at]

    def __iter__(self) -> Iterator[CastRow]:
        return iter(self.rows)

    def only(self, kind: Kind | None = None, exact: bool | None = None) -> CastReport:
        """The rows of one kind, or those that are exact or not; GraphError for no kind."""
        if kind not in (None, *get_args(Kind)):
            raise GraphError(f"a cast is {', '.join(get_args(Kind))}, not {kind!r}")
        rows = [r for r in self if kind in (None, r.kind) and exact in (None, r.exact)]
        return CastReport(self.graph, rows, self.of)

    def to_json(self) -> str:
        """The rows as a JSON document."""
        return json.dumps({"graph": self.graph, "casts": [row.to_json() for row in self]}, indent=2)

    def __str__(self) -> str:
        lossy = sum(not row.exact for row in self)
        if not self.rows:
            none = f"none of {self.of} uses of casts" if self.of else "no casts"
            return f"graph {self.graph}: {none}"
        uses = "1 use of a cast" if len(self) == 1 else f"{len(self)} uses of casts"
        head = f"graph {self.graph}: {uses}, {lossy} can lose something"
        return "\n".join([head, *aligned([_HEADER, *(_cells(row) for row in self)])])

    __repr__ = __str__


_HEADER = ("where", "operand", "from", "to", "kind", "rule and path", "loss", "bytes")


def _cells(row: CastRow) -> tuple[str, ...]:
    path = " -> ".join(dtype.short for dtype in row.path)
    return (
        row.location.layered,
        f"{row.operand} of {row.op}",
        str(row.source),
        str(row.target),
        row.kind,
        f"{row.rule}: {path}",
        "exact" if row.exact else f"loses {row.witness}",
        f"{row.bytes_before} -> {row.bytes_after}",
    )


def cast_report(graph: Graph) -> CastReport:
    """Every use of every cast in a graph; what is still implicit is made explicit first."""
    explicit = implicit_cast(graph)
    rows = [
        _row(origin, _lost(symbol, origin))
        for symbol in explicit.symbols
        for origin in origins_of(symbol)
    ]
    return CastReport(graph.name, rows)


def _lost(symbol: Symbol, origin: Origin) -> complex | None:
    """What a cast loses: of a known number whether it does itself, else the simplest value."""
    x = symbol.args[0] if symbol.op is ops.cast else None
    if x is None or x.op is not ops.constant or x.rank or x.dtype.storage.kind not in "iufc":
        return origin.source.witness(origin.target)
    number: complex = x.attrs["value"].item()
    return None if survives(number, origin.target) else number


def _row(origin: Origin, lost: complex | None) -> CastRow:
    source, target = origin.source, origin.target
    if origin.rule == LEGALIZE:
        kind, path = "legalization", (source, target)
    elif origin.rule == CAST:
        kind, path = "explicit", (source, target)
    else:
        kind, path = "implicit", rules(origin.rule).path(source, target)
    return CastRow(
        kind=kind,
        op=origin.op,
        operand=origin.operand,
        location=origin.location,
        source=source,
        target=target,
        rule=origin.rule,
        path=path,
        witness=lost,
        bytes_before=source.storage.itemsize,
        bytes_after=target.storage.itemsize,
    )

"""LayerTotals: the casts, the bytes and, after an audit, the losses of each layer of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from graphir.ops.dims import Size, total
from graphir.passes.analysis.casts.measured import Measured
from graphir.passes.analysis.casts.rows import CastRow, size_json
from graphir.public import Location

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import CastReport


class LayerTotals(NamedTuple):
    """The totals of a layer, each cast counted once.

    `kinds` has the number of casts by kind. `bytes_before` and `bytes_after` are the bytes of the
    arrays that the casts read and make. After an audit, `overflowed` counts the elements that
    overflowed in casts and in arithmetic, and `share` is the largest part of an output's error that
    arises in the layer; None if it is unknown.
    """

    layer: str
    casts: int
    lossy: int
    kinds: Mapping[str, int]
    bytes_before: Size
    bytes_after: Size
    overflowed: int
    share: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the totals for JSON."""
        sizes = {name: size_json(getattr(self, name)) for name in ("bytes_before", "bytes_after")}
        return {**self._asdict(), "kinds": dict(self.kinds), **sizes}


def layer_of(location: Location) -> str:
    """Return the layer of a location; the function that it is in where no layer is open."""
    return location.layer or location.function


def layers(report: CastReport) -> list[LayerTotals]:
    """Return the totals of the layers, those that overflow or lose most first."""
    rows: dict[str, dict[int, CastRow]] = {}
    for row in (*report.rows, *report.losses):
        rows.setdefault(layer_of(row.location), {}).setdefault(row.symbol.index, row)
    shares = _shares(report)
    for layer, share in shares.items():
        if share:
            rows.setdefault(layer, {})
    every = [_totals(layer, [*each.values()], shares.get(layer)) for layer, each in rows.items()]
    return sorted(every, key=lambda x: (-x.overflowed, -(x.share or 0.0), -x.lossy))


def _totals(layer: str, rows: list[CastRow], share: float | None) -> LayerTotals:
    casts = [row for row in rows if row.symbol.args and row.source is not row.target]
    return LayerTotals(
        layer,
        len(casts),
        sum(not row.exact for row in casts),
        Counter(row.kind for row in casts),
        total(row.elements * row.bytes_before for row in casts),
        total(row.bytes_added for row in casts),
        sum(overflows(row) for row in rows),
        share,
    )


def overflows(row: CastRow) -> int:
    """Return how many elements overflowed in a cast to floats, or in a step of arithmetic."""
    measured = row.measured or _NOTHING
    if row.kind == "overflow":
        return measured.changed
    return measured.overflowed if row.target.is_inexact else 0


_NOTHING = Measured(0)


def _shares(report: CastReport) -> dict[str, float | None]:
    """Return the largest part of an output's error that arises in each layer; None if unknown."""
    symbols, largest = report.explicit.symbols, dict[str, float | None]()
    for error in report.outputs:
        parts: dict[str, float | None] = {}
        for place, share in (*(error.shares or {}).items(), *(error.roundings or {}).items()):
            layer = layer_of(symbols[place].location)
            part = parts.get(layer, 0.0)
            parts[layer] = None if part is None or share is None else part + share
        for layer, part in parts.items():
            other = largest.get(layer, 0.0)
            is_unknown = part is None or other is None
            largest[layer] = None if is_unknown else max(abs(part or 0.0), other or 0.0)
    return largest

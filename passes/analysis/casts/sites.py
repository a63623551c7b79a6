"""The rows of a report merged by place, for all output formats: cast sites, and totals of layers.

Each cast is in one site: the uses of one cast are in the site of its first use. Casts whose first
uses have equal conversions at one location, such as the iterations of a loop, share a site.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from graphir.ir.inlining import runs_of
from graphir.ops import dtype_rules as signatures
from graphir.ops.dims import Size, total
from graphir.passes.analysis import ItemSequence
from graphir.passes.analysis.casts.measured import Measured, OutputError, plain
from graphir.passes.analysis.casts.rows import CastRow, size_json
from graphir.passes.rewriter import is_conversion
from graphir.public import Graph, Location

if TYPE_CHECKING:
    from graphir.passes.analysis.casts.report import CastReport
    from graphir.passes.analysis.explanations.causes import DtypeCause, LossCause


class CastSite:
    """The uses of casts whose first uses have equal conversions at one location.

    Python numbers that the program rounds there count as equal. `row` is the first use of the worst
    cast, and `rows` has all uses, the worst first. `casts` has one row for each distinct cast
    symbol, so that `measured`, `shares` and the bytes count a cast with many uses once.
    """

    __slots__ = ("casts", "row", "rows", "shares")

    def __init__(self, row: CastRow, rows: Sequence[CastRow] = ()) -> None:
        self.row, self.rows = row, rows or (row,)
        distinct: dict[int, CastRow] = {}
        for each in self.rows:
            distinct.setdefault(each.symbol.index, each)
        self.casts = tuple(distinct.values())
        """The first of `rows` for each distinct cast."""
        parts = [each.shares for each in self.casts if each.shares is not None]
        complete = len(parts) == len(self.casts)
        self.shares = tuple(map(sum, zip(*parts, strict=True))) if complete else None
        """The part of each output's error that the casts of the site explain; None if unknown."""

    @property
    def times(self) -> int:
        """The number of uses."""
        return len(self.rows)

    @property
    def places(self) -> list[Location]:
        """The distinct locations of the uses in the order of the program, the site's own first."""
        own, places = _place(self.row), dict[object, Location]()
        for row in sorted(self.rows, key=lambda row: (_place(row) != own, row.place)):
            places.setdefault(_place(row), row.location)
        return list(places.values())

    @property
    def measured(self) -> Measured | None:
        """The merged measurements of the site's casts; None if the run executed none of them."""
        measures = [row.measured for row in self.casts if row.measured is not None]
        return Measured.merge(*measures) if measures else None

    @property
    def share(self) -> float | None:
        """The largest part of an output's error, of either sign; None if unknown."""
        return None if self.shares is None else max(map(abs, self.shares), default=0.0)

    @property
    def vanished(self) -> bool:
        """Whether changes of the site's casts reached outputs, none of which differs."""
        changed = [x for x in self.casts if x.measured is not None and x.measured.changed]
        return bool(changed) and all(x.vanished for x in changed)

    @property
    def elements(self) -> Size:
        """The total number of elements that the casts of the site convert."""
        return self._sizes[0]

    @property
    def _sizes(self) -> tuple[Size, Size]:
        """The total elements, and the bytes of the arrays that the casts of the site allocate."""
        counts = Counter((x.symbol.type, runs_of(x.symbol)) for x in self.casts)
        elements = [(type_, type_.size * runs * n) for (type_, runs), n in counts.items()]
        bytes_added = total(size * type_.dtype.storage.itemsize for type_, size in elements)
        return total(size for _, size in elements), bytes_added

    @property
    def bytes_added(self) -> Size:
        """The total bytes of the arrays that the casts of the site allocate."""
        return self._sizes[1]

    def to_json(self) -> dict[str, Any]:
        """Return the site for JSON (see casts.schema.json): dtypes by name, values as text."""
        row, cause, measured, shares = self.row, self.row.cause, self.measured, self.shares
        elements, bytes_added = self._sizes
        return {
            **row.facts(),
            "times": self.times,
            "uses": [place.to_json() for place in self.places],
            "casts": [each.symbol.index for each in self.casts],
            "elements": size_json(elements),
            "bytes_added": size_json(bytes_added),
            "cause": None if cause is None else cause.location.to_json(),
            "measured": None if measured is None else measured.to_json(),
            "shares": None if shares is None else list(map(plain, shares)),
            **({"vanished": True} if self.vanished else {}),
        }


class Cascade(NamedTuple):
    """A leading site, and the rows at other sites that are consequences of its rows."""

    site: CastSite
    following: list[CastRow]


class CastSites(ItemSequence[CastSite]):
    """The sites of a sequence of rows, in the order of their first rows.

    With `by_line`, the equal conversions of one line that follow from casts of one other line, or
    from none, share a site, whatever their operands.
    """

    def __init__(self, rows: Iterable[CastRow], by_line: bool = False) -> None:
        self.rows, self._by_line = tuple(rows), by_line
        self._first_causes: dict[int, CastRow] = {}
        self._firsts: dict[object, CastRow] = {}
        for row in sorted(self.rows, key=attrgetter("place")):
            self._firsts.setdefault(_cast(row), row)
        groups: dict[object, list[CastRow]] = {}
        for row in self.rows:
            groups.setdefault(self._key(row), []).append(row)
        self._sites = {
            key: CastSite(self._firsts[_cast(rows[0])], rows) for key, rows in groups.items()
        }
        self._list = tuple(self._sites.values())

    @property
    def _items(self) -> tuple[CastSite, ...]:
        return self._list

    @property
    def repeat(self) -> bool:
        """Whether a site stands for several rows."""
        return len(self._list) < len(self.rows)

    @cached_property
    def user_first(self) -> list[CastSite]:
        """The sites, those inside of library functions last."""
        return sorted(self, key=lambda site: site.row.in_library)

    @property
    def in_library(self) -> int:
        """The number of the sites inside of library functions, the last ones of `user_first`."""
        return sum(site.row.in_library for site in self)

    def cascades(self) -> list[Cascade]:
        """Return the leading sites, each with its consequences, in the order of the sites.

        A row leads if it is a cause, if its cause is not among the rows, or if it is lossy and its
        cause is exact. A site leads if one of its rows leads.
        """
        places = {row.place for row in self.rows}
        leading: dict[int, Cascade] = {}
        following: list[tuple[CastRow, CastRow]] = []
        for row in self.rows:
            lead = row.cause
            if lead is None or lead.place not in places or (lead.exact and not row.exact):
                site = self._sites[self._key(row)]
                leading.setdefault(id(site), Cascade(site, []))
            else:
                following.append((lead, row))
        for lead, row in following:
            site = self._sites[self._key(lead)]
            if self._sites[self._key(row)] is not site:
                leading.setdefault(id(site), Cascade(site, [])).following.append(row)
        return [leading[id(site)] for site in self.user_first if id(site) in leading]

    def _key(self, use: CastRow) -> object:
        """Return the key of a row's site: that of the first use of the row's cast.

        Equal rows (see CastRow) have equal keys, whatever their Python numbers.
        """
        row = self._firsts.get(_cast(use), use)
        if self._by_line:
            cause = self._first_cause(row).location
            return _line_key(row), row.location.place[:2], row.location.layer, cause.place[:2]
        return row.conversion.site_key, _place(row)

    def _first_cause(self, row: CastRow) -> CastRow:
        """Return the row without a cause from which a row follows."""
        chain = [row]
        while chain[-1].place not in self._first_causes and chain[-1].cause is not None:
            chain.append(chain[-1].cause)
        first = self._first_causes.get(chain[-1].place, chain[-1])
        self._first_causes.update((x.place, first) for x in chain)
        return first


def _line_key(row: CastRow) -> object:
    """Return the part of a row that the rows of a line in one site share: casts between dtypes."""
    x = row.conversion
    has_values = x.kind == "literal" or x.source is x.target
    dtypes = x.kind, x.rule, x.source, x.target, row.in_library, row.vanished
    return (*dtypes, x.op, x.operand) if has_values else dtypes


def _cast(row: CastRow) -> object:
    """Return the identity of a row's cast; a folded constant may stand for several casts."""
    conversion = row.conversion
    return row.symbol.index, id(conversion.source), id(conversion.target)


def _place(row: CastRow) -> object:
    return row.location.place[:3], row.location.layer


# -- layers


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
    symbols, totals = report.explicit.symbols, dict[str, list[float]]()
    for error in report.outputs:
        parts: dict[str, list[float]] = {}
        for place, share in (*(error.shares or {}).items(), *(error.roundings or {}).items()):
            own = parts.setdefault(layer_of(symbols[place].location), [])
            own.append(math.nan if share is None else share)
        for layer, shares in parts.items():
            totals.setdefault(layer, []).append(abs(sum(shares)))
    return {layer: None if math.isnan(sum(x)) else max(x) for layer, x in totals.items()}


# -- the order of an audited report: the sites by what each did to the outputs, the cause first

LARGE = 0.01
"""The relative error of an output, in the norm of its elements, from which it is explained."""


def ranked(
    sites: CastSites, causes: Sequence[LossCause], dtypes: Sequence[DtypeCause]
) -> Mapping[int, int]:
    """Return the rank of each row, by its `place`: that of its site.

    The sites of causes come first, then the steps that made outputs wide. The others stand by their
    scores (see `score`), sites of equal scores by their static damage.
    """
    order = sorted(sites, key=lambda x: (*score(x), x.row.damage), reverse=True)
    places = {row.symbol.index: site for site in sites for row in site.rows}
    first = [places.get(x.index) for cause in causes for x in cause.steps]
    steps = [(x.step.op.name, x.place.place) for x in dtypes if x.outputs]
    numbers = {id(x): [steps.index(i) for i in _steps(x) & {*steps}] for x in order if steps}
    wide = sorted((x for x in order if numbers.get(id(x))), key=lambda x: min(numbers[id(x)]))
    order = dict.fromkeys([*(x for x in first if x is not None), *wide, *order])
    return {row.place: rank for rank, site in enumerate(order) for row in site.rows}


def is_modular(graph: Graph, wraps: Set[int]) -> bool:
    """Whether integers that wrap go to bitwise ops, moved or cast at most: then by intention."""
    places = set(wraps)
    for symbol in graph.symbols:
        if places.isdisjoint(x.index for x in symbol.args):
            continue
        if symbol.op.signature in (signatures.BITWISE, signatures.SHIFT):
            return True
        if is_conversion(symbol) or symbol.op.kind == "movement":
            places.add(symbol.index)
    return False


def size_of(error: OutputError) -> float:
    """Return the size of an output's error: that of the norm; over 1 if elements broke."""
    if error.broken:
        return 1.0 + error.broken / error.elements
    if error.dtype == "bool":
        return (error.differing or 0) / error.elements
    return math.inf if error.norm is None else error.norm


def _steps(site: CastSite) -> set[tuple[str, tuple[str, int, int, int, int]]]:
    """Return the op and the place of each implicit cast of a site, as causes have them."""
    rows = [x for x in site.rows if x.kind == "implicit"]
    return {(name, x.location.place) for x in rows for name in (x.op, "cast")}


def score(site: CastSite) -> tuple[bool, float]:
    """Return whether a site reached an output, and how much of its error the site explains.

    That is the site's share of the error, times the part of the dtype's bits that the site lost: a
    difference of nearly equal operands passes the whole error on, but may add little to it. If the
    share is unknown, the second is the part of the site's own elements that lost, times the
    greatest relative error among them, at most 1; and 1 more if the program does not ask for it.
    """
    measured, share = site.measured, site.share
    weight = 1.0 if measured is None else measured.weight
    if share is None:
        if measured is None or not measured.elements:
            return False, 0.0
        broken = measured.overflowed or measured.nan_made
        most = 1.0 if broken else min(measured.relative, 1.0)
        part = measured.changed / measured.elements * most
        return False, part + 1.0 if part and not site.row.conversion.on_request else part
    return share > 0, min(share, 1.0) * weight

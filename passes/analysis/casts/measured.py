"""What a run measured: the changes by casts, the errors of outputs, and the parts not seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from graphir.ir.liveness import live_mask
from graphir.ops.control import Callee, bodies
from graphir.public import DType, Graph, Location, Symbol, TensorType, ops


@dataclass(frozen=True, slots=True)
class Measured:
    """The effect of one cast on the values of a run.

    Counts are of elements. `changed` counts elements whose value the target does not have (NaN to
    NaN is no change, -0.0 to 0.0 is a change). `overflowed` counts finite elements that became inf
    or NaN, saturated or wrapped. `underflowed` counts nonzero elements that became zero. `nan_made`
    counts elements that became NaN and were not NaN before.
    `relative` is the largest |after - before| / |before| and `ulps` the largest |after - before| in
    units of the last place that the target has at `before`, both over elements finite on both sides
    and not zero before; `worst` is the element with the largest relative error, before and after.
    """

    elements: int
    changed: int = 0
    overflowed: int = 0
    underflowed: int = 0
    nan_made: int = 0
    relative: float = 0.0
    ulps: float = 0.0
    worst: tuple[complex, complex] | None = None
    operands: tuple[complex, ...] = ()
    weight: float = 1.0
    greatest: float = 0.0
    """The greatest magnitude of an element that overflowed."""
    received: float | None = None
    """The relative error, in the Euclidean norm, that a library's call makes of its operands'."""

    @classmethod
    def merge(cls, *each: Measured) -> Measured:
        """Merge measurements: sum the counts, take the largest errors."""
        if len(each) == 1:
            return each[0]
        counts = {name: sum(getattr(measure, name) for measure in each) for name in _COUNTS}
        worst = max(each, key=lambda measure: (measure.worst is not None, measure.relative))
        received = [x.received for x in each if x.received is not None]
        return cls(
            **counts,
            relative=max(measure.relative for measure in each),
            ulps=max(measure.ulps for measure in each),
            worst=worst.worst,
            operands=worst.operands,
            weight=max(measure.weight for measure in each),
            greatest=max(measure.greatest for measure in each),
            received=max(received, default=None),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON; inf and NaN as text."""
        numbers = {name: getattr(self, name) for name in (*_COUNTS, "relative", "ulps")}
        worst = None if self.worst is None else [str(number) for number in self.worst]
        return {**{name: plain(n) for name, n in numbers.items()}, "worst": worst}


_OUTPUT_FIGURES = (
    *("name", "dtype", "elements", "differing", "broken", "largest", "rms", "relative"),
)
_PRINTED = 0.005
"""Half of the last digit of a share as reports print it."""
_COUNTS = ("elements", "changed", "overflowed", "underflowed", "nan_made")


@dataclass(frozen=True, slots=True)
class OutputError:
    """The error of an output against the reference run, the same program in wide arithmetic.

    All figures and `shares` are None if the error is unknown, since a step outside the graph may
    hide an error (see Unseen). `differing` counts elements that differ. `broken` counts elements
    that are not finite, but finite in the reference run. `largest` and `rms` are the maximum and
    the root mean square of |output - wide| over the other elements; `relative` is the largest
    |output - wide| / |wide|. `shares` attributes the error to casts, keyed by the index of the cast
    in the explicit graph: 0.25 is a quarter; a negative share hides the error of another cast; None
    is an unknown share. `rounding` is the share of the plain roundings of arithmetic that have no
    row. Of a linear program, all shares and `rounding` sum to 1, without those of cancellations,
    which count the errors of their operands again.
    """

    name: str
    dtype: str
    elements: int
    differing: int | None = 0
    broken: int | None = 0
    largest: float | None = 0.0
    rms: float | None = 0.0
    relative: float | None = 0.0
    shares: dict[int, float | None] | None = None
    norm: float | None = None
    """|output - wide| / |wide| in the Euclidean norm, over elements finite on both sides."""
    rounding: float | None = None
    roundings: Mapping[int, float] | None = None
    """The parts of `rounding`, by the index of the step in the explicit graph."""
    rounds: int = 1
    """The rounds in which the program printed or wrote the output, along its first axis."""
    first_round: int | None = None
    """The first round that differs, from 1; None without a difference."""

    @classmethod
    def unknown(cls, name: str, dtype: str, elements: int) -> OutputError:
        """Return an OutputError whose figures are all unknown (None)."""
        return cls(name, dtype, elements, None, None, None, None, None)

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers, or dates, which are counts of a unit."""
        return self.dtype[-1:] == "]" or DType(self.dtype).is_integer

    @property
    def overlaps(self) -> bool:
        """Whether a share, or the sum of the shares, lies outside of [0, 1].

        Errors that cancel one another, and those that pass through a cancellation, count more than
        once.
        """
        shares = [share for share in (self.shares or {}).values() if share is not None]
        parts = (*shares, sum(shares) + (self.rounding or 0.0))
        return not all(-_PRINTED <= share <= 1 + _PRINTED for share in parts)

    @property
    def is_known(self) -> bool:
        """Whether the error is known."""
        return self.differing is not None

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON, without the shares, which the document has at each cast."""
        names = [*_OUTPUT_FIGURES, *(("rounds", "first_round") if self.rounds > 1 else ())]
        return {name: plain(getattr(self, name)) for name in names}


class ExactValue(Protocol):
    """The value of an output in the reference run."""

    def error_of(self, values: NDArray[Any]) -> OutputError:
        """Return the error of an array of the output's shape, in any dtype."""
        ...


@dataclass(frozen=True, slots=True)
class Unseen:
    """A part of a program that its graph does not contain, at its first occurrence.

    `hides` is True if an operand of the step may have an error, or if the step's own arithmetic may
    have introduced an error: values computed from its results have an unknown error. `casts` is
    True if the part may cast: the report may lack these casts. `decides` is True if the step chose
    by values that have errors: the errors are those of its choice.
    """

    what: str
    location: Location
    reason: str
    hides: bool = False
    casts: bool = False
    decides: bool = False

    def merge(self, other: Unseen) -> Unseen:
        """Return an entry that hides what this entry or another one hides."""
        names = ("hides", "casts", "decides")
        return replace(self, **{x: getattr(self, x) or getattr(other, x) for x in names})

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        place = self.location.to_json()
        facts = {"what": self.what, "location": place, "reason": self.reason}
        flags = {"hides": self.hides, "hides_casts": self.casts, "decides": self.decides}
        return {**facts, **flags}


def plain(number: Any) -> Any:
    """Return a number for JSON: inf and NaN as text, other values as they are."""
    odd = isinstance(number, float) and not math.isfinite(number)
    return str(number) if odd else number


def parts_unseen(graph: Graph) -> list[Unseen]:
    """Return what a graph does not show of its program and may cast, each at its first place.

    These are live calls of other libraries' functions, and the values that a source made as it
    traced the program.
    """
    parts = [
        Unseen(part.what, part.location, part.reason, casts=not part.decides, decides=part.decides)
        for part in graph.provenance.unseen
    ]
    for call in _live_calls(graph):
        callee = call.attrs["callee"]
        if inside := casts_inside(callee, call.args, call.type):
            reason = f"is not entered, and {inside}"
            parts.append(Unseen(callee.name, call.location, reason, casts=True))
    return unique_parts(parts)


def _live_calls(graph: Graph) -> Iterator[Symbol]:
    """Yield the live calls of a graph, and of the graphs of its control flow."""
    for symbol in compress(graph.symbols, live_mask(graph, graph.outputs)):
        if symbol.op is ops.control.call:
            yield symbol
        elif graph.has_bodies:
            for body in bodies(symbol.attrs):
                yield from _live_calls(cast("Graph", body))


def casts_inside(callee: Callee, operands: Iterable[Any], results: TensorType) -> str:
    """Return what a call may cast inside, as text; "" if its graph shows all of its casts.

    A function of a library says it by the property `inside`. A function of NumPy promotes its
    operands, and computes in the dtype of its result.
    """
    if callee.function is None:
        return "its text has a name alone"
    inside = getattr(callee.function, "inside", None)
    if inside is None and callee.name.startswith("numpy."):
        return conversion_inside([x.type.dtype for x in operands], [x.dtype for x in results.parts])
    return inside or ""


def conversion_inside(operands: Iterable[DType], results: Iterable[DType]) -> str:
    """Return the conversion that a function of NumPy makes inside, as text; "" for none.

    Operands of several dtypes are promoted. Floats that a function makes of others are computed in
    their dtype; booleans and indices are not.
    """
    parts = dict.fromkeys(x.part for x in operands if x is not DType.bool)
    floats = dict.fromkeys(x.part for x in results if x.is_inexact)
    dtypes = [*parts, *(x for x in floats if x not in parts)]
    return f"converts between {' and '.join(map(str, dtypes))}" if parts and len(dtypes) > 1 else ""


def unique_parts(entries: Iterable[Unseen]) -> list[Unseen]:
    """Return entries with one for each thing and place, which hides all that they hide."""
    by_place: dict[tuple[str, str], Unseen] = {}
    for entry in entries:
        key = entry.what, str(entry.location)
        first = by_place.get(key)
        by_place[key] = entry if first is None else first.merge(entry)
    return list(by_place.values())

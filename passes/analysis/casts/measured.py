"""Measurements of a run: the changes by each cast, and the errors of the outputs.

`graphir.runtime.audit` creates them; the report and its rows carry them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphir import DType, Location


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
    def merge(cls, measures: Iterable[Measured]) -> Measured | None:
        """Merge measurements: sum the counts, take the largest errors; None of no measurements."""
        each = list(measures)
        if len(each) < 2:
            return each[0] if each else None
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

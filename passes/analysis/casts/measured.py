"""What a cast did to the values that went through it in a run, and what that made of the results.

Filled in by `runtime.audit`, carried by the rows of a report and by the report itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphir import Location


@dataclass(frozen=True, slots=True)
class Measured:
    """What one cast did to the values of a run.

    Counts are of elements. `changed`: those whose value the target does not have (NaN into NaN is
    no change, -0.0 into 0.0 is one); `overflowed`: finite ones that became inf or NaN, saturated or
    wrapped; `underflowed`: nonzero ones that became zero; `nan_made`: NaN from what was none.
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

    @classmethod
    def merged(cls, measures: Iterable[Measured]) -> Measured | None:
        """What some casts did in all: counts are summed, errors the largest; None of no casts."""
        each = list(measures)
        if len(each) < 2:
            return each[0] if each else None
        counts = {name: sum(getattr(measure, name) for measure in each) for name in _COUNTS}
        worst = max(each, key=lambda measure: (measure.worst is not None, measure.relative))
        return cls(
            **counts,
            relative=max(measure.relative for measure in each),
            ulps=max(measure.ulps for measure in each),
            worst=worst.worst,
        )

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them; what JSON has no number for, as text."""
        numbers = {name: getattr(self, name) for name in self.__slots__ if name != "worst"}
        worst = None if self.worst is None else [str(number) for number in self.worst]
        return {**{name: plain(n) for name, n in numbers.items()}, "worst": worst}


_COUNTS = ("elements", "changed", "overflowed", "underflowed", "nan_made")


@dataclass(frozen=True, slots=True)
class OutputError:
    """How far an output of the run is from the same program in wide arithmetic.

    All of it is None, and there are no shares, where a step that the graph does not contain may
    hide an error (see Unseen): then nobody knows. `differing` counts elements that differ; `broken`
    those that are not finite where the wide run's are; `largest` and `rms` are of |output - wide|
    over the others, `relative` is the largest |output - wide| / |wide|. `shares` says how much of
    the error each cast explains, by the place of the cast in the explicit graph: 0.25 is a quarter;
    negative where it hides another's, None where that is not known.
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

    @classmethod
    def unknown(cls, name: str, dtype: str, elements: int) -> OutputError:
        """The error of an output of which nobody knows."""
        return cls(name, dtype, elements, None, None, None, None, None)

    @property
    def known(self) -> bool:
        """Whether the error is known."""
        return self.differing is not None

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them, without the shares, which stand at each cast."""
        names = [name for name in self.__slots__ if name != "shares"]
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, slots=True)
class Unseen:
    """A step of a recorded program that its graph does not contain, where it was met first.

    `hides` where an error may have gone into it, or its own arithmetic may have made one: what the
    program made of its results is of unknown error.
    """

    what: str
    location: Location
    reason: str
    hides: bool

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON has them."""
        place = self.location.to_json()
        return {"what": self.what, "location": place, "reason": self.reason, "hides": self.hides}


def plain(number: Any) -> Any:
    """A number as JSON has it: inf and NaN as text."""
    odd = isinstance(number, float) and not math.isfinite(number)
    return str(number) if odd else number

"""Cause: one answer to *which line, and what do I write instead?*, and its Remedy.

A DtypeCause says why outputs have a dtype that the data has not, a LossCause why the values of
outputs are wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from graphir.location import Location
from graphir.passes.analysis.explanations.edits import Edit, combined
from graphir.passes.analysis.explanations.entries import Entry
from graphir.public import DType, Symbol

Grade: TypeAlias = Literal["inferred", "measured", "tried"]
"""What stands behind a fix: the graph inferred anew, the graph run, or the edited source run."""


class Remedy(NamedTuple):
    """Edits that answer a cause, one by one; no grade if they could not be tried.

    Outputs have the dtype `wanted` then; None if the values are mended, and not the dtype. `loses`
    is the first value that the edits lose, and `error` the error of the outputs with them, in the
    norm, if the graph was run.
    """

    parts: tuple[Edit, ...]
    grade: Grade | None = None
    wanted: DType | None = None
    loses: complex | None = None
    error: float | None = None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits to make, those inside of another one combined with it."""
        return combined(self.parts)


@dataclass(frozen=True, kw_only=True)
class Cause(ABC):
    """The answer to one question about `outputs`, which are numbers of outputs."""

    question: ClassVar[Literal["dtype", "value"]]
    outputs: tuple[int, ...]
    fix: Remedy | None = None

    @property
    def code(self) -> str:
        """The code of the finding, as in SARIF and in comments: `cause/dtype`."""
        return f"cause/{self.question}"

    @property
    @abstractmethod
    def steps(self) -> tuple[Symbol, ...]:
        """The ops at which it happens, the first or the worst first."""

    @property
    def step(self) -> Symbol:
        """The op at which it happens first, or at its worst."""
        return self.steps[0]

    @property
    def place(self) -> Location:
        """The source expression of `step`."""
        return self.step.location


@dataclass(frozen=True, kw_only=True)
class DtypeCause(Cause):
    """The `entries` of one source expression, at the first of which a dtype enters.

    Without outputs, `following` steps of other lines compute in the dtype.
    """

    question = "dtype"
    entries: tuple[Entry, ...]
    following: int = 0

    @property
    def steps(self) -> tuple[Symbol, ...]:
        """The ops at which the dtype enters, in the order of the program."""
        return tuple(entry.step for entry in self.entries)

    @property
    def operand(self) -> int | None:
        """The position of the operand that brings the dtype; None if the data promote alone."""
        return self.entries[0].position

    @property
    def birth(self) -> Symbol | None:
        """The first value that has the dtype, if it is made in another line."""
        birth = self.entries[0].birth
        is_here = birth is None or birth.location.place[:2] == self.place.place[:2]
        return None if is_here else birth

    @property
    def before(self) -> DType:
        """The dtype of the data."""
        return self.entries[0].wanted

    @property
    def after(self) -> DType:
        """The dtype that enters."""
        return self.entries[0].dtype


@dataclass(frozen=True, kw_only=True)
class LossCause(Cause):
    """The steps that lost the values of outputs, as symbols of the explicit graph, the worst first.

    Made exact together, and none of them left out, they remove the error; `others` are steps before
    them that do so as well. `before` and `after` are the sizes of the error, in the norm; over 1 if
    elements are not finite. If not `is_measured`, the steps are those of the largest share, by
    estimate.
    """

    question = "value"
    lossy: tuple[Symbol, ...]
    others: tuple[Symbol, ...] = ()
    before: float = 0.0
    after: float = 0.0
    is_measured: bool = False

    @property
    def steps(self) -> tuple[Symbol, ...]:
        """The steps that lost values, the worst first."""
        return self.lossy

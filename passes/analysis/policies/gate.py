"""Gates: the rows of a report that forbid a change to pass, as `graphir casts --fail-on` has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphir.passes.analysis.policies.patterns import CastPattern, cast_pattern, policy_word

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow

ANY = "any"
"""The word of a gate for every cast that the program does not spell out."""


def gate_word(text: str) -> str:
    """Return a word of a gate: `any`, or a word of policies (see cast_pattern); else GraphError."""
    return ANY if text.strip() == ANY else policy_word(text)


def forbidden_rows(report: CastReport, words: Iterable[str]) -> list[CastRow]:
    """Return the rows of a report that a word of a gate forbids: casts, then steps.

    Casts count that the program does not spell out. After a run a cast loses what it changed: a
    word for a loss forbids casts that changed a value. Steps of arithmetic whose values wrapped,
    overflowed, underflowed or became NaN count as lossy, and each word for a loss forbids the steps
    of its kind.
    """
    pairs = [(word, cast_pattern("*->*" if word == ANY else word)) for word in words]
    return [
        *(row for row in report.rows if any(_forbids_cast(pattern, row) for _, pattern in pairs)),
        *(row for row in report.losses if any(_forbids_step(*pair, row) for pair in pairs)),
    ]


def _forbids_cast(pattern: CastPattern, row: CastRow) -> bool:
    is_unharmed = row.measured is not None and not row.measured.changed
    return (
        row.conversion.is_silent
        and not (pattern.is_of_loss and is_unharmed)
        and pattern.matches(row.source, row.target, row.loss)
    )


def _forbids_step(word: str, pattern: CastPattern, row: CastRow) -> bool:
    if word in (ANY, "lossy"):
        return row.loss.kinds != ("precision",)
    return pattern.loss in row.loss.kinds

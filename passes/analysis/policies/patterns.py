"""The words of policies, as `graphir casts --fail-on` has them, and what follows from them.

Words are patterns of casts, and gates. A verdict is the decision on one cast; limits decide on the
width of a dtype.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, NewType, TypeAlias

from graphir.dtypes import DType, until_declared
from graphir.errors import GraphError
from graphir.loss import LOSS_KINDS, Loss

if TYPE_CHECKING:
    from graphir.passes.analysis.casts import CastReport, CastRow


LOSSES = ("lossy", "exact", *LOSS_KINDS)
"""The words for losses: "lossy" (any loss), "exact" (no loss), or one kind of loss."""

GROUPS = ("*", "integer", "bool", "int", "uint", "float", "complex")
"""The words for sets of dtypes: "*" (all), "integer" (int and uint), or one family."""


class CastPattern(NamedTuple):
    """The casts from `source` to `target` with a loss, a word of LOSSES or "" for any.

    `source` and `target` are dtypes or words of GROUPS.
    """

    source: DType | str = "*"
    target: DType | str = "*"
    loss: str = ""

    def matches(self, source: DType, target: DType, loss: Loss) -> bool:
        """Whether the pattern selects a cast from `source` to `target` with this loss."""
        if not (_is_in(source, self.source) and _is_in(target, self.target)):
            return False
        if self.loss in ("lossy", "exact"):
            return loss.exact is (self.loss == "exact")
        return not self.loss or self.loss in loss.kinds


@cache
def cast_pattern(text: str) -> CastPattern:
    """Parse the text of a cast pattern.

    A pattern is `lossy`, `exact`, or a loss (range, sign, precision, underflow, special); or
    `from->to`, also written `to:X` and `from:X`. Each side is a dtype by any of its names, a family
    of dtypes (bool, int, uint, float, complex), `integer` (int or uint) or `*`. Raises GraphError,
    with the nearest valid words, for any other text.
    """
    word = text.strip()
    if word in LOSSES:
        return CastPattern(loss=word)
    if "->" in word:
        source, _, target = word.partition("->")
        return CastPattern(_side(source, text), _side(target, text))
    way, colon, side = word.partition(":")
    if colon and way.strip() in ("to", "from"):
        dtypes = _side(side, text)
        return CastPattern(target=dtypes) if way.strip() == "to" else CastPattern(dtypes)
    near = difflib.get_close_matches(word, LOSSES, cutoff=0.5) or _with_side(word)
    raise _unknown_word(text, near)


CastKind = NewType("CastKind", str)
"""The text of a cast pattern, which `cast_kind` has checked."""


def cast_kind(text: str) -> CastKind:
    """Return a cast pattern without spaces around it; GraphError if it is none.

    Type checkers know the patterns of hints.CastKindName. Policies take any other, such as
    "int32->float16", through this function.
    """
    cast_pattern(text)
    return CastKind(text.strip())


def _is_in(dtype: DType, side: DType | str) -> bool:
    if isinstance(side, DType):
        return dtype is side
    return side in ("*", dtype.family) or (side == "integer" and dtype.is_integer)


def _side(side: str, text: str) -> DType | str:
    word = side.strip()
    if word in GROUPS:
        return word
    try:
        return DType(word)
    except GraphError:
        words = [*GROUPS, *(name for dtype in DType for name in (str(dtype), *dtype.aliases))]
        near = difflib.get_close_matches(word, words, cutoff=0.5) if word else []
        raise _unknown_word(text, [text.replace(word, x) for x in near]) from None


def _with_side(word: str) -> Sequence[str]:
    """Return the patterns that a bare dtype may abbreviate: `to:X` and `from:X`."""
    try:
        _side(word, word)
    except GraphError:
        return ()
    return f"to:{word}", f"from:{word}"


def _unknown_word(text: str, near: Sequence[str]) -> GraphError:
    choices = (
        f"it is one of {', '.join(LOSSES)}, or dtypes: 'int->float', 'to:float64', 'from:int64'"
    )
    hint = f"near it are {', '.join(map(repr, near))}" if near else choices
    return GraphError(f"{text!r} is no kind of cast; {hint}")


ANY = "any"
"""The word of a gate for every cast that the program does not spell out."""


WRONG = "wrong"
"""The word of a gate for results that an audit explains as wrong, also by casts as written."""


def gate_word(text: str) -> str:
    """Return a word of a gate: one of its own, or of policies (see cast_pattern); or GraphError."""
    return text.strip() if text.strip() in (ANY, WRONG) else cast_kind(text)


def forbidden_rows(report: CastReport, words: Iterable[str]) -> list[CastRow]:
    """Return the rows of a report that a word of a gate forbids: casts, then steps.

    Casts count that the program does not spell out. After a run a cast loses what it changed: a
    word for a loss forbids casts that changed a value. Steps of arithmetic whose values wrapped,
    overflowed, underflowed or became NaN count as lossy, and each word for a loss forbids the steps
    of its kind.
    """
    words = [word for word in words if word != WRONG]
    pairs = [(word, cast_pattern("*->*" if word == ANY else word)) for word in words]
    return [
        *(row for row in report.rows if any(_forbids_cast(pattern, row) for _, pattern in pairs)),
        *(row for row in report.losses if any(_forbids_step(*pair, row) for pair in pairs)),
    ]


def _forbids_cast(pattern: CastPattern, row: CastRow) -> bool:
    is_unharmed = row.measured is not None and not row.measured.changed
    return (
        row.conversion.is_silent
        and not (pattern.loss not in ("", "exact") and is_unharmed)
        and pattern.matches(row.source, row.target, row.loss)
    )


def _forbids_step(word: str, pattern: CastPattern, row: CastRow) -> bool:
    if word in (ANY, "lossy"):
        return row.loss.kinds != ("precision",)
    return pattern.loss in row.loss.kinds


# -- verdicts

Action: TypeAlias = Literal["allow", "warn", "forbid"]


class Verdict(NamedTuple):
    """The action for a cast, and the words of the policy that decided it."""

    action: Action
    why: tuple[str, ...]

    def __str__(self) -> str:
        verb = {"allow": "allowed", "warn": "warned of", "forbid": "forbidden"}[self.action]
        return f"{verb} by {', '.join(self.why)}"


def limit(dtype: DType) -> DType:
    """Return a dtype as a limit; raise GraphError for bool and weak dtypes, which have no width."""
    if dtype.family == "bool" or dtype.weak:
        raise GraphError(f"{dtype} has no width to keep to", fix="take int32, float32 or the like")
    return dtype


@until_declared
def too_wide(limits: tuple[DType, ...]) -> frozenset[DType]:
    """Return the dtypes that have more bits than an applicable limit.

    An int or uint limit applies to int and uint. A float limit applies to floats and to the parts
    of complex numbers. A complex limit applies to complex numbers alone.
    """
    return frozenset(dtype for dtype in DType for most in limits if _exceeds(dtype, most))


def _exceeds(dtype: DType, most: DType) -> bool:
    if most.is_complex:
        return dtype.is_complex and dtype.bits > most.bits
    return family(dtype) == family(most) and dtype.part.bits > most.bits


def family(dtype: DType) -> str:
    """Return the family for budgets: int and uint are "integer", float and complex "float"."""
    return {"int": "integer", "uint": "integer", "complex": "float"}.get(dtype.family, dtype.family)


def named_limits(words: Iterable[str], target: DType) -> tuple[DType, ...]:
    """Return the widest dtype below a target that one of the words names alone; () if none does.

    Whoever forbids casts to float64 wants no float64: also none that the program spells out.
    """
    kinds = [cast_pattern(word) for word in words if word not in (ANY, WRONG)]
    if not any(kind.target is target for kind in kinds):
        return ()
    below = [x for x in DType if x.family == target.family and x.part.bits < target.part.bits]
    usual = [x for x in below if x.storage.name == str(x)]
    return tuple(sorted(usual, key=lambda x: x.bits)[-1:])


def limits_on(dtype: DType, limits: Sequence[DType]) -> list[DType]:
    """Return the limits that a dtype exceeds."""
    return [most for most in limits if _exceeds(dtype, most)]


def within(dtype: DType, limits: tuple[DType, ...]) -> DType | None:
    """Return a dtype within the limits: itself, else the widest of its family, or None."""
    wide = too_wide(limits)
    if dtype not in wide:
        return dtype
    fitting = [each for each in DType if each.family == dtype.family and each not in wide]
    usual = [each for each in fitting if each in limits or each.storage.name == str(each)]
    return max(usual, key=lambda each: (each in limits, each.bits), default=None)

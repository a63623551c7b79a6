"""The errors a user can meet, each a GraphirError and the builtin to expect; and the warning.

An error is data: the op, its operands, the place, the problem, what was got, and the ways out.
`text_of` alone makes text of it, when somebody asks; no code reads anything out of that text.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from graphir.escape import printable

if TYPE_CHECKING:
    from graphir.dtypes import DType
    from graphir.location import Location
    from graphir.ops.dims import Shape
    from graphir.ops.types import TensorType


class OperandInfo(NamedTuple):
    """An operand of a refused op: its name there, type and source line; the text of a literal."""

    name: str
    type: TensorType | None = None
    location: Location | None = None
    value: str = ""

    @property
    def dtype(self) -> DType | None:
        """The dtype; None of a literal, which has none by itself."""
        return self.type.dtype if self.type is not None else None

    @property
    def shape(self) -> Shape | None:
        """The shape; None of a literal."""
        return self.type.shape if self.type is not None else None

    def to_json(self) -> dict[str, Any]:
        """The operand as JSON has it."""
        return {
            "name": self.name,
            "dtype": None if self.type is None else str(self.dtype),
            "shape": None if self.shape is None else [_json_dim(dim) for dim in self.shape],
            "value": self.value or None,
            "location": None if self.location is None else self.location.to_json(),
        }

    def __str__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        place = f" ({self.location})" if self.location is not None else ""
        return f"{name}{self.value if self.type is None else self.type}{place}"


def _json_dim(dim: Any) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


class Vocabulary(NamedTuple):
    """How the ways out of an error are written in one front end, with {dtype} and {value}."""

    cast: str
    scalar: str
    builds_graphs: bool = False
    """Whether its user chooses the rule set."""


GRAPHS = Vocabulary(".cast(DType.{dtype})", "g.scalar({value}, DType.{dtype})", True)


class Fix(NamedTuple):
    """A way out that front ends write differently.

    In `phrase`, {cast} stands for a conversion to `dtype`, {scalar} for the number `value` in it.
    """

    phrase: str
    dtype: object = None
    value: str = ""

    def text(self, vocabulary: Vocabulary) -> str:
        """The way out as the user of a front end writes it; empty where it has none."""
        cast, scalar = (
            code.format(dtype=self.dtype or "...", value=self.value)
            for code in (vocabulary.cast, vocabulary.scalar)
        )
        return self.phrase.format(cast=cast, scalar=scalar)


class RulesFix(NamedTuple):
    """A way out for who builds a graph: other rules, a phrase such as `rules='numpy'`."""

    rules: str

    def text(self, vocabulary: Vocabulary) -> str:
        """The way out; empty in a front end whose rules are fixed."""
        return f"build the graph under {self.rules}" if vocabulary.builds_graphs else ""


AnyFix: TypeAlias = str | Fix | RulesFix


def cast_first(dtype: object) -> Fix:
    """The way out of an op that does not take a dtype, and takes this one."""
    return Fix("cast first, for example {cast}", dtype)


REAL_PARTS = "take .real, .imag or abs() first"
"""The way out of an op that takes no complex numbers."""


class GraphirError(Exception):
    """Any refusal of graphir, as data; its text is `op: problem; got ...; what to write instead`.

    `problem` says what is wrong, `reason` why, `got` what came instead, `fixes` the ways out.
    `op` is the op or function that refuses, `operands` are what it was called on, `location` is
    the line of the user's program. `context` names what surrounds it, such as a file or a pass.
    """

    longest: int | None = None
    """The most characters of the text; its middle is left out where it has more."""

    def __init__(
        self,
        problem: str = "",
        *,
        reason: str = "",
        got: str = "",
        fix: AnyFix | Sequence[AnyFix] = (),
        op: str = "",
        operands: Sequence[OperandInfo] = (),
        location: Location | None = None,
        context: Sequence[str] = (),
    ) -> None:
        super().__init__(problem)
        self.problem, self.reason, self.got = problem, reason, got
        self.fixes: tuple[AnyFix, ...] = (
            (fix,) if isinstance(fix, (str, Fix, RulesFix)) else tuple(fix)
        )
        self.op, self.operands, self.location = op, tuple(operands), location
        self.context, self.vocabulary = tuple(context), GRAPHS

    def having(self, **fields: Any) -> Self:
        """The same error with other fields, raised nowhere yet."""
        new = copy.copy(self)
        vars(new).update(fields)
        return new

    def at(self, location: Location, op: str = "", operands: Sequence[OperandInfo] = ()) -> Self:
        """The same error at a line of the user's program, unless it has its line already."""
        if self.location is not None:
            return self
        op = op if operands or not self.op else self.op
        return self.having(location=location, op=op, operands=tuple(operands) or self.operands)

    def within(self, *context: str) -> Self:
        """The same error, inside what these name, the outermost first."""
        return self.having(context=(*context, *self.context))

    @classmethod
    def like(cls, error: GraphirError, **fields: Any) -> Self:
        """An error of this class that has the fields of another."""
        new = cls(error.problem)
        vars(new).update(vars(error), **fields)
        return new

    @property
    def summary(self) -> str:
        """The problem and its reason, without place, operands and ways out."""
        return f"{self.problem}: {self.reason}" if self.reason else self.problem

    @property
    def surroundings(self) -> tuple[str, ...]:
        """What its text begins with."""
        return self.context

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON has them, and the text."""
        fixes = [text for fix in self.fixes if (text := _fix_text(fix, self.vocabulary))]
        return {
            "type": type(self).__name__,
            "message": str(self),
            "context": list(self.surroundings),
            "op": self.op or None,
            "operands": [operand.to_json() for operand in self.operands],
            "location": None if self.location is None else self.location.to_json(),
            "problem": self.problem,
            "reason": self.reason or None,
            "got": self.got or None,
            "fixes": fixes,
        }

    def __str__(self) -> str:
        """The text, fit for a terminal whatever names it quotes."""
        text = text_of(self)
        text = text if self.longest is None else shortened(text, self.longest)
        return printable(text, None, keep="\n")


def text_of(error: GraphirError) -> str:
    """The text of an error: `place: op(operands): problem; got ...; one way out, or another`."""
    place = "" if error.location is None else str(error.location)
    call = call_text(error.op, error.operands) if error.op else ""
    parts = [*error.surroundings, place, call, error.problem, error.reason]
    clauses = [": ".join(part for part in parts if part)]
    if error.got:
        clauses.append(f"got {error.got}")
    fixes = [text for fix in error.fixes if (text := _fix_text(fix, error.vocabulary))]
    if fixes:
        clauses.append(", or ".join(fixes))
    return "; ".join(clauses)


_MAX_OPERANDS = 8
"""The operands that the text of an error shows."""


def call_text(op: str, operands: Sequence[OperandInfo]) -> str:
    """A call as errors show it: the op, and each operand with its type and line."""
    if not operands:
        return op
    more = len(operands) - _MAX_OPERANDS
    operands_text = ", ".join(map(str, operands[:_MAX_OPERANDS]))
    return f"{op}({operands_text}{f', ... {more} more' if more > 0 else ''})"


def _fix_text(fix: AnyFix, vocabulary: Vocabulary) -> str:
    return fix if isinstance(fix, str) else fix.text(vocabulary)


class PromotionError(GraphirError, TypeError):
    """The rules in force give these dtypes no common one, or the op does not take this one."""


class ShapeError(GraphirError, ValueError):
    """Shapes or axes that do not fit an op."""


class AxisError(ShapeError, IndexError):
    """An axis that an operand does not have."""


class GraphError(GraphirError, ValueError):
    """A graph built, named or combined in a way that has no meaning."""


class ParseError(GraphirError, ValueError):
    """Malformed text, with the place where reading stopped.

    `line` and `column` count from 1.
    """

    longest = 1000  # since it quotes text of any length
    line = 1
    column = 1

    @property
    def surroundings(self) -> tuple[str, ...]:
        """The line and column in the text, and what surrounds that."""
        return f"line {self.line}, column {self.column}", *self.context


class ExecutionError(GraphirError, ValueError):
    """Inputs that do not fit a graph, or a value that an op cannot compute with."""


def shortened(message: str, most: int = 1000) -> str:
    """A message that shows what others wrote, which may be of any length: its middle left out."""
    if len(message) <= most:
        return message
    half = most // 2 - 8
    return f"{message[:half]} [... {len(message) - 2 * half} characters ...] {message[-half:]}"


class CastWarning(UserWarning):
    """An implicit cast that the policy of its graph warns of."""

"""The exceptions that users meet, and the warning about implicit casts.

Each exception is a GraphirError and also the builtin that a caller expects, such as TypeError. An
error is data: the op, its operands, the location, the problem, the offending value and the fixes.
`text_of` alone formats that data, when a program asks for the text. No code parses the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from graphir.display import printable

if TYPE_CHECKING:
    from graphir.dtypes import DType
    from graphir.location import Location
    from graphir.ops.dims import Shape
    from graphir.ops.types import TensorType


class OperandInfo(NamedTuple):
    """An operand of a refused op: its name in the op's signature, its type and its source line.

    `value` is the text of a literal, whose `type` is None.
    """

    name: str
    type: TensorType | None = None
    location: Location | None = None
    value: str = ""

    @property
    def dtype(self) -> DType | None:
        """The dtype; None for a literal, which has no dtype by itself, and for a tuple."""
        return getattr(self.type, "dtype", None)

    @property
    def shape(self) -> Shape | None:
        """The shape; None for a literal and for a tuple."""
        return getattr(self.type, "shape", None)

    def __str__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        place = f" ({self.location})" if self.location is not None else ""
        return f"{name}{self.value if self.type is None else self.type}{place}"


class Vocabulary(NamedTuple):
    """The code templates of one front end for the fixes in error messages.

    `cast` converts an operand to {dtype}; `scalar` makes the number {value} of dtype {dtype}.
    """

    cast: str
    scalar: str
    builds_graphs: bool = False
    """Whether the front end's user chooses the rule set."""


GRAPHS = Vocabulary(".cast(DType.{dtype})", "g.scalar({value}, DType.{dtype})", True)


class Fix(NamedTuple):
    """A fix whose code differs between front ends.

    In `phrase`, {cast} stands for a conversion to `dtype`, and {scalar} for the number `value` in
    that dtype.
    """

    phrase: str
    dtype: object = None
    value: str = ""

    def text(self, vocabulary: Vocabulary) -> str:
        """Return the fix as the user of a front end writes it."""
        cast, scalar = (
            code.format(dtype=self.dtype or "...", value=self.value)
            for code in (vocabulary.cast, vocabulary.scalar)
        )
        return self.phrase.format(cast=cast, scalar=scalar)


class RulesFix(NamedTuple):
    """A fix for the user who builds a graph: another rule set.

    `rules` is a phrase such as `rules='numpy'`.
    """

    rules: str

    def text(self, vocabulary: Vocabulary) -> str:
        """Return the fix as text; empty in a front end whose rules are fixed."""
        return f"build the graph under {self.rules}" if vocabulary.builds_graphs else ""


AnyFix: TypeAlias = str | Fix | RulesFix


def cast_first(dtype: object) -> Fix:
    """Return the fix for an op that refuses an operand's dtype and accepts `dtype`."""
    return Fix("cast first, for example {cast}", dtype)


REAL_PARTS = "take .real, .imag or abs() first"
"""The fix for an op that refuses complex numbers."""


class GraphirError(Exception):
    """The base of every graphir exception, as data; its text is `op: problem; got ...; fix`.

    `problem` states the error, `reason` its cause, and `got` the offending value. `fixes` holds the
    code to write instead. `op` is the op or function that raises, `operands` are its operands,
    and `location` is the line of the user's program. `context` names the surroundings, such as a
    file or a pass, the outermost first.
    """

    longest: int | None = None
    """The most characters of the text; a longer text loses its middle. None is no limit."""

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
        """Return a copy of the error with some fields replaced. The copy has no traceback."""
        new = type(self).__new__(type(self), *self.args)  # packages replace how exceptions copy
        vars(new).update(vars(self), **fields)
        return new

    def at(self, location: Location, op: str = "", operands: Sequence[OperandInfo] = ()) -> Self:
        """Attach the user's source line, op and operands to the error unless it has a line.

        An error that has a line is returned unchanged, otherwise a copy.
        """
        if self.location is not None:
            return self
        op = op if operands or not self.op else self.op
        return self.having(location=location, op=op, operands=tuple(operands) or self.operands)

    def within(self, *context: str) -> Self:
        """Return a copy of the error with more context around it, the outermost first."""
        return self.having(context=(*context, *self.context))

    @classmethod
    def like(cls, error: GraphirError, **fields: Any) -> Self:
        """Return an error of this class with the fields of another error."""
        new = cls(error.problem)
        vars(new).update(vars(error), **fields)
        return new

    @property
    def summary(self) -> str:
        """The problem and its reason, without location, operands and fixes."""
        return f"{self.problem}: {self.reason}" if self.reason else self.problem

    @property
    def surroundings(self) -> tuple[str, ...]:
        """The context with which the text begins, the outermost first."""
        return self.context

    def __str__(self) -> str:
        """Return the text with unprintable characters replaced, safe for a terminal."""
        text = text_of(self)
        text = text if self.longest is None else shortened(text, self.longest)
        return printable(text, None, keep="\n")


def text_of(error: GraphirError) -> str:
    """Format an error as `location: op(operands): problem; got ...; fix, or another fix`."""
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
"""The most operands that the text of an error shows."""


def call_text(op: str, operands: Sequence[OperandInfo]) -> str:
    """Format a call for an error message: the op, and each operand with its type and line.

    The text shows at most 8 operands and counts the rest.
    """
    if not operands:
        return op
    more = len(operands) - _MAX_OPERANDS
    operands_text = ", ".join(map(str, operands[:_MAX_OPERANDS]))
    return f"{op}({operands_text}{f', ... {more} more' if more > 0 else ''})"


def _fix_text(fix: AnyFix, vocabulary: Vocabulary) -> str:
    return fix if isinstance(fix, str) else fix.text(vocabulary)


class PromotionError(GraphirError, TypeError):
    """The rule set in force has no common dtype for the operands, or the op refuses a dtype."""


class ShapeError(GraphirError, ValueError):
    """An op cannot take operands of these shapes, or these axes."""


class AxisError(ShapeError, IndexError):
    """An axis that an operand does not have."""


class GraphError(GraphirError, ValueError):
    """A graph built, named or combined in a way that has no meaning."""


class MissingOpError(GraphError):
    """No op does what the program asks of a library's function.

    It ends a trace even if the program catches it, since the library itself would not raise it.
    """


class ParseError(GraphirError, ValueError):
    """Malformed text, with the position where the parser stopped.

    `line` and `column` count from 1.
    """

    longest = 1000  # because the message quotes text of any length
    line = 1
    column = 1

    @property
    def surroundings(self) -> tuple[str, ...]:
        """The line and column in the parsed text, then the context."""
        return f"line {self.line}, column {self.column}", *self.context


class ExecutionError(GraphirError, ValueError):
    """Inputs of other types than a graph declares, or a value that an op cannot compute with."""


class OutOfMemoryError(ExecutionError, MemoryError):
    """A run needs more memory than there is; the op, if there is one, is that of the value."""

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return a MemoryError as an error of this class; one of this class is returned itself."""
        return error if isinstance(error, cls) else cls(str(error) or "out of memory")


def shortened(message: str, most: int = 1000) -> str:
    """Return a message of at most about `most` characters, without its middle if it is longer.

    Messages quote text from outside, which may have any length.
    """
    if len(message) <= most:
        return message
    half = most // 2 - 8
    return f"{message[:half]} [... {len(message) - 2 * half} characters ...] {message[-half:]}"


class CastWarning(UserWarning):
    """A warning about an implicit cast, as the policy of the graph demands."""

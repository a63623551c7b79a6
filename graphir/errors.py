"""The errors a user can meet, each a GraphirError and the builtin to expect; and the warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphir.escape import printable

if TYPE_CHECKING:
    from graphir.location import Location


class GraphirError(Exception):
    """Any refusal of graphir: the message names what was refused, where, and the fix.

    `location` is the line of the user's program that was refused, where that is known.
    """

    location: Location | None = None

    def __str__(self) -> str:
        """The message, fit for a terminal whatever names it quotes."""
        return printable(super().__str__(), None, keep="\n")


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

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, int, int]]:
        return ParseError, (self.message, self.line, self.column)


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

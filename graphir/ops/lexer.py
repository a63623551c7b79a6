"""The lexer of graphir's text: tokens, and the line and column of each token for errors."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from graphir.errors import GraphirError, ParseError

T = TypeVar("T")

# Every quantifier is possessive, so no text makes matching slow. An unterminated string runs to the
# end of its line. A character without another meaning is a token by itself. The last token is "".
_TOKEN = re.compile(
    r"""\s*+ (?: \#[^\n]*+ \s*+ )*+
    ( %?+ " (?: [^"\\\n] | \\. )*+ "?+
    | %\w++
    | [^\W\d]\w*+
    | 0[xX][0-9a-fA-F]*+ (?: \.[0-9a-fA-F]*+ )?+ (?: [pP][+-]?+[0-9]++ )?+
    | [0-9]++ (?: \.[0-9]*+ )?+ (?: [eE][+-]?+[0-9]++ )?+
    | -> | // | . | \Z )""",
    re.VERBOSE,
)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_NAME = re.compile(r"[^\W\d]\w*")
LONGEST_NUMBER = 400
"""The maximum length of a number in characters.

It covers every float, and lies far below the limit of Python's int().
"""


def is_name(text: str) -> bool:
    """Whether text is a bare name; any other name needs quotes."""
    return _NAME.fullmatch(text) is not None


class Tokens:
    """The tokens of a text with a read position.

    Every reading method raises ParseError if the text does not match.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = _TOKEN.findall(text)
        self.at: int = 0
        self._starts: list[int] = []
        self._lines: list[int] = []

    def place(self, at: int) -> tuple[int, int]:
        """Return the line and column of a token, counted from 1."""
        if not self._starts:
            self._starts = [match.start(1) for match in _TOKEN.finditer(self.text)]
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        start = self._starts[at]
        line = bisect_right(self._lines, start)
        return line, start - self._lines[line - 1] + 1

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise ParseError at a token, by default the next token."""
        self.refuse(ParseError(message), self.at if at is None else at)

    def attempt(self, at: int, build: Callable[..., T], *args: Any) -> T:
        """Call a function on values from the text; turn any exception into a ParseError at a token.

        The functions expect values from programs, and a text can hold anything. So every exception
        that such a value causes is a refusal of the text.
        """
        try:
            return build(*args)
        except Exception as error:
            self.refuse(error, at)

    def refuse(self, error: Exception, at: int, **fields: Any) -> NoReturn:
        """Raise an error again as a ParseError at a token; `fields` replace fields of the error."""
        if not isinstance(error, GraphirError):
            error = ParseError("not possible", reason=f"{type(error).__name__}: {error}")
        line, column = self.place(at)
        raise ParseError.like(error, **fields, line=line, column=column) from None

    def expected(self, what: str) -> NoReturn:
        """Raise ParseError with a description of the expected token."""
        token = self.tokens[self.at]
        text = f"{token[:40]!r}" if token else "the end of the text"
        if '"' in token and not _STRING.fullmatch(token.removeprefix("%")):
            self.fail(f"unterminated string {text}; expected {what}")
        self.fail(f"expected {what}, not {text}")

    def expect(self, token: str, what: str = "") -> None:
        """Consume the next token, which must be `token`; raise ParseError otherwise."""
        if self.tokens[self.at] != token:
            self.expected(f"{token!r}{what}")
        self.at += 1

    def take(self, token: str) -> bool:
        """Consume the next token if it is `token`; return whether it is."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def separated(self, item: Callable[[], T], close: str) -> list[T]:
        """Read items between commas up to a closing token; there may be none."""
        items: list[T] = []
        if self.take(close):
            return items
        items.append(item())
        while self.take(","):
            items.append(item())
        self.expect(close, " or ','")
        return items

    def name(self, what: str) -> str:
        """Read a bare name."""
        token = self.tokens[self.at]
        if not _NAME.match(token):
            self.expected(what)
        self.at += 1
        return token

    def label(self, what: str) -> str:
        """Read a bare name or a quoted string."""
        return self.string(what) if self.tokens[self.at][:1] == '"' else self.name(what)

    def string(self, what: str) -> str:
        """Read a string in double quotes with the escapes of JSON."""
        return self._decoded(self.tokens[self.at], what)

    def variable(self, what: str) -> str:
        """Read the name of a value, without its %."""
        token = self.tokens[self.at]
        if token[:1] != "%" or len(token) == 1:
            self.expected(what)
        if token[1] == '"':
            return self._decoded(token[1:], what)
        self.at += 1
        return token[1:]

    def _decoded(self, token: str, what: str) -> str:
        if not _STRING.fullmatch(token):
            self.expected(what)
        try:
            value: str = json.loads(token)
        except ValueError as error:
            self.fail(f"{token[:40]} is not a string as JSON has them: {error}")
        self.at += 1
        return value

    def natural(self, what: str) -> int:
        """Read an int without a sign, in decimal digits."""
        token = self.tokens[self.at]
        if not (token.isascii() and token.isdecimal()):
            self.expected(what)
        return int(self._number())

    def number(self) -> int | float:
        """Read an int in decimal digits, or a float: hexadecimal, decimal, inf or nan."""
        if self.take("-"):
            return -self._number()
        return float("nan") if self.take("nan") else self._number()

    def _number(self) -> int | float:
        token, at = self.tokens[self.at], self.at
        if token == "inf":
            self.at += 1
            return float(token)
        if not ("0" <= token[:1] <= "9"):
            self.expected("a value")
        if len(token) > LONGEST_NUMBER:
            self.fail(f"a number of {len(token)} characters; at most {LONGEST_NUMBER} are read")
        self.at += 1
        if token.isdecimal():
            return int(token)
        try:
            value = float.fromhex(token) if token[1:2] in ("x", "X") else float(token)
        except (ValueError, OverflowError):
            value = float("inf")
        if value == float("inf"):
            self.fail(f"{token} is not a number, or too large for a float", at)
        return value

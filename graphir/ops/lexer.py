"""Tokens of graphir's text, and the place of each for errors."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from graphir.errors import GraphirError, ParseError

T = TypeVar("T")

# Possessive throughout, so that no text makes matching slow. A string without an end runs to the
# end of its line; what has no other meaning is a token of one character; the last token is "".
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
"""The most characters of a number: beyond any float, and far from where Python's int() stops."""


def is_name(text: str) -> bool:
    """Whether text can stand for itself where a name is meant; the rest is quoted."""
    return _NAME.fullmatch(text) is not None


class Tokens:
    """The tokens of a text, and the place in them where reading is.

    Every method that reads raises ParseError where the text is not what it expects.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = _TOKEN.findall(text)
        self.at: int = 0
        self._starts: list[int] = []
        self._lines: list[int] = []

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a token, counted from 1."""
        if not self._starts:
            self._starts = [match.start(1) for match in _TOKEN.finditer(self.text)]
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        start = self._starts[at]
        line = bisect_right(self._lines, start)
        return line, start - self._lines[line - 1] + 1

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise ParseError at a token, by default the next."""
        self.refuse(ParseError(message), self.at if at is None else at)

    def attempt(self, at: int, build: Callable[..., T], *args: Any) -> T:
        """What a function makes of values that were read; what it refuses is an error at a token.

        Functions are written for what programs give them, and a text can hold anything: whatever
        that leads to is a refusal too.
        """
        try:
            return build(*args)
        except Exception as error:
            self.refuse(error, at)

    def refuse(self, error: Exception, at: int, **fields: Any) -> NoReturn:
        """Raise an error again, as a ParseError at a token, with other fields where named."""
        if not isinstance(error, GraphirError):
            error = ParseError("not possible", reason=f"{type(error).__name__}: {error}")
        line, column = self.place(at)
        raise ParseError.like(error, **fields, line=line, column=column) from None

    def expected(self, what: str) -> NoReturn:
        """Raise ParseError that says what the next token should have been."""
        token = self.tokens[self.at]
        text = f"{token[:40]!r}" if token else "the end of the text"
        if '"' in token and not _STRING.fullmatch(token.removeprefix("%")):
            self.fail(f"unterminated string {text}; expected {what}")
        self.fail(f"expected {what}, not {text}")

    def expect(self, token: str, what: str = "") -> None:
        """Pass a token that must come next."""
        if self.tokens[self.at] != token:
            self.expected(f"{token!r}{what}")
        self.at += 1

    def take(self, token: str) -> bool:
        """Pass a token if it comes next."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def name(self, what: str) -> str:
        """A bare name."""
        token = self.tokens[self.at]
        if not _NAME.match(token):
            self.expected(what)
        self.at += 1
        return token

    def label(self, what: str) -> str:
        """A name, which is quoted unless it is a bare one."""
        return self.string(what) if self.tokens[self.at][:1] == '"' else self.name(what)

    def string(self, what: str) -> str:
        """A string in double quotes with the escapes of JSON."""
        return self._decoded(self.tokens[self.at], what)

    def variable(self, what: str) -> str:
        """The name of a value, without its %."""
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
        """An int without a sign, in decimal digits."""
        token = self.tokens[self.at]
        if not (token.isascii() and token.isdecimal()):
            self.expected(what)
        return int(self._number())

    def number(self) -> int | float:
        """An int in decimal digits, or a float: hexadecimal, decimal, inf or nan."""
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

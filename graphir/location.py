"""Where in the user's program a symbol arose, and why the compiler put a cast there."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import partial, wraps
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, cast

from graphir.assignments import assignment_end
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.escape import printable
from graphir.source_text import displayed_path, source_line

P = ParamSpec("P")
R = TypeVar("R")


def is_internal(frame: FrameType) -> bool:
    """Whether a frame runs code of this package, which is never the user's, or of a caller."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] == _PACKAGE or name in CALLERS


_PACKAGE = __name__.partition(".")[0]

CALLERS: set[str] = set()
"""Modules of floors above that build graphs for who calls them, at the line of the call."""


def user_frame() -> FrameType:
    """The innermost frame outside graphir, looking from above the one that asks."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while is_internal(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def user_location() -> Location:
    """Where the user called what is running now."""
    frame = user_frame()
    return Location(frame.f_code, frame.f_lasti)


class Location:
    """A place in a source file, and the layer of the graph that was open there.

    Made from a code object and an instruction offset, which are cheap to note; the file, line and
    columns (counted from 1, `end_column` exclusive) are read from them only when asked.
    """

    __slots__ = ("_code", "_offset", "_place", "_source", "layer")

    compound = False
    """Whether the text there does more than one op: its operands are not the op's."""

    in_place = False
    """Whether an in-place operator stands there, and the op is on the array that it writes to."""

    def __init__(self, code: CodeType, offset: int, layer: str = "") -> None:
        self._code: CodeType | None = code
        self._offset = offset
        self._place: tuple[str, int, int, int, int] | None = None
        self.layer = layer

    @classmethod
    def at(
        cls,
        file: str,
        line: int,
        column: int = 1,
        end_line: int | None = None,
        end_column: int | None = None,
        layer: str = "",
        source: str = "",
    ) -> Location:
        """A location known by its numbers; its lines are read from the path `source`, if any."""
        new = cls.__new__(cls)
        new._code, new._offset, new._source, new.layer = None, 0, source, layer
        new._place = file, line, column, end_line or line, end_column or column
        return new

    @classmethod
    def of(cls, location: Location) -> Self:
        """The same place, as a location of this class."""
        new = cls.__new__(cls)
        for name in Location.__slots__:
            setattr(new, name, getattr(location, name, ""))  # code needs no _source
        return new

    @property
    def place(self) -> tuple[str, int, int, int, int]:
        """The file, the line and column of its start, and those of its end."""
        if self._place is None:
            code = self._code
            assert code is not None  # a location has either its code or its place
            positions, opcodes = _positions(code)
            line, end_line, column, end_column = (n or 0 for n in positions[self._offset // 2])
            file = code.co_filename
            start, end = _characters(file, line, column), _characters(file, end_line, end_column)
            ends = end_line or line, end + 1
            if opcodes[self._offset] in _STORES:
                ends = assignment_end(file, line, start + 1) or ends
            self._place = displayed_path(file), line, start + 1, *ends
        return self._place

    @property
    def file(self) -> str:
        """The source file, relative to the working directory when inside it."""
        return self.place[0]

    @property
    def source(self) -> str:
        """The path from which the lines there may be read; empty where none was given.

        Running code has the one that Python loaded it from. What a text says of files is no path
        to read: see `Graph.parse`.
        """
        return self._code.co_filename if self._code else self._source

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.place[1]

    @property
    def column(self) -> int:
        """The column of the first character, from 1."""
        return self.place[2]

    @property
    def end_line(self) -> int:
        """The line of the last character."""
        return self.place[3]

    @property
    def end_column(self) -> int:
        """The column after the last character."""
        return self.place[4]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Location):
            return NotImplemented
        return self.place[:3] == other.place[:3] and self.layer == other.layer

    def matches(self, other: Location) -> bool:
        """Whether the two are the same stretch of text, to the end where that is known."""
        return self == other and self.place[3:] == other.place[3:]

    def __hash__(self) -> int:
        return hash((self.place[:3], self.layer))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self).at, (*self.place, self.layer, self.source)

    @property
    def layered(self) -> str:
        """Its text, and the layer if there is one: `net.py:3:5 [encoder]`; fit for a terminal."""
        return f"{self} [{printable(self.layer)}]" if self.layer else str(self)

    def to_json(self) -> dict[str, Any]:
        """The place as JSON has it."""
        file, line, column, *_ = self.place
        return {"file": file, "line": line, "column": column, "layer": self.layer}

    def __str__(self) -> str:
        file, line, column, *_ = self.place
        return f"{printable(file)}:{line}:{column}" if file else f"line {line}, column {column}"

    def __repr__(self) -> str:
        return f"<Location {self}>"


class CompoundLocation(Location):
    """The place of a call whose function is made of several ops, one of which arose there."""

    __slots__ = ()
    compound = True


class InPlaceLocation(Location):
    """The place of an in-place operator such as `x += y`, whose op's first operand is x."""

    __slots__ = ()
    in_place = True


def placing(method: Callable[P, R]) -> Callable[P, R]:
    """Let what a method refuses say the line of the user who called it."""

    @wraps(method)
    def placed_method(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except GraphirError as error:
            raise error.at(user_location(), method.__name__.strip("_")) from None

    return placed_method


_Position: TypeAlias = "tuple[int | None, int | None, int | None, int | None]"
_POSITIONS: dict[int, tuple[CodeType, tuple[_Position, ...], bytes]] = {}
"""Of the code that was asked about lately, by id; reading a place takes time with all before it."""

_STORES = frozenset(dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_ATTR"))
"""The instructions of assignments to an item or an attribute."""


def _positions(code: CodeType) -> tuple[tuple[_Position, ...], bytes]:
    """Line, last line, column and last column of each instruction of a code, and those."""
    entry = _POSITIONS.get(id(code))
    if entry is None:
        if len(_POSITIONS) >= 16:
            _POSITIONS.clear()
        entry = _POSITIONS[id(code)] = code, tuple(code.co_positions()), code.co_code
    return entry[1:]


def _characters(file: str, line: int, size: int) -> int:
    """How many characters the first bytes of a line are, in which Python counts columns."""
    text = source_line(file, line)
    return size if text.isascii() else len(text.encode()[:size].decode(errors="replace"))


class Origin(NamedTuple):
    """One use that an inserted cast serves: whose operand, where, and by which rule.

    `operand` is the operand's name ("result" for a result, "value" for what ASSIGN puts into an
    array); `rule` the rule set that was in force, or LEGALIZE, CAST or ASSIGN.
    """

    operand: str
    op: str
    location: Location
    rule: str
    source: DType
    target: DType

    @property
    def stores(self) -> bool:
        """Whether it casts a result, or what is put into an array: no operand of an op."""
        return self.operand == "result" or self.rule == ASSIGN

    @property
    def kind(self) -> CastKind:
        """Why the cast is there."""
        return kind_of_rule(self.rule)


new_origin: Callable[[tuple[str, str, Location, str, DType, DType]], Origin]
new_origin = partial(cast(Any, tuple).__new__, Origin)
"""An Origin of its fields, without the Python call that making a named tuple costs.

implicit_cast of 60,000 ops, which inserts 80,000 casts, takes 109 ms instead of 118 ms.
"""


LEGALIZE = "legalize"
CAST = "cast"  # the rule of a cast that the user wrote
ASSIGN = "assign"
"""The rule of a cast to the dtype of an array that a value is written to.

Also the op that uses the value, where no op of the catalogue does: of `a[:] = value`.
"""

CastKind: TypeAlias = Literal["implicit", "explicit", "legalization", "assignment"]
"""Of an op's operand or result, written by the user, by `legalize`, of what an array takes."""

_KINDS: dict[str, CastKind] = {LEGALIZE: "legalization", CAST: "explicit", ASSIGN: "assignment"}

NAMED_RULES = frozenset(_KINDS)
"""The rules of origins that are no rule sets."""


def kind_of_rule(rule: str) -> CastKind:
    """The kind of casts whose origins have a rule: implicit where the rule is a rule set."""
    return _KINDS.get(rule, "implicit")


# What a symbol knows of where it comes from: the user's line, or the uses that an inserted cast
# serves (of a folded constant: that the casts in it served).
Source: TypeAlias = "Location | tuple[Origin, ...]"

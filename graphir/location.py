"""Provenance: the user's source location of a symbol, and the origins of an inserted cast.

A `Location` names the line that built a symbol. Recording one must be cheap, so a location holds
the frame's code object and instruction offset, and resolves these to file, line and column only at
the first read. An `Origin` names one use that an inserted cast serves: the operand, the op, the
location and the rule.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import partial, wraps
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, cast

from graphir.display import printable
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.import_names import is_own_module
from graphir.source_text import assignment_end, displayed_path, source_line

P = ParamSpec("P")
R = TypeVar("R")


def is_internal(frame: FrameType) -> bool:
    """Answer whether a frame runs graphir's own code."""
    return is_own_module(frame.f_globals.get("__name__", ""))


def is_numpy(frame: FrameType) -> bool:
    """Answer whether a frame runs NumPy's own Python code, which the user's line has called."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in _NUMPY_MODULES


_NUMPY_MODULES = frozenset(("numpy", "traced_numpy"))


def user_frame() -> FrameType:
    """Return the innermost frame of the user's code, from the caller's caller outwards."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while (is_internal(frame) or is_numpy(frame)) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def location_of_error(error: BaseException) -> Location | None:
    """Return the innermost line of the user's code in the traceback of an error; None of none."""
    traceback, location = error.__traceback__, None
    while traceback is not None:
        frame = traceback.tb_frame
        if not is_internal(frame) and not is_numpy(frame):
            location = Location(frame.f_code, traceback.tb_lasti)
        traceback = traceback.tb_next
    return location


def user_location() -> Location:
    """Return the location of the user's call that led to the running code."""
    frame = user_frame()
    return Location(frame.f_code, frame.f_lasti)


class Location:
    """A range of text in a source file, and the layer of the graph that was open there.

    The constructor takes a code object and an instruction offset, which are cheap to record. The
    location computes file, line and columns from these at the first read. Lines and columns count
    from 1, and `end_column` is exclusive.
    """

    __slots__ = ("_code", "_offset", "_place", "_source", "layer")

    compound = False
    """Whether the source text there stands for several ops, so that its operands are not this op's.
    """

    in_place = False
    """Whether the source text there is an in-place operator on the array that it writes to."""

    def __init__(self, code: CodeType, offset: int, layer: str = "") -> None:
        self._code: CodeType | None = code
        self._offset = offset
        self._place: tuple[str, int, int, int, int] | None = None
        self.layer = layer

    @property
    def is_operator(self) -> bool:
        """Whether the instruction is a binary operator, rather than a call."""
        name = "" if self._code is None else dis.opname[self._code.co_code[self._offset]]
        return name.startswith(("BINARY", "INPLACE"))

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
        """Return a location given by its file, lines and columns.

        `source` is the path from which `Location.source` lets reports read the lines, if any.
        """
        new = cls.__new__(cls)
        new._code, new._offset, new._source, new.layer = None, 0, source, layer
        new._place = file, line, column, end_line or line, end_column or column
        return new

    @classmethod
    def of(cls, location: Location) -> Self:
        """Return a location of this class at the place of another location."""
        new = cls.__new__(cls)
        for name in Location.__slots__:
            # A location that has its code object has no _source.
            setattr(new, name, getattr(location, name, ""))
        return new

    @property
    def place(self) -> tuple[str, int, int, int, int]:
        """The file, then the line and column of the start, then the line and column of the end."""
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
        """The path from which reports may read the source lines; empty if there is no such path.

        For running code it is the path from which Python loaded the code. The file names in a
        parsed text are not paths that may be read: see `Graph.parse`.
        """
        return self._code.co_filename if self._code else self._source

    @property
    def line(self) -> int:
        """The line, from 1; 0 for a place without lines, such as a node that the file names."""
        return self.place[1]

    @property
    def column(self) -> int:
        """The column of the first character, from 1."""
        return self.place[2]

    @property
    def end_line(self) -> int:
        """The line of the last character, from 1."""
        return self.place[3]

    @property
    def end_column(self) -> int:
        """The column after the last character, from 1."""
        return self.place[4]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Location):
            return NotImplemented
        return self.place[:3] == other.place[:3] and self.layer == other.layer

    def matches(self, other: Location) -> bool:
        """Answer whether two locations are the same range of text, ends included.

        `==` compares the starts alone.
        """
        return self == other and self.place[3:] == other.place[3:]

    def __hash__(self) -> int:
        return hash((self.place[:3], self.layer))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self).at, (*self.place, self.layer, self.source)

    @property
    def function(self) -> str:
        """The qualified name of the function of a running location; "" for other locations."""
        return "" if self._code is None else self._code.co_qualname.removesuffix("<module>")

    @property
    def layered(self) -> str:
        """The location and its layer, if any, as text for a terminal: `net.py:3:5 [encoder]`."""
        return f"{self} [{printable(self.layer)}]" if self.layer else str(self)

    def to_json(self) -> dict[str, Any]:
        """Return the start of the location and its layer as a JSON object."""
        file, line, column, *_ = self.place
        return {"file": file, "line": line, "column": column, "layer": self.layer}

    def __str__(self) -> str:
        file, line, column, *_ = self.place
        if file and not line:
            return printable(file)
        return f"{printable(file)}:{line}:{column}" if file else f"line {line}, column {column}"

    def __repr__(self) -> str:
        return f"<Location {self}>"


class CompoundLocation(Location):
    """The location of a call to a composite function, for one of the function's ops."""

    __slots__ = ()
    compound = True


class InPlaceLocation(Location):
    """The location of an in-place operator such as `x += y`. The op's first operand is x."""

    __slots__ = ()
    in_place = True


def placing(method: Callable[P, R]) -> Callable[P, R]:
    """Decorator: attach the user's source line to every GraphirError that a method raises."""

    @wraps(method)
    def placed_method(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except GraphirError as error:
            raise error.at(user_location(), method.__name__.strip("_")) from None

    return placed_method


_Position: TypeAlias = "tuple[int | None, int | None, int | None, int | None]"
_POSITIONS: dict[int, tuple[CodeType, tuple[_Position, ...], bytes]] = {}
"""Cache of position tables by id(code), emptied at 16 entries.

CPython decodes a code object's position table from its start, so each look-up without the cache
would take time proportional to the instruction's offset. An entry holds its code object, which
keeps the id valid.
"""

_STORES = frozenset(
    dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_ATTR", "STORE_SLICE") if name in dis.opmap
)
"""The opcodes of assignments to an item, an attribute or, since Python 3.12, a slice."""


def _positions(code: CodeType) -> tuple[tuple[_Position, ...], bytes]:
    """Return the positions of a code object's instructions, and its bytecode.

    A position is the line, last line, column and last column of an instruction.
    """
    entry = _POSITIONS.get(id(code))
    if entry is None:
        if len(_POSITIONS) >= 16:
            _POSITIONS.clear()
        entry = _POSITIONS[id(code)] = code, tuple(code.co_positions()), code.co_code
    return entry[1:]


def _characters(file: str, line: int, size: int) -> int:
    """Return how many characters the first `size` bytes of a line encode.

    Python counts columns in bytes of UTF-8.
    """
    text = source_line(file, line)
    return size if text.isascii() else len(text.encode()[:size].decode(errors="replace"))


class UnseenPart(NamedTuple):
    """A part of a program that a source left out of the graph, or computed as it traced it.

    `decides` holds for a value of one run by which the program goes on; other parts may cast.
    """

    what: str
    location: Location
    reason: str
    decides: bool = False


class Origin(NamedTuple):
    """One use that an inserted cast serves: the operand, the op, the location and the rule.

    `operand` is the operand's name in the op's signature. It is "result" for the cast of a result,
    and "value" for the value that an assignment writes to an array. `rule` is the rule set in
    force, or a rule of NAMED_RULES. For a cast that a NumPy function makes by itself, `op` is the
    function, such as `np.interp`, and `operand` is its parameter, "result" or INTERMEDIATE.
    """

    operand: str
    op: str
    location: Location
    rule: str
    source: DType
    target: DType

    @property
    def stores(self) -> bool:
        """Whether the cast converts a result or an assigned value, not an operand of an op."""
        return self.operand == "result" or self.rule == ASSIGN

    @property
    def kind(self) -> CastKind:
        """Why the cast is there."""
        return kind_of_rule(self.rule)

    @property
    def in_call(self) -> bool:
        """Whether a NumPy function makes the cast by itself."""
        return self.op.startswith(NUMPY)


new_origin: Callable[[tuple[str, str, Location, str, DType, DType]], Origin]
new_origin = partial(cast(Any, tuple).__new__, Origin)
"""Make an Origin from a tuple of its fields, without the Python call of a named tuple's __new__.

implicit_cast of 60,000 ops, which inserts 80,000 casts, takes 109 ms instead of 118 ms.
"""


NUMPY = "np."
"""The start of the name of a NumPy function in the origin of a cast."""
INTERMEDIATE = "intermediate"
"""The operand of a cast that a NumPy function makes of a value that it computes."""

LEGALIZE = "legalize"
CAST = "cast"  # the rule of a cast that the user wrote
ASSIGN = "assign"
"""The rule of a cast to the dtype of the array that an assignment writes to.

It is also the name of the op in the origin of `a[:] = value`, for which the catalogue has no op.
"""

AUTOCAST = "autocast"
"""The rule of a cast that PyTorch's autocast inserts; with a list, `autocast_fp32`, as there.

The lists are lower_precision_fp, fp32 and promote (aten/src/ATen/autocast_mode.h).
"""

EXPORTER = "exporter"
"""The rule of a cast that a pass of an exporter or engine has inserted into an ONNX model."""

CastKind: TypeAlias = Literal[
    "implicit", "explicit", "legalization", "assignment", "autocast", "exporter"
]
"""Why a cast exists.

"implicit": the promotion rules of an op demand it for an operand or a result. "explicit": the user
wrote it. "legalization": the pass `legalize` inserted it. "assignment": the dtype of the array that
takes the value demands it. "autocast": a list of PyTorch's autocast demands it. "exporter": a
pass of an exporter or engine has inserted it into an ONNX model.
"""

_KINDS: dict[str, CastKind] = {
    LEGALIZE: "legalization",
    CAST: "explicit",
    ASSIGN: "assignment",
    **dict.fromkeys(
        (AUTOCAST, *(f"{AUTOCAST}_{name}" for name in ("lower_precision_fp", "fp32", "promote"))),
        "autocast",
    ),
    EXPORTER: "exporter",
}

NAMED_RULES = frozenset(_KINDS)
"""The values of `Origin.rule` that do not name a rule set."""


def kind_of_rule(rule: str) -> CastKind:
    """Return the kind of a cast by the rule of its origin: "implicit" for every rule set."""
    return _KINDS.get(rule, "implicit")


# The provenance of a symbol: the user's line, or the uses that an inserted cast serves. A folded
# constant has the uses of the casts that were folded into it.
Source: TypeAlias = "Location | tuple[Origin, ...]"

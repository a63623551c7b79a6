"""The text in the boxes of a picture, and the titles that a browser shows on hover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from graphir import ops
from graphir.drawing.graphs.levels import Mark
from graphir.dtypes import DType
from graphir.escape import printable
from graphir.ir.inlining import Junction
from graphir.ir.symbol import Symbol
from graphir.location import CastKind, Location, Origin
from graphir.ops.types import TensorType
from graphir.text.printer import elements

LABEL = 26
"""The most characters of a line in a box."""

TITLE = 240
"""The most characters of a line of a title."""

_DIGITS = 9  # the most characters of a number in a box; a longer number is rounded
_USES = 6  # the most uses of a cast that a title lists
_PREFIX: dict[CastKind, str] = {
    "implicit": "",
    "assignment": "assign ",
    "explicit": "cast ",
    "legalization": "legalize ",
    "autocast": "autocast ",
    "exporter": "exporter ",
}


def clipped(text: str, most: int = LABEL) -> str:
    """Return a text with unprintable characters replaced, cut to `most` characters."""
    return printable(text, most)


def type_text(type_: TensorType) -> str:
    """Format a type with a short dtype name: `f32[n, 64]`, or `f32` for a 0-d type."""
    shape = f"[{', '.join(map(str, type_.shape))}]" if type_.shape else ""
    return f"{type_.dtype.short}{shape}"


def op_lines(symbol: Symbol, name: str) -> tuple[str, ...]:
    """Return the lines of a symbol's box: its op, input name or constant, and its type."""
    text = name.removeprefix("%") if symbol.op is ops.input else symbol.op.name
    if type(symbol.op) is Junction and symbol.op.operands:
        text = f"{symbol.op.operands[0]} of {symbol.op.name}"
    if symbol.op is ops.constant and not symbol.rank:
        text = _number(symbol)
    return clipped(text), clipped(type_text(symbol.type))


def cast_lines(symbol: Symbol, kind: CastKind, level: str) -> tuple[str, ...]:
    """Return the lines of a cast's box: its kind and dtypes, and the level of its loss."""
    arrow = f"{symbol.args[0].dtype.short} → {symbol.dtype.short}"
    return clipped(_PREFIX[kind] + arrow, 2 * LABEL), level


def title(line: str, symbol: Symbol, mark: Mark | None) -> str:
    """Return a symbol's title: its line of text, its mark's reason, and its location or uses.

    A cast has a line for each of its first uses.
    """
    lines = [line]
    if mark:
        lines.append(mark.reason)
    lines += [_use(origin) for origin in symbol.origins[:_USES]]
    if (more := len(symbol.origins) - _USES) > 0:
        lines.append(f"and {more} more uses")
    if not symbol.origins and (place := place_text(symbol.location)):
        lines.append(f"at {place}")
    return "\n".join(clipped(each, TITLE) for each in lines)


def place_text(location: Location) -> str:
    """Format a location and its layer; empty where both are unknown."""
    return location.layered if location.file else location.layer and f"[{location.layer}]"


def fold_lines(
    name: str,
    symbols: Sequence[Symbol],
    entering: Iterable[DType],
    leaving: Iterable[DType],
    casts: str,
) -> tuple[str, ...]:
    """Return the lines of a folded box: name, op counts, dtypes in and out, and casts."""
    counts = Counter(symbol.op.name for symbol in symbols if symbol.op.computes)
    counts = counts or Counter(symbol.op.name for symbol in symbols)
    most = ", ".join(f"{count} {op}" for op, count in counts.most_common(3))
    rest = ", …" if len(counts) > 3 else ""
    border = f"{dtypes_text(entering)} → {dtypes_text(leaving)}"
    lines = (f"{clipped(name)} ({len(symbols)} symbols)", f"{most}{rest}", border, casts)
    return tuple(clipped(line, 2 * LABEL) for line in lines if line)


def fold_title(name: str, symbols: Sequence[Symbol]) -> str:
    """Return the title of a folded box: the count of every op, and the first and last location."""
    counts = Counter(symbol.op.name for symbol in symbols)
    lines = [
        f"{name}: {len(symbols)} symbols",
        ", ".join(f"{count} {op}" for op, count in counts.most_common()),
        f"from {place_text(symbols[0].location)} to {place_text(symbols[-1].location)}",
    ]
    return "\n".join(clipped(each, 2 * TITLE) for each in lines)


def lines_text(symbols: Sequence[Symbol]) -> str:
    """Return a name for symbols from their source lines: `net.py:3-7`."""
    first, last = symbols[0].location, symbols[-1].location
    if not first.file or not first.line or first.file != last.file:
        return f"%{symbols[0].index} … %{symbols[-1].index}"
    low, high = sorted((first.line, last.line))
    file = first.file.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{low}" if low == high else f"{file}:{low}-{high}"


def dtypes_text(dtypes: Iterable[DType]) -> str:
    """Format dtypes in short names, each once, in the order of DType, at most four."""
    there = set(dtypes)
    shorts = [dtype.short for dtype in DType if dtype in there]
    return ", ".join([*shorts[:4], *(["…"] if len(shorts) > 4 else [])]) or "()"


def _number(symbol: Symbol) -> str:
    value = elements(symbol.attrs["value"], symbol.dtype)
    return text if len(text := str(value)) <= _DIGITS else f"{value:.6g}"


def _use(origin: Origin) -> str:
    where = place_text(origin.location)
    use = f"{origin.operand} of {origin.op}" + (f" at {where}" if where else "")
    return f"{use}, {origin.rule}: {origin.source} -> {origin.target}"

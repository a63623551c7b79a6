"""What a row of a report says, in the words that all its forms have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from graphir import DType
from graphir.dims import Size
from graphir.findings import counted
from graphir.losses import LOSS_KINDS, LossKind

if TYPE_CHECKING:
    from passes.casts import CastReport, CastRow

Severity: TypeAlias = LossKind | Literal["exact"]
"""The worst kind of loss of a cast, in the order of LOSS_KINDS, or that it has none."""

SEVERITIES: dict[Severity, str] = {
    "range": "values too great become inf or NaN, saturate or wrap",
    "sign": "negative values are lost",
    "precision": "values are rounded",
    "underflow": "small values become zero",
    "special": "-0.0, inf or NaN is lost",
    "exact": "every value survives",
}
"""What each means."""


def severity(row: CastRow) -> Severity:
    """The worst kind of loss of a row.

    Values that are only rounded past the greatest one of a format with the same exponents, as from
    float32 to bfloat16, are a matter of precision.
    """
    one = row.conversion
    return _severity(one.loss.kinds, one.source, one.target)


@cache
def _severity(kinds: tuple[LossKind, ...], source: DType, target: DType) -> Severity:
    found = sorted(kinds, key=LOSS_KINDS.index)
    if found[:1] == ["range"] and len(found) > 1 and source.part.max < 2 * target.part.max:
        found.remove("range")
    return found[0] if found else "exact"


def severities(report: CastReport) -> dict[Severity, int]:
    """How many rows there are of each severity that occurs, the worst first."""
    counts = Counter(map(severity, report))
    return {one: counts[one] for one in SEVERITIES if one in counts}


def headline(report: CastReport) -> str:
    """How many rows there are, and how many can lose something."""
    name = printable(report.graph.name)
    if not report.rows:
        none = f"none of {report.of} uses of casts" if report.of else "no casts"
        return f"graph {name}: {none}"
    lossy = sum(not row.exact for row in report)
    uses = "1 use of a cast" if len(report) == 1 else f"{len(report)} uses of casts"
    return f"graph {name}: {uses}, {lossy} can lose something"


def conversion(row: CastRow) -> str:
    """From which dtype to which: `int16 -> float16`."""
    return f"{row.source} -> {row.target}"


def path(row: CastRow) -> str:
    """The way up the lattice, in short names."""
    return " -> ".join(dtype.short for dtype in row.path)


def why(row: CastRow) -> str:
    """Who asked for the cast, and along which path."""
    if row.kind == "explicit":
        return "written by the program"
    if row.kind == "legalization":
        return "no machine computes in it"
    return f"under {printable(row.rule)} ({path(row)})"


def what(row: CastRow) -> str:
    """Which operand of which op, or that it is a number."""
    return f"{row.operand} of {row.op}" + (", a number" if row.kind == "literal" else "")


def widths(row: CastRow) -> str:
    """The bytes of an element before and after, and those of the array that the cast makes."""
    return f"{row.bytes_before} -> {row.bytes_after} an element, {row.bytes_added} in all"


def answers(row: CastRow) -> dict[str, list[str]]:
    """What other rule sets would do, each with their names: a dtype, or that they refuse."""
    found: dict[str, list[str]] = {}
    for name, answer in row.others.items():
        refused = isinstance(answer, str)
        found.setdefault("refuse" if refused else str(answer), []).append(printable(name))
    return found


def elsewhere(row: CastRow) -> str:
    """What other rule sets would do: `float32: numpy, jax; refuse: max_strict`."""
    return "; ".join(f"{answer}: {', '.join(names)}" for answer, names in answers(row).items())


def measured(row: CastRow) -> list[str]:
    """What a run saw of the cast; nothing where there was none."""
    one = row.measured
    if one is None:
        return []
    told = [f"{one.changed} of {counted(one.elements, 'element')} changed"]
    for name in ("overflowed", "underflowed", "nan_made"):
        if count := getattr(one, name):
            told.append(f"{count} {'made NaN' if name == 'nan_made' else name}")
    if one.worst is not None and one.changed:
        before, after = (number_text(number) for number in one.worst)
        told.append(f"at worst {before} -> {after}")
    if one.changed:
        told.append(f"relative error {one.relative:.2g}, {one.ulps:.3g} ulp")
    return told


def shares(row: CastRow, report: CastReport) -> list[str]:
    """How much of each output's error the cast explains; nothing where there was no run."""
    pairs = zip(report.outputs, row.shares, strict=False)
    return [f"{percent(share)} of the error of {printable(one.name)}" for one, share in pairs]


def error_of(row: CastRow) -> float:
    """The largest share of an output's error, by which audited rows are ranked."""
    return max(map(abs, row.shares), default=0.0)


def percent(share: float) -> str:
    """A share as people read it: `62 %`, `< 1 %`."""
    if 0 < abs(share) < 0.01:
        return "< 1 %"
    return f"{share:.0%}".replace("%", " %")


def number_text(number: complex) -> str:
    """A number in few digits: enough for float32 to tell neighbours apart."""
    return str(number) if isinstance(number, (int, complex)) else f"{number:.9g}"


def added(report: CastReport) -> Size:
    """The bytes of all arrays that the casts of a report make, each counted once."""
    casts = {id(row.symbol): row.symbol for row in report if row.symbol.args}
    types = Counter(symbol.type for symbol in casts.values())
    total: Size = 0
    for one, count in types.items():
        total += one.size * (count * one.dtype.storage.itemsize)
    return total


def cascades(report: CastReport) -> list[tuple[CastRow, Sequence[CastRow]]]:
    """The rows that lead, each with those that follow from it, in the order of the report.

    A row leads that is a cause, or whose cause is not in the report.
    """
    rows = set(map(id, report))
    leading: dict[int, tuple[CastRow, list[CastRow]]] = {}
    for row in report:
        follows = row.cause is not None and id(row.cause) in rows
        lead = row.cause if follows and row.cause is not None else row
        found = leading.setdefault(id(lead), (lead, []))
        if follows:
            found[1].append(row)
    return list(leading.values())


def printable(text: str, most: int = 200) -> str:
    """A text from outside as one line without control characters, cut where it is too long."""
    if len(text) <= most and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"

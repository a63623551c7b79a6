"""What a row of a report says, in the words that all its forms have in common."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from graphir.drawing.graphs.levels import Level
from graphir.drawing.graphs.levels import level as gravity
from graphir.escape import printable
from graphir.ops.dims import Size, total
from graphir.rule_reports.findings import counted
from graphir.rule_reports.tables import aligned

if TYPE_CHECKING:
    from passes.analysis.casts import CastReport, CastRow, OutputError, Unseen
    from passes.analysis.casts.sites import CastSite

MEANINGS: dict[Level, str] = {
    "value": "values wrap, or lose their sign or fraction",
    "range": "values too great become inf or NaN",
    "precision": "values are rounded",
    "exact": "every value survives",
}
"""What each level of loss means, the gravest first."""


REFUSE = "refuse"
"""What rule sets do that have no answer."""


def level(row: CastRow) -> Level:
    """How grave the loss of a row is."""
    conversion = row.conversion
    return gravity(conversion.loss, conversion.source, conversion.target)


def levels(report: CastReport) -> dict[Level, int]:
    """How many rows there are of each level that occurs, the gravest first."""
    counts = Counter(map(level, report))
    return {level_: counts[level_] for level_ in MEANINGS if level_ in counts}


def headline(report: CastReport) -> str:
    """How many rows there are, and how many can lose something."""
    name = printable(report.graph.name)
    if not report.rows:
        none = f"none of {report.of} uses of casts" if report.of else "no casts"
        return f"graph {name}: {none}"
    lossy = sum(not row.exact for row in report)
    uses = "1 use of a cast" if len(report) == 1 else f"{len(report)} uses of casts"
    return f"graph {name}: {uses}, {lossy} can lose something"


MAX_UNSEEN = 20
"""How many steps that were not seen are named."""


def unseen(report: CastReport) -> list[str]:
    """What a run did not see: whether the error of an output is unknown, then step by step."""
    steps = report.unseen
    if not steps:
        return []
    unknown_count = sum(not output.known for output in report.outputs)
    if unknown_count:
        of = f"{unknown_count} of {counted(len(report.outputs), 'output')}"
        means = f"the error of {of} is unknown"
    elif report.hidden:
        means = "errors may be hidden"
    else:
        means = "no error is hidden"
    first = f"graph {printable(report.graph.name)}: {means}: {step_place(steps[0])} was not seen"
    if len(steps) > 1:
        first += f", nor {counted(len(steps) - 1, 'other step')}"
    lines = [f"not seen: {step_text(step)}" for step in steps[:MAX_UNSEEN]]
    if len(steps) > MAX_UNSEEN:
        lines.append(f"... and {counted(len(steps) - MAX_UNSEEN, 'other step')} not seen")
    return [first, *lines]


def step_place(step: Unseen) -> str:
    """What was not seen, and where."""
    return f"{printable(step.what)} at {printable(step.location.layered)}"


def step_text(step: Unseen) -> str:
    """A step that was not seen: where, why, and whether an error may be hidden behind it."""
    means = "may hide an error" if step.hides else "has operands without error"
    return f"{step_place(step)} {printable(step.reason, 500)}; it {means}"


def output(error: OutputError) -> str:
    """How far an output is from the same program in wide arithmetic."""
    name = printable(f"{error.name}: {error.dtype}")
    if error.differing is None:
        return f"{name}, {counted(error.elements, 'element')}: error unknown"
    parts = [f"{error.differing} of {error.elements} differ from wide arithmetic"]
    if error.broken:
        parts.append(f"{error.broken} are no longer finite")
    if error.differing:
        most, mean = f"{error.largest:.3g}", f"{error.rms:.3g}"
        parts.append(f"by {most} at most (relative {error.relative:.2g}), rms {mean}")
    return f"{name}, {', '.join(parts)}"


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
    if row.kind == "assignment":
        return "written to an array of that dtype"
    return f"under {printable(row.rule)} ({path(row)})"


def what(row: CastRow) -> str:
    """Which operand of which op, or that it is a number."""
    return f"{row.operand} of {row.op}" + (", a number" if row.kind == "literal" else "")


def widths(site: CastSite) -> str:
    """The bytes of an element before and after, and those of the arrays that the casts make."""
    row = site.row
    return (
        f"{row.bytes_before} -> {row.bytes_after} an element, {size_text(site.bytes_added)} in all"
    )


def answers(row: CastRow) -> dict[str, list[str]]:
    """What other rule sets would do, each with their names: a dtype; refusals are last."""
    names: dict[str, list[str]] = {}
    for name, answer in row.others.items():
        refuses = isinstance(answer, str)
        names.setdefault(REFUSE if refuses else str(answer), []).append(printable(name))
    return dict(sorted(names.items(), key=lambda item: item[0] == REFUSE))


def elsewhere(row: CastRow) -> str:
    """What other rule sets would do: `float32: numpy, jax; refuse: max_strict`."""
    return "; ".join(f"{answer}: {', '.join(names)}" for answer, names in answers(row).items())


def measured(site: CastSite) -> list[str]:
    """What a run saw of the casts of a site; nothing where there was none."""
    measure = site.measured
    if measure is None:
        return []
    phrases = [f"{measure.changed} of {counted(measure.elements, 'element')} changed"]
    for name in ("overflowed", "underflowed", "nan_made"):
        if count := getattr(measure, name):
            phrases.append(f"{count} {'made NaN' if name == 'nan_made' else name}")
    if measure.worst is not None and measure.changed:
        before, after = (number_text(number) for number in measure.worst)
        phrases.append(f"at worst {before} -> {after}")
    if measure.changed:
        phrases.append(f"relative error {measure.relative:.2g}, {measure.ulps:.3g} ulp")
    return phrases


def shares(site: CastSite, report: CastReport) -> list[str]:
    """How much of each output's error the casts of a site explain, where they explain any."""
    if not report.outputs:
        return []
    if site.shares is None:
        return [UNKNOWN_ERROR]
    pairs = zip(report.outputs, site.shares, strict=False)
    phrases = [
        f"{percent(share)} of the error of {printable(x.name)}" for x, share in pairs if share
    ]
    return [
        *phrases,
        *([f"by a cast of {site.places} rows"] if phrases and site.places > 1 else []),
    ]


UNKNOWN_ERROR = "unknown"
"""What reports of a run without blame say of shares."""


def share(site: CastSite) -> str:
    """The largest part of an output's error that the casts of a site explain; empty of no run."""
    if site.share is None:
        return UNKNOWN_ERROR
    if not site.shares:
        return ""
    many = site.share and site.places > 1
    return percent(site.share) + (f" (cast of {site.places} rows)" if many else "")


def percent(share: float) -> str:
    """A share as people read it: `62 %`, `< 1 %`."""
    if 0 < abs(share) < 0.01:
        return "< 1 %"
    return f"{share:.0%}".replace("%", " %")


def number_text(number: complex) -> str:
    """A number in few digits: enough for float32 to tell neighbours apart."""
    return str(number) if isinstance(number, (int, complex)) else f"{number:.9g}"


def size_text(size: Size) -> str:
    """A number, or an expression of symbolic dims, as people read it."""
    return f"{size:,}" if isinstance(size, int) else str(size)


def against(report: CastReport) -> list[str]:
    """What would change under other rules, where that was asked, line by line."""
    diff = report.against
    if diff is None:
        return []
    rows = [[printable(cell) for cell in row] for row in diff.table()]
    table = aligned(rows) if len(rows) > 1 else []
    return [printable(diff.headline()), *table, *(printable(line, 500) for line in diff.errors())]


def added(report: CastReport) -> Size:
    """The bytes of all arrays that the casts of a report make, each counted once."""
    casts = {row.symbol.index: row.symbol for row in report if row.symbol.args}
    types = Counter(symbol.type for symbol in casts.values())
    return total(
        type_.size * (count * type_.dtype.storage.itemsize) for type_, count in types.items()
    )

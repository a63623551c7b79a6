"""Checks of audited reports, which tests/conftest.py runs on every report that a test makes.

They need no knowledge of the program: a report that fails one contradicts itself.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import graphir
from graphir import Location
from graphir.passes.analysis.casts import CastReport, CastRow, OutputError
from graphir.passes.analysis.expressions import dtype_position
from graphir.passes.reports import phrases
from graphir.passes.reports.text import report_text

NEAR = 0.005
"""The shares of a report are printed in whole percents."""
_OURS = [Path(graphir.__file__).parents[1] / name for name in ("graphir", "passes", "runtime")]


def faults(report: CastReport) -> Iterator[str]:
    """Yield what contradicts itself in an audited report."""
    for number, output in enumerate(report.outputs):
        yield from _share_faults(report, number, output)
        yield from _figure_faults(output)
    yield from _silent_changes(report)
    for row in (*report.rows, *report.losses):
        yield from _place_faults(row.location)
        yield from _fix_faults(row)
    for step in report.unseen:
        yield from _place_faults(step.location)


def _share_faults(report: CastReport, number: int, output: OutputError) -> Iterator[str]:
    """Yield shares that are no numbers, and those out of [0, 1] without a word."""
    shares = {place: share for place, share in (output.shares or {}).items() if share is not None}
    for place, share in shares.items():
        if not math.isfinite(share):
            yield f"{output.name}: the share of {report.explicit.symbols[place]} is {share}"
    total = sum(shares.values()) + (output.rounding or 0.0)
    parts = [*shares.values(), total]
    odd = [share for share in parts if not -NEAR <= share <= 1 + NEAR]
    if odd and not output.overlaps:
        yield f"{output.name}: shares {odd[:4]} without the word that errors cancel"
    if not odd and output.overlaps:
        yield f"{output.name}: errors are said to cancel, and all shares lie in [0, 1]"


def _figure_faults(output: OutputError) -> Iterator[str]:
    """Yield figures of an output that exclude one another."""
    if not output.is_known:
        return
    assert output.differing is not None and output.largest is not None
    if not 0 <= (output.broken or 0) <= output.differing <= output.elements:
        yield f"{output.name}: {output.broken} broken, {output.differing} of {output.elements}"
    if not output.differing and (output.largest or output.relative):
        yield f"{output.name}: none differs, and {output.largest} is the largest difference"


def _silent_changes(report: CastReport) -> Iterator[str]:
    """Yield rows that changed elements of outputs none of which differs, without a word."""
    reached = _outputs_reached(report)
    text = report_text(report.in_full()) if report.rows or report.losses else ""
    for row in (*report.rows, *report.losses):
        outputs = [report.outputs[i] for i in reached.get(row.symbol.index, ())]
        if row.measured is None or not row.measured.changed or not outputs:
            continue
        if all(x.is_known and not x.differing for x in outputs):
            if not row.vanished:
                yield f"{row}: changed {row.measured.changed}, and no output differs"
            elif phrases.vanishing(row) not in text:
                yield f"{row}: the text does not say {phrases.vanishing(row)!r}"


def _outputs_reached(report: CastReport) -> Mapping[int, set[int]]:
    """Return the numbers of the outputs that depend on each symbol, by index."""
    reached: dict[int, set[int]] = {}
    for number, symbol in enumerate(report.explicit.outputs):
        if number < len(report.outputs):
            reached.setdefault(symbol.index, set()).add(number)
    for symbol in reversed(report.explicit.symbols):
        numbers = reached.get(symbol.index, set())
        for x in symbol.args if numbers else ():
            reached.setdefault(x.index, set()).update(numbers)
    return reached


def _place_faults(location: Location) -> Iterator[str]:
    """Yield a place that is in no file of the user's."""
    file = Path(location.file)
    if location.line and any(file.is_relative_to(folder) for folder in _OURS):
        yield f"{location} is a place of ours"


def _fix_faults(row: CastRow) -> Iterator[str]:
    """Yield a fix that is no Python."""
    if not row.fix or row.expression is None or row.fix.startswith(f"{row.op} of "):
        return  # without source, the fix names operands
    code, _, line = row.fix.partition(" in line ")
    try:
        call = ast.parse(code).body[0]
        if line:
            ast.parse(line.partition(" ")[0])
    except SyntaxError:
        yield f"{row}: the fix does not parse: {row.fix}"
        return
    if any(_has_two_dtypes(node) for node in ast.walk(call)):
        yield f"{row}: the fix gives dtype twice: {row.fix}"


def _has_two_dtypes(node: ast.AST) -> bool:
    """Whether a call of NumPy has `dtype` by position and by name."""
    if not isinstance(node, ast.Call):
        return False
    at = dtype_position(node)
    return at is not None and len(node.args) > at and any(x.arg == "dtype" for x in node.keywords)

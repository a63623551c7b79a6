"""The report of a ledger at the end of a test run, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from graphir.display import count_text, printable
from graphir.passes.reports.terminal import fitted
from graphir.runtime.testing.baseline import Finding
from graphir.runtime.testing.ledger import CastFact, Difference, Ledger

SHORT = 10
"""The rows of each table without -v."""
_MOST_TESTS = 2


class CastLine(NamedTuple):
    """A cast of the program with the tests that reach it."""

    cast: CastFact
    tests: tuple[str, ...]


def cast_lines(ledger: Ledger) -> list[CastLine]:
    """Return each cast once, the worst first."""
    tests: dict[tuple[str, ...], dict[str, None]] = {}
    casts: dict[tuple[str, ...], CastFact] = {}
    for call in ledger.calls.values():
        for cast in call.casts:
            key = cast.place, cast.op, cast.operand, cast.source, cast.target
            casts.setdefault(key, cast)
            tests.setdefault(key, {}).update(dict.fromkeys(call.tests))
    lines = [CastLine(cast, tuple(tests[key])) for key, cast in casts.items()]
    return sorted(lines, key=lambda x: (-x.cast.damage, x.cast.file, x.cast.line, x.cast.column))


def report_lines(ledger: Ledger, package: str, width: int | None, verbose: bool) -> list[str]:
    """Return the lines about what the run did not see, then a table of its casts."""
    return [*unseen_lines(ledger, verbose), *_casts(ledger, package, width, verbose)]


def unseen_lines(ledger: Ledger, verbose: bool) -> list[str]:
    """Return the lines about functions that recordings could not follow."""
    hidden, parts = ledger.unseen_functions, list[str]()
    partial: dict[str, str] = {}
    for call in ledger.calls.values():
        for note in call.unseen:
            if call.function not in hidden:
                partial.setdefault(call.function, note)
    if hidden:
        parts.append(
            f"{len(hidden)} of {count_text(len(ledger.called_functions), 'function')} called"
        )
    if partial:
        parts.append(f"steps in {count_text(len(partial), 'function')}")
    if not parts:
        return []
    more = "" if verbose else " (-v: which, and why)"
    lines = [f"not seen: {', '.join(parts)}{more}"]
    return [*lines, *_reason_lines({**hidden, **partial})] if verbose else lines


def _reason_lines(reasons: Mapping[str, str]) -> list[str]:
    return [f"  {name}: {printable(why, 200)}" for name, why in reasons.items()]


def unseen_gate_lines(ledger: Ledger) -> list[str]:
    """Return the lines about the functions for whose sake a gate fails: nothing recorded them."""
    if not ledger.unseen_functions:
        return []
    count = count_text(len(ledger.unseen_functions), "function")
    head = f"{count} called but not seen, which fails the run (--casts-unseen=pass: it passes):"
    return [head, *_reason_lines(ledger.unseen_functions)]


def _casts(ledger: Ledger, package: str, width: int | None, verbose: bool) -> list[str]:
    lines = cast_lines(ledger)
    lossy = sum(bool(x.cast.loss) for x in lines)
    uses = count_text(len(lines), "cast")
    functions = count_text(len(ledger.recorded_functions), "function")
    head = f"{package}: {uses}, {lossy} can lose something; {functions} recorded"
    visible = lines if verbose else [x for x in lines if x.cast.loss][:SHORT]
    rows = [
        (
            printable(x.cast.place),
            f"{x.cast.operand} of {x.cast.op}",
            x.cast.source,
            x.cast.target,
            x.cast.loss or "exact",
            tests_text(x.tests) if verbose else str(len(x.tests)),
        )
        for x in visible
    ]
    table = (
        fitted([("where", "operand", "from", "to", "loss", "tests"), *rows], width) if rows else []
    )
    more = len(lines) - len(visible)
    rest = [f"... and {count_text(more, 'cast')} more (-v)"] if more else []
    return [head, *table, *rest]


def tests_text(tests: Sequence[str]) -> str:
    """Return the first tests by name, and the number of the others."""
    names = [printable(x) for x in tests[:_MOST_TESTS]]
    others = len(tests) - len(names)
    return ", ".join(names) + (f" and {count_text(others, 'other')}" if others else "")


def forbidden_lines(ledger: Ledger) -> list[str]:
    """Return the lines about the casts that the policy forbids."""
    lines = [x for x in cast_lines(ledger) if x.cast.forbidden]
    if not lines:
        return []
    head = f"{count_text(len(lines), 'cast')} forbidden by --casts-fail:"
    texts: list[str] = []
    for cast, tests in lines:
        fix = f"; write {printable(cast.fix)}" if cast.fix else ""
        loss = f" ({cast.loss})" if cast.loss else ""
        what = f"{cast.operand} of {cast.op} {cast.source} -> {cast.target}{loss}"
        texts.append(f"{printable(cast.place)}: {what}, forbidden by {cast.forbidden}{fix}")
        texts.append(f"    in {tests_text(tests)}")
    return [head, *texts]


def finding_lines(findings: Sequence[Finding], file: str) -> list[str]:
    """Return the lines about changes since a baseline."""
    if not findings:
        return [f"no dtype is wider and no loss is new since {file}"]
    lines = [f"{count_text(len(findings), 'line')} changed dtypes since {file}:"]
    for each in findings:
        lines.append(f"{printable(each.file)}:{each.line}: {printable(each.text)}")
        reasons = [printable(x, 300) for x in each.reasons]
        lines += [f"    {x}" for x in reasons[:4]]
        if len(reasons) > 4:
            lines.append(f"    and {count_text(len(reasons) - 4, 'more change')}")
        lines.append(f"    in {tests_text(tuple(each.tests))}")
    return lines


def difference_lines(
    differences: Iterable[Difference], names: Sequence[str], width: int | None, verbose: bool
) -> list[str]:
    """Return a table of the lines that differ under other rules."""
    lines: list[str] = []
    for name in names:
        own = sorted({x for x in differences if x.rules == name})
        verb = "differs" if len(own) == 1 else "differ"
        lines.append(f"under {name}, {count_text(len(own), 'step')} {verb}")
        visible = own if verbose else own[:SHORT]
        rows = [
            (printable(f"{x.file}:{x.line}"), x.op, x.before, x.after, printable(x.text, 60))
            for x in visible
        ]
        if rows:
            lines += fitted([("where", "op", "numpy", name, "line"), *rows], width)
        if len(own) > len(visible):
            lines.append(f"... and {count_text(len(own) - len(visible), 'step')} more (-v)")
    return lines

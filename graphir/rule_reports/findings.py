"""The text report of law violations: for each law the number and the first counterexample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from graphir.dtype_lattices.order import LAWS, Violation, Violations


def report(
    findings: Sequence[Violation], laws: Sequence[str] = LAWS, *, everything: bool = False
) -> str:
    """Return a line for each law: it holds, or its number of violations and a counterexample.

    The report covers `laws` and any other law among the findings. With `everything` each line is
    followed by all listed counterexamples, one a line, and by the number of unlisted violations.
    """
    counts = findings.counts if isinstance(findings, Violations) else Counter[str]()
    by_law: dict[str, list[Violation]] = {}
    for violation in findings:
        by_law.setdefault(violation.law, []).append(violation)
    all_laws = dict.fromkeys((*laws, *by_law))
    lines: list[str] = []
    for law in all_laws:
        of_law = by_law.get(law, [])
        count = max(counts[law], len(of_law))
        lines.append(f"{law}: {_summary(of_law, count, brief=everything)}")
        lines += [f"  {violation.finding}" for violation in of_law if everything]
        if everything and count > len(of_law):
            lines.append(f"  ... and {count - len(of_law):,} more")
    return "\n".join(lines)


def _summary(violations: Sequence[Violation], total: int, brief: bool) -> str:
    if not violations:
        return "holds"
    count = count_text(total, _UNITS.get(len(violations[0].elements), "case"))
    if brief:
        return count
    return (
        f"{count}: {violations[0].finding}"
        if len(violations) == 1
        else f"{count}; the first: {violations[0].finding}"
    )


_UNITS = {1: "element", 2: "pair", 3: "triple"}


def count_text(count: int, unit: str) -> str:
    """Format a count with its unit: `1 pair`, `2 pairs`."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"

"""Findings about laws as a report: law by law, how often each is broken and where first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from graphir.lattice.order import LAWS, Violation, Violations


def report(
    findings: Sequence[Violation], laws: Sequence[str] = LAWS, *, everything: bool = False
) -> str:
    """A line for each law: that it holds, or how often it does not and the first counterexample.

    The laws are those named and any others found. With `everything` all counterexamples follow,
    each on its own line, and how many are not listed.
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
    count = counted(total, _UNITS.get(len(violations[0].elements), "case"))
    if brief:
        return count
    return (
        f"{count}: {violations[0].finding}"
        if len(violations) == 1
        else f"{count}; the first: {violations[0].finding}"
    )


_UNITS = {1: "element", 2: "pair", 3: "triple"}


def counted(count: int, unit: str) -> str:
    """A count of things, in words: `1 pair`, `2 pairs`."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def edges_text(edges: Sequence[tuple[Any, Any]]) -> str:
    """Redundant edges in a line: how many, and which."""
    if not edges:
        return "redundant edges: none"
    pairs = ", ".join(f"{low} < {high}" for low, high in edges)
    return f"redundant edges: {len(edges)}, implied by others: {pairs}"

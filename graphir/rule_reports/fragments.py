"""What notebooks show of rule sets: HTML fragments, with long parts in folded sections."""

from __future__ import annotations

from itertools import groupby, islice
from operator import attrgetter

from graphir.dtype_lattices.order import Violations
from graphir.markup import code, folded, fragment, paragraphs, table, tag, text
from graphir.promotion.rules import PromotionRules
from graphir.rule_reports.explanation import Explanation
from graphir.rule_reports.facts import facts
from graphir.rule_reports.findings import report
from graphir.rule_reports.tables import Table, brief_table, html_grid, table_notes

COUNTEREXAMPLES = 10
"""The most counterexamples of a law in a fragment."""


def explanation_fragment(explanation: Explanation) -> str:
    """Return the operands' paths and losses, and the answers of the other rule sets, folded."""
    names = " and ".join(name for name, *_ in explanation.ways())
    head = f"{names} promote to {explanation.result} under {explanation.rules!r}"
    ways = [
        (code(name), code(path), tag("span", text(cost), class_=None if is_exact else "lossy"))
        for (name, path, cost), is_exact in zip(
            explanation.ways(), (x is None for x in explanation.witnesses), strict=True
        )
    ]
    groups = [
        (code(answer), text(", ".join(names), 2000))
        for answer, names in explanation.groups().items()
    ]
    return fragment(
        paragraphs([head]),
        table(("operand", "path", "loss"), ways, len(ways)),
        folded("Other rule sets", table(("answer", "rule sets"), groups, len(groups))),
    )


def laws_fragment(violations: Violations) -> str:
    """Return a line for each law, and its first counterexamples, folded."""
    sections = [
        (law, [violation.finding for violation in islice(group, COUNTEREXAMPLES)])
        for law, group in groupby(violations, attrgetter("law"))
    ]
    return fragment(
        paragraphs(report(violations, violations.laws).split("\n")),
        *(folded(f"Counterexamples to {law}", paragraphs(first)) for law, first in sections),
    )


def table_fragment(table: Table) -> str:
    """Return a table of short names, coloured by loss; one of many dtypes without narrow ones."""
    return fragment(*_grid(table))


def _grid(table: Table) -> tuple[str, str]:
    part, note = brief_table(table)
    notes = paragraphs([*table_notes(part), *([note] if note else [])])
    return tag("div", html_grid(part), class_="scroll"), notes


def rules_fragment(rules: PromotionRules) -> str:
    """Return the name and the description of a rule set, and its table and facts, folded."""
    source = [f"Source: {rules.source}."] if rules.source else []
    answers = [(text(subject), text(answer, 300)) for subject, answer in facts(rules)]
    return fragment(
        tag("div", tag("b", text(rules.name)), f", {len(rules.dtypes)} dtypes"),
        paragraphs([rules.doc, *source]),
        folded("Table", *_grid(rules.table())),
        folded("Besides the join", table(("question", "answer"), answers, len(answers))),
    )

"""Check of the laws of joins and of conversions of a rule set, with counterexamples and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice, product
from operator import attrgetter
from typing import Any, TypeAlias

from graphir.display import count_text, folded, fragment, paragraphs
from graphir.dtype_lattices.order import LAWS as JOIN_LAWS
from graphir.dtype_lattices.order import Lattice, Violation, Violations, violations
from graphir.dtypes import DType
from graphir.errors import PromotionError
from graphir.promotion import RulesLike, rules
from graphir.promotion.rules import PromotionRules

Join: TypeAlias = Callable[[DType, DType], DType]

LAWS = (*JOIN_LAWS, "width", "exactness")
"""The laws of a join, and two laws of conversions.

"width": no result is narrower than an operand. "exactness": no result loses values of an operand.
The check of these two skips weak dtypes, which yield to other dtypes by design.
"""


def laws(subject: RulesLike | Lattice[Any]) -> Violations:
    """Return every violation of LAWS by a rule set, the name of a rule set, or a lattice.

    Violations are sorted by law, with counterexamples of the smallest dtypes first. A lattice of
    nodes other than dtypes has the laws of a join alone.
    """
    if isinstance(subject, Lattice):
        nodes: Iterable[Any] = [node for node in subject if isinstance(node, DType)]
        return _with(subject.laws(), _conversions(_sorted(nodes), subject.join))
    rule_set = subject if isinstance(subject, PromotionRules) else rules(subject)
    dtypes = _sorted(rule_set.dtypes)
    return _with(violations(dtypes, rule_set.promote), _conversions(dtypes, rule_set.promote))


def _with(of_join: Violations, others: Iterable[Violation]) -> Violations:
    counts = Counter(violation.law for violation in of_join)
    return Violations([*of_join, *others], of_join.counts - counts, LAWS)


def _sorted(dtypes: Iterable[DType]) -> list[DType]:
    """Sort dtypes by width, then in the order of DType."""
    present = {*dtypes}
    return sorted((d for d in DType if d in present), key=lambda dtype: dtype.bits)


def _conversions(dtypes: list[DType], join: Join) -> Iterator[Violation]:
    """Yield the violations of width, then those of exactness."""
    results = _results([dtype for dtype in dtypes if not dtype.weak], join)
    for (a, b), result in results.items():
        wide = max(a, b, key=lambda dtype: dtype.bits)
        if result.bits < wide.bits:
            text = f"{a} v {b} = {result}, which is narrower than {wide}"
            yield Violation("width", (a, b), text)
    for (a, b), result in results.items():
        for operand in dict.fromkeys((a, b)):
            if (witness := operand.witness(result)) is not None:
                text = f"{a} v {b} = {result}, which lacks {witness} of {operand}"
                yield Violation("exactness", (a, b), text)
                break


def _results(dtypes: list[DType], join: Join) -> dict[tuple[DType, DType], DType]:
    """Return the results of all pairs that have one, in the order of the dtypes."""
    place = {dtype: i for i, dtype in enumerate(dtypes)}
    results: dict[tuple[DType, DType], DType] = {}
    for a, b in sorted(product(dtypes, dtypes), key=lambda pair: place[pair[0]] + place[pair[1]]):
        try:
            results[a, b] = join(a, b)
        except PromotionError:
            continue
    return results


# -- notebooks


COUNTEREXAMPLES = 10
"""The most counterexamples of a law in a fragment."""


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


# -- the text report


def report(
    findings: Sequence[Violation], laws: Sequence[str] = JOIN_LAWS, *, everything: bool = False
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

"""The laws that a rule set keeps or breaks, each with its smallest counterexample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

from graphir.dtypes import DType, DTypeLike
from graphir.errors import GraphError, PromotionError
from graphir.lattice.order import LAWS as JOIN_LAWS
from graphir.lattice.order import Lattice, Violation, Violations, violations
from graphir.promotion import rules
from graphir.promotion.rules import PromotionRules

Table: TypeAlias = Mapping[Any, Mapping[Any, "DTypeLike | None"]]
Join: TypeAlias = Callable[[DType, DType], DType]

LAWS = (*JOIN_LAWS, "width", "exactness")
"""A join's laws, and two of conversions: no result is narrower than an operand; none loses values.

Weak dtypes, which give way by design, are not asked about width and exactness.
"""


def laws(subject: str | PromotionRules | Lattice[Any] | Table) -> Violations:
    """Every violation of LAWS by a rule set (or that of a name), a lattice or a printed table.

    Law by law, the counterexample of the smallest dtypes first. A table is by row (lhs), then by
    column, of dtypes or their names; None, or no cell, stands for a pair that raises. A lattice of
    other things than dtypes is asked for the laws of a join alone.
    """
    if isinstance(subject, str):
        subject = rules(subject)
    if isinstance(subject, Lattice):
        nodes: Iterable[Any] = [node for node in subject if isinstance(node, DType)]
        return _with(subject.laws(), _conversions(_sorted(nodes), subject.join))
    if isinstance(subject, PromotionRules):
        dtypes, join = _sorted(subject.dtypes), _asker(subject)
    else:
        cells = _cells(subject)
        dtypes, join = _sorted(dtype for pair in cells for dtype in pair), _reader(cells)
    return _with(violations(dtypes, join), _conversions(dtypes, join))


def _with(of_join: Violations, others: Iterable[Violation]) -> Violations:
    counts = Counter(violation.law for violation in of_join)
    return Violations([*of_join, *others], of_join.counts - counts)


def _sorted(dtypes: Iterable[DType]) -> list[DType]:
    """The narrow first; of equal width, in the order of DType."""
    present = {*dtypes}
    return sorted((d for d in DType if d in present), key=lambda dtype: dtype.bits)


def _asker(rules: PromotionRules) -> Join:
    return lambda a, b: rules.promote(a, b)


def _cells(table: Table) -> dict[tuple[DType, DType], DType | None]:
    subject: Any = table
    rows: list[Any] = [*table.values()] if isinstance(subject, Mapping) else [subject]
    if not all(isinstance(row, Mapping) for row in rows):
        raise GraphError(
            f"laws are those of a rule set, its name, a lattice or a table such as "
            f"{{'int8': {{'int16': 'int16'}}}}, not of {subject!r}"
        )
    return {
        (DType(a), DType(b)): None if cell is None else DType(cell)
        for a, row in table.items()
        for b, cell in row.items()
    }


def _reader(cells: Mapping[tuple[DType, DType], DType | None]) -> Join:
    def join(a: DType, b: DType) -> DType:
        if (cell := cells.get((a, b))) is None:
            raise PromotionError(f"{a} and {b} have no common dtype in this table")
        return cell

    return join


def _conversions(dtypes: list[DType], join: Join) -> Iterator[Violation]:
    """Where a result is narrower than an operand, then where it loses values of one."""
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
    """What the pairs that mix give, those of the first dtypes first."""
    place = {dtype: i for i, dtype in enumerate(dtypes)}
    results: dict[tuple[DType, DType], DType] = {}
    for a, b in sorted(product(dtypes, dtypes), key=lambda pair: place[pair[0]] + place[pair[1]]):
        try:
            results[a, b] = join(a, b)
        except PromotionError:
            continue
    return results

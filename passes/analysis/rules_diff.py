"""The comparison of two rule sets: their promotion tables, facts besides the join, and ops."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

from graphir import DType, Op, PromotionRules, ops
from graphir.escape import brief
from graphir.rule_reports.facts import OF_OPS, facts, infer_op
from graphir.rule_reports.tables import VERSION, aligned, cell_name


class DtypePair(NamedTuple):
    """A pair of dtypes that two rule sets promote differently; None is a refusal."""

    lhs: DType
    rhs: DType
    before: DType | None
    after: DType | None


class Result(NamedTuple):
    """An op on arrays of one dtype whose result dtype differs; None is a refusal."""

    op: str
    dtype: DType
    before: DType | None
    after: DType | None


class RulesDiff(Sequence[DtypePair]):
    """The table cells in which two rule sets differ, over the dtypes that both have.

    `str()` gives a table. `pairs` counts all pairs of dtypes, `both_refuse` the pairs that both
    rule sets refuse. `facts` are the questions besides the join with different answers, each
    with both answers. `ops` are the ops on arrays of one dtype whose result dtypes differ.
    """

    def __init__(self, before: PromotionRules, after: PromotionRules) -> None:
        self.before, self.after = before, after
        self.dtypes = [d for d in DType if d in before.dtypes and d in after.dtypes]
        cells = [
            DtypePair(a, b, before.answer(a, b), after.answer(a, b))
            for a in self.dtypes
            for b in self.dtypes
        ]
        self.pairs = len(cells)
        self.both_refuse = sum(cell.before is None and cell.after is None for cell in cells)
        self.cells = tuple(cell for cell in cells if cell.before is not cell.after)

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, at: int) -> DtypePair: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[DtypePair]: ...
    def __getitem__(self, at: int | slice) -> DtypePair | Sequence[DtypePair]:
        return self.cells[at]

    def __iter__(self) -> Iterator[DtypePair]:
        return iter(self.cells)

    def only(self, rules_: PromotionRules) -> list[DType]:
        """Return the dtypes that `rules_`, one of the two rule sets, has and the other lacks."""
        return [dtype for dtype in DType if dtype in rules_.dtypes and dtype not in self.dtypes]

    @cached_property
    def facts(self) -> tuple[tuple[str, str, str], ...]:
        """The questions besides the join with different answers: (question, before, after)."""
        after = dict(facts(self.after, self.dtypes))
        return tuple(
            (subject, answer, after[subject])
            for subject, answer in facts(self.before, self.dtypes)
            if after.get(subject, answer) != answer
        )

    @cached_property
    def ops(self) -> tuple[Result, ...]:
        """The ops on arrays of one dtype, without attributes, whose result dtypes differ."""
        results = [
            Result(op.name, dtype, _result(self.before, op, dtype), _result(self.after, op, dtype))
            for op in ops.CATALOGUE.values()
            if op.operands
            for dtype in self.dtypes
        ]
        return tuple(result for result in results if result.before is not result.after)

    def to_json(self) -> str:
        """Return the cells, facts and ops as a JSON document; null is a refusal."""
        document: dict[str, Any] = {"version": VERSION}
        document |= {"before": self.before.name, "after": self.after.name}
        document |= {"pairs": self.pairs, "both_refuse": self.both_refuse}
        document["only_before"] = [str(dtype) for dtype in self.only(self.before)]
        document["only_after"] = [str(dtype) for dtype in self.only(self.after)]
        names = [[None if item is None else str(item) for item in cell] for cell in self]
        document["cells"] = [dict(zip(DtypePair._fields, cell, strict=True)) for cell in names]
        keys = ("question", "before", "after")
        document["facts"] = [dict(zip(keys, fact, strict=True)) for fact in self.facts]
        results = [
            [None if item is None else str(item) for item in result_texts]
            for result_texts in self.ops
        ]
        document["ops"] = [
            dict(zip(Result._fields, result_texts, strict=True)) for result_texts in results
        ]
        return json.dumps(document, indent=2)

    def __str__(self) -> str:
        names = self.before.name, self.after.name
        lines = self.headlines()
        if self.cells:
            lines += ["", *aligned([("lhs", "rhs", *names), *self.pair_rows()])]
        besides = self.facts_besides
        if besides:
            lines += ["", "besides the join:"]
        for subject, *answers in besides:
            answer_lines = aligned(list(zip(names, answers, strict=True)))
            lines += [f"  {subject}", *(f"    {line}" for line in answer_lines)]
        if self.ops:
            table = aligned([("of", *names, "ops"), *self.op_rows()])
            lines += ["", "op by op, on arrays of one dtype:", *table]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return brief(str(self))

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the headline, and the tables in folded sections."""
        from graphir.passes.reports.html_rows import rules_difference_fragment

        return rules_difference_fragment(self)

    def pair_rows(self) -> list[tuple[str, ...]]:
        """Return table rows of lhs, rhs, before and after.

        Cells with one change and equal lists of partners share a row.
        """
        return _group(self.cells)

    def op_rows(self) -> list[tuple[str, ...]]:
        """Return table rows of dtypes, before, after and ops; equal changes share a row."""
        return _by_op(self.ops)

    @property
    def facts_besides(self) -> list[tuple[str, str, str]]:
        """The `facts` without those about the results of ops, which `op_rows` has."""
        return [fact for fact in self.facts if fact[0] not in OF_OPS]

    def headlines(self) -> list[str]:
        """Return the line that counts differences, and lines of the dtypes that one set lacks."""
        return [self._head(), *self._alone()]

    def _head(self) -> str:
        names = self.before.name, self.after.name
        lost_cells = sum(cell.after is None for cell in self)
        new = sum(cell.before is None for cell in self)
        parts = [
            f"{len(self) - lost_cells - new} have another dtype",
            f"{lost_cells} are refused by {names[1]} alone",
            f"{new} by {names[0]} alone",
        ]
        return (
            f"{names[0]} and {names[1]} differ in {len(self)} of {self.pairs} pairs of the dtypes "
            f"that both have: {', '.join(parts)}; both refuse {self.both_refuse}"
        )

    def _alone(self) -> list[str]:
        both = [(rules_.name, self.only(rules_)) for rules_ in (self.before, self.after)]
        return [f"only {name} has {' '.join(map(str, dtypes))}" for name, dtypes in both if dtypes]


def _group(cells: Sequence[DtypePair]) -> list[tuple[str, ...]]:
    """Return table rows; cells with one change and equal lists of partners share a row.

    A pair that changes alike in both operand orders appears once.
    """
    ends_by_pair = {cell[:2]: cell[2:] for cell in cells}
    partners: dict[tuple[DType, tuple[DType | None, ...]], list[DType]] = {}
    pairs: set[tuple[DType, DType]] = set()
    for a, b, *ends in cells:
        if (b, a) not in pairs or ends_by_pair.get((b, a)) != tuple(ends):
            pairs.add((a, b))
            partners.setdefault((a, tuple(ends)), []).append(b)
    rows: dict[tuple[Any, ...], list[DType]] = {}
    for (a, ends), others in partners.items():
        rows.setdefault((ends, *others), []).append(a)
    return [(_names(lhs), _names(rhs), *map(cell_name, ends)) for (ends, *rhs), lhs in rows.items()]


def _result(rules: PromotionRules, op: Op, dtype: DType) -> DType | None:
    inference = infer_op(rules, op, *(dtype,) * len(op.operands))
    return None if inference is None else inference.type.dtype


def _by_op(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return table rows; ops with the same change on the same dtypes share a row.

    "its own" stands for the operands' dtype, for ops with several result dtypes.
    """
    ends_by_side: dict[tuple[str, int], set[DType | None]] = {}
    for op, _, *ends in results:
        for side, end in enumerate(ends):
            ends_by_side.setdefault((op, side), {None}).add(end)
    dtypes_by_change: dict[tuple[str, ...], list[DType]] = {}
    for op, dtype, *ends in results:
        names_told = [
            "its own" if end is dtype and len(ends_by_side[op, side]) > 2 else cell_name(end)
            for side, end in enumerate(ends)
        ]
        dtypes_by_change.setdefault((op, *names_told), []).append(dtype)
    rows: dict[tuple[str, ...], list[str]] = {}
    for (op, *names_told), dtypes in dtypes_by_change.items():
        rows.setdefault((_names(dtypes), *names_told), []).append(op)
    return [(*row, " ".join(names)) for row, names in rows.items()]


def _names(dtypes: Iterable[DType]) -> str:
    return " ".join(dtype.short for dtype in dtypes)

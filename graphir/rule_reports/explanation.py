"""Explanations of a promotion: lattice paths, losses, and the answers of other rule sets."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphir.display import code, folded, fragment, paragraphs, table, tag, text
from graphir.dtypes import DType
from graphir.errors import GraphirError
from graphir.promotion import RulesLike, rule_sets
from graphir.promotion import rules as _rules
from graphir.promotion.library import EXPLICIT
from graphir.promotion.operands import Operand, OperandLike, operand_of, witness
from graphir.promotion.rules import PromotionRules

WIDTH = 100
"""The width in columns to which an explanation is wrapped."""


class Explanation(NamedTuple):
    """The explanation of a promotion under a rule set, as data. `str()` is its text.

    `operands` holds dtypes and literals, and `result` is the common dtype. `paths` has each
    operand's path up the lattice, or its two ends where the rules have no lattice. `witnesses` has,
    for each operand, the simplest value that the conversion loses (for a literal, the literal), and
    None where the conversion is exact. `others` maps the name of each other rule set to its
    Explanation, or to the error with which it refuses.
    """

    rules: str
    operands: tuple[Any, ...]
    result: DType
    paths: tuple[tuple[DType, ...], ...]
    witnesses: tuple[complex | None, ...]
    others: Mapping[str, Explanation | GraphirError] = {}

    @property
    def exact(self) -> bool:
        """Whether every value of every operand survives."""
        return all(witness is None for witness in self.witnesses)

    @property
    def losses(self) -> tuple[str, ...]:
        """A phrase for each operand that loses values: `257 of int32`."""
        return tuple(
            f"{witness} of {operand}" if isinstance(operand, DType) else f"the literal {operand!r}"
            for operand, witness in dict.fromkeys(zip(self.operands, self.witnesses, strict=True))
            if witness is not None
        )

    def __str__(self) -> str:
        operands = " and ".join(map(_operand_name, self.operands))
        lines = [f"{operands} promote to {self.result} under {self.rules!r}"]
        for _, path, cost in self.ways():
            if " -> " in path or cost != "exact":
                lines.append(f"  {path}: {cost}")
        if self.others:
            lines += ["", "Other rule sets:", *_align(list(map(_row, self.others.items())))]
        return "\n".join(piece for line in lines for piece in _wrap(line))

    def __repr__(self) -> str:
        """Return the text with the other rule sets grouped by their answers."""
        groups = (f"  {answer} {', '.join(names)}" for answer, names in self.groups().items())
        others = (piece for line in groups for piece in _wrap(line))
        return "\n".join([str(self._replace(others={})), *others])

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the paths, and the answers of other rule sets, folded."""
        return explanation_fragment(self)

    def ways(self) -> list[tuple[str, str, str]]:
        """Return, for each operand, its name, its path up the lattice and its loss."""
        return [
            (_operand_name(operand), " -> ".join(map(str, path)), _cost(operand, witness))
            for operand, path, witness in zip(
                self.operands, self.paths, self.witnesses, strict=True
            )
        ]

    def groups(self) -> dict[str, list[str]]:
        """Return the names of the other rule sets by their answer: a dtype, or `refused by`."""
        groups: dict[str, list[str]] = {}
        for name, verdict in self.others.items():
            is_refusal = isinstance(verdict, GraphirError)
            answer = "refused by" if is_refusal else f"{verdict.result} under"
            groups.setdefault(answer, []).append(name)
        return groups


def explain(*operands: OperandLike, rules: RulesLike | None = None) -> Explanation:
    """Explain how operands promote under a rule set, and compare with every other rule set.

    Operands are as for PromotionRules.promote; `rules` is a rule set, its name, or None for the
    default. Raises PromotionError where the rule set has no common dtype for the operands.
    """
    rule_set = _rules(rules)
    explanation = rule_set.explain(*operands)
    others = {
        each.name: _verdict(each, operands)
        for each in rule_sets()
        if each is not rule_set and each is not EXPLICIT
    }
    return explanation._replace(others=others)


def _verdict(
    rules: PromotionRules, operands: tuple[OperandLike, ...]
) -> Explanation | GraphirError:
    try:
        return rules.explain(*operands)
    except GraphirError as error:
        return error.with_traceback(None)


def explained(rules: PromotionRules, operands: Sequence[Any]) -> Explanation:
    """Explain how operands promote under one rule set, with the path and loss of each operand."""
    types = rules.operands(operands)
    result = rules.common(types)
    types = [
        # The rules see an array without a value by a dtype that may differ from its own.
        operand_of(operand)
        if isinstance(operand, (np.ndarray, np.generic)) and getattr(dtype, "value", None) is None
        else dtype
        for dtype, operand in zip(types, operands, strict=True)
    ]
    names = tuple(
        operand if isinstance(dtype, Operand) and dtype.value is operand else dtype.dtype
        for dtype, operand in zip(types, operands, strict=True)
    )
    paths = tuple(rules.path(dtype.dtype, result) for dtype in types)
    losses = tuple(witness(dtype, result) for dtype in types)
    return Explanation(rules.name, names, result, paths, losses)


def reason(error: GraphirError) -> str:
    """Return the reason of an error, or its problem where it has no reason."""
    return error.reason or error.problem


def _operand_name(operand: Any) -> str:
    return str(operand) if isinstance(operand, DType) else f"the literal {operand!r}"


def _cost(operand: Any, witness: complex | None) -> str:
    if witness is None:
        return "exact"
    if isinstance(operand, DType):
        return f"loses values, the simplest is {witness}"
    return f"loses {_operand_name(operand)}"


def _row(other: tuple[str, Explanation | GraphirError]) -> tuple[str, str, str]:
    name, verdict = other
    if isinstance(verdict, GraphirError):
        return name, "refuses", reason(verdict)
    losses = " and ".join(verdict.losses)
    return name, str(verdict.result), f"loses {losses}" if losses else "exact"


def _align(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a line for each row, in aligned columns, with the last cell shortened to fit."""
    name, answer = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        start = f"  {row[0].ljust(name)}  {row[1].ljust(answer)}  "
        yield start + textwrap.shorten(row[2], max(WIDTH - len(start), 20), placeholder=" ...")


def _wrap(line: str) -> list[str]:
    """Break a line between words into lines of at most WIDTH columns."""
    if len(line) <= WIDTH:
        return [line]
    return textwrap.wrap(
        line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


# -- notebooks


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

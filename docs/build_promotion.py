"""Writes the pages of the rule sets: what each decides, in tables, pictures and JSON.

    python -m docs.build_promotion [FOLDER]

Without a folder it writes to docs/promotion. It runs in a checkout: the versions with which rule
sets were measured stand beside the tests that compare with them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from graphir import DType, PromotionRules, laws, rule_sets
from graphir.display import count_text
from graphir.drawing.formats import lattice_svg
from graphir.drawing.promotion_tables import TableCell, grid_svg, table_cell, table_svg
from graphir.dtype_lattices.order import LAWS as JOIN_LAWS
from graphir.promotion.library import EXPLICIT
from graphir.rule_reports.facts import facts
from graphir.rule_reports.laws import LAWS
from graphir.rule_reports.tables import MEANINGS, Table, asymmetry, counts, ordered
from tests import GOLDEN
from tests.peers.table.page import CHECKED, MEASURED, NO_LIBRARY

VERSION = 1
"""The version of rule-sets.json. It changes where readers of the old version would fail."""

NOTE = "<!-- Written by `python -m docs.build_promotion`. -->"


def build(folder: Path) -> None:
    """Write all pages into a folder."""
    tables = {each: ordered(each) for each in rule_sets()}
    documents = [document_of(each, tables) for each in tables]
    pages = {"rule-sets.json": json_text({"version": VERSION, "rule_sets": documents})}
    pages |= side_by_side({each.name: tables[each] for each in tables if each is not EXPLICIT})
    for (each, table), document in zip(tables.items(), documents, strict=True):
        pages[f"{each.name}.md"] = page(document, table)
        pages[f"pictures/{each.name}.svg"] = table_svg(each)
        if each.lattice is not None:
            pages[f"pictures/{each.name}-lattice.svg"] = lattice_svg(each.lattice)
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for path, text in pages.items():
        (folder / path).write_text(text.rstrip("\n") + "\n", encoding="utf-8", newline="\n")


# -- the facts of a rule set, as JSON has them


def document_of(rules: PromotionRules, tables: Mapping[PromotionRules, Table]) -> dict[str, Any]:
    """Return the facts of a rule set as JSON has them; `tables` has the pairs of all rule sets."""
    table, order = tables[rules], rules.lattice
    answers = dict(facts(rules, rules.dtypes))
    others = [each for each in tables if EXPLICIT not in (rules, each) and each is not rules]
    return {
        "name": rules.name,
        "doc": rules.doc,
        "source": rules.source,
        "checked_against": CHECKED.get(rules.name, NO_LIBRARY),
        "measured_with": MEASURED.get(rules.name),
        "dtypes": [str(dtype) for dtype in table],
        "pairs": {
            str(a): {str(b): None if cell is None else str(cell) for b, cell in row.items()}
            for a, row in table.items()
        },
        "losses": [
            {"from": str(dtype), "to": str(to), "witness": str(dtype.witness(to))}
            for dtype, to in losses_of(table)
        ],
        "lattice": order and {str(x): [*map(str, order.edges.get(x, ()))] for x in order.nodes},
        "facts": {x: answer for x, answer in answers.items() if not is_literal(x)},
        "literals": {x: answer for x, answer in answers.items() if is_literal(x)},
        "laws": laws_of(rules),
        "differences": {each.name: difference(rules, each, tables) for each in others},
    }


def is_literal(question: str) -> bool:
    """Whether a question of `facts` is about a literal."""
    return " + " in question or question.endswith(" alone")


def losses_of(table: Table) -> dict[tuple[DType, DType], list[DType]]:
    """Return the conversions that lose values, each with the operands beside it."""
    beside: dict[tuple[DType, DType], dict[DType, None]] = {}
    for a, b in product(table, table):
        cell = table[a][b]
        for operand, other in ((a, b), (b, a)):
            if cell is not None and not operand.exact_in(cell):
                beside.setdefault((operand, cell), {})[other] = None
    return {conversion: [*others] for conversion, others in beside.items()}


def laws_of(rules: PromotionRules) -> list[dict[str, Any]]:
    """Return each law with its number of violations and the counterexample of least dtypes."""
    violations = laws(rules)
    entries: list[dict[str, Any]] = []
    for law in LAWS:
        of_law = violations.of([law])
        first = (
            {"dtypes": [*map(str, of_law[0].elements)], "finding": of_law[0].finding}
            if of_law
            else None
        )
        count = max(violations.counts[law], len(of_law))
        entries.append({"law": law, "violations": count, "counterexample": first})
    return entries


@cache
def _facts(rules: PromotionRules, dtypes: tuple[DType, ...]) -> dict[str, str]:
    return dict(facts(rules, dtypes))


def difference(
    here: PromotionRules, there: PromotionRules, tables: Mapping[PromotionRules, Table]
) -> dict[str, Any]:
    """Return the difference between two rule sets over the dtypes of both, as `graphir diff`."""
    table, other = tables[here], tables[there]
    dtypes = tuple(dtype for dtype in table if dtype in other)
    cells = [(table[a][b], other[a][b]) for a, b in product(dtypes, dtypes)]
    unlike = [cell for cell in cells if cell[0] is not cell[1]]
    answers, others = _facts(here, dtypes), _facts(there, dtypes)
    questions = [x for x, answer in answers.items() if others.get(x, answer) != answer]
    return {
        "pairs": len(cells),
        "other_dtype": sum(None not in cell for cell in unlike),
        "refused_here": sum(cell[0] is None for cell in unlike),
        "refused_there": sum(cell[1] is None for cell in unlike),
        "facts": [x for x in questions if not is_literal(x)],
        "literals": sum(map(is_literal, questions)),
    }


def json_text(value: Any, indent: str = "\n") -> str:
    """Return JSON in which a list or an object without others inside has a line of its own."""
    members = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
    if not any(isinstance(member, (dict, list)) for _, member in members):
        return json.dumps(value, separators=(",", ":"))
    inner = f"{indent} "
    lines = [
        f"{json.dumps(key)}:" * isinstance(value, dict)
        + (json_text(x, inner) if isinstance(x, (dict, list)) else json.dumps(x))
        for key, x in members
    ]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}{inner}{f',{inner}'.join(lines)}{indent}{last}"


# -- the pages


def page(document: dict[str, Any], table: Table) -> str:
    """Return the page of a rule set."""
    name = document["name"]
    colors = zip(COLOR_NAMES, counts(table).values(), strict=True)
    legend = ", ".join(f"{color}: {meaning}" for color, meaning in colors)
    frames = "".join(f" Framed: {text}." for text in asymmetry(table))
    about = [
        ("source", document["source"] or "none"),
        ("checked against", document["checked_against"]),
        ("measured with", document["measured_with"] or "no library"),
        ("dtypes", _code(document["dtypes"])),
    ]
    literals = [(f"`{question}`", answer) for question, answer in document["literals"].items()]
    return "\n".join(
        [
            f"# Rule set `{name}`",
            "",
            NOTE,
            "",
            document["doc"],
            "",
            *_rows(("", ""), about),
            "",
            LINKS,
            "",
            "## All pairs",
            "",
            picture_of(name, f"All pairs under {name}"),
            "",
            f"Of {count_text(len(table) ** 2, 'pair')}, {legend}.{frames} {SHORT_NAMES} The "
            f"command `graphir table --rules {name} --format markdown` writes the full ones.",
            "",
            *misprints_section(name, table),
            *losses_section(table),
            "## Lattice",
            "",
            *lattice_section(document),
            "",
            "## Besides the join",
            "",
            *_rows(("question", "answer"), document["facts"].items()),
            "",
            "## Literals",
            "",
            "A Python number beside an array of a dtype, or without any other operand:",
            "",
            *_rows(("", "dtype"), literals),
            "",
            *laws_section(document["laws"]),
            *differences_section(document),
        ]
    )


COLOR_NAMES = ("green", "orange and italic", "grey")

SHORT_NAMES = "Cells have short names: `i8` is int8, `i*` `f*` `c*` are Python numbers, weak."

LINKS = (
    "[All rule sets side by side](all-pairs.md), [which to choose](../rule-sets.md), "
    "[where libraries compute something else](../deviations.md), and the data of this page as "
    "[JSON](rule-sets.json)."
)


def lattice_section(document: dict[str, Any]) -> list[str]:
    """Return the picture of the lattice, or that there is none."""
    if document["lattice"] is None:
        return ["None: the common dtypes are no joins of one order."]
    name = document["name"]
    edges = "A line leads up to a dtype directly above; a dotted line follows from others."
    return [picture_of(f"{name}-lattice", f"The lattice of {name}"), "", edges]


def losses_section(table: Table) -> list[str]:
    """Return the section about conversions that lose values; none without such."""
    rows = [
        (f"`{dtype}`", f"`{to}`", f"`{dtype.witness(to)}`", _code(others))
        for (dtype, to), others in losses_of(table).items()
    ]
    if not rows:
        return []
    head = ("operand", "becomes", "the simplest value lost", "beside")
    return ["## Conversions that lose values", "", *_rows(head, rows), ""]


def misprints_section(name: str, table: Table) -> list[str]:
    """Return the section about cells that MAX's printed table has otherwise; none of other rules.

    The printed table is in tests/golden; the printed lattice decides.
    """
    if name != "max":
        return []
    printed = json.loads((GOLDEN / "max.json").read_text(encoding="utf-8"))["table"]
    rows = [
        (
            f"`{a}`",
            f"`{b}`",
            f"`{printed[str(a)][str(b)]}`",
            f"`{cell}`",
            f"`{printed[str(b)][str(a)]}`",
        )
        for a, row in table.items()
        for b, cell in row.items()
        if printed[str(a)][str(b)] != str(cell)
    ]
    head = (
        "row",
        "column",
        "printed",
        "the join, and the answer here",
        "the mirrored cell, printed",
    )
    return [
        "## Cells that the source prints otherwise",
        "",
        f"The source prints a lattice and a table, which contradict each other in {len(rows)} "
        "cells. The lattice decides here: with those cells swapped operands would differ.",
        "",
        *_rows(head, rows),
        "",
    ]


def laws_section(entries: Sequence[dict[str, Any]]) -> list[str]:
    """Return the section about laws, with counterexamples."""
    rows = [
        (
            entry["law"],
            f"{entry['violations']:,}" if entry["violations"] else "holds",
            _counterexample(entry["counterexample"]),
        )
        for entry in entries
    ]
    join = ", ".join(JOIN_LAWS)
    return [
        "## Laws",
        "",
        f"Those of a join are {join}. `v` is the join.",
        "",
        *_rows(("law", "violations", "the smallest counterexample"), rows),
        "",
    ]


def _counterexample(counterexample: Mapping[str, Any] | None) -> str:
    if counterexample is None:
        return ""
    return f"{', '.join(counterexample['dtypes'])}: {counterexample['finding']}"


def differences_section(document: dict[str, Any]) -> list[str]:
    """Return the section about differences to other rule sets."""
    rows = [
        (
            f"[`{name}`]({name}.md)",
            str(each["pairs"]),
            *(str(each[key]) for key in ("other_dtype", "refused_here", "refused_there")),
            ", ".join([*each["facts"], *_number_of_literals(each["literals"])]),
        )
        for name, each in document["differences"].items()
    ]
    if not rows:
        return []
    head = ("rule set", "pairs that both have", "another dtype", "refused here alone")
    head += ("refused there alone", "questions with other answers")
    command = f"graphir diff {document['name']} {next(iter(document['differences']))}"
    title = "## Differences to other rule sets"
    return [title, "", *_rows(head, rows), "", f"`{command}` lists all differences to one.", ""]


def _number_of_literals(count: int) -> list[str]:
    return [count_text(count, "literal")] if count else []


def side_by_side(tables: dict[str, Table]) -> dict[str, str]:
    """Return the page of all pairs under all rule sets, and its pictures, by path."""
    names = ", ".join(f"[`{name}`]({name}.md)" for name in tables)
    lines = ["# All pairs under all rule sets", "", NOTE, "", SIDE_BY_SIDE, "", names + "."]
    pictures: dict[str, str] = {}
    for a in DType:
        columns = {name: table for name, table in tables.items() if a in table}
        if not columns:
            continue
        rows: dict[str, list[TableCell | None]] = {
            str(b): [table_cell(table, a, b) if b in table else None for table in columns.values()]
            for b in DType
            if any(b in table for table in columns.values())
        }
        title = f"{a} under all rule sets"
        pictures[f"pictures/pairs-{a}.svg"] = grid_svg(title, [*columns], rows, MEANINGS)
        lines += ["", f"## {a}", "", picture_of(f"pairs-{a}", title)]
    return {"all-pairs.md": "\n".join(lines), **pictures}


SIDE_BY_SIDE = """For each dtype a table: a row for each operand on its right, a column for each
rule set that has the dtype. Green cells hold every value of both operands, orange and italic ones
can lose values, grey ones are refused, and in framed ones swapped operands give another result. An
empty cell stands for a rule set without the dtype of the row. Cells have short names: `i8` is int8,
`i*` `f*` `c*` are Python numbers, weak.

The same as data is in [rule-sets.json](rule-sets.json), described by
[rule-sets.schema.json](rule-sets.schema.json). The rule set [`explicit`](explicit.md) converts
nothing. The pages of the others:"""


def picture_of(name: str, title: str) -> str:
    """Return a picture that links to itself, since a code host shrinks it to the page."""
    return f"[![{title}](pictures/{name}.svg)](pictures/{name}.svg)"


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    ]


def _code(names: Iterable[object]) -> str:
    return " ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "promotion"
    build(target)
    print(f"wrote {target / 'all-pairs.md'}")

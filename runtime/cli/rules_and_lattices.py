"""The commands that ask rule sets, lattices, and graphs under two rule sets."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphir import (
    DType,
    Graph,
    GraphError,
    PromotionRules,
    explain,
    laws,
    rule_sets,
    rules,
)
from graphir.drawing.lattices import LATTICE_FORMATS
from graphir.lattice.order import LAWS as JOIN_LAWS
from graphir.lattice.order import Cyclic, Lattice
from graphir.lattice.published import element, lattices
from graphir.promotion.lattices import lattice, lattice_of
from graphir.promotion.registry import find_rules
from graphir.rule_reports.facts import facts
from graphir.rule_reports.findings import edges_text, report
from graphir.rule_reports.laws import LAWS
from graphir.rule_reports.tables import FORMATS, aligned, text_table
from passes import GraphDiff, RulesDiff, diff
from runtime.cli.rule_sets import RulesFile, add_rule_set, rule_set
from runtime.value_files import number


def _promote(asked: argparse.Namespace) -> None:
    """The dtype in which operands meet, why, and what every other rule set says."""
    if asked.format == "text":
        print(explain(*asked.operands, rules=asked.rules))
        return
    order = lattice_of(asked.rules)
    ways = asked.rules.explain(*asked.operands).paths
    edges = {*order.pairs()}
    drawn = [way for way in ways if edges.issuperset(pairwise(way)) and way[0] in order]
    for way in dict.fromkeys(way for way in ways if way not in drawn):
        told = " -> ".join(map(str, way))
        print(f"graphir: note: {told} is no way up lattice {order.name!r}", file=sys.stderr)
    print(LATTICE_FORMATS[asked.format](order, drawn))


def _rules(asked: argparse.Namespace) -> None:
    """The rule sets; or one of them, and what it says besides the join."""
    if asked.rules is None:
        rows = [(each.name, each.doc, each.source or "-") for each in rule_sets()]
        print("\n".join(aligned([("name", "what it is", "source"), *rows])))
        return
    found: PromotionRules = asked.rules
    dtypes = " ".join(str(dtype) for dtype in DType if dtype in found.dtypes)
    rows = [("source", found.source or "-"), ("dtypes", dtypes), *facts(found, found.dtypes)]
    print("\n".join([f"{found.name}: {found.doc}", *aligned(rows)]))


def _table(asked: argparse.Namespace) -> None:
    """All pairs of a rule set's dtypes."""
    if asked.format == "text":
        print(text_table(asked.rules, _in_color(asked.color)))
    else:
        print(FORMATS[asked.format](asked.rules))


def _lattice(asked: argparse.Namespace) -> None:
    """A lattice, and the paths of operands to their join."""
    order = _read(asked.lattice) if asked.lattice else lattice_of(asked.rules)
    nodes = [element(name) for name in asked.path]
    paths = [order.path(node, order.join(*nodes)) for node in nodes]
    print(LATTICE_FORMATS[asked.format](order, paths))


def _laws(asked: argparse.Namespace) -> int:
    """Which laws a rule set or a lattice breaks; status 1 if one of a join, or one asked for."""
    try:
        subject: PromotionRules | Lattice[Any] = _read(asked.subject)
    except Cyclic as error:
        print(f"cycles: {' < '.join(map(str, error.cycle))}, so it is no order")
        return 1
    elements = subject.dtypes if isinstance(subject, PromotionRules) else subject.nodes
    known = LAWS if any(isinstance(one, DType) for one in elements) else JOIN_LAWS
    chosen = [law for law in known if not asked.law or law in _named(asked.law)]
    found = laws(subject).of(chosen)
    print(_title(subject))
    print(report(found, chosen, everything=asked.all))
    if isinstance(subject, Lattice):
        print(edges_text(subject.redundant()))
    return 1 if any(asked.law or one.law in JOIN_LAWS for one in found) else 0


def _diff(asked: argparse.Namespace) -> int:
    """What changes with the rules; status 1 if anything does."""
    subject: PromotionRules | Path = asked.subject
    found: GraphDiff | RulesDiff
    if isinstance(subject, Path):
        found = diff(Graph.load(subject), asked.before, asked.after)
    else:
        found = diff(subject, asked.before, asked.after)
    print(found.to_json() if asked.format == "json" else found)
    besides = isinstance(found, RulesDiff) and (found.facts or found.ops)
    return 1 if len(found) or besides else 0


def _in_color(when: str) -> bool:
    """Whether to colour what is printed: by itself, on a terminal whose user does not object."""
    if when != "auto":
        return when == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def _title(subject: PromotionRules | Lattice[Any]) -> str:
    """What is asked for its laws, in a line or two."""
    if isinstance(subject, Lattice):
        size = f"{len(subject)} nodes, {len(subject.pairs())} edges"
        return f"lattice {subject.name}: {size}\ncycles: none"
    weak = sum(dtype.weak for dtype in subject.dtypes)
    note = f", {weak} of them weak and not asked about width and exactness" if weak else ""
    return f"rule set {subject.name}: {len(subject.dtypes)} dtypes{note}"


def _named(chosen: Sequence[str]) -> set[str]:
    return {*chosen, *(JOIN_LAWS if "join" in chosen else ())}


def _read(which: Any) -> Any:
    return Lattice.load(which) if isinstance(which, Path) else which


# -- what may be asked


def add_rules_and_lattices(command: Callable[..., Any]) -> None:
    """Add the commands to a parser, by its function that adds one."""
    _add_rules(command)
    _add_promote(command)
    _add_table(command)
    _add_lattice(command)
    _add_laws(command)
    _add_diff(command)


def _add_rules(command: Callable[..., Any]) -> None:
    doc = "List the rule sets, or tell what one says besides the join."
    made = command("rules", _rules, doc, "jax")
    made.add_argument("rules", nargs="?", type=rule_set, metavar="RULES", help="one of them")


def _add_promote(command: Callable[..., Any]) -> None:
    doc = "The dtype in which operands meet, each one's way there, and what other rule sets say."
    made = command("promote", _promote, doc, "int16 float32 --rules max")
    made.add_argument(
        "operands",
        nargs="+",
        type=_operand,
        metavar="DTYPE",
        help="a dtype, or a Python number such as 1, 2.5 or 1j (after -- if it is negative)",
    )
    add_rule_set(made)
    made.add_argument(
        "--format", choices=LATTICE_FORMATS, default="text", help="or the ways up, as a picture"
    )


def _add_table(command: Callable[..., Any]) -> None:
    doc = "All pairs of a rule set's dtypes; - stands for an error."
    made = command("table", _table, doc, "--rules max --format html > max.html")
    add_rule_set(made)
    made.add_argument("--format", choices=FORMATS, default="text")
    made.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour cells of text by what they lose; auto: on a terminal, unless NO_COLOR is set",
    )


def _add_lattice(command: Callable[..., Any]) -> None:
    doc = (
        "What lies directly above what in a lattice: that of a rule set, a published one, or yours."
    )
    made = command("lattice", _lattice, doc, "jep_option1 --format svg > jep.svg")
    which = made.add_mutually_exclusive_group()
    add_rule_set(which)
    which.add_argument(
        "lattice", nargs="?", type=_lattice_or_file, metavar="LATTICE", help=_SUBJECTS
    )
    made.add_argument("--format", choices=LATTICE_FORMATS, default="text")
    made.add_argument(
        "--path", nargs="+", default=[], metavar="NODE", help="pick out the paths to their join"
    )


def _add_laws(command: Callable[..., Any]) -> None:
    doc = (
        "Which laws a rule set or a lattice breaks, and where; status 1 if it is no join, or "
        "breaks a law asked for by --law."
    )
    made = command("laws", _laws, doc, "my_lattice.json --law join")
    made.add_argument("subject", type=_lawful, metavar="LATTICE", help=_SUBJECTS)
    made.add_argument(
        "--law",
        action="append",
        choices=(*LAWS, "join"),
        help=f"this one alone, or those given; join: the first {len(JOIN_LAWS)}, which without "
        "--law are those that count for the status",
    )
    made.add_argument("--all", action="store_true", help="every counterexample, not just the first")


def _add_diff(command: Callable[..., Any]) -> None:
    doc = "What two rule sets answer differently, of all pairs or of a graph; status 1 if anything."
    made = command("diff", _diff, doc, "model.gir jax")
    made.add_argument(
        "subject", type=_rules_or_graph, metavar="RULES|FILE.gir", help="a rule set, or a graph"
    )
    made.add_argument("before", type=rule_set, metavar="RULES", help="a rule set to compare with")
    made.add_argument(
        "after",
        nargs="?",
        type=rule_set,
        metavar="RULES",
        help="of a graph: with this, not its own",
    )
    made.add_argument("--format", choices=("text", "json"), default="text")


_SUBJECTS = f"a rule set, a lattice such as {lattices()[0]}, or a JSON file of edges"


def _operand(text: str) -> Any:
    try:
        return DType(text)
    except GraphError as error:
        value = number(text)
        if value is None:
            raise argparse.ArgumentTypeError(str(error)) from None
        return value


def path(text: str) -> str:
    """A path of a file, which is not looked for yet."""
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return text


def _lattice_or_file(text: str) -> Lattice[Any] | Path:
    return _or_file(lattice, text)


def _rules_or_graph(text: str) -> PromotionRules | RulesFile | Path:
    return rule_set(text) if Path(text).suffix == ".json" else _or_file(rules, text)


def _lawful(text: str) -> PromotionRules | Lattice[Any] | Path:
    """A rule set is asked itself: its joins need not be its lattice's."""
    found = find_rules(text)
    return _lattice_or_file(text) if found is None else found


def _or_file(find: Callable[[str], Any], text: str) -> Any:
    """What has that name, or else a file, which is not read yet: what is in it is no usage."""
    try:
        return find(text)
    except GraphError as error:
        if text and (Path(text).suffix or Path(text).exists()):
            return Path(text)
        raise argparse.ArgumentTypeError(str(error)) from None

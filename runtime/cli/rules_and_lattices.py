"""The commands `rules`, `promote`, `table`, `lattice`, `laws` and `diff`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from graphir import drawing
from graphir.display import table, tag, text
from graphir.dtype_lattices.order import LAWS as JOIN_LAWS
from graphir.dtype_lattices.order import Cyclic, Lattice
from graphir.import_names import declared_names
from graphir.promotion.registry import find_rules, lattice, lattice_of
from graphir.promotion.scalars import number
from graphir.public import DType, GraphError, PromotionRules, explain, laws, rule_sets
from graphir.rule_reports.facts import facts
from graphir.rule_reports.laws import LAWS, report
from graphir.rule_reports.tables import FORMATS, aligned, text_table
from graphir.rule_reports.terminal import terminal_width
from graphir.runtime.cli.arguments import output_format, rule_set, write_text
from graphir.runtime.cli.main import RULES_FORMATS, TABLE_FORMATS, Status


def run_promote(args: argparse.Namespace) -> None:
    """Print the join of the operands, its reason, and the answers of every other rule set."""
    output_format(args, ("text",), "text")
    write_text(str(explain(*args.operands, rules=args.rules)), args)


def run_rules(args: argparse.Namespace) -> None:
    """Print the list of rule sets, or the facts besides the join of one rule set, or its page."""
    format_ = output_format(args, RULES_FORMATS, "text")
    if args.rules is None:
        if format_ != "text":
            raise GraphError("the list of rule sets has no page", fix="name one of them")
        width = None if args.output else terminal_width(sys.stdout)
        write_text("\n".join(_rules_table(_all_rules(), width)), args)
        return
    rule_set: PromotionRules = args.rules
    if format_ == "html":
        write_text(_rules_page(rule_set), args)
        return
    dtypes = " ".join(str(dtype) for dtype in DType if dtype in rule_set.dtypes)
    rows = [
        ("source", rule_set.source or "-"),
        ("dtypes", dtypes),
        *facts(rule_set, rule_set.dtypes),
    ]
    write_text("\n".join([f"{rule_set.name}: {rule_set.doc}", *aligned(rows)]), args)


def _rules_page(rules: PromotionRules) -> str:
    """Return the page of a rule set: all pairs, lattice, facts besides the join, laws."""
    from graphir.drawing.formats import lattice_svg
    from graphir.drawing.promotion_tables import table_svg
    from graphir.passes.reports.html import page

    title = f"Rule set {rules.name}"
    source = [tag("p", text(f"Source: {rules.source}."))] if rules.source else []
    answers = [(text(subject), text(answer)) for subject, answer in facts(rules)]
    parts = {
        "All pairs": _drawing(table_svg(rules)),
        "Lattice": _drawing(lattice_svg(rules.lattice)) if rules.lattice else "",
        "Besides the join": table(("question", "answer"), answers, len(answers), len(answers)),
        "Laws": tag("pre", escape(report(laws(rules), LAWS))),
    }
    sections = [tag("section", tag("h2", head), part) for head, part in parts.items() if part]
    return page(
        title,
        [tag("header", tag("h1", text(title)), tag("p", text(rules.doc)), *source), *sections],
    )


def _drawing(svg: str) -> str:
    return tag("div", svg, class_="drawing")


def _all_rules() -> list[tuple[str, str, str]]:
    """Return name, doc and source of all rule sets, also of those that distributions declare."""
    for name in declared_names("graphir.rules"):
        with suppress(GraphError):  # --rules NAME tells the error
            find_rules(name)
    return [(each.name, each.doc, each.source or "-") for each in rule_sets()]


def _rules_table(rows: Sequence[tuple[str, str, str]], width: int | None) -> list[str]:
    """Return the table of rule sets, without sources where a line has no room for them."""
    table = aligned([("name", "what it is", "source"), *rows])
    if width is None or max(map(len, table)) <= width:
        return table
    narrow = [(name, doc) for name, doc, _ in rows]
    return [*aligned([("name", "what it is"), *narrow]), "(columns without room: source)"]


def run_table(args: argparse.Namespace) -> None:
    """Print the promotion table of a rule set."""
    name = output_format(args, TABLE_FORMATS, "text")
    if name != "text":
        write_text(
            drawing.table_svg(args.rules) if name == "svg" else FORMATS[name](args.rules), args
        )
        return
    stream = None if args.output else sys.stdout
    write_text(
        text_table(args.rules, not args.output and _in_color(), terminal_width(stream)), args
    )


def run_lattice(args: argparse.Namespace) -> None:
    """Print a lattice."""
    order = _read(args.lattice) if args.lattice else lattice_of(args.rules)
    formats = drawing.LATTICE_FORMATS
    write_text(formats[output_format(args, formats, "text")](order), args)


def run_laws(args: argparse.Namespace) -> int:
    """Print the laws that a rule set or a lattice breaks.

    Returns status 1 for a broken law of joins, or for a broken law that --law names.
    """
    output_format(args, ("text",), "text")
    try:
        subject: PromotionRules | Lattice[Any] = _read(args.subject)
    except Cyclic as error:
        write_text(f"cycles: {' < '.join(map(str, error.cycle))}, so it is no order", args)
        return Status.FINDINGS
    elements = subject.dtypes if isinstance(subject, PromotionRules) else subject.nodes
    all_laws = LAWS if any(isinstance(element_, DType) for element_ in elements) else JOIN_LAWS
    laws_asked = [law for law in all_laws if not args.law or law in _expand_laws(args.law)]
    violations_found = laws(subject).of(laws_asked)
    text = report(violations_found, laws_asked, everything=args.all)
    write_text(f"{_title(subject)}\n{text}", args)
    is_broken = any(args.law or element_.law in JOIN_LAWS for element_ in violations_found)
    return Status.FINDINGS if is_broken else Status.FINE


def _in_color() -> bool:
    """Whether to print colours: with FORCE_COLOR, or on a terminal; not with NO_COLOR.

    A terminal with TERM=dumb has none. The order is that of Python's own tracebacks.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("FORCE_COLOR"):
        return not os.environ.get("NO_COLOR")
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _title(subject: PromotionRules | Lattice[Any]) -> str:
    """Return a description of a rule set or lattice, in one line or two."""
    if isinstance(subject, Lattice):
        size = f"{len(subject)} nodes, {len(subject.pairs())} edges"
        return f"lattice {subject.name}: {size}\ncycles: none"
    weak = sum(dtype.weak for dtype in subject.dtypes)
    note = f", {weak} of them weak and not asked about width and exactness" if weak else ""
    return f"rule set {subject.name}: {len(subject.dtypes)} dtypes{note}"


def _expand_laws(names: Sequence[str]) -> set[str]:
    return {*names, *(JOIN_LAWS if "join" in names else ())}


def _read(which: Any) -> Any:
    return Lattice.load(which) if isinstance(which, Path) else which


# -- what arguments name


def operand(text: str) -> Any:
    """Return the dtype or the Python number that an argument means."""
    try:
        return DType(text)
    except GraphError as error:
        value = number(text)
        if value is None:
            raise argparse.ArgumentTypeError(str(error)) from None
        return value


def lattice_or_file(text: str) -> Lattice[Any] | Path:
    """Return the lattice of a name, or the path of a file."""
    return _or_file(lattice, text)


def rules_or_graph(text: str) -> PromotionRules | Path:
    """Return the rule set of a name or a lattice file, or the path of a graph."""
    return rule_set(text) if Path(text).suffix == ".json" else _or_file(PromotionRules.find, text)


def lawful(text: str) -> PromotionRules | Lattice[Any] | Path:
    """Return a rule set before a lattice of that name: its joins may differ from its lattice's."""
    named_rules = find_rules(text)
    return lattice_or_file(text) if named_rules is None else named_rules


def _or_file(find: Callable[[str], Any], text: str) -> Any:
    """Return the object of a name, or a Path.

    The command reads the file later, since invalid content is no usage error.
    """
    try:
        return find(text)
    except GraphError as error:
        if text and (Path(text).suffix or Path(text).exists()):
            return Path(text)
        raise argparse.ArgumentTypeError(str(error)) from None

"""The commands `rules`, `promote`, `table`, `lattice`, `laws` and `diff`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphir.drawing.formats import LATTICE_FORMATS
from graphir.drawing.promotion_tables import table_svg
from graphir.dtype_lattices.order import LAWS as JOIN_LAWS
from graphir.dtype_lattices.order import Cyclic, Lattice
from graphir.dtype_lattices.published import lattices
from graphir.import_names import declared_names
from graphir.passes import GraphDiff, RulesDiff, diff
from graphir.passes.reports.terminal import terminal_width
from graphir.promotion.registry import find_rules, lattice, lattice_of
from graphir.public import DType, GraphError, PromotionRules, explain, laws, rule_sets
from graphir.rule_reports.facts import facts
from graphir.rule_reports.laws import LAWS, report
from graphir.rule_reports.tables import FORMATS, aligned, text_table
from graphir.runtime.cli.arguments import (
    Status,
    add_output,
    add_rule_set,
    add_unseen,
    gate_status,
    output_format,
    rule_set,
    write_text,
)
from graphir.runtime.cli.casts import load_report
from graphir.runtime.cli.programs import add_inputs
from graphir.runtime.value_files import number


def _promote(args: argparse.Namespace) -> None:
    """Print the join of the operands, its reason, and the answers of every other rule set."""
    output_format(args, ("text",), "text")
    write_text(str(explain(*args.operands, rules=args.rules)), args)


def _rules(args: argparse.Namespace) -> None:
    """Print the list of rule sets, or the facts besides the join of one rule set."""
    output_format(args, ("text",), "text")
    if args.rules is None:
        width = None if args.output else terminal_width(sys.stdout)
        write_text("\n".join(_rules_table(_all_rules(), width)), args)
        return
    rule_set: PromotionRules = args.rules
    dtypes = " ".join(str(dtype) for dtype in DType if dtype in rule_set.dtypes)
    rows = [
        ("source", rule_set.source or "-"),
        ("dtypes", dtypes),
        *facts(rule_set, rule_set.dtypes),
    ]
    write_text("\n".join([f"{rule_set.name}: {rule_set.doc}", *aligned(rows)]), args)


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


def _table(args: argparse.Namespace) -> None:
    """Print the promotion table of a rule set."""
    name = output_format(args, _TABLE_FORMATS, "text")
    if name != "text":
        write_text(_TABLE_FORMATS[name](args.rules), args)
        return
    stream = None if args.output else sys.stdout
    write_text(
        text_table(args.rules, not args.output and _in_color(), terminal_width(stream)), args
    )


def _lattice(args: argparse.Namespace) -> None:
    """Print a lattice."""
    order = _read(args.lattice) if args.lattice else lattice_of(args.rules)
    write_text(LATTICE_FORMATS[output_format(args, LATTICE_FORMATS, "text")](order), args)


def _laws(args: argparse.Namespace) -> int:
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


def _diff(args: argparse.Namespace) -> int:
    """Print the difference between two rule sets; return status 1 if there is any."""
    subject: PromotionRules | Path = args.subject
    difference: GraphDiff | RulesDiff
    others = [x for x in (args.before, args.after, args.other) if x is not None]
    if len(others) > 2:
        raise GraphError("diff compares two rule sets", got="three", fix="leave --rules out")
    if isinstance(subject, Path):
        load = argparse.Namespace(**{**vars(args), "program": str(subject)})
        report = load_report(load)
        difference = diff(report.graph, *others)
    else:
        report, difference = None, diff(subject, *others)
    name = output_format(args, ("text", "json"), "text")
    write_text(difference.to_json() if name == "json" else str(difference), args)
    besides = isinstance(difference, RulesDiff) and (difference.facts or difference.ops)
    return gate_status(bool(len(difference) or besides), report, args.unseen, "diff")


def _in_color() -> bool:
    """Whether to print colours: on a terminal without NO_COLOR and TERM=dumb."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


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


# -- the arguments


def add_rules_and_lattices(command: Callable[..., Any]) -> None:
    """Add the commands; `command` adds a subcommand to the parser."""
    _add_rules(command)
    _add_promote(command)
    _add_table(command)
    _add_lattice(command)
    _add_laws(command)
    _add_diff(command)


def _add_rules(command: Callable[..., Any]) -> None:
    doc = "List the rule sets, or tell what one says besides the join."
    parser = command("rules", _rules, doc, "jax")
    parser.add_argument("rules", nargs="?", type=rule_set, metavar="RULES", help="one of them")
    add_output(parser, ("text",), "text")


def _add_promote(command: Callable[..., Any]) -> None:
    doc = "The dtype in which operands meet, each one's way there, and what other rule sets say."
    parser = command("promote", _promote, doc, "int16 float32 --rules max")
    parser.add_argument(
        "operands",
        nargs="+",
        type=_operand,
        metavar="DTYPE",
        help="a dtype, or a Python number such as 1, 2.5 or 1j (after -- if it is negative)",
    )
    add_rule_set(parser)
    add_output(parser, ("text",), "text")


def _add_table(command: Callable[..., Any]) -> None:
    doc = "All pairs of a rule set's dtypes; - stands for an error."
    parser = command("table", _table, doc, "--rules max -o max.svg")
    add_rule_set(parser)
    add_output(parser, _TABLE_FORMATS, "text")


def _add_lattice(command: Callable[..., Any]) -> None:
    doc = (
        "What lies directly above what in a lattice: that of a rule set, a published one, or yours."
    )
    parser = command("lattice", _lattice, doc, "jep_option1 -o jep.svg")
    which = parser.add_mutually_exclusive_group()
    add_rule_set(which)
    which.add_argument(
        "lattice", nargs="?", type=_lattice_or_file, metavar="LATTICE", help=_SUBJECTS
    )
    add_output(parser, LATTICE_FORMATS, "text")


def _add_laws(command: Callable[..., Any]) -> None:
    doc = (
        "Which laws a rule set or a lattice breaks, and where; status 1 if it is no join, or "
        "breaks a law asked for by --law."
    )
    parser = command("laws", _laws, doc, "my_lattice.json --law join")
    parser.add_argument("subject", type=_lawful, metavar="LATTICE", help=_SUBJECTS)
    parser.add_argument(
        "--law",
        action="append",
        choices=(*LAWS, "join"),
        help=f"this one alone, or those given; join: the first {len(JOIN_LAWS)}, which without "
        "--law are those that count for the status",
    )
    parser.add_argument(
        "--all", action="store_true", help="every counterexample, not just the first"
    )
    add_output(parser, ("text",), "text")


def _add_diff(command: Callable[..., Any]) -> None:
    doc = "What two rule sets answer differently, of all pairs or of a graph; status 1 if anything."
    parser = command("diff", _diff, doc, "model.gir jax")
    parser.add_argument(
        "subject",
        type=_rules_or_graph,
        metavar="RULES|FILE.gir|SCRIPT.py:NAME",
        help="a rule set, a graph, or a program of NumPy, JAX or torch",
    )
    before = parser.add_argument(
        "before", type=rule_set, metavar="RULES", help="a rule set to compare with"
    )

    def other(text: str) -> Any:
        before.required = False
        return rule_set(text)

    parser.add_argument(
        "after",
        nargs="?",
        type=rule_set,
        metavar="RULES",
        help="of a graph: with this, not its own",
    )
    parser.add_argument(
        "--rules", dest="other", type=other, metavar="RULES", help="in place of the argument"
    )
    add_output(parser, ("text", "json"), "text")
    add_inputs(parser)
    add_unseen(parser)
    parser.set_defaults(rules=None, sources=None)


_TABLE_FORMATS = {**FORMATS, "svg": table_svg}
_SUBJECTS = f"a rule set, a lattice such as {lattices()[0]}, or a JSON file of edges"


def _operand(text: str) -> Any:
    try:
        return DType(text)
    except GraphError as error:
        value = number(text)
        if value is None:
            raise argparse.ArgumentTypeError(str(error)) from None
        return value


def _lattice_or_file(text: str) -> Lattice[Any] | Path:
    return _or_file(lattice, text)


def _rules_or_graph(text: str) -> PromotionRules | Path:
    return rule_set(text) if Path(text).suffix == ".json" else _or_file(PromotionRules.find, text)


def _lawful(text: str) -> PromotionRules | Lattice[Any] | Path:
    """Return a rule set before a lattice of that name: its joins may differ from its lattice's."""
    named_rules = find_rules(text)
    return _lattice_or_file(text) if named_rules is None else named_rules


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

"""The command line: what is asked, handed to what answers it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from graphir import DType, Graph, GraphError, GraphirError, PromotionRules, rule_sets, rules
from graphir.drawing import LATTICE_FORMATS
from graphir.findings import edges_text, report
from graphir.lattice import Cyclic, Lattice, Violation
from graphir.lattices import element, lattice, lattice_of, lattices
from graphir.printer import large_constants
from graphir.promotion.tables import FORMATS, aligned
from passes import cast_report, lower
from passes.casts import Kind
from runtime.execution import execute
from runtime.files import number, read_input, write_outputs


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command: 0, 2 and one line on stderr for bad usage, 1 and the error for bad input.

    A command that finds something amiss prints it and gives 1 itself.
    """
    status: int | None = None
    try:
        asked = _parser().parse_args(argv)
        status = asked.command(asked)
        sys.stdout.flush()
    except SystemExit as stop:  # argparse: help, version, bad usage
        return int(stop.code or 0)
    except BrokenPipeError:  # the reader has seen enough; nothing is to be flushed at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except GraphirError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except MemoryError as error:
        return _failed(str(error) or "out of memory")
    return status or 0


def _failed(message: str) -> int:
    print(f"graphir: {message}", file=sys.stderr)
    return 1


def _note(text: str) -> None:
    print(f"graphir: note: {text}", file=sys.stderr)


# -- the commands


def _demo(asked: argparse.Namespace) -> None:
    from runtime.demo import demo

    print(demo())


def _promote(asked: argparse.Namespace) -> None:
    print(asked.rules.explain(*asked.operands))


def _table(asked: argparse.Namespace) -> None:
    print(FORMATS[asked.format](asked.rules))


def _lattice(asked: argparse.Namespace) -> None:
    order = _read(asked.lattice) if asked.lattice else lattice_of(asked.rules)
    nodes = [element(name) for name in asked.path]
    paths = [order.path(node, order.join(*nodes)) for node in nodes]
    print(LATTICE_FORMATS[asked.format](order, paths))


def _laws(asked: argparse.Namespace) -> int:
    try:
        order = _read(asked.lattice)
    except Cyclic as error:
        print(f"cycles: {' < '.join(map(str, error.cycle))}, so it is no order")
        return 1
    print(f"lattice {order.name}: {len(order)} nodes, {len(order.pairs())} edges\ncycles: none")
    status = _found(order.laws(), everything=asked.all)
    print(edges_text(order.redundant()))
    return status


def _found(violations: Sequence[Violation], *, everything: bool) -> int:
    """Print what breaks which law, and give the status that says whether anything does."""
    print(report(violations, everything=everything))
    return 1 if violations else 0


def _read(which: Lattice[Any] | Path) -> Lattice[Any]:
    return Lattice.load(which) if isinstance(which, Path) else which


def _rules(asked: argparse.Namespace) -> None:
    rows = [(each.name, each.doc, each.source or "-") for each in rule_sets()]
    print("\n".join(aligned([("name", "what it is", "source"), *rows])))


def _lower(asked: argparse.Namespace) -> None:
    lowered = lower(Graph.load(asked.file))
    if asked.output:
        lowered.save(asked.output)
        return
    print(lowered)
    if large := large_constants(lowered):
        _note(f"the values of {', '.join(large)} are too large for text; --output saves them too")


def _casts(asked: argparse.Namespace) -> None:
    graph = Graph.load(asked.file)
    report = cast_report(lower(graph) if asked.kind == "legalization" else graph)
    report = report.only(kind=asked.kind, exact=False if asked.lossy else None)
    print(report.to_json() if asked.format == "json" else report)


def _run(asked: argparse.Namespace) -> None:
    graph = Graph.load(asked.file)
    dtypes = {
        name: graph.committed(symbol.dtype)
        for name, symbol in zip(graph.input_names, graph.inputs, strict=True)
    }
    given = {name: read_input(text, dtypes.get(name)) for name, text in asked.inputs}
    found = execute(graph, **given)
    arrays: Sequence[Any] = (found,) if len(graph.outputs) == 1 else found
    if asked.output:
        for line in write_outputs(asked.output, arrays):
            _note(line)
    else:
        _show(graph, arrays)


def _show(graph: Graph, arrays: Iterable[Any]) -> None:
    for i, (symbol, array) in enumerate(zip(graph.outputs, arrays, strict=True)):
        print(f"output{i}: {symbol.dtype}{list(array.shape)}\n{array}")


# -- what may be asked


class _Parser(argparse.ArgumentParser):
    """One line for bad usage."""

    def error(self, message: str) -> NoReturn:
        line = " ".join(message.split())
        self.exit(2, f"{self.prog}: {line} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Looks the version up only when asked, since that reads the metadata of packages."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"graphir {version('graphir')}")
        except PackageNotFoundError:
            print("graphir, not installed")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="graphir",
        description="Graphs of typed symbols, and every conversion between dtypes that they imply.",
        epilog="example: graphir promote int16 float32",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name: str, run: Callable[[Any], None], doc: str, example: str) -> Any:
        made = commands.add_parser(
            name, help=doc, description=doc, epilog=f"example: graphir {name} {example}".rstrip()
        )
        made.set_defaults(command=run)
        return made

    command("demo", _demo, "Answer the question of the project, on a graph and a network.", "")
    command("rules", _rules, "List the rule sets, and where each comes from.", "")
    _add_questions(command)
    _add_graphs(command)
    return parser


def _add_questions(command: Callable[..., Any]) -> None:
    """The commands that ask a rule set or a lattice."""
    doc = "The dtype in which operands meet, and each one's way there."
    promote = command("promote", _promote, doc, "int16 float32 --rules max")
    promote.add_argument(
        "operands",
        nargs="+",
        type=_operand,
        metavar="DTYPE",
        help="a dtype, or a Python number such as 1, 2.5 or 1j (after -- if it is negative)",
    )
    doc = "All pairs of a rule set's dtypes; - stands for an error."
    table = command("table", _table, doc, "--rules max --format html > max.html")
    doc = (
        "What lies directly above what in a lattice: that of a rule set, a published one, or yours."
    )
    order = command("lattice", _lattice, doc, "jep_option1 --format svg > jep.svg")
    which = order.add_mutually_exclusive_group()
    for each in (promote, table, which):
        each.add_argument(
            "--rules", type=_rule_set, default="max", help="a rule set; `graphir rules` lists them"
        )
    table.add_argument("--format", choices=FORMATS, default="text")
    order.add_argument("--format", choices=LATTICE_FORMATS, default="text")
    order.add_argument(
        "--path", nargs="+", default=[], metavar="NODE", help="pick out the paths to their join"
    )
    doc = "Which laws of a join a lattice breaks, and where; status 1 if it breaks any."
    laws = command("laws", _laws, doc, "my_lattice.json --all")
    laws.add_argument("--all", action="store_true", help="every counterexample, not just the first")
    about = f"a rule set, a lattice such as {lattices()[0]}, or a JSON file of edges"
    which.add_argument("lattice", nargs="?", type=_lattice_or_file, metavar="LATTICE", help=about)
    laws.add_argument("lattice", type=_lattice_or_file, metavar="LATTICE", help=about)


def _add_graphs(command: Callable[..., Any]) -> None:
    """The commands that read a graph."""
    doc = "Print a graph as a machine runs it, every conversion a cast."
    lower = command("lower", _lower, doc, "model.gir")
    doc = "List the casts of a graph: where, why, by which rule, at what loss."
    casts = command("casts", _casts, doc, "model.gir --kind implicit --lossy")
    doc = "Run a graph."
    run = command("run", _run, doc, "model.gir --input x=x.npy --input y=3 --output out.npz")
    for each in (lower, casts, run):
        each.add_argument("file", metavar="FILE.gir", help="a graph, as Graph.save writes it")
    lower.add_argument("--output", metavar="OUT.gir", help="save it, large constants too")
    casts.add_argument("--format", choices=("text", "json"), default="text")
    casts.add_argument("--kind", choices=get_args(Kind), help="one kind; legalization lowers first")
    casts.add_argument("--lossy", action="store_true", help="those that can lose something only")
    run.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        type=_input,
        metavar="NAME=VALUE",
        help="an input: x.npy, file.npz, file.npz:key or a Python number",
    )
    run.add_argument(
        "--output", metavar="OUT.npz", help="save output0, output1, ... instead of printing them"
    )


def _operand(text: str) -> Any:
    try:
        return DType(text)
    except GraphError as error:
        value = number(text)
        if value is None:
            raise argparse.ArgumentTypeError(str(error)) from None
        return value


def _rule_set(name: str) -> PromotionRules:
    try:
        return rules(name)
    except GraphError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _lattice_or_file(text: str) -> Lattice[Any] | Path:
    """A lattice by its name, or else a file, which is not read yet: what is in it is no usage."""
    try:
        return lattice(text)
    except GraphError as error:
        if Path(text).suffix or Path(text).exists():
            return Path(text)
        raise argparse.ArgumentTypeError(str(error)) from None


def _input(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as x=x.npy or y=3")
    return name, value

"""The entry point of the command line: what may be asked, and the dispatch to what answers.

This module declares the commands with their arguments and help, and imports none of what they do:
`graphir.runtime.cli` has the functions, each imported when a command asks for it.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from graphir.display import printable
from graphir.runtime import cli


class Status(IntEnum):
    """The exit status of a command; docs/commands.md has the table that users read."""

    FINE = 0
    FINDINGS = 1
    """What the command was asked to check does not hold: a difference, a broken law, a cast."""
    USAGE = 2
    """The arguments do not parse."""
    REFUSED = 3
    """No answer: graphir refused the input, or the user's program raised."""
    UNSEEN = 3
    """No answer to --fail-on: nothing was found, and a part of the program was not seen."""
    DEFECT = 4
    """An error of graphir itself, with its traceback."""
    INTERRUPTED = 130
    """The status that shells give for SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status, a Status; the message of an error is on stderr."""
    _open_streams()
    argv, arguments = _split_arguments(sys.argv[1:] if argv is None else argv)
    parser, names = parsers()
    if problem := _no_command(argv[0], names) if argv else "":
        print(f"graphir: {printable(problem, None)}", file=sys.stderr)
        return Status.USAGE
    if not argv:
        parser.print_help(sys.stderr)
        return Status.USAGE
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # help, version, bad usage
        return int(stop.code or 0)
    args.arguments = arguments
    try:
        status = getattr(cli, args.run)(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe: also silence the flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.FINE
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    except (Exception, SystemExit) as error:
        return cli.report_error(error)
    return status or Status.FINE


def _split_arguments(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the arguments of a command that runs scripts, and those of a script, after `--`."""
    if "--" not in argv or argv[0] not in ("audit", "annotate", "fix"):
        return argv, ()
    place = argv.index("--")
    return argv[:place], argv[place + 1 :]


def _open_streams() -> None:
    """Make the streams safe to print to: devnull if closed, escapes for unencodable characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 -- for the process's life
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _no_command(word: str, names: Collection[str]) -> str:
    """Return why a word is no command, and what to type; "" for a command and for an option."""
    if word in names or word.startswith("-"):
        return ""
    path, _, name = one_colon(word).rpartition(":")
    if name and (path.endswith(".py") or (path and Path(f"{path.replace('.', '/')}.py").exists())):
        return f"{word} is a program, no command; type: graphir casts {one_colon(word)}"
    if os.path.isdir(word):
        return f"{word} is a folder, no command; type: {_of_folder(Path(word))}"
    if os.path.isfile(word) or word.endswith((".py", ".gir", ".onnx")):
        command = "audit" if word.endswith(".py") else "casts"
        return f"{word} is a file, no command; type: graphir {command} {word}"
    near = " or ".join(get_close_matches(word, names))
    return f"no command is named {word!r}; {f'use {near}' if near else 'see graphir --help'}"


def one_colon(text: str) -> str:
    """Return the text of a program with one colon, as in `a.py:f`; pytest would write `a.py::f`."""
    path, _, name = text.partition("::")
    return f"{path}:{name.replace('::', '.')}" if name else text


def _of_folder(folder: Path) -> str:
    """Return the command for the scripts of a folder, or for the tests of a package."""
    if (folder / "__init__.py").exists():
        return f"python -m pytest --casts={folder.resolve().name}, which reports its casts in tests"
    scripts = sorted(x.name for x in folder.glob("*.py"))
    main = next((x for x in ("__main__.py", "main.py") if x in scripts), None)
    name = main or (scripts[0] if len(scripts) == 1 else "SCRIPT.py")
    return f"graphir audit {folder / name}"


# -- what may be asked


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports bad usage in one line."""

    def error(self, message: str) -> NoReturn:
        line = printable(" ".join(message.split()), None)
        self.exit(Status.USAGE, f"{self.prog}: {line} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Look up the version only for --version, since the look-up reads package metadata."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"graphir {version('graphir')}")
        except PackageNotFoundError:
            print("graphir, not installed")
        parser.exit()


Adder: TypeAlias = "Callable[[str, str, str], argparse.ArgumentParser]"
"""Adds a command: its name, its help, and the arguments of its example."""


def parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the command line, and the parsers of the commands by name."""
    parser = _Parser(
        prog="graphir",
        description="Graphs of typed symbols, and every conversion between dtypes that they imply.",
        epilog="example: graphir promote int16 float32",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    by_name: dict[str, argparse.ArgumentParser] = {}

    def command(name: str, doc: str, example: str) -> argparse.ArgumentParser:
        command_parser = by_name[name] = commands.add_parser(
            name, help=doc, description=doc, epilog=f"example: graphir {name} {example}".rstrip()
        )
        command_parser.set_defaults(run=f"run_{name}", output=None, format=None)
        return command_parser

    demo = command("demo", "Answer the questions of the project.", "")
    demo.add_argument("--graph", action="store_true", help="that of a graph")
    _add_rules(command)
    _add_lattices(command)
    _add_diff(command)
    _add_graphs(command)
    _add_casts(command)
    _add_sources(command)
    _add_draw_and_export(command)
    doc = "What is installed and works here, and what to type for the rest; status 1 if it fails."
    add_output(command("doctor", doc, ""), ("text",), "text")
    doc = "Print a script that completes commands, options and rule sets at a Tab."
    run = command("completion", doc, "bash")
    run.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    return parser, by_name


def _add_rules(command: Adder) -> None:
    doc = "List the rule sets, or tell what one says besides the join, or write its page."
    parser = command("rules", doc, "jax")
    parser.add_argument("rules", nargs="?", type=_rule_set, metavar="RULES", help="one of them")
    add_output(parser, RULES_FORMATS, "text")
    doc = "The dtype in which operands meet, each one's way there, and what other rule sets say."
    parser = command("promote", doc, "int16 float32 --rules max")
    parser.add_argument(
        "operands",
        nargs="+",
        type=lambda text: cli.operand(text),
        metavar="DTYPE",
        help="a dtype, or a Python number such as 1, 2.5 or 1j (after -- if it is negative)",
    )
    add_rule_set(parser)
    add_output(parser, ("text",), "text")
    doc = "All pairs of a rule set's dtypes; - stands for an error."
    parser = command("table", doc, "--rules max -o max.svg")
    add_rule_set(parser)
    add_output(parser, TABLE_FORMATS, "text")


def _add_lattices(command: Adder) -> None:
    doc = (
        "What lies directly above what in a lattice: that of a rule set, a published one, or yours."
    )
    parser = command("lattice", doc, "jep_option1 -o jep.svg")
    which = parser.add_mutually_exclusive_group()
    add_rule_set(which)
    which.add_argument(
        "lattice",
        nargs="?",
        type=lambda text: cli.lattice_or_file(text),
        metavar="LATTICE",
        help=_SUBJECTS,
    )
    add_output(parser, LATTICE_FORMATS, "text")
    doc = (
        "Which laws a rule set or a lattice breaks, and where; status 1 if it is no join, or "
        "breaks a law asked for by --law."
    )
    parser = command("laws", doc, "my_lattice.json --law join")
    parser.add_argument(
        "subject", type=lambda text: cli.lawful(text), metavar="LATTICE", help=_SUBJECTS
    )
    parser.add_argument(
        "--law",
        action="append",
        choices=(*LAWS, "join"),
        help="this one alone, or those given; join: the first 5, which without "
        "--law are those that count for the status",
    )
    parser.add_argument(
        "--all", action="store_true", help="every counterexample, not just the first"
    )
    add_output(parser, ("text",), "text")


_SUBJECTS = "a rule set, a lattice such as jep_python, or a JSON file of edges"


def _add_diff(command: Adder) -> None:
    doc = "What two rule sets answer differently, of all pairs or of a graph; status 1 if anything."
    parser = command("diff", doc, "model.gir jax")
    parser.add_argument(
        "subject",
        type=lambda text: cli.rules_or_graph(text),
        metavar="RULES|FILE.gir|SCRIPT.py:NAME",
        help="a rule set, a graph, or a program of NumPy, JAX or torch",
    )
    before = parser.add_argument(
        "before", type=_rule_set, metavar="RULES", help="a rule set to compare with"
    )

    def other(text: str) -> Any:
        before.required = False
        return _rule_set(text)

    parser.add_argument(
        "after",
        nargs="?",
        type=_rule_set,
        metavar="RULES",
        help="of a graph: with this, not its own",
    )
    parser.add_argument(
        "--rules", dest="other", type=other, metavar="RULES", help="in place of the argument"
    )
    add_output(parser, ("text", "json"), "text")
    _add_inputs(parser)
    _add_unseen(parser)
    parser.set_defaults(rules=None, sources=None)


def _add_graphs(command: Adder) -> None:
    """Add the commands that read a graph: `lower`, `run` and `plan`."""
    doc = "Print a graph as a machine runs it, every conversion a cast."
    lower = command("lower", doc, "model.gir")
    example = "model.gir --input x=x.npy --input y=3"
    run = command("run", "Run a graph.", f"{example} --output out.npz")
    doc = "How a graph is run: its steps, what each reads and writes, and in which tier."
    plan = command("plan", doc, example)
    for each in (lower, run, plan):
        _add_program(each)
    lower.add_argument(
        "-o", "--output", type=path, metavar="OUT.gir", help="save it, large constants too"
    )
    add_output(plan, ("text",), "text")
    plan.add_argument("--native", choices=NATIVE, default="auto", help="machine code")
    plan.add_argument(
        "--ir", type=int, metavar="STEP", help="the LLVM IR and assembly of a step's region instead"
    )
    run.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="OUT.npz",
        help="save output0, output1, ... instead of printing them",
    )


def _add_casts(command: Adder) -> None:
    """Add the commands `casts` and `audit`."""
    doc = (
        "Report the casts of a graph, or of the programs that pyproject.toml lists: where, why, by "
        "which rule, at what loss."
    )
    casts = command("casts", doc, "model.gir --kind implicit --lossy")
    doc = "Run a graph, or a function on NumPy arrays, and report what casts did to its data."
    example = "script.py:function --input x.npy --against jax"
    audit_parser = command("audit", doc, example)
    _add_program(casts).nargs = "?"
    _add_program(
        audit_parser, "a graph, or a program of NumPy, JAX or torch; SCRIPT.py alone: its lines"
    )
    for each in (casts, audit_parser):
        each.add_argument(
            "--seed", type=int, default=0, help="of the values that are drawn for types: --input"
        )
        add_output(each, REPORT_FORMATS, "text")
        _add_fail_on(each)
        add_filters(each)
        _add_extent(each)
        each.add_argument(
            "--baseline",
            type=path,
            metavar="FILE",
            help="have status 1 if a result is wider, or a loss new, since FILE, which the first "
            "run writes",
        )
    add_run_options(audit_parser)


def _add_sources(command: Adder) -> None:
    """Add the commands that show and edit sources: `annotate` and `fix`."""
    doc = "Show the source of a program with the dtype of each expression, casts below operands."
    example = "script.py:function --input x.npy"
    parser = command("annotate", doc, example)
    _add_program(parser, "a graph, or a program of NumPy, JAX or torch; SCRIPT.py alone: its lines")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the values that are drawn for types"
    )
    add_output(parser, ANNOTATED_FORMATS, "text")
    doc = "Edit the source so that results keep a dtype: runs the edited program before it says so."
    parser = command("fix", doc, f"{example} --keep float32")
    _add_program(parser, "a program of NumPy, JAX or torch; SCRIPT.py alone: its lines")
    parser.add_argument("--seed", type=int, default=0, help="of the values drawn for types")
    parser.add_argument("--keep", metavar="DTYPE", help="the dtype that results should have")
    parser.add_argument("--line", type=int, metavar="N", help="only causes that touch this line")
    parser.add_argument(
        "--write", action="store_true", help="write a tried fix: the files, or model.fixed.onnx"
    )
    parser.add_argument(
        "--rerun",
        action="store_true",
        help="run a script, and a program that writes files, uses the network or starts processes, "
        "three times more, with all that it does",
    )
    add_output(parser, FIX_FORMATS, "text")


def _add_draw_and_export(command: Adder) -> None:
    doc = "Draw a graph: its layers, and every cast in the colour of what it loses."
    parser = command("draw", doc, "model.gir -o model.svg")
    _add_program(parser)
    add_output(parser, GRAPH_FORMATS, "svg")
    _add_fail_on(parser)
    doc = (
        "Write a graph for another engine: as NumPy source, StableHLO or ONNX, every cast explicit."
    )
    parser = command("export", doc, "model.gir -o model.py")
    _add_program(parser)
    parser.add_argument(
        "--to",
        choices=TARGETS,
        help="NumPy source that runs alone, StableHLO text, or an ONNX model, which needs onnx; "
        "else by the ending of OUT: .py, .mlir, .onnx",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="OUT",
        help="write it there, not to the terminal; an ONNX model must be",
    )


# -- shared arguments


def _add_program(
    command: argparse.ArgumentParser,
    what: str = "a graph, a function that returns one, or a program of NumPy, JAX, torch",
) -> argparse.Action:
    """Add the arguments for a graph in a file or a named object in a script, and its inputs.

    Returns the argument that names the program.
    """
    program = command.add_argument(
        "program",
        type=path,
        metavar="FILE.gir|SCRIPT.py:NAME|MODULE:NAME",
        help=f"a graph, as Graph.save writes it; or what a script has by a name: {what}",
    )
    command.add_argument(
        "--sources",
        type=path,
        metavar="DIR",
        help="show lines of the source files that FILE.gir names, where they lie inside DIR",
    )
    _add_inputs(command)
    add_rule_set(command, None, "the rule set that the graph, or the function, follows")
    return program


def _add_inputs(command: argparse.ArgumentParser) -> None:
    """Add the option --input to a command."""
    command.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        metavar="[NAME=]VALUE",
        help="an input: x.npy, file.npz, file.npz:key or a Python number; for a function also a "
        "type, 'float32[8, 3]' (audit draws values of it), SCRIPT.py:NAME, or "
        "a quoted Python literal; for a model.onnx also a type, which states "
        "the input's sizes; by name, or in order",
    )
    command.add_argument(
        "--size",
        action="append",
        default=[],
        dest="sizes",
        type=_size,
        metavar="NAME=SIZE",
        help="the size of a named dim of a model.onnx; of an exported graph (StableHLO needs that "
        "of each, others keep names)",
    )
    command.add_argument(
        "--library",
        choices=LIBRARIES,
        help="the library of a function, where its code and its inputs do not tell",
    )


def path(text: str) -> str:
    """Argument type of a file path, which need not exist yet; rejects the empty text."""
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return text


def _size(text: str) -> tuple[str, int]:
    name, equals, size = text.partition("=")
    if not (name and equals and size.isascii() and size.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE, as in n=4")
    return name, int(size)


def _rule_set(text: str) -> Any:
    return cli.rule_set(text)


def add_rule_set(command: Any, default: str | None = "max", what: str = "a rule set") -> None:
    """Add the option --rules to a command."""
    command.add_argument(
        "--rules",
        type=_rule_set,
        default=default,
        metavar="RULES",
        help=f"{what}: a name that `graphir rules` lists, or a JSON file of a lattice",
    )


def add_output(command: argparse.ArgumentParser, formats: Sequence[str], default: str) -> None:
    """Add the options --format, of a command that has several, and --output to a command."""
    if len(formats) > 1:
        command.add_argument(
            "--format", choices=formats, help=f"else by the ending of OUT, else {default}"
        )
    command.set_defaults(format=None)
    command.add_argument(
        "-o", "--output", type=path, metavar="OUT", help="write it there, not to the terminal"
    )


def _add_fail_on(command: argparse.ArgumentParser) -> None:
    """Add the options of a gate on casts to a command: --fail-on and --unseen."""
    command.add_argument(
        "--fail-on",
        type=lambda text: cli.gate_words(text),
        action="extend",
        default=[],
        metavar="KIND[,KIND...]",
        help="have status 1 if the report has a cast of a kind that the program does not spell "
        "out (all Casts of ONNX are spelt out): any, or a word of policies: lossy (after a run: "
        "lost a value, wrapped, overflowed), precision, to:float64, 'int->float'; of an audit also "
        "wrong: a result that its sentences say is wrong; 3 if it has none, and a part of the "
        "program was not seen",
    )
    _add_unseen(command)


def _add_unseen(command: argparse.ArgumentParser) -> None:
    """Add the option --unseen of gates to a command."""
    command.add_argument(
        "--unseen",
        choices=("fail", "pass"),
        default="fail",
        help="whether the status is 3 if nothing was found, and a part of the program was not seen",
    )


def add_run_options(command: argparse.ArgumentParser) -> None:
    """Add the options of an audit's run."""
    command.add_argument("--no-blame", action="store_true", help="only measure each cast")
    command.add_argument(
        "--as-dtype",
        metavar="DTYPE[,DTYPE...]",
        help="what the program would lose with all its floats of a dtype, such as bfloat16; of "
        "several: a table, by layer",
    )


def _add_extent(command: argparse.ArgumentParser) -> None:
    """Add the options for more and for less than a report says by itself: -v and -q."""
    extent = command.add_mutually_exclusive_group()
    extent.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="all rows and outputs, exact numbers, and each part that was not seen",
    )
    extent.add_argument("-q", "--quiet", action="store_true", help="the answer alone, as text")


def add_filters(command: argparse.ArgumentParser) -> None:
    """Add the options that select rows of a report, and --against."""
    command.add_argument(
        "--only",
        type=lambda text: cli.policy_words(text),
        action="extend",
        default=[],
        metavar="KIND[,KIND...]",
        help="those of a kind, in the words of policies: lossy, precision, to:float64, from:int64, "
        "'int->float'",
    )
    command.add_argument(
        "--keep",
        metavar="DTYPE",
        help="the dtype that results should have: names each line that makes a wider one",
    )
    command.add_argument("--kind", choices=KINDS, help="one kind; legalization lowers")
    command.add_argument("--lossy", action="store_true", help="those that can lose something only")
    command.add_argument("--loss", choices=LOSSES, help="those that can lose this")
    command.add_argument("--layer", help="those of a layer and its parts")
    command.add_argument(
        "--all", action="store_true", help="exact numbers too, and casts that change nothing"
    )
    command.add_argument("--dtype", metavar="DTYPE", help="those from or to a dtype")
    command.add_argument(
        "--against", type=_rule_set, metavar="RULES", help="what would change under other rules"
    )


# -- the choices, which the functions of the commands define: a test compares them

SHELLS = ("bash", "zsh", "fish")
RULES_FORMATS = ("text", "html")
TABLE_FORMATS = ("text", "markdown", "json", "svg")
LATTICE_FORMATS = ("text", "dot", "mermaid", "svg")
GRAPH_FORMATS = ("svg", "dot", "mermaid")
REPORT_FORMATS = ("text", "details", "markdown", "html", "json", "sarif", "concise", "github")
ANNOTATED_FORMATS = ("text", "html", "json", "svg")
FIX_FORMATS = ("text", "json")
TARGETS = ("python", "stablehlo", "onnx")
NATIVE = ("auto", "now", "off")
LIBRARIES = ("jax", "torch", "numpy")
LAWS = (
    *("existence", "uniqueness", "idempotence", "commutativity", "associativity"),
    *("width", "exactness"),
)
LOSSES = ("range", "sign", "precision", "underflow", "special")
KINDS = (
    *("implicit", "explicit", "legalization", "assignment", "autocast", "exporter", "literal"),
    *("wrap", "overflow", "underflow", "invalid", "cancellation", "absorption", "accumulation"),
    "rounding",
)

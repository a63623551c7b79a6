"""The entry point of the command line: parse the arguments, run the command, report errors."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from traceback import format_exception
from typing import Any, NoReturn, get_args

import numpy as np

from graphir.display import printable
from graphir.passes import lower
from graphir.passes.reports.terminal import terminal_width
from graphir.public import ExecutionError, Graph, GraphirError
from graphir.runtime import targets
from graphir.runtime.cli.annotate_and_fix import add_annotate, add_fix
from graphir.runtime.cli.arguments import (
    Status,
    UsageError,
    add_output,
    add_program,
    output_format,
    user_traceback,
    write_text,
)
from graphir.runtime.cli.casts import add_casts, add_draw
from graphir.runtime.cli.demo_and_doctor import add_doctor, demo, graph_demo
from graphir.runtime.cli.programs import is_model, load_graph, load_run, path
from graphir.runtime.cli.rules_and_lattices import add_rules_and_lattices
from graphir.runtime.program import Program
from graphir.runtime.program.program import execute
from graphir.runtime.program.tier import Mode
from graphir.runtime.targets.emission import specialized
from graphir.runtime.value_files import write_outputs
from graphir.text.atomic_files import replace_file
from graphir.text.printer import large_constants


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status, a Status; the message of an error is on stderr."""
    _open_streams()
    argv, arguments = _split_arguments(sys.argv[1:] if argv is None else argv)
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # help, version, bad usage
        return int(stop.code or 0)
    args.arguments = arguments
    try:
        status = args.command(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe: also silence the flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.FINE
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    except (Exception, SystemExit) as error:
        return _report(error)
    return status or Status.FINE


def _report(error: BaseException) -> Status:
    """Print an error that ended a command, and return the status."""
    every_frame = "".join(format_exception(error))  # before user_traceback drops some
    text = _message(error)
    user_frames = user_traceback(error) if text is None else None
    status = Status.USAGE if isinstance(error, UsageError) else Status.REFUSED
    status = Status.DEFECT if text is None and user_frames is None else status
    if os.environ.get("GRAPHIR_TRACEBACK") or status is Status.DEFECT:
        print(every_frame, end="", file=sys.stderr)
    else:
        print(user_frames or f"graphir: {text}", file=sys.stderr)
    return status


def _message(error: BaseException) -> str | None:
    """Return the message of an error that needs no traceback; None for other errors."""
    if isinstance(error, (GraphirError, MemoryError)):
        text = str(error) or "out of memory"
    elif isinstance(error, SystemExit):
        text = f"the program exited, with {error.code!r}"
    elif user_traceback(error) is not None:
        return None
    elif isinstance(error, OSError):
        text = f"{error.filename}: " * bool(error.filename) + (error.strerror or str(error))
    elif isinstance(error, ImportError):
        text = str(error)
    else:
        return None
    return printable(text, None, keep="\n")


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


def _note(text: str) -> None:
    print(f"graphir: note: {text}", file=sys.stderr)


# -- the commands


def _demo(args: argparse.Namespace) -> None:
    write_text(graph_demo() if args.graph else demo(main), args)


def _lower(args: argparse.Namespace) -> None:
    output_format(args, ("graph",), "graph")
    lowered_graph = lower(load_graph(args))
    if args.output:
        lowered_graph.save(args.output)
        return
    write_text(str(lowered_graph), args)
    if large := large_constants(lowered_graph):
        _note(f"the values of {', '.join(large)} are too large for text; --output saves them too")


def _run(args: argparse.Namespace) -> None:
    output_format(args, ("arrays",), "arrays")
    graph, values = load_run(args)
    outputs = execute(graph, *values)
    arrays: Sequence[Any] = (outputs,) if len(graph.outputs) == 1 else outputs
    if args.output:
        for line in write_outputs(args.output, arrays):
            _note(line)
    else:
        write_text(_arrays_text(graph, arrays), args)


def _plan(args: argparse.Namespace) -> None:
    output_format(args, ("text",), "text")
    graph, values = load_run(args, needs_values=False)
    program = Program(graph, native=args.native)
    text = program.explain(*values) if args.ir is None else program.ir(args.ir, *values)
    write_text(str(text), args)


def _arrays_text(graph: Graph, arrays: Iterable[Any]) -> str:
    width = terminal_width(sys.stdout) or np.get_printoptions()["linewidth"]
    with np.printoptions(linewidth=width):
        return "\n".join(
            f"output{i}: {symbol.dtype}{list(array.shape)}\n{array}"
            for i, (symbol, array) in enumerate(zip(graph.outputs, arrays, strict=True))
        )


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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="graphir",
        description="Graphs of typed symbols, and every conversion between dtypes that they imply.",
        epilog="example: graphir promote int16 float32",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name: str, run: Callable[[Any], None], doc: str, example: str) -> Any:
        command_parser = commands.add_parser(
            name, help=doc, description=doc, epilog=f"example: graphir {name} {example}".rstrip()
        )
        command_parser.set_defaults(command=run, output=None, format=None)
        return command_parser

    questions = command("demo", _demo, "Answer the questions of the project.", "")
    questions.add_argument("--graph", action="store_true", help="that of a graph")
    add_rules_and_lattices(command)
    _add_graphs(command)
    add_casts(command)
    add_annotate(command)
    add_fix(command)
    add_draw(command)
    add_export(command)
    add_doctor(command)
    return parser


def _add_graphs(command: Callable[..., Any]) -> None:
    """Add the commands that read a graph: `lower`, `run` and `plan`."""
    doc = "Print a graph as a machine runs it, every conversion a cast."
    lower = command("lower", _lower, doc, "model.gir")
    doc = "Run a graph."
    run = command("run", _run, doc, "model.gir --input x=x.npy --input y=3 --output out.npz")
    doc = "How a graph is run: its steps, what each reads and writes, and in which tier."
    plan = command("plan", _plan, doc, "model.gir --input x=x.npy --input y=3")
    for each in (lower, run, plan):
        add_program(each)
    lower.add_argument(
        "-o", "--output", type=path, metavar="OUT.gir", help="save it, large constants too"
    )
    add_output(plan, ("text",), "text")
    plan.add_argument("--native", choices=get_args(Mode), default="auto", help="machine code")
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


# -- the command `export`: write a graph for another engine


def _onnx(graph: Graph) -> bytes:
    return targets.onnx(graph).SerializeToString()


WRITERS: dict[str, Callable[[Graph], str | bytes]] = {
    "python": targets.python,
    "stablehlo": targets.stablehlo,
    "onnx": _onnx,
}
"""The writer of each target; it returns a text, or the bytes of a file."""

_TITLES = {"python": "Python", "stablehlo": "StableHLO", "onnx": "ONNX"}


def add_export(command: Callable[..., Any]) -> None:
    """Add the command `export`; `command` adds a subcommand to the parser."""
    doc = (
        "Write a graph for another engine: as NumPy source, StableHLO or ONNX, every cast explicit."
    )
    parser = command("export", _export, doc, "model.gir -o model.py")
    add_program(parser)
    parser.add_argument(
        "--to",
        choices=tuple(WRITERS),
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


def _export(args: argparse.Namespace) -> None:
    target = output_format(args, WRITERS, "", "to")
    if not target:
        raise UsageError(
            "no target is named", fix=(f"give --to {', '.join(WRITERS)}", "-o model.onnx")
        )
    lowered_graph = lower(load_graph(args))
    sizes = {} if is_model(args.program) else dict(args.sizes)
    graph = specialized(_TITLES[target], lowered_graph, sizes) if sizes else lowered_graph
    try:
        content = WRITERS[target](graph)
    except ImportError as error:
        raise ExecutionError(str(error)) from None
    if isinstance(content, str):
        write_text(content.rstrip("\n"), args)
    elif args.output:
        replace_file(args.output, content)
    else:
        raise ExecutionError(f"{target} is a binary format", fix=f"name a file: -o model.{target}")

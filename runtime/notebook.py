"""The IPython extension: after `%load_ext graphir`, the magics of NAMES, and names at a Tab.

A magic runs its cell as the user wrote it, records it, and returns the report or the annotated
source, which the notebook shows. The lines of the cell count from the line of the magic, as in the
notebook.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn, Protocol

from graphir.display import printable
from graphir.import_names import declared_names
from graphir.passes import Annotated, CastReport, annotate, cast_report
from graphir.passes.reports import DTYPE_FORMATS, REPORT_FORMATS
from graphir.passes.reports.annotated import ANNOTATED_FORMATS
from graphir.public import DType, Graph, GraphError, GraphirError, rule_sets
from graphir.runtime.cli.arguments import output_format, write_text
from graphir.runtime.cli.graphs_and_casts import selected
from graphir.runtime.cli.main import add_filters, add_rule_set, add_run_options, path
from graphir.runtime.cli.programs import user_frames
from graphir.runtime.recording import Recording, record
from graphir.runtime.recording.flat_code import CodeCell
from graphir.runtime.recording.values import plains
from graphir.source_text import displayed_path, is_cell

NAMES = ("audit", "casts", "annotate")

NOTES = 5
"""The most steps that a magic names as not recorded."""


class Shell(Protocol):
    """The part of IPython's shell that the magics use."""

    user_ns: dict[str, Any]
    execution_count: int
    compile: Any
    """IPython's compiler, which keeps the lines of cells for linecache."""
    magics_manager: Any
    Completer: Any
    """IPython's completer."""

    def register_magic_function(
        self, func: Callable[..., Any], magic_kind: str, magic_name: str
    ) -> None:
        """Add a magic."""

    def transform_cell(self, raw_cell: str) -> str:
        """Return the Python code of a cell."""
        ...

    def transform_ast(self, node: ast.Module) -> ast.Module:
        """Return a tree changed by the transformers that the user registered."""
        ...


def load(shell: Shell) -> None:
    """Register the magics and the completion of names with IPython's shell."""
    for name in NAMES:
        shell.register_magic_function(_magic(shell, name), "cell", name)
    shell.Completer.custom_matchers.append(_matcher())


def unload(shell: Shell) -> None:
    """Remove from IPython's shell what `load` registered."""
    for name in NAMES:
        shell.magics_manager.magics["cell"].pop(name, None)
    matchers = shell.Completer.custom_matchers
    matchers[:] = [x for x in matchers if getattr(x, "matcher_identifier", "") != _MATCHER]


# -- completion

_MATCHER = "graphir.names"


def _matcher() -> Callable[[Any], Mapping[str, Any]]:
    """Return the function that IPython asks for completions (its matcher API, version 2)."""
    completer: Any = import_module("IPython.core.completer")

    @completer.context_matcher(identifier=_MATCHER)
    def matcher(context: Any) -> Mapping[str, Any]:
        names = _names_at(context.text_until_cursor)
        return {"completions": [*map(completer.SimpleCompletion, names)], "suppress": bool(names)}

    return matcher


_NAME_IN_QUOTES = re.compile(
    r"""(?:\brules\s*[=(]|(?P<dtype>\b(?:as_)?dtype\s*=|\b(?:DType|astype)\s*\())"""
    r"""\s*["'](?P<start>[\w@.]*)$"""
)


def _names_at(text: str) -> list[str]:
    """Return the names of rule sets, or of dtypes, that a cursor behind a text may complete.

    The text ends in the quotes of such an argument: `Graph("g", rules="j` or `x.astype("f`.
    """
    match = _NAME_IN_QUOTES.search(text)
    if match is None:
        return []
    names = [*map(str, DType)]
    if not match["dtype"]:
        names = [each.name for each in rule_sets()] + declared_names("graphir.rules")
    return sorted({name for name in names if name.startswith(match["start"])})


def _magic(shell: Shell, name: str) -> Callable[..., Any]:
    usage: Any = import_module("IPython.core.error").UsageError

    def magic(line: str, cell: str) -> CastReport | Annotated | None:
        try:
            return _run(shell, name, line, cell)
        except Exception as error:
            frames = user_frames(error.__traceback__)
            if frames is not None:  # the cell raised it
                error.__traceback__ = frames
            elif isinstance(error, SyntaxError):
                error.__traceback__ = None
            elif isinstance(error, (GraphirError, _UsageError, OSError)):
                raise usage(str(error)) from None
            raise

    magic.__doc__ = _parser(name).format_help()
    return magic


def _run(shell: Shell, name: str, line: str, cell: str) -> CastReport | Annotated | None:
    parser = _parser(name)
    try:
        args = parser.parse_args(shlex.split(line))
    except ValueError as error:
        raise _UsageError(f"{error}: {line}") from None
    if args.help:
        print(parser.format_help())
        return None
    program = _cell_program(shell, f"%%{name} {line}", cell)
    recording = record(program, rules=args.rules or "numpy")
    value = plains(recording.result.get(program.value_name, program.value))
    if value is not None and not cell.rstrip().endswith(";"):
        import_module("IPython.display").display(value)
    notes = recording.notes if name == "annotate" else ()  # reports say what was not recorded
    for note in notes[:NOTES]:
        print(f"graphir: {note}", file=sys.stderr)
    if len(notes) > NOTES:
        print(f"graphir: ... and {len(notes) - NOTES:,} more", file=sys.stderr)
    return _report(name, value, recording, args)


# -- arguments


class _UsageError(Exception):
    """Arguments of a magic that do not parse: the problem and the usage, as text."""


class _MagicParser(argparse.ArgumentParser):
    """An argument parser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        line = printable(" ".join(message.split()), None)
        raise _UsageError(f"{self.prog}: {line}\n{self.format_usage().rstrip()}")


def _parser(name: str) -> argparse.ArgumentParser:
    what = {
        "audit": "Run the cell, and report what its casts did to its data, beside wide arithmetic.",
        "casts": "Run the cell, and report its casts: where, why, by which rule, at what loss.",
        "annotate": "Run the cell, and show its lines with the dtype of each expression.",
    }
    parser = _MagicParser(prog=f"%%{name}", description=what[name], add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show this text")
    add_rule_set(parser, None, "the rule set of the recording, which promotes as NumPy does")
    if name != "annotate":
        add_filters(parser)
    if name == "audit":
        add_run_options(parser)
    parser.add_argument(
        "-o", "--output", type=path, metavar="OUT", help="write it to a file too, by its ending"
    )
    parser.set_defaults(format=None)
    return parser


# -- programs


def _cell_program(shell: Shell, first: str, cell: str) -> CodeCell:
    """Return the program of a cell, whose first line is that of the magic."""
    blank = len(cell) - len(cell.lstrip("\n"))  # IPython drops blank lines at the start
    text = f"# {first.rstrip()}\n" + "\n" * blank + shell.transform_cell(cell)
    caller = _caller(shell)
    label = displayed_path(caller.f_code.co_filename) if caller else ""
    number = int(label[3:-1]) if is_cell(label) else shell.execution_count
    file = shell.compile.cache(text, number, raw_code=text)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=file))
    return CodeCell(tree, file, f"In[{number}]", shell.user_ns)


def _caller(shell: Shell) -> FrameType | None:
    """Return the frame of the cell that runs."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals is not shell.user_ns:
        frame = frame.f_back
    return frame


# -- reports


def _report(
    name: str, value: Any, recording: Recording, args: argparse.Namespace
) -> CastReport | Annotated | None:
    """Return the report, and write it to the file of --output; of several dtypes print a table."""
    if name == "annotate":
        annotated = annotate(value if isinstance(value, Graph) else recording)
        if args.output:
            format_ = output_format(args, ANNOTATED_FORMATS, "text")
            write_text(ANNOTATED_FORMATS[format_](annotated), args)
        return annotated
    if isinstance(value, Graph) and name == "audit":
        raise GraphError(
            "audit: a graph runs on inputs", got=repr(value), fix="write execute(graph, x)"
        )
    if name == "casts":
        report = cast_report(value) if isinstance(value, Graph) else recording.report()
        return _output(selected(report, args), args)
    if not recording.outputs:
        raise GraphError("audit: NumPy computed no array or number from arrays here")
    dtypes = [None] if args.as_dtype is None else args.as_dtype.split(",")
    audits = {
        str(dtype): selected(recording.audit(blame=not args.no_blame, as_dtype=dtype), args)
        for dtype in (None if x is None else DType(x) for x in dtypes)
    }
    if len(audits) == 1:
        return _output(next(iter(audits.values())), args)
    text = DTYPE_FORMATS[output_format(args, DTYPE_FORMATS, "text")](audits)
    write_text(text, args)
    return None


def _output(report: CastReport, args: argparse.Namespace) -> CastReport:
    if args.output:
        write_text(REPORT_FORMATS[output_format(args, REPORT_FORMATS, "text")](report), args)
    return report

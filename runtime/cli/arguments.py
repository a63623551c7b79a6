"""What commands share: rule sets and formats that arguments name, the output, reports of errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from traceback import format_exception

from graphir.display import printable
from graphir.promotion import PromotionRules, rules
from graphir.public import ExecutionError, GraphError, GraphirError
from graphir.rule_reports.terminal import on_screen
from graphir.runtime import cli
from graphir.runtime.cli.main import Status
from graphir.text.atomic_files import replace_file


class UsageError(ExecutionError):
    """Arguments that parse, and do not go together."""


_ENDINGS = {
    "markdown": "md",
    "mermaid": "mmd",
    "text": "txt",
    "python": "py",
    "stablehlo": "mlir",
    "graph": "gir",
    "arrays": "npz",
}
"""The file endings of formats whose names are not their endings."""


def ending(name: str) -> str:
    """Return the file ending of a format, with its dot."""
    return f".{_ENDINGS.get(name, name)}"


def output_format(
    args: argparse.Namespace, formats: Iterable[str], default: str, option: str = "format"
) -> str:
    """Return the format of --format, else that of the ending of --output, else `default`.

    `option` is the name of the option. Raises UsageError for an ending that is of none of
    `formats`, and for one of another format than that of --format.
    """
    names = {ending(name): name for name in formats}
    choice, suffix = getattr(args, option), Path(args.output or "").suffix.lower()
    by_ending = names.get(suffix)
    if choice is not None:
        if by_ending not in (None, choice):
            raise UsageError(
                f"--{option} {choice} is not the format of the ending {suffix!r}",
                got=f"--output {args.output}",
                fix=f"write a file {ending(choice)}, or leave --{option} out",
            )
        return choice
    if by_ending is None and suffix:
        raise UsageError(
            f"no format of this command has the ending {suffix!r}",
            got=f"--output {args.output}",
            fix=(f"end it in {', '.join(names)}", *[f"name one by --{option}"][: len(names) - 1]),
        )
    return by_ending or default


def write_text(text: str, args: argparse.Namespace, fits: bool = False) -> None:
    """Print a text, in lines that fit a terminal, or write it to the file of --output.

    Lines of a text that `fits` are printed as they are.
    """
    if args.output:
        replace_file(args.output, f"{text}\n".encode() if text else b"")
    elif text:
        print(text if fits else on_screen(text, sys.stdout))


def rule_set(text: str) -> PromotionRules:
    """Return the rule set that an argument names, or that of a lattice in a .json file."""
    try:
        return PromotionRules.find(text)
    except GraphError as error:
        if Path(text).suffix != ".json":
            problem = f"{error}; or name a JSON file of a lattice"
            raise argparse.ArgumentTypeError(problem) from None
    try:
        return rules(PromotionRules.from_lattice(text))
    except (GraphirError, OSError) as error:
        problem = str(error) if text in str(error) else f"{text}: {error}"
        raise argparse.ArgumentTypeError(problem) from None


# -- the error that ends a command


def report_error(error: BaseException) -> Status:
    """Print an error that ended a command, and return the status."""
    every_frame = "".join(format_exception(error))  # before user_traceback drops some
    text = _message(error)
    user_frames = cli.user_traceback(error) if text is None else None
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
    elif cli.user_traceback(error) is not None:
        return None
    elif isinstance(error, OSError):
        text = f"{error.filename}: " * bool(error.filename) + (error.strerror or str(error))
    elif isinstance(error, ImportError):
        text = str(error)
    else:
        return None
    return printable(text, None, keep="\n")

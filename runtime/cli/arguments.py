"""The shared arguments of commands: the program, rule sets, the output, the exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from traceback import format_exception
from types import TracebackType
from typing import Any

from graphir.passes import CastReport
from graphir.passes.analysis.policies.patterns import forbidden_rows, gate_word, policy_word
from graphir.passes.reports import phrases
from graphir.passes.reports.terminal import on_screen
from graphir.public import ExecutionError, GraphError, GraphirError, PromotionRules, rules
from graphir.runtime.cli.programs import add_inputs, path
from graphir.runtime.recording.sites import is_call_site
from graphir.runtime.user_code import INSTALLED, PROJECT
from graphir.text.atomic_files import replace_file


def add_program(
    command: argparse.ArgumentParser,
    what: str = "a graph, a function that returns one, or a program of NumPy, JAX, torch",
) -> None:
    """Add the arguments for a graph in a file or a named object in a script, and its inputs."""
    command.add_argument(
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
    add_inputs(command)
    add_rule_set(command, None, "the rule set that the graph, or the function, follows")


def add_output(command: argparse.ArgumentParser, formats: Iterable[str], default: str) -> None:
    """Add the options --format, of a command that has several, and --output to a command."""
    names = tuple(formats)
    if len(names) > 1:
        command.add_argument(
            "--format", choices=names, help=f"else by the ending of OUT, else {default}"
        )
    command.set_defaults(format=None)
    command.add_argument(
        "-o", "--output", type=path, metavar="OUT", help="write it there, not to the terminal"
    )


def add_fail_on(command: argparse.ArgumentParser) -> None:
    """Add the options of a gate on casts to a command: --fail-on and --unseen."""
    command.add_argument(
        "--fail-on",
        type=_words(gate_word),
        action="extend",
        default=[],
        metavar="KIND[,KIND...]",
        help="have status 1 if the report has a cast of a kind that the program does not spell "
        "out: any, or a word of policies: lossy (after a run: lost a value), precision, "
        "to:float64, 'int->float'; 3 if it has none, and a part of the program was not seen",
    )
    add_unseen(command)


def add_unseen(command: argparse.ArgumentParser) -> None:
    """Add the option --unseen of gates to a command."""
    command.add_argument(
        "--unseen",
        choices=("fail", "pass"),
        default="fail",
        help="whether the status is 3 if nothing was found, and a part of the program was not seen",
    )


def add_only(command: argparse.ArgumentParser) -> None:
    """Add the option --only, the words of policies that select rows, to a command."""
    command.add_argument(
        "--only",
        type=_words(policy_word),
        action="extend",
        default=[],
        metavar="KIND[,KIND...]",
        help="those of a kind, in the words of policies: lossy, precision, to:float64, from:int64, "
        "'int->float'",
    )


def _words(word: Callable[[str], str]) -> Callable[[str], list[str]]:
    """Return the argument type of words that commas separate, each checked by `word`."""

    def words_of(text: str) -> list[str]:
        try:
            return [word(each) for each in text.split(",")]
        except GraphError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return words_of


def user_traceback(error: BaseException) -> str | None:
    """Return the traceback of an error of the user's program, without graphir's frames.

    The frames start at the user's first one; the error and its causes keep these alone. Returns
    None if no frame is of the user.
    """
    chain: list[BaseException] = [error]
    for each in chain:
        chain += [x for x in (each.__cause__, each.__context__) if x is not None and x not in chain]
        each.__traceback__ = user_frames(each.__traceback__)
    if error.__traceback__ is None and not isinstance(error, SyntaxError):
        return None
    return "".join(format_exception(error)).rstrip()


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the frames of a traceback from the user's first one on, without graphir's."""
    frames: list[TracebackType] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        is_user = not code.co_filename.startswith(INSTALLED)
        if (is_user or frames) and not code.co_filename.startswith((*PROJECT, "<frozen")):
            frames += [] if is_call_site(code) else [traceback]
        traceback = traceback.tb_next
    for frame in reversed(frames):
        traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return traceback


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
        replace_file(args.output, f"{text}\n".encode())
    else:
        print(text if fits else on_screen(text, sys.stdout))


def status(report: CastReport, args: argparse.Namespace) -> Status:
    """Return the status that --fail-on asks for of the report that the command has written.

    FINDINGS if a row of the report is forbidden; UNSEEN if none is, and a part of the program that
    may hide one was not seen, unless --unseen lets that pass.
    """
    if not args.fail_on:
        return Status.FINE
    words_text = f"--fail-on {','.join(args.fail_on)}"
    finds = bool(forbidden_rows(report, args.fail_on))
    return gate_status(finds, report, args.unseen, words_text, "a part of the program was not seen")


def gate_status(
    finds: bool, report: CastReport | None, unseen: str, gate: str, reason: str = ""
) -> Status:
    """Return the status of a gate that finds something or not in the program of a report.

    Says on stderr that it is UNSEEN, and why: what was not seen, or a `reason` if the command has
    printed that.
    """
    if finds:
        return Status.FINDINGS
    if report is None or not report.hidden or unseen == "pass":
        return Status.FINE
    sys.stdout.flush()  # the report stands before the message where both go to one pipe
    print(
        f"graphir: {gate}: status {Status.UNSEEN:d}: {reason or phrases.unseen(report)}; "
        "--unseen pass lets that pass",
        file=sys.stderr,
    )
    return Status.UNSEEN


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


def add_rule_set(command: Any, default: str | None = "max", what: str = "a rule set") -> None:
    """Add the option --rules to a command."""
    command.add_argument(
        "--rules",
        type=rule_set,
        default=default,
        metavar="RULES",
        help=f"{what}: a name that `graphir rules` lists, or a JSON file of a lattice",
    )


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

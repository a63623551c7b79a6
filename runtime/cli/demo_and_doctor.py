"""The commands that need no program: `demo`, `doctor` and `completion`.

The demo answers the project's questions, and says the same every time. The doctor says what is
installed, and whether regions become machine code, a line each. The completion is a script for a
shell, which has all that it offers: it starts no Python.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import platform
import shlex
import textwrap
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from graphir.import_names import declared_names
from graphir.passes import implicit_cast
from graphir.public import DType, Graph, GraphirError, PromotionRules, ops, rule_sets, rules
from graphir.rule_reports.explanation import explain, reason
from graphir.rule_reports.tables import aligned
from graphir.runtime.cli.arguments import output_format, write_text
from graphir.runtime.cli.main import Status, main, parsers
from graphir.runtime.native.disk_cache import directory, open_folder
from graphir.runtime.program import Program
from graphir.runtime.program.program import execute
from graphir.runtime.program.tier import tier

BLEND = """\
import numpy as np

def blend(image, depth):  # float32, int32
    fog = depth * np.float32(0.01)
    return image - fog
"""
COMMAND = "graphir casts blend.py:blend --input 'float32[8]' --input 'int32[8]'"


def demo() -> str:
    """Return the output of `graphir demo`: a program, a command line, and what it prints."""
    answer = io.StringIO()
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("blend.py").write_text(BLEND, encoding="utf-8")
        with contextlib.redirect_stdout(answer):
            main(shlex.split(COMMAND)[1:])
    listing = "\n".join(f"  {i} | {line}" for i, line in enumerate(BLEND.splitlines(), 1))
    groups = explain("int32", "float32", rules="numpy").groups().items()
    elsewhere = "\n".join(
        textwrap.fill(
            f"{text} {' '.join(names)}", 80, initial_indent="  ", subsequent_indent="    "
        )
        for text, names in groups
    )
    return f"""\
Which line made it float64, and what do I write instead? In blend.py:

{listing}

$ {COMMAND}
{answer.getvalue()}
int32 * float32 elsewhere (graphir promote int32 float32 --rules numpy):
{elsewhere}

Ask of your own: graphir casts FILE.py:FUNCTION --input x.npy, graphir audit SCRIPT.py.
The graph behind an answer: graphir demo --graph"""


def question() -> Graph:
    """Add an int16 and a float32."""
    g = Graph("question")
    x = g.scalar[DType.int16](1)
    y = g.scalar[DType.float32](1.0)
    g.output(x + y)  # what dtype does this have?!
    return g


def graph_demo() -> str:
    """Return the output of `graphir demo --graph`, at most 120 columns wide."""
    lines, first = inspect.getsourcelines(question)
    listing = "\n".join(f"  {first + i:3} | {line.rstrip()}" for i, line in enumerate(lines))
    code = question.__code__.replace(co_filename="demo.py")  # as if it were of a user's file
    graph = FunctionType(code, {**globals(), "__name__": "demo"})()
    result = execute(graph)
    verdicts = "\n".join(aligned([_verdict(each) for each in rule_sets()]))
    title = "The question: what dtype does int16 + float32 have?"
    return f"""\
{title}
{"=" * len(title)}

A program, of demo.py:

{listing}

The graph that it builds. The sum has its dtype at once, by the rules of MAX:

{_indent(str(graph))}

After implicit_cast. The conversion is an op now, and says where, why and by which rule:

{_indent(str(implicit_cast(graph)))}

Run: {result} ({result.dtype}). The cast explained:

{_indent(str(rules("max").explain("int16", "float32")))}

The path is the reason; the conversion itself is one step, rounded once if at all.
What every registered rule set says of int16 + float32:

{_indent(verdicts)}"""


def run_demo(args: argparse.Namespace) -> None:
    """Print a demo."""
    write_text(graph_demo() if args.graph else demo(), args)


def _verdict(each: PromotionRules) -> tuple[str, str]:
    try:
        return each.name, str(each.promote("int16", "float32"))
    except GraphirError as error:
        return each.name, textwrap.shorten(f"an error: {reason(error)}", 90, placeholder=" ...")


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")


# -- the command `doctor`

Verdict: TypeAlias = Literal["ok", "note", "fails"]

CORE = ("numpy", "ml_dtypes", "networkx")
USES = {
    "llvmlite": "machine code",
    "jax": "from_jax, the JAX target",
    "torch": "from_torch",
    "onnx": "from_onnx, the ONNX target",
    "onnxruntime": "runs of exported models",
    "dask": "the Dask target",
    "ipython": "%%audit and %%casts",
    "pytest": "pytest --casts",
}
"""The optional packages, and what needs each."""


class Diagnosis(NamedTuple):
    """A line of the report."""

    verdict: Verdict
    subject: str
    text: str


def run_doctor(args: argparse.Namespace) -> Status:
    """Print a line for each diagnosis; return status 1 if a package of the core is missing."""
    output_format(args, ("text",), "text")
    diagnoses = [
        Diagnosis("ok", "graphir", f"{_version('graphir')}, in {Path(__file__).parents[2]}"),
        Diagnosis("ok", "Python", platform.python_version()),
        *(_package(name) for name in (*CORE, *USES)),
        _native_tier(),
        _cache(),
    ]
    write_text("\n".join(aligned(diagnoses)), args)
    return Status.FINDINGS if any(x.verdict == "fails" for x in diagnoses) else Status.FINE


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _package(name: str) -> Diagnosis:
    """Return the version of a package and its rules, or the line to type if it is missing."""
    version = _version(name)
    if version == "not installed":
        verdict: Verdict = "fails" if name in CORE else "note"
        need = f", for {USES[name]}" if name in USES else ""
        return Diagnosis(verdict, name, f"{version}{need}: pip install {name}")
    if name in ("numpy", "jax", "torch"):
        version += f", rules {PromotionRules.find(name).of_release(version).name}"
    return Diagnosis("ok", name, version)


def _native_tier() -> Diagnosis:
    graph = Graph("doctor", rules="numpy")
    x = graph.input("float32", ("n",), name="x")
    graph.output(ops.sqrt(x * x + 1))
    try:
        why = tier("auto")[1]
        if not why:
            Program(graph, native="now").ir(0, np.ones(1000, np.float32))
    except Exception as error:  # whatever is broken: the report names it
        why = f"{type(error).__name__}: {error}"
    if why:
        return Diagnosis("note", "native tier", f"no machine code: {why}")
    return Diagnosis("ok", "native tier", "a region of 3 ops is machine code")


def _cache() -> Diagnosis:
    path = directory()
    if open_folder() is None:
        return Diagnosis(
            "note", "cache", f"{path or 'none'}: switched off, or not the user's alone"
        )
    return Diagnosis("ok", "cache", str(path))


# -- the command `completion`


def run_completion(args: argparse.Namespace) -> None:
    """Print the script that completes command lines in a shell."""
    script = _fish() if args.shell == "fish" else _SCRIPTS[args.shell].format(*_cases())
    write_text(script.rstrip("\n"), args, fits=True)


_LISTS = {"RULES": "rules", "LATTICE": "rules", "DTYPE": "dtypes"}
"""The variable of a script that has the words for arguments, by the start of their metavar."""


def _values(action: argparse.Action) -> str | None:
    """Return the words for the value of an action; "" for a file, None for an action without."""
    if action.nargs == 0:
        return None
    if action.choices is not None:
        return " ".join(action.choices)
    return next((f"${x}" for m, x in _LISTS.items() if str(action.metavar).startswith(m)), "")


def _actions(parser: argparse.ArgumentParser) -> tuple[list[argparse.Action], str]:
    """Return the options of a command, and the words for its arguments."""
    actions = parser._actions  # pyright: ignore[reportPrivateUsage]
    options = [x for x in actions if x.option_strings]
    arguments = (_values(x) for x in actions if not x.option_strings)
    return options, next(arguments, "") or ""


def _lists() -> tuple[str, str]:
    """Return the names of all rule sets, of installed distributions' too, and of all dtypes."""
    names = dict.fromkeys([*(x.name for x in rule_sets()), *declared_names("graphir.rules")])
    return " ".join(names), " ".join(map(str, DType))


def _cases() -> tuple[str, str, str, str]:
    """Return the words of the variables, the commands, and the cases of bash and zsh."""
    names = parsers()[1]
    cases: list[str] = []
    for name, parser in names.items():
        options, argument = _actions(parser)
        for option in options:
            if (values := _values(option)) is not None:
                words = "|".join(f'"{name} {x}"' for x in option.option_strings)
                cases.append(f'        {words}) offered="{values}" ;;')
        flags = " ".join(x.option_strings[-1] for x in options)
        cases.append(f'        "{name} "*) offered="{argument}"; flags="{flags}" ;;')
    return *_lists(), " ".join(names), "\n".join(cases)


_BODY = """\
    local rules="{0}"
    local dtypes="{1}"
    local offered= flags=
    case "$command $before" in
{3}
    esac
    case "$word" in -*) offered="$flags" ;; esac
"""

_SCRIPTS = {
    "bash": """\
# Completion of graphir in bash: a file that ~/.bashrc reads, or that bash-completion finds as
# ~/.local/share/bash-completion/completions/graphir
_graphir() {{
    local command="${{COMP_WORDS[1]}}" word="${{COMP_WORDS[COMP_CWORD]}}"
    local before="${{COMP_WORDS[COMP_CWORD-1]}}"
    if [ "$word" = "=" ]; then word=; elif [ "$before" = "=" ]; then
        before="${{COMP_WORDS[COMP_CWORD-2]}}"
    fi
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "{2} --help --version" -- "$word"))
        return
    fi
"""
    + _BODY
    + """\
    COMPREPLY=($(compgen -W "$offered" -- "$word"))
}}
complete -o default -F _graphir graphir
""",
    "zsh": """\
#compdef graphir
# Completion of graphir in zsh: put this script into a file `_graphir` in a folder of $fpath.
_graphir() {{
    local command="${{words[2]}}" word="${{words[CURRENT]}}" before="${{words[CURRENT-1]}}"
    if (( CURRENT == 2 )); then
        compadd -- {2} --help --version
        return
    fi
"""
    + _BODY
    + """\
    if [ -n "$offered" ]; then compadd -- ${{=offered}}; fi
    case "$word" in -*) ;; *) _files ;; esac
}}
if [ "${{funcstack[1]}}" = "_graphir" ]; then _graphir "$@"; else compdef _graphir graphir; fi
""",
}


def _fish() -> str:
    """Return the script for fish, a line an option."""
    rules, dtypes = _lists()
    lines = [
        "# Completion of graphir in fish: write this to ~/.config/fish/completions/graphir.fish",
        f"set -l rules {rules}",
        f"set -l dtypes {dtypes}",
    ]
    for name, parser in parsers()[1].items():
        text = json.dumps(parser.description).replace("$", "\\$")
        lines.append(f"complete -c graphir -n __fish_use_subcommand -f -a {name} -d {text}")
        start = f'complete -c graphir -n "__fish_seen_subcommand_from {name}"'
        options, argument = _actions(parser)
        for option in options:
            values = _values(option)
            names = [
                f"-{'s' if len(x) == 2 else 'l'} {x.strip('-')}" for x in option.option_strings
            ]
            offered = f'-x -a "{values}"' if values else "-r" * (values is not None)
            lines.append(" ".join((start, *names, offered)).rstrip())
        if argument:
            lines.append(f'{start} -a "{argument}"')
    return "\n".join(lines)

"""The programs of a project: the table `[tool.graphir]` of pyproject.toml, checked together.

    [tool.graphir]
    fail-on = ["lossy"]

    [[tool.graphir.programs]]
    target = "model.py:share"
    inputs = ["int64[8]", "float32[8]"]

Settings of the table are those of each program that has none of its own. An option of the command
line takes the place of the setting of its name.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

from graphir.runtime import cli
from graphir.runtime.cli.arguments import UsageError

FILE = "pyproject.toml"
_ADVICE = "name a program, or list programs in [[tool.graphir.programs]] of pyproject.toml"

Table: TypeAlias = Mapping[str, Any]


def read_programs(args: argparse.Namespace) -> list[argparse.Namespace]:
    """Return the arguments of the command for each program of the project.

    Raises UsageError, which names the file, the key and what to write there.
    """
    if args.inputs:
        raise UsageError("--input belongs to a program", fix=_ADVICE)
    table = _read_table()
    settings = _settings(table, "tool.graphir", ("programs", *_SETTINGS))
    programs = table.get("programs")
    if not isinstance(programs, list) or not programs:
        _refuse("tool.graphir.programs", "is no list of programs", programs, "write " + _EXAMPLE)
    each: list[argparse.Namespace] = []
    for number, program in enumerate(cast("list[Any]", programs)):
        key = f"tool.graphir.programs[{number}]"
        if not isinstance(program, dict):
            _refuse(key, "is no table", program, "write " + _EXAMPLE)
        own = _settings(cast("Table", program), key, ("target", "inputs", *_SETTINGS))
        if "program" not in own:
            _refuse(f"{key}.target", "is missing", None, 'write target = "model.py:share"')
        each.append(argparse.Namespace(**{**vars(args), **settings, **own, **_over(args)}))
    return each


_EXAMPLE = '[[tool.graphir.programs]] with target = "model.py:share"'


def _over(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the command line that stand for settings."""
    names: dict[str, Any] = {"rules": None, "fail_on": [], "baseline": None, "unseen": "fail"}
    return {x: getattr(args, x) for x, default in names.items() if getattr(args, x) != default}


def _read_table() -> Table:
    """Return the table `[tool.graphir]` of the folder's pyproject.toml."""
    if not Path(FILE).is_file():
        raise UsageError(f"no program is named, and there is no {FILE} here", fix=_ADVICE)
    try:
        document = tomllib.loads(Path(FILE).read_text(encoding="utf-8"))
    except ValueError as error:  # text that is no UTF-8 too
        raise UsageError(f"{FILE}: {error}") from None
    tools = document.get("tool")
    table = cast("Table", tools).get("graphir") if isinstance(tools, dict) else None
    if table is None:
        raise UsageError(f"no program is named, and {FILE} has no [tool.graphir]", fix=_ADVICE)
    if not isinstance(table, dict):
        _refuse("tool.graphir", "is no table", table, "write " + _EXAMPLE)
    return cast("Table", table)


def _settings(table: Table, key: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return the checked settings of a table by the names of arguments."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in allowed:
            near = get_close_matches(name, allowed)
            fix = f"write {near[0]}" if near else f"the keys are {', '.join(allowed)}"
            _refuse(f"{key}.{name}", "is no setting", None, fix)
        if name != "programs":
            argument, read, example = _READERS[name]
            try:
                found[argument] = read(value)
            except (argparse.ArgumentTypeError, TypeError) as error:
                problem = str(error) or "has another type"
                _refuse(f"{key}.{name}", problem, value, f"write {name} = {example}")
    return found


def _refuse(key: str, problem: str, value: Any, fix: str) -> NoReturn:
    got = "" if value is None else repr(value)
    colon = "" if problem.startswith(("is ", "has ")) else ":"
    raise UsageError(f"{FILE}: {key}{colon} {problem}", got=got, fix=fix)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("is no text")
    return value


def _inputs(value: Any) -> list[str]:
    """Return the texts of --input: a list in order, or a table by name."""
    if isinstance(value, dict):
        return [f"{name}={_input(x)}" for name, x in cast("Table", value).items()]
    if not isinstance(value, list):
        raise TypeError("is neither a list nor a table")
    return [_input(x) for x in cast("list[Any]", value)]


def _input(value: Any) -> str:
    if not isinstance(value, (str, int, float)):
        raise TypeError("has an input that is neither text nor a number")
    return str(value)


def _words(value: Any) -> list[str]:
    words = cast("list[Any]", value) if isinstance(value, list) else [value]
    return cli.gate_words(",".join(map(_text, words))) if words else []


def _unseen(value: Any) -> str:
    if value not in ("fail", "pass"):
        raise TypeError("is neither fail nor pass")
    return value


_SETTINGS = ("rules", "fail-on", "baseline", "unseen")
_READERS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "target": ("program", _text, '"model.py:share"'),
    "inputs": ("inputs", _inputs, '["int64[8]", 2.5], or {x = "int64[8]"}'),
    "rules": ("rules", lambda value: cli.rule_set(_text(value)), '"jax"'),
    "fail-on": ("fail_on", _words, '["lossy"]'),
    "baseline": ("baseline", _text, '"casts.json"'),
    "unseen": ("unseen", _unseen, '"pass"'),
}
"""By key of a table: the argument, its reader, and an example."""

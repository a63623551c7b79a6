"""Rule sets of one's own, in JSON files: every command that takes rules takes one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphir import Graph
from graphir.runtime.cli.main import parsers
from tests.support.commands import cli, refused

EDGES = {"int8": ["int16"], "int16": ["float16"], "float16": ["float32"], "float32": ["float64"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lattice = {"name": "of_a_file", "edges": EDGES}
    (tmp_path / "mine.json").write_text(json.dumps(lattice), encoding="utf-8")
    (tmp_path / "script.py").write_text("def f(x):\n    return x + x\n", encoding="utf-8")
    for name, dtype in {"x": np.float32, "i": np.int16, "h": np.float16}.items():
        np.save(tmp_path / f"{name}.npy", np.ones(2, dtype))
    g = Graph("g", rules="numpy")
    g.output(g.input("int16", ("n",), name="x") + g.input("float16", ("n",), name="y"))
    g.save(tmp_path / "g.gir")
    text = (tmp_path / "g.gir").read_text(encoding="utf-8")
    own = text.replace("rules=numpy", "rules=of_a_file").replace("float32[n]", "float16[n]")
    (tmp_path / "own.gir").write_text(own, encoding="utf-8")
    return tmp_path


COMMANDS = {
    "promote": "promote int8 int16 --rules mine.json",
    "table": "table --rules mine.json",
    "lattice": "lattice --rules mine.json",
    "laws": "laws mine.json",
    "rules": "rules mine.json",
    "diff": "diff mine.json numpy",
    "audit": "audit script.py:f --input x.npy --rules numpy --against mine.json",
    "casts": "casts g.gir --against mine.json",
    "annotate": "annotate own.gir --rules mine.json",
    "draw": "draw own.gir --rules mine.json --format dot",
    "export": "export own.gir --rules mine.json --to python",
    "lower": "lower own.gir --rules mine.json",
    "plan": "plan own.gir --rules mine.json",
    "run": "run own.gir --rules mine.json --input i.npy --input h.npy",
}


SILENT = ("table", "plan", "run", "export", "annotate")
"""The commands whose output does not name the rule set."""


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_takes_a_file(folder: Path, command: str) -> None:
    _, out, err = cli(*command.split())
    assert err == ""
    assert "of_a_file" in out or command.startswith(SILENT)


@pytest.mark.parametrize("command", ["casts", "audit", "draw", "lower", "plan", "run"])
def test_a_graph_follows_the_rules_named_or_none(folder: Path, command: str) -> None:
    assert "no rule set is named 'of_a_file'" in refused(3, command, "own.gir")
    error = refused(3, command, "g.gir", "--rules", "jax")
    assert "follows the rules 'numpy'; got --rules jax" in error


def test_every_command_with_rules_is_asked() -> None:
    taking = {
        name
        for name, parser in parsers()[1].items()
        for action in parser._actions  # pyright: ignore[reportPrivateUsage]
        if action.dest == "rules" or (action.metavar or "").startswith("RULES")
    }
    assert taking == {*COMMANDS, "fix"} - {"laws"}  # a program that runs has its library's rules


def test_the_answers_are_those_of_the_file(folder: Path) -> None:
    out = cli("promote", "int8", "int16", "--rules", "mine.json")[1]
    assert out.startswith("int8 and int16 promote to int16 under 'of_a_file'")
    assert "\n  int8 -> int16: exact" in out
    status, out, _ = cli("diff", "g.gir", "numpy", "mine.json")
    assert status == 1 and "numpy -> of_a_file" in out
    (folder / "again.json").write_text((folder / "mine.json").read_text())
    assert cli("diff", "mine.json", "again.json")[0] == 0


def test_a_file_that_is_wrong_is_wrong_usage(folder: Path) -> None:
    (folder / "bad.json").write_text('{"int8": ["nonsense"]}')
    assert "bad" in refused(2, "promote", "int8", "int16", "--rules", "bad.json")
    assert "nope.json" in refused(2, "table", "--rules", "nope.json")
    (folder / "taken.json").write_text(json.dumps({"name": "max", "edges": EDGES}))
    assert "'max' is registered already" in refused(2, "table", "--rules", "taken.json")
    assert "or name a JSON file" in refused(2, "table", "--rules", "nope")


def test_a_function_that_names_no_rules_builds_under_those_named(folder: Path) -> None:
    source = "from graphir import Graph\n\n\ndef build():\n    g = Graph()\n"
    source += "    g.output(g.input('int8', ('n',)) + g.input('float16', ('n',)))\n    return g\n"
    (folder / "build.py").write_text(source, encoding="utf-8")
    assert (
        "rules=explicit from=of_a_file" in cli("lower", "build.py:build", "--rules", "mine.json")[1]
    )
    assert "rules=explicit from=max" in cli("lower", "build.py:build")[1]

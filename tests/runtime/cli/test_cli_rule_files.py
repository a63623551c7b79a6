"""Rule sets of one's own, in JSON files: every command that takes rules takes one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from graphir import Graph
from runtime.cli.main import _parser  # pyright: ignore[reportPrivateUsage]
from tests.support.commands import cli, refused

EDGES = {"int8": ["int16"], "int16": ["float16"], "float16": ["float32"], "float32": ["float64"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lattice = {"name": "of_a_file", "edges": EDGES}
    (tmp_path / "mine.json").write_text(json.dumps(lattice), encoding="utf-8")
    (tmp_path / "script.py").write_text("def f(x):\n    return x + x\n", encoding="utf-8")
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    g = Graph("g", rules="numpy")
    g.output(g.input("int16", ("n",), name="x") + g.input("float16", ("n",), name="y"))
    g.save(tmp_path / "g.gir")
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
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_takes_a_file(folder: Path, command: str) -> None:
    _, out, err = cli(*command.split())
    assert err == ""
    assert "of_a_file" in out or command.startswith("table")


def test_every_command_with_rules_is_asked() -> None:
    actions = _parser()._actions  # pyright: ignore[reportPrivateUsage]
    (commands,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))  # pyright: ignore
    taking = {
        name
        for name, parser in commands.choices.items()
        for action in parser._actions  # pyright: ignore[reportPrivateUsage]
        if action.dest == "rules" or (action.metavar or "").startswith("RULES")
    }
    assert taking == {*COMMANDS} - {"laws"}


def test_the_answers_are_those_of_the_file(folder: Path) -> None:
    out = cli("promote", "int8", "int16", "--rules", "mine.json")[1]
    assert out.startswith("int8 and int16 promote to int16 under 'of_a_file'")
    assert "\n  int8 -> int16: exact" in out
    status, out, _ = cli("diff", "g.gir", "numpy", "mine.json")
    assert status == 1 and "numpy -> of_a_file" in out
    (folder / "again.json").write_text((folder / "mine.json").read_text())
    assert cli("diff", "mine.json", "again.json")[0] == 0


def test_a_file_that_is_wrong_is_an_error_and_no_usage(folder: Path) -> None:
    (folder / "bad.json").write_text('{"int8": ["nonsense"]}')
    assert "bad" in refused(1, "promote", "int8", "int16", "--rules", "bad.json")
    assert "nope.json" in refused(1, "table", "--rules", "nope.json")
    (folder / "taken.json").write_text(json.dumps({"name": "max", "edges": EDGES}))
    assert "'max' is registered already" in refused(1, "table", "--rules", "taken.json")
    assert "or name a JSON file" in refused(2, "table", "--rules", "nope")

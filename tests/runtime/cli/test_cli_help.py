"""The example at the end of each command's help runs; rule sets are named in every way."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

from graphir import Graph, import_names
from tests.support.commands import cli

COMMANDS = cli("--help")[1].split("COMMAND\n")[1].split("\n\n")[0]
NAMES = [line.split()[0] for line in COMMANDS.splitlines() if line[4:5].strip()]
EDGES = {"int16": ["float32"], "float32": ["float64"]}
PROGRAM = """\
import numpy as np
from graphir import Graph, Lattice, PromotionRules

declared = PromotionRules("declared_of_tests", "", Lattice("d", {"int16": ["float32"]}))

def function(x):
    return x / np.float64(3)

def build():
    g = Graph("model")
    g.output(g.input("int16", ("n",), name="x") + g.input("float32", (), name="y"))
    return g
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("script.py", "script_of_tests.py"):
        (tmp_path / name).write_text(PROGRAM)
    graph = Graph("model", rules="numpy")
    x, y = graph.input("int16", ("n",), name="x"), graph.input("float32", (), name="y")
    graph.output(x + y)
    graph.save(tmp_path / "model.gir")
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.int16))
    (tmp_path / "my_lattice.json").write_text(json.dumps({"name": "my_lattice", "edges": EDGES}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_an_example_that_runs(name: str) -> None:
    text = " ".join(cli(name, "--help")[1].split())
    program, *argv = shlex.split(text.split("example: ")[1])
    assert (program, argv[0]) == ("graphir", name)
    status, _, err = cli(*argv)
    assert status in (0, 1), err


def test_every_command_has_a_help() -> None:
    assert len(NAMES) == 18


@pytest.mark.parametrize("rules", ["my_lattice.json", "declared_of_tests", "max"])
@pytest.mark.parametrize(
    "command",
    [
        *("promote int16 float32 --rules R", "table --rules R", "lattice --rules R", "laws R"),
        *(
            "rules R",
            "diff numpy R",
            "diff R numpy",
            "diff model.gir R",
            "diff model.gir --rules R",
        ),
        *("casts model.gir --against R", "casts script.py:build --rules R"),
        *("lower script.py:build --rules R", "plan script.py:build --rules R"),
        *("draw script.py:build --rules R", "export script.py:build --rules R --to python"),
        "audit script.py:function --input x.npy --against R",
    ],
)
def test_rule_sets_by_file_and_entry_point(
    command: str, rules: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    entry = EntryPoint("declared_of_tests", "script_of_tests:declared", "graphir.rules")
    monkeypatch.setattr(
        import_names, "_entry_points", lambda group: EntryPoints([entry]).select(group=group)
    )
    status, out, err = cli(*command.replace("R", rules).split())
    assert status in (0, 1) and out, err

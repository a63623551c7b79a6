"""The programs have all variants; the runner measures in other processes and sums up."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.benchmarks.whole_programs import PROGRAMS, ROOT, Row, ratio_of, summarize
from tests.support.tables import every

FOLDER = Path(__file__).parent


@every("module", ["whole_numpy", "whole_torch", "whole_numba"])
def test_each_program_is_written_for_each_library(module: str) -> None:
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in names if not name.startswith("_")}
    assert public == {program.name for program in PROGRAMS}


def test_each_class_has_two_programs() -> None:
    counts = Counter(program.kind for program in PROGRAMS)
    assert len(counts) == 15 and set(counts.values()) == {2}


def test_the_runner_measures_engines_in_their_processes(tmp_path: Path) -> None:
    report = tmp_path / "rows.json"
    options = ["--only", "tiny_relu_layer", "--engines", "numpy", "--runs", "2"]
    command = [sys.executable, "-m", "tests.benchmarks.whole_programs", *options]
    command += ["--seconds", "0.01", "--json", str(report)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    rows = json.loads(report.read_text())["rows"]
    assert rows[0]["engine"] == "numpy" and rows[0]["seconds"] > 0 and rows[0]["error"] == 0


def test_ratios_are_of_the_best_peer() -> None:
    rows = [Row("p", "graphir", 2.0, 0, 0), Row("p", "jax", 1.0, 0, 0), Row("p", "numpy", 3, 0, 0)]
    assert ratio_of(rows) == 0.5 and ratio_of(rows[1:]) is None
    text = summarize({"a": 0.5, "b": 2.0})
    assert "graphir: 1.00; won 1 of 2" in text
    assert "behind: a 0.50" in text

"""The hooks of pre-commit and the workflow of docs/ci.md: their YAML, and their commands, run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pages import ROOT, blocks

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

PAGE = ROOT / "docs" / "ci.md"
FILES = {block.file: block.text for block in blocks(PAGE) if block.file}
HOOKS: dict[str, Any] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILES["casts.yml"])
STEPS: dict[str, str] = {
    step["name"]: step["run"] for step in WORKFLOW["jobs"]["casts"]["steps"] if "run" in step
}

MENDED = """
def share(counts, weights):
    counts = counts.astype("float64")
    return counts * weights / counts.sum()
"""
TEST = """
import numpy as np
from model import share

def test_share():
    assert share(np.array([1, 3]), np.ones(2, np.float32)).tolist() == [0.25, 0.75]
"""


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    """A project with the program of the page, a test, and the commands of an installed graphir."""
    project, commands = tmp_path / "project", tmp_path / "bin"
    project.mkdir()
    commands.mkdir()
    (project / "model.py").write_text(FILES["model.py"])
    (project / "test_model.py").write_text(TEST)
    for name, arguments in (("graphir", "-m graphir "), ("python", "")):
        script = commands / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        script.chmod(0o755)
    return project


def run(project: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a project as a runner of GitHub does: by bash, which stops at an error."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHIR", "PYTEST"))}
    environment |= {
        "PATH": f"{project.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(project))),
        "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
        **variables,
    }
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


# -- hooks


def test_each_hook_is_on_the_page() -> None:
    rows = dict(
        line.strip("| ").split(" | ")[:2]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `graphir-")
    )
    assert rows == {f"`{name}`": f"`{hook['entry']}`" for name, hook in HOOKS.items()}
    for hook in HOOKS.values():
        assert hook["language"] == "python" and not hook["pass_filenames"]
        assert hook["description"].endswith(".") and hook["name"]


def test_the_hooks_of_the_page_fail_and_pass(project: Path) -> None:
    (repository,) = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"]
    assert {*repository} == {"repo", "rev", "hooks"}
    commands = {
        hook["id"]: f"{HOOKS[hook['id']]['entry']} {shlex.join(hook['args'])}"
        for hook in repository["hooks"]
    }
    assert [run(project, each).returncode for each in commands.values()] == [1, 0]
    (project / "model.py").write_text(MENDED)
    assert [run(project, each).returncode for each in commands.values()] == [0, 0]


def test_the_other_hooks_fail_and_pass(project: Path) -> None:
    import numpy as np

    np.save(project / "x.npy", np.array([2**53 + 1, 1]))
    np.save(project / "w.npy", np.ones(2, np.float32))
    audit = f"{HOOKS['graphir-audit']['entry']} model.py:share --input x.npy --input w.npy"
    assert run(project, audit).returncode == 1
    np.save(project / "x.npy", np.array([3, 1]))
    assert run(project, audit).returncode == 0
    (project / "mine.json").write_text('{"name": "mine", "edges": {"int8": ["int16", "uint8"]}}')
    laws = f"{HOOKS['graphir-laws']['entry']} mine.json"
    assert run(project, laws).returncode == 1
    (project / "mine.json").write_text('{"name": "mine", "edges": {"int8": ["int16"]}}')
    assert run(project, laws).returncode == 0


# -- the workflow


def test_the_workflow_installs_a_checkout_from_its_path() -> None:
    events = WORKFLOW[True]  # YAML 1.1 reads `on` as a truth value
    given = events["workflow_call"]["inputs"]["graphir"]
    assert given["type"] == "string" and given["default"] in WORKFLOW["env"]["GRAPHIR"]
    assert 'pip install "./$GRAPHIR"' in STEPS["Install"]
    assert WORKFLOW["permissions"] == {"contents": "read", "security-events": "write"}
    for step in WORKFLOW["jobs"]["casts"]["steps"]:
        assert ("run" in step) != ("uses" in step)


def test_the_step_of_casts_leaves_a_summary_and_sarif(project: Path) -> None:
    first = run(project, STEPS["Casts"])
    assert (first.returncode, first.stderr) == (1, "")
    (log,) = json.loads((project / "casts.sarif").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in log["results"]]
    assert {
        (place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places
    } == {("model.py", 2)}
    summary = (project / "summary.md").read_text()
    assert summary.startswith("### Casts of `share`") and "| `model.py:2:12` |" in summary
    (project / "model.py").write_text(MENDED)
    second = run(project, STEPS["Casts"])
    assert (second.returncode, second.stderr) == (0, "")
    (log,) = json.loads((project / "casts.sarif").read_text())["runs"]
    assert {result["level"] for result in log["results"]} == {"note"}  # the cast that is written


NARROW = """
def share(counts, weights):
    return counts * weights / 2
"""
TEST_NARROW = """
import numpy as np
from model import share

def test_share():
    share(np.array([1, 3], np.int16), np.ones(2, np.float32))
"""


def test_the_step_of_tests_writes_a_baseline_and_fails_where_a_dtype_widens(project: Path) -> None:
    plugin = "-p graphir.pytest_plugin -p no:cacheprovider"

    def tests(update: str) -> tuple[int, str]:
        done = run(project, STEPS["Tests"], UPDATE=update, PYTEST_ADDOPTS=plugin)
        return done.returncode, done.stdout

    (project / "model.py").write_text(NARROW)
    (project / "test_model.py").write_text(TEST_NARROW)
    status, text = tests("--casts-update")
    assert status == 0 and "wrote the baseline casts-baseline.json" in text
    assert tests("")[0] == 0
    (project / "model.py").write_text(FILES["model.py"])
    status, text = tests("")
    assert status == 1 and "model.py:2: return counts * weights" in text
    assert "share(int16[:], float32[:]) returns float64, was float32" in text
    assert tests("--casts-update")[0] == 0
    assert tests("")[0] == 0

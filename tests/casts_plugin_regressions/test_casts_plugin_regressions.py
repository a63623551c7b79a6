"""Probes show each regression, which no test notices; the plugin flags its line, and no fix."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.casts_plugin_regressions.cases import (
    CASES,
    PROJECT,
    PackageRegression,
    State,
    project_in_state,
)
from tests.support import forks
from tests.support.tables import quick

STATES: tuple[State, ...] = ("before", "after", "fix")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[State, Path]:
    """Copies of the project, one a state."""
    root = tmp_path_factory.mktemp("labkit")
    return {state: project_in_state(root, state) for state in STATES}


def run_tests(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a copy of the project in another process."""
    command = [
        forks.executable(),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    command += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules of the process
    command += ["--rootdir", str(project), *options, str(project / "tests")]
    path = {"PYTHONPATH": f"{project}:{Path.cwd()}", "PYTHONDONTWRITEBYTECODE": "1"}
    path["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        command, cwd=project, env=path, capture_output=True, text=True, check=False
    )


def probed(project: Path, case: PackageRegression) -> str:
    """What the probe of a regression shows in a copy of the project."""
    spec = importlib.util.spec_from_file_location(f"probed_{case.module}", project / case.path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names: dict[str, Any] = {"np": np, **vars(module)}
    return str(eval(case.probe, names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.module)
def test_the_probe_tells_the_states_apart(
    case: PackageRegression, copies: dict[State, Path]
) -> None:
    assert case.line > 0 and case.thread.startswith("https://")
    before, after, mended = (probed(copies[state], case) for state in STATES)
    assert before == mended != after


@pytest.mark.parametrize("state", quick(["after", "before", "fix"], 3))
def test_no_test_of_the_project_notices(state: State, copies: dict[State, Path]) -> None:
    run = run_tests(copies[state])
    assert run.returncode == 0 and "21 passed" in run.stdout, run.stdout


def test_the_project_does_not_import_graphir() -> None:
    sources = [Path(path).read_text(encoding="utf-8") for path in PROJECT.rglob("*.py")]
    assert len(sources) == 14 and not any("graphir" in source for source in sources)
    assert len(CASES) == len({case.thread for case in CASES}) == 12


def run_with_casts(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a copy of the project with the plugin."""
    return run_tests(project, "-p", "graphir.pytest_plugin", "--casts=labkit", *options)


@pytest.fixture(scope="module")
def compared(
    copies: dict[State, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[State, subprocess.CompletedProcess[str]]:
    """Runs with the plugin in each state, compared with the first one as the baseline."""
    baseline = tmp_path_factory.mktemp("baseline") / "casts.json"
    options = "--casts-baseline", str(baseline)
    return {state: run_with_casts(copies[state], *options) for state in STATES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.module)
def test_the_plugin_flags_a_regression_at_its_line(
    case: PackageRegression, compared: dict[State, subprocess.CompletedProcess[str]]
) -> None:
    run = compared["after"]
    assert run.returncode == 1, run.stdout
    _, changes = run.stdout.split("changed dtypes since")
    lines = (PROJECT / case.path).read_text(encoding="utf-8").splitlines()
    (changed,) = [i for i, text in enumerate(lines, 1) if text.strip() == case.before]
    _, finding = changes.split(f"\n{case.path}:{changed}: ")
    if case.line != changed:  # the finding names the conversion too, unless it is a result's dtype
        reasons = re.match(r".*((?:\n    .*)*)", finding)
        assert reasons and f"line {case.line} casts" in reasons[1]


def test_the_plugin_flags_no_fix(
    compared: dict[State, subprocess.CompletedProcess[str]],
) -> None:
    for state in ("before", "fix"):
        run = compared[state]
        assert run.returncode == 0 and "changed dtypes since" not in run.stdout, run.stdout


@pytest.mark.parametrize("policy", quick(sorted({case.policy for case in CASES} - {""}), 2))
def test_a_policy_finds_regressions_without_a_baseline(
    policy: str, copies: dict[State, Path]
) -> None:
    run = run_with_casts(copies["after"], "--casts-fail", policy)
    assert run.returncode == 1, run.stdout
    _, casts = run.stdout.split("forbidden by --casts-fail")
    for case in CASES:
        if case.policy == policy:
            assert f"\n{case.path}:{case.line}:" in casts

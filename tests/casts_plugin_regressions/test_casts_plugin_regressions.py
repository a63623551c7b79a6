"""Each regression changes what its probe shows, each fix restores it, and no test notices."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
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

STATES: tuple[State, ...] = ("before", "after", "fix")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[State, Path]:
    """Copies of the project, one a state."""
    root = tmp_path_factory.mktemp("labkit")
    return {state: project_in_state(root, state) for state in STATES}


def run_tests(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a copy of the project in another process."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    command += ["--rootdir", str(project), *options, str(project / "tests")]
    path = {"PYTHONPATH": f"{project}:{Path.cwd()}", "PYTHONDONTWRITEBYTECODE": "1"}
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


@pytest.mark.parametrize("state", STATES)
def test_no_test_of_the_project_notices(state: State, copies: dict[State, Path]) -> None:
    run = run_tests(copies[state])
    assert run.returncode == 0 and "21 passed" in run.stdout, run.stdout


def test_the_project_does_not_import_graphir() -> None:
    sources = [Path(path).read_text(encoding="utf-8") for path in PROJECT.rglob("*.py")]
    assert len(sources) == 14 and not any("graphir" in source for source in sources)
    assert len(CASES) == len({case.thread for case in CASES}) == 12

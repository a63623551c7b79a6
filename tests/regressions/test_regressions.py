"""Each regression changes what its probe shows, each fix restores it, and no test notices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.regressions.cases import CASES, PROJECT, Regression, project_with

RUN = """
import importlib, io, json, sys, warnings
from contextlib import redirect_stdout
import numpy as np
import pytest

warnings.simplefilter("ignore")
options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
outcomes = []
for folder, probe in json.load(sys.stdin):
    for name in [n for n in sys.modules if n.split(".")[0] == "fieldkit" or n[:5] == "test_"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    import fieldkit
    shown = str(eval(probe))
    with redirect_stdout(io.StringIO()) as report:
        status = pytest.main([*options, "--rootdir", folder, folder + "/tests"])
    outcomes.append((shown, int(status), report.getvalue()))
    sys.path.remove(folder)
print(json.dumps(outcomes))
"""
"""Probes and tests of copies of the project, in one process that is not this one."""

Outcome = tuple[str, int, str]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Outcome]]:
    """What the probe shows and the tests say, of each regression before, after and mended."""
    root = tmp_path_factory.mktemp("projects")
    copies = [
        (str(project_with(root / f"{i}-{state}", case, line)), case.probe)
        for i, case in enumerate(CASES)
        for state, line in enumerate((case.before, case.after, case.fix))
    ]
    command = [sys.executable, "-c", RUN]
    text = json.dumps(copies)
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout.splitlines()[-1])
    return {case.name: results[3 * i : 3 * i + 3] for i, case in enumerate(CASES)}


@pytest.mark.exhaustive
@pytest.mark.parametrize("regression", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_the_probe_tells_the_states_apart_and_no_test_does(
    regression: Regression, outcomes: dict[str, list[Outcome]]
) -> None:
    assert regression.line > 0 and regression.thread.startswith("https://")
    before, after, mended = outcomes[regression.name]
    assert (before[0], after[0], mended[0]) == (regression.good, regression.bad, regression.good)
    for _, status, report in (before, after, mended):
        assert status == 0 and "passed" in report, report


def test_the_project_does_not_import_graphir() -> None:
    sources = [Path(path).read_text(encoding="utf-8") for path in PROJECT.rglob("*.py")]
    assert len(sources) > 8 and not any("graphir" in source for source in sources)
    assert len(CASES) == 12

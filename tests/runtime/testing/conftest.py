"""A project whose tests run with the plugin, in processes of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import forks

ROOT = Path(__file__).resolve().parents[3]


class Project:
    """A project in a folder: the package `lab`, and its tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = forks.executable()

    def write(self, **files: str) -> None:
        """Write files by module name: `test_x` beside the package, the others inside."""
        for name, text in files.items():
            path = self.folder / (f"{name}.py" if name.startswith("test_") else f"lab/{name}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(dedent(text))

    def run(self, *arguments: str, package: str = "=lab") -> subprocess.CompletedProcess[str]:
        """Run pytest with --casts."""
        command = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules of the process
        command += ["-p", "graphir.pytest_plugin", f"--casts{package}", *arguments]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins that take longer to load than the run
        env.pop("PYTEST_ADDOPTS", None)
        return subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )

    def report(self, *arguments: str) -> str:
        """Run pytest, whose tests pass; return the lines of the report."""
        run = self.run(*arguments)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout.partition("= casts =")[2].partition("\n")[2]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    new = Project(tmp_path)
    new.write(__init__="")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return new

"""A project whose tests run with the plugin, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Project:
    """A project in a folder: the package `lab`, and its tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, **files: str) -> None:
        """Write files by module name: `test_x` beside the package, the others inside."""
        for name, text in files.items():
            path = self.folder / (f"{name}.py" if name.startswith("test_") else f"lab/{name}.py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(dedent(text))

    def run(self, *arguments: str, package: str = "=lab") -> subprocess.CompletedProcess[str]:
        """Run pytest with --casts."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "graphir.pytest_plugin", f"--casts{package}", *arguments]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
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

"""The wheel, built from the sdist and installed in environments of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.exhaustive

USE = """
import graphir, passes, runtime, numpy as np
assert "site-packages" in graphir.__file__
assert passes is graphir.passes and runtime is graphir.runtime
from scaled import scaled
recording = graphir.record(scaled, np.ones(4, np.float32))
print(recording.report())
"""
PROJECT = {
    "scaled.py": "import numpy as np\n\ndef scaled(x):\n    return x * np.float64(0.5)\n",
    "test_scaled.py": """
import numpy as np
from scaled import scaled

def test_scaled():
    assert scaled(np.ones(4, np.float32)).sum() == 2
""",
}


def run(folder: Path, *command: str | Path) -> str:
    """What a command prints in a folder, with no path of this checkout in its environment."""
    hidden = ("PYTHONPATH", "PYTEST_ADDOPTS")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(folder: Path, python: str, *packages: str | Path) -> Path:
    """Make an environment with packages, and return its folder of commands."""
    run(folder, python, "-m", "venv", folder / "venv")
    commands = folder / "venv" / "bin"
    run(folder, commands / "python", "-m", "pip", "install", "-q", *packages)
    return commands


def newest_python() -> str:
    """The newest Python of another minor release than this one that starts here, or nothing."""
    roots = (Path.home() / ".pyenv" / "versions", *Path("/opt").glob("*/versions"))
    for minor in (14, 13, 12):
        named = shutil.which(f"python3.{minor}")
        found = [path for root in roots for path in root.glob(f"3.{minor}.*/bin/python3")]
        check = f"import ssl, sys, venv; sys.exit(sys.version_info[1] != {minor})"
        for python in (named, *map(str, found)):
            if python and minor != sys.version_info[1]:
                starts = subprocess.run([python, "-c", check], capture_output=True, check=False)
                if not starts.returncode:
                    return python
    return ""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    commands = environment(folder, sys.executable, "build")
    run(folder, commands / "python", "-m", "build", "-o", folder / "dist", ROOT)
    return next((folder / "dist").glob("*.whl"))


def test_the_wheel_has_the_files_of_the_packages_and_no_others(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    folders = {"graphir": "graphir", "passes": "graphir/passes", "runtime": "graphir/runtime"}
    tracked = run(ROOT, "git", "ls-files", *folders).splitlines()
    expected = {f"{folders[path.split('/')[0]]}/{path.partition('/')[2]}" for path in tracked}
    assert names == expected - {"graphir/passes", "graphir/runtime"}
    assert {"Keywords", "Classifier"} <= {*re.findall(r"^([\w-]+):", text, re.M)}


@pytest.mark.parametrize("which", ["this", "newest"])
def test_the_wheel_works_without_a_checkout(which: str, wheel: Path, tmp_path: Path) -> None:
    python = sys.executable if which == "this" else newest_python()
    if not python:
        pytest.skip("no Python from 3.12 to 3.14 starts here besides this one")
    commands = environment(tmp_path, python, wheel, "pytest")
    for name, text in PROJECT.items():
        (tmp_path / name).write_text(text)
    assert run(tmp_path, commands / "graphir", "--version") == "graphir 0.1.0\n"
    assert "float64" in run(tmp_path, commands / "graphir", "demo")
    assert "scaled.py:4:12" in run(tmp_path, commands / "python", "-c", USE)
    printed = run(tmp_path, commands / "python", "-m", "pytest", "-q", "--casts=scaled")
    assert "scaled: 1 cast" in printed

"""Modules of a user that are called as folders of this project, and the short names of packages."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {
    "runtime/__init__.py": "import numpy as np\n\ndef halved(x):\n    return x * np.float64(0.5)\n",
    "passes.py": "LIMIT = 3\n",
    "docs.py": "TITLE = 'mine'\n",
    "tests/__init__.py": "",
    "tests/test_mine.py": """
import numpy as np

import docs, passes, runtime

def test_mine():
    assert runtime.halved(np.ones(2, np.float32)).sum() < passes.LIMIT and docs.TITLE == "mine"
""",
    "a.py": """
import docs, passes, runtime

def f(x):
    return runtime.halved(x) * passes.LIMIT + len(docs.TITLE)
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def python(*args: str, cwd: Path, status: int = 0) -> str:
    """What Python prints in a folder, whose modules it imports before those of this project."""
    path = os.pathsep.join((str(cwd), str(ROOT)))
    run = subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout


def test_the_command_line_runs_a_program_beside_modules_of_these_names(project: Path) -> None:
    for command in ("audit", "casts"):
        out = python("-m", "graphir", command, "a.py:f", "--input", "float32[4]", cwd=project)
        assert "runtime/__init__.py:4:12" in out


def test_the_plugin_sees_a_package_of_this_name(project: Path) -> None:
    out = python(
        "-m", "pytest", "-q", "-p", "graphir.pytest_plugin", "--casts=runtime", cwd=project
    )
    assert "runtime: 1 cast, 0 can lose something; 1 function recorded" in out


@pytest.mark.skipif(find_spec("IPython") is None, reason="needs IPython")
def test_a_notebook_imports_its_own_modules(project: Path) -> None:
    cells = """
import numpy as np, runtime, a
get_ipython().run_line_magic("load_ext", "graphir")
print(get_ipython().run_cell_magic("audit", "", "a.f(np.ones(4, np.float32))"))
"""
    path = project / "cells.ipy"
    path.write_text(cells)
    assert "float64" in python("-m", "IPython", "--no-banner", str(path), cwd=project)


SHORT = """
import pickle, sys
import {first}
import graphir, passes, runtime, runtime.program, passes.pipeline
from runtime.audit import audit
assert passes is graphir.passes and runtime is graphir.runtime and audit is graphir.audit
twins = [x for x in sys.modules if f"graphir.{{x}}" in sys.modules]
assert all(sys.modules[x] is sys.modules[f"graphir.{{x}}"] for x in twins) and len(twins) > 3
assert runtime.program.__spec__.name == "graphir.runtime.program"
assert pickle.loads(b"cpasses.pipeline\\nlower\\n.") is graphir.lower
"""


@pytest.mark.parametrize("first", ["graphir", "runtime", "passes"])
def test_short_names_are_the_same_modules(first: str, tmp_path: Path) -> None:
    python("-c", SHORT.format(first=first), cwd=tmp_path)


def test_a_module_of_the_user_keeps_its_name(project: Path) -> None:
    code = (
        "import graphir; graphir.jit; import passes, runtime; print(passes.LIMIT, runtime.halved)"
    )
    assert python("-c", code, cwd=project).startswith("3 <function halved")

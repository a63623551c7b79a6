"""pyright and mypy accept the right uses, and refuse each wrong one at its line alone."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import graphir
from tests.support.guilty_lines import marked_lines

FOLDER = Path(__file__).parent
ROOT = Path(graphir.__file__).parent.parent


def lines_refused_by_pyright(folder: Path) -> set[tuple[str, int]]:
    """File and line of each error, with pyright's default settings."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    command = ["pyright", "--outputjson", "--pythonpath", sys.executable]
    answer = json.loads(checked(command, folder).stdout)
    return {
        (Path(each["file"]).stem, each["range"]["start"]["line"] + 1)
        for each in answer["generalDiagnostics"]
        if each["severity"] == "error"
    }


def lines_refused_by_mypy(folder: Path, *options: str) -> set[tuple[str, int]]:
    """File and line of each error; graphir counts as an installed package, which mypy trusts."""
    files = [path.name for path in folder.glob("*.py")]
    command = ["mypy", "--follow-imports=silent", "--output=json", "--scripts-are-modules"]
    answer = checked([*command, *options, *files], folder).stdout
    errors = [json.loads(line) for line in answer.splitlines() if line.startswith("{")]
    assert {each["file"] for each in errors} <= {*files}, answer
    return {
        (Path(each["file"]).stem, each["line"]) for each in errors if each["severity"] == "error"
    }


def checked(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: it is of the extra `dev`")
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    return answer


def lines_marked(folder: Path) -> set[tuple[str, int]]:
    return {
        (path.stem, line)
        for path in folder.glob("*.py")
        for line in marked_lines(path.read_text(encoding="utf-8"), "# wrong")
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("checker", [lines_refused_by_pyright, lines_refused_by_mypy])
@pytest.mark.parametrize("kind", ["right", "wrong"])
def test_checkers_refuse_the_wrong_lines(checker, kind: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / kind, tmp_path, dirs_exist_ok=True)
    marked = lines_marked(tmp_path)
    assert len(marked) == (40 if kind == "wrong" else 0)
    assert checker(tmp_path) == marked


@pytest.mark.exhaustive
@pytest.mark.parametrize("checker", [lines_refused_by_pyright, lines_refused_by_mypy])
def test_further_uses(checker, tmp_path: Path) -> None:
    shutil.copy(FOLDER / "checked.py", tmp_path)
    marked = lines_marked(tmp_path)
    assert len(marked) > 20
    strict = ["--strict"] if checker is lines_refused_by_mypy else []
    assert checker(tmp_path, *strict) == marked


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", ["graphir.public", "graphir.passes"])
def test_public_types_are_known(package: str, tmp_path: Path) -> None:
    answer = checked(["pyright", "--verifytypes", package, "--ignoreexternal"], tmp_path).stdout
    assert f'Symbols exported by "{package}"' in answer
    assert re.findall("With unknown type: ([0-9]+)", answer) == ["0", "0"]

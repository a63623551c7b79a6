"""The README's own words: its example runs as printed, and its two commands are what CI runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphir import lattice, rule_sets
from graphir.drawing.lattices import lattice_svg
from runtime import native

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


PRINTED = re.findall(
    r"<!-- readme: (\S+) -->\n```python\n(.*?)```.*?```text\n(.*?)```", README, re.S
)


def test_three_examples_print_something() -> None:
    assert [name for name, *_ in PRINTED] == ["example.py", "scores.py", "native.py"]


@pytest.mark.parametrize(("name", "code", "expected"), PRINTED, ids=[one[0] for one in PRINTED])
def test_the_examples_print_what_the_readme_says(
    tmp_path: Path, name: str, code: str, expected: str
) -> None:
    if 'native="now"' in code and not native.installed():
        pytest.skip("llvmlite is not installed: pip install '.[native]'")
    (tmp_path / name).write_text(code, encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-W", "error", name],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "GRAPHIR_NATIVE_CACHE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == expected


def test_there_are_two_commands_each_on_a_line_of_its_own() -> None:
    install = "python3 -m venv .venv && .venv/bin/pip install"
    commands = re.findall(r"^    (python3 -m venv .*)$", README, re.M)
    assert commands == [
        f"{install} -q . && .venv/bin/graphir demo",
        f"{install} -q '.[test]' && .venv/bin/python -m pytest -q",
    ]


def test_the_map_names_every_room_and_file_of_a_package_and_no_other() -> None:
    listed = README.split("## The map")[1].split("## ")[0]
    named = set(re.findall(r"\b[a-z_]+(?:\.py|/)", listed)) - {"tests/", "examples/", "benchmarks/"}
    there = {
        f"{path.name}/" if path.is_dir() else path.name
        for floor in ("graphir", "passes", "runtime")
        for path in (ROOT / floor).iterdir()
        if not path.name.startswith("__")
        and ((path / "__init__.py").exists() or path.suffix == ".py")
    }
    inside = {
        "rules.py",
        "operators/",
        *(f"{floor}/" for floor in ("graphir", "passes", "runtime")),
    }
    assert there == named - inside


def test_every_rule_set_is_told_of() -> None:
    for one in rule_sets():
        if not one.name.startswith("test"):
            assert f"`{one.name}`" in README, one.name


@pytest.mark.parametrize(("picture", "name"), [("max", "max"), ("jax", "jax_doc")])
def test_the_pictures_are_those_of_today(picture: str, name: str) -> None:
    assert f"examples/{picture}.svg" in README
    drawn = (ROOT / "examples" / f"{picture}.svg").read_text()
    assert drawn.rstrip() == lattice_svg(lattice(name)).rstrip()


def test_the_questions_of_the_readme_have_answers(tmp_path: Path) -> None:
    shown = run("explain(", tmp_path)
    for words in ("int32 and float16 promote to float16", "int8, uint8, float16", "graph net"):
        assert words in shown


def test_the_policy_of_the_readme_finds_its_cast(tmp_path: Path) -> None:
    shown = run("widest=", tmp_path)
    assert "lhs int32 -> bfloat16 under 'jax' (257 becomes 256.0, " in shown
    assert "forbidden by 'lossy'; write " in shown and shown.count("\n") == 1


def test_the_functions_of_the_readme_are_graphs(tmp_path: Path) -> None:
    shown = run("jit(norm", tmp_path)
    assert "%eps: weak_float[]) -> (float16[n, 3])" in shown and shown.count("0.57735") == 6


def test_the_array_of_the_readme_is_computed(tmp_path: Path) -> None:
    assert run("array_api as xp", tmp_path) == "float32 1.0\n"


def run(words: str, folder: Path) -> str:
    """What the README's example that has these words prints."""
    code = next(c for c in re.findall(r"```python\n(.*?)```", README, re.S) if words in c)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "GRAPHIR_NATIVE_CACHE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout

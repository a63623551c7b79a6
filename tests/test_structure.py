"""The house as it should stand: floors, file lengths, the op table, what the repository says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphir import ops
from graphir.semantics.kernels import KERNELS

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ["graphir", "passes", "runtime"]
SOURCES = sorted(p for floor in FLOORS for p in (ROOT / floor).rglob("*.py"))
ALL = sorted(
    p
    for folder in (*FLOORS, "tests", "examples")
    for p in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in p.parts
)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_floor_imports_only_from_floors_below(path: Path) -> None:
    floor = path.relative_to(ROOT).parts[0]
    above = FLOORS[FLOORS.index(floor) + 1 :]
    reached = {name.split(".")[0] for name in imported(path)} & set(above)
    if path == ROOT / "graphir" / "__main__.py":
        assert reached <= {"runtime"}  # the one door that opens upwards
    else:
        assert not reached


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_core_dependencies_are_three(path: Path) -> None:
    known = set(sys.stdlib_module_names) | {"numpy", "ml_dtypes", "networkx", *FLOORS}
    assert {name.split(".")[0] for name in imported(path)} <= known


def test_networkx_is_imported_at_first_use() -> None:
    code = "import sys, graphir; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("path", ALL, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("name", sorted(ops.CATALOGUE))
def test_every_op_is_complete(name: str) -> None:
    op = ops.CATALOGUE[name]
    assert getattr(ops, name) is op
    assert op.name == name
    assert op.doc.strip().endswith(".")
    assert callable(op.signature.resolve)
    assert callable(op.shape)
    assert name in KERNELS or name in ("input", "cast")  # given, and conversions.convert


def test_every_kernel_is_of_an_op() -> None:
    assert set(KERNELS) <= set(ops.CATALOGUE)


def test_about_110_ops() -> None:
    assert len(ops.CATALOGUE) >= 110


def test_the_top_level_holds_what_it_should() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout, so there is no list of files to hold")
    tops = {line.split("/")[0] for line in listed.stdout.splitlines()}
    visible = {top for top in tops if not top.startswith(".")}
    assert visible <= {"pyproject.toml", "README.md", *FLOORS, "docs", "examples", "tests"}


def test_shadowed_builtins_are_not_used_in_ops() -> None:
    names = {"sum", "max", "min", "abs", "round", "range", "all", "any"}
    tree = ast.parse((ROOT / "graphir" / "ops.py").read_text(encoding="utf-8"))
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and _named(n.func)}
    assert not called & names


def _named(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def test_nothing_tells_to_install_another_project() -> None:
    # Another project holds the name on PyPI; installation is from the checkout.
    told = re.compile(r"pip install (-\S+ )*['\"]?graphir\b")
    for path in [*ALL, ROOT / "README.md"]:
        if path != Path(__file__).resolve():
            assert not told.search(path.read_text(encoding="utf-8")), path

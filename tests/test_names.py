"""Names on the syntax tree: a name says the thing, not the tense of a verb."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["graphir", "passes", "runtime"]

PARTICIPLES = frozenset(
    [
        "one",
        "found",
        "made",
        "known",
        "told",
        "given",
        "computed",
        "asked",
        "taken",
        "held",
        "kept",
        "seen",
        "shown",
        "written",
        "wanted",
        "met",
        "meant",
        "said",
        "lost",
        "had",
        "done",
        "begun",
        "brought",
        "thought",
        "chosen",
        "drawn",
        "stored",
        "moved",
        "listed",
        "counted",
        "wished",
        "named",
        "inferred",
        "joined",
        "merged",
        "traced",
        "summed",
        "rounded",
        "converted",
        "called",
        "dropped",
        "put",
        "gone",
    ]
)
"""Participles, and `one`: each stands for any thing, so none names one."""


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a module binds as a variable, parameter, attribute or alias, by its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name, node.lineno
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname, node.lineno) for alias in node.names if alias.asname)


def participles(source: str) -> list[tuple[str, int]]:
    """The bindings of a source text whose name is a participle alone."""
    names = bindings(ast.parse(source))
    return [(name, line) for name, line in names if name.strip("_").lower() in PARTICIPLES]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_variable_is_named_by_a_participle(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        names = participles(path.read_text(encoding="utf-8"))
        assert not names, (place, names)


PUBLIC_VERBS = frozenset(["put", "traced"])
"""`ndarray.put` is NumPy's name, and `jit(f).traced` is a documented method."""

GENERATED = "runtime/targets/python_/support.py"
"""The text of this module stands in exported programs, which import nothing of the project."""


def definitions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every function, method and class of a module, by its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def test_no_function_class_or_module_is_named_by_a_participle() -> None:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "runtime/recording/" in path.as_posix():
                continue  # its functions keep their names until its tables are shared
            names = [name for name, _ in definitions(ast.parse(path.read_text(encoding="utf-8")))]
            words = {name.strip("_").lower() for name in (*names, path.stem)}
            assert not words & (PARTICIPLES - PUBLIC_VERBS), path


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_public = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
                if is_public and place != GENERATED:
                    places.setdefault(node.name, set()).add(place)
    assert not {name: files for name, files in places.items() if len(files) > 1}


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(given): ...",
        "def f(*, told=1): ...",
        "f = lambda asked: 0",
        "x = [made for made in y]",
        "for one in x: ...",
        "with open(x) as kept: ...",
        "try: ...\nexcept Error as known: ...",
        "x._known = 1",
        "if (shown := x): ...",
        "import x as taken",
        "match x:\n    case [held, *_]: ...",
        "_KEPT = 1",
    ],
)
def test_each_kind_of_binding_is_seen(source: str) -> None:
    assert len(participles(source)) == 1

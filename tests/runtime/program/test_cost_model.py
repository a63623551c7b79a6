"""The thresholds: no module keeps a copy of one, and one switch changes all of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Thread

import pytest

from graphir.runtime.program import cost_model
from graphir.runtime.program.cost_model import COST, CostModel
from tests.support.scaled_thresholds import scaled

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(p for layer in ("passes", "runtime") for p in (ROOT / layer).rglob("*.py"))


def frozen(tree: ast.AST) -> Iterator[int]:
    """The lines that read COST when the module is imported, or once for a cached function."""
    bodies: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            cached = any("cache" in ast.unparse(each) for each in node.decorator_list)
            bodies += [] if cached else node.body
        elif isinstance(node, ast.Lambda):
            bodies.append(node.body)
    late = {inner for body in bodies for inner in ast.walk(body)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "COST" and node not in late:
            yield node.lineno


def test_no_module_reads_a_threshold_before_it_is_used() -> None:
    source = """
A = COST.CACHE
class B:
    c = COST.CACHE
def d(e=COST.CACHE):
    return COST.CACHE
@lru_cache(COST.CACHE)
def f(): ...
@cache
def g():
    return COST.CACHE
    """
    assert sorted(frozen(ast.parse(source))) == [2, 4, 5, 7, 11]
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    lines = {
        str(path.relative_to(ROOT)): [*frozen(ast.parse(text))]
        for path, text in texts.items()
        if "COST" in text and path.name != "cost_model.py"
    }
    assert {path: numbers for path, numbers in lines.items() if numbers} == {}


def test_all_thresholds_change_together_for_all_threads_and_change_back() -> None:
    names, before = list(CostModel.__annotations__), {}
    for name in names:
        before[name] = getattr(COST, name)
        assert not hasattr(cost_model, name)  # nobody can import it by its name
    seen: list[object] = []
    with scaled(512, 64, LONG_FUNCTION=3):
        assert (COST.BIT_ARITHMETIC, COST.CACHE, COST.NATIVE_BLOCK) == (8, 3072, 128)
        assert (COST.LONG_FUNCTION, COST.KEPT_PLANS, COST.NUMPY_CHEAP) == (3, 1, 0.06)
        thread = Thread(target=lambda: seen.append(COST.BLOCK_LEAST))
        thread.start()
        thread.join()
    assert seen == [32]
    assert {name: getattr(COST, name) for name in names} == before


def test_an_unknown_threshold_is_refused() -> None:
    with pytest.raises(AttributeError, match="CASH"), scaled(1, CASH=1):
        pass


def test_every_threshold_names_its_benchmark() -> None:
    """By the last colon of its description, or of its first paragraph: a module of benchmarks."""
    benchmarks = {path.stem for path in (ROOT / "tests" / "benchmarks").glob("*.py")}
    tree = ast.parse(Path(cost_model.__file__).read_text(encoding="utf-8"))
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    described = 0
    for body in bodies:
        for constant, text in pairwise(body):
            match constant, text:
                case (
                    ast.AnnAssign(target=ast.Name(name), annotation=ast.Name(unit)),
                    ast.Expr(ast.Constant(str(doc))),
                ) if unit != "TypeAlias":
                    words = {word for _, word in re.findall(r"(:|\band)\s+(\w+)", doc)}
                    assert words & benchmarks, name
                    described += 1
    assert described >= len(CostModel.__annotations__)

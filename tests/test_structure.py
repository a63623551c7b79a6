"""The house as it should stand: floors, file lengths, the op table, what the repository says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from graphir import ops
from graphir.semantics.kernels import KERNELS
from tests.support.op_rows import OTHERS, ROWS
from tests.support.syntax import syntax

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
    for node in syntax(path).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and not node.level:
            yield node.module


PACKAGES = {"graphir": "graphir", "passes": "graphir.passes", "runtime": "graphir.runtime"}
"""The package of each folder."""

ROOMS = """
    graphir:  import_names escape markup errors hints entry_points lazy gc_pause dtypes source_text
              assignments location
              lattice conversions promotion ops ir semantics text numpy_api control loss
              rule_reports drawing public
    passes:   rewriter implicit_cast weak_types simplify_casts fold_constants common_subexpressions
              dead_code legalize decompose pipeline analysis reports
    runtime:  optional references workers progress binding results interpreter unrolling program
              native execution audit jit recording array_api sources testing targets value_files cli
              notebook
"""
"""The rooms and single modules of each floor, in order: each imports from those before it alone."""

FACADES = {
    "graphir.__main__": "graphir.runtime.cli.main",
    "graphir": "graphir.runtime.notebook",  # %load_ext graphir
    "graphir.pytest_plugin": "graphir.runtime.testing graphir.runtime.testing.run",
    "graphir.lattice.order": (
        "graphir.lattice.files graphir.rule_reports.findings graphir.rule_reports.fragments "
        "graphir.drawing.lattices"
    ),
    "graphir.promotion.rules": (
        "graphir.rule_reports.explanation graphir.rule_reports.laws "
        "graphir.rule_reports.fragments graphir.rule_reports.tables"
    ),
    "graphir.ops.dims": "graphir.ops.grammar",  # Dim("2*n + 1")
    "graphir.ir.facade": (
        "graphir.text.files graphir.text.parser graphir.text.printer graphir.drawing.graphs"
    ),
    "graphir.ir.symbol": (
        "graphir.text.printer graphir.numpy_api.dispatch graphir.ir.operators.clipping"
    ),
    "graphir.numpy_api.traced_numbers": "graphir.numpy_api.dispatch",  # as Symbol
    "graphir.passes.analysis.casts.report": (
        "graphir.passes.reports.json_ graphir.passes.reports.html_rows "
        "graphir.passes.reports.sentences graphir.passes.reports.text"
    ),
    "graphir.passes.analysis.diff": (
        "graphir.passes.reports.html_rows graphir.passes.reports.sentences"
    ),
    "graphir.rule_reports.explanation": "graphir.rule_reports.fragments",
    "graphir.passes.analysis.casts.rows": "graphir.passes.analysis.casts.sites",  # CastRow.to_json
    "graphir.runtime.audit.audit": "graphir.runtime.recording",  # audit of a function
    "graphir.runtime.array_api.array": (
        "graphir.runtime.array_api graphir.runtime.array_api.indexing "
        "graphir.runtime.array_api.views"
    ),
    "graphir.runtime.array_api.wording": "graphir.runtime.array_api",  # the names to suggest
}
"""Modules that hand over to modules after them, a line a method, and what they reach there."""

DOORS = {"graphir.__main__", "graphir.pytest_plugin"}
"""Modules by which Python and pytest enter; they belong to no room."""

ORDER = [
    f"{PACKAGES[floor]}.{room}"
    for floor, rooms in re.findall(r"^ +(\w+):((?:\s+\w+(?!:)\b)+)$", ROOMS, re.M)
    for room in rooms.split()
]


def module_of(path: Path) -> str:
    floor, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGES[floor], *(parts[:-1] if parts[-1] == "__init__" else parts)])


MODULES = {module_of(path): path for path in SOURCES}


def dependencies(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports when it runs, deferred imports included."""
    facts = syntax(path)
    for node in facts.imports:
        if node in facts.typing:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif node.module in MODULES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in names)


@cache
def room_of(module: str) -> int:
    """The place of a module's room in the order; a floor's own namespace comes after its rooms."""
    inside = [i for i, room in enumerate(ORDER) if f"{module}.".startswith(f"{room}.")]
    own = [i for i, room in enumerate(ORDER) if floor_of(room) == floor_of(module)]
    return max(inside, default=own[-1])


def floor_of(module: str) -> str:
    """The package of a floor that a module is in."""
    return max((x for x in PACKAGES.values() if f"{module}.".startswith(f"{x}.")), key=len)


def test_the_order_of_rooms_has_all_there_are() -> None:
    listed = set(ORDER)
    there = {
        ".".join(module.split(".")[: floor_of(module).count(".") + 2])
        for module in {*MODULES} - {*PACKAGES.values()}
    }
    assert there - DOORS == listed and len(ORDER) == len(listed)


def test_a_room_imports_only_from_rooms_before_it() -> None:
    wrong = {}
    for module, path in MODULES.items():
        reached = set(dependencies(path)) - set(FACADES.get(module, "").split())
        wrong[module] = {name for name in reached if room_of(name) > room_of(module)}
    assert not {module: names for module, names in wrong.items() if names}


def test_folders_of_tests_mirror_the_rooms() -> None:
    for floor in FLOORS:
        for path in (ROOT / "tests" / floor).rglob("test_*.py"):
            room = path.parent.relative_to(ROOT / "tests")
            assert list((ROOT / room).glob("*.py")), path


def test_modules_import_in_no_circle() -> None:
    edges = {
        module: set(dependencies(path)) - set(FACADES.get(module, "").split()) - {module}
        for module, path in MODULES.items()
    }
    TopologicalSorter(edges).prepare()  # raises CycleError, which names the circle


def test_rooms_of_graphir_import_names_from_where_they_are_defined() -> None:
    for module, path in MODULES.items():
        for node in syntax(path).imports:
            if isinstance(node, ast.ImportFrom) and node.module == "graphir":
                names = {alias.name for alias in node.names}
                is_low = floor_of(module) == "graphir" and module != "graphir"
                assert names <= {"control", "errors", "ops"} or not is_low, module


def test_the_import_of_graphir_alone_imports_nothing() -> None:
    code = """
import sys, graphir
found = {name for name in sys.modules if name.startswith(("graphir.", "numpy", "ml_dtypes"))}
assert found == {"graphir.import_names"}
from graphir.lattice.order import Lattice
assert callable(graphir.lattice) and graphir.Lattice is Lattice
assert {*graphir.__all__, "jit", "lower"} <= {*dir(graphir)} and not hasattr(graphir, "nothing")
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_each_facade_is_needed() -> None:
    for module, names in FACADES.items():
        assert set(names.split()) <= set(dependencies(MODULES[module]))


def test_core_dependencies_are_three() -> None:
    known = set(sys.stdlib_module_names) | {"numpy", "ml_dtypes", "networkx", "graphir"}
    others = {
        (module, name)
        for module, path in MODULES.items()
        for name in imported(path)
        if name.split(".")[0] not in known
    }
    assert others == {("graphir.pytest_plugin", "pytest")}  # pytest imports the plugin


def test_networkx_is_imported_at_first_use() -> None:
    code = "import sys, graphir.public; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_no_function_is_longer_than_70_lines_or_has_more_than_12_branches() -> None:
    functions = [(module, f) for module, path in MODULES.items() for f in syntax(path).functions]
    assert not [(module, f) for module, f in functions if f.lines >= 70 or f.branches > 12]


def test_no_folder_has_more_than_16_modules() -> None:
    folders = {path.parent for path in SOURCES} - {ROOT / "graphir" / "promotion"}  # rule sets
    for folder in folders:
        modules = {module_of(path) for path in folder.glob("*.py") if path.stem != "__init__"}
        assert len(modules - DOORS) <= 16, folder


def test_every_op_is_complete() -> None:
    for name, op in ops.CATALOGUE.items():
        assert getattr(ops, name) is op, name
        assert op.name == name
        assert op.doc.strip().endswith("."), name
        assert callable(op.signature.resolve), name
        assert callable(op.shape), name
        assert name in KERNELS or name in ("input", "cast"), name  # given, conversions.convert


def test_every_kernel_is_of_an_op() -> None:
    assert set(KERNELS) <= set(ops.CATALOGUE)


def test_the_tests_have_a_row_for_each_op_of_the_catalogue() -> None:
    assert {*ops.CATALOGUE} == ROWS.keys() | OTHERS


def test_no_module_imports_from_a_test_module() -> None:
    statement = re.compile(r"^[ \t]*(?:from\b.*?)?\bimport\b(?:[^\n(]*\([^)]*\)|[^\n]*)", re.M)
    for path in ALL:
        text = path.read_text(encoding="utf-8")
        if not any("test_" in found for found in statement.findall(text)):
            continue  # which needs no tree
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [getattr(node, "module", None) or "", *(name.name for name in node.names)]
                assert not re.search(r"\btest_", " ".join(names)), (path, node.lineno)


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
    catalogue = ROOT / "graphir" / "ops" / "catalogue.py"
    tree = ast.parse(catalogue.read_text(encoding="utf-8"))
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and _named(n.func)}
    assert not called & names


def _named(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)


def test_nothing_tells_to_install_another_project() -> None:
    # Another project holds the name on PyPI; installation is from the checkout.
    told = re.compile(r"pip install (-\S+ )*['\"]?graphir\b")
    for path in [*ALL, ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        if path != Path(__file__).resolve():
            assert not told.search(path.read_text(encoding="utf-8")), path

"""The structure of the project: imports along the map, functions, the op table, public names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from graphir import import_names, ops
from graphir.semantics.kernels import KERNELS
from tests.support.op_rows import OTHERS, ROWS
from tests.support.packages import (
    LAYERS,
    MODULES,
    PACKAGES,
    ROOT,
    SOURCES,
    dependencies,
    imported,
    layer_of,
    place_of,
)
from tests.support.syntax import syntax

ALL = sorted(
    p
    for folder in (*LAYERS, "tests", "examples")
    for p in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in p.parts
)


FACADES = {
    "graphir.__main__": "graphir.runtime.cli.main",
    "graphir": "graphir.runtime.notebook",  # %load_ext graphir
    "graphir.pytest_plugin": "graphir.runtime.testing graphir.runtime.testing.run",
    "graphir.dtype_lattices.order": (
        "graphir.dtype_lattices.files graphir.rule_reports.laws graphir.drawing.formats"
    ),
    "graphir.promotion.rules": (
        "graphir.rule_reports.explanation graphir.rule_reports.laws "
        "graphir.rule_reports.facts graphir.rule_reports.tables"
    ),
    "graphir.ops.dims": "graphir.ops.grammar",  # Dim("2*n + 1")
    "graphir.ir.serialization": (
        "graphir.text.files graphir.text.parser graphir.text.printer graphir.drawing.formats"
    ),
    "graphir.ir.symbol": (
        "graphir.text.printer graphir.ir.operators.composition graphir.numpy_api.dispatch"
    ),
    "graphir.passes.analysis.casts.report": (
        "graphir.passes.reports.json_ graphir.passes.reports.html "
        "graphir.passes.reports.sentences graphir.passes.reports.text"
    ),
    "graphir.passes.analysis.diff": (
        "graphir.passes.reports.html graphir.passes.reports.sentences"
    ),
    "graphir.passes.analysis.casts.rows": "graphir.passes.analysis.casts.sites",  # CastRow.to_json
    "graphir.runtime.audit.audit": "graphir.runtime.recording.reports",  # audit of a function
    "graphir.runtime.program.tier": "graphir.runtime.native",
    "graphir.runtime.recording.recording": "graphir.runtime.recording.reports",
    "graphir.runtime.array_api.array": (
        "graphir.runtime.array_api graphir.runtime.array_api.indexing "
        "graphir.runtime.array_api.views"
    ),
}
"""Modules that hand over to modules after them, a line a method, and what they reach there."""

DOORS = {"graphir.__main__"}
"""Modules by which Python enters; they belong to no package of the map."""


def test_the_map_has_every_package_and_module_of_a_layer_and_no_other() -> None:
    there = {
        ".".join(module.split(".")[: layer_of(module).count(".") + 2])
        for module in {*MODULES} - {*LAYERS.values()}
    }
    assert there - DOORS == {*PACKAGES} and len(PACKAGES) == len({*PACKAGES})


def test_a_package_imports_only_from_packages_above_it_in_the_map() -> None:
    wrong = {}
    for module, path in MODULES.items():
        names = set(dependencies(path)) - set(FACADES.get(module, "").split())
        wrong[module] = {name for name in names if place_of(name) > place_of(module)}
    assert not {module: names for module, names in wrong.items() if names}


def test_folders_of_tests_mirror_the_packages() -> None:
    for layer in LAYERS:
        for path in (ROOT / "tests" / layer).rglob("test_*.py"):
            package = path.parent.relative_to(ROOT / "tests")
            assert list((ROOT / package).glob("*.py")), path


def test_modules_import_in_no_circle() -> None:
    edges = {
        module: set(dependencies(path)) - set(FACADES.get(module, "").split()) - {module}
        for module, path in MODULES.items()
    }
    TopologicalSorter(edges).prepare()  # raises CycleError, which names the circle


def test_modules_of_graphir_import_names_from_where_they_are_defined() -> None:
    for module, path in MODULES.items():
        for node in syntax(path).imports:
            if isinstance(node, ast.ImportFrom) and node.module == "graphir":
                names = {alias.name for alias in node.names}
                is_low = layer_of(module) == "graphir" and module != "graphir"
                assert names <= {"control", "errors", "ops"} or not is_low, module


def test_the_import_of_graphir_alone_imports_nothing() -> None:
    code = """
import sys, graphir
found = {name for name in sys.modules if name.startswith(("graphir.", "numpy", "ml_dtypes"))}
assert found == {"graphir.import_names"}
from graphir.dtype_lattices.order import Lattice
assert callable(graphir.lattice) and graphir.Lattice is Lattice
assert {*graphir.__all__, "jit", "lower"} <= {*dir(graphir)} and not hasattr(graphir, "nothing")
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def _imported(module: str) -> ModuleType | None:
    """Import a module; None if it needs an optional package that is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("graphir"):
            raise
        return None


def test_checkers_see_the_names_that_packages_import_lazily() -> None:
    lazy = [x for x in MODULES if isinstance(_imported(x), import_names.LazyPackage)]
    assert {"graphir.public", "graphir.passes", "graphir.runtime", "graphir.runtime.cli"} <= {*lazy}
    for module in lazy:
        facts, homes = syntax(MODULES[module]), vars(import_module(module))["_homes"]
        seen = {
            alias.asname: node.module
            for node in facts.imports
            if node in facts.typing and isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert seen == homes, module
        assert all(hasattr(import_module(module), name) for name in seen), module


IMPORTS = """
import importlib, sys, warnings
import numpy as np
from graphir.runtime import record

def program(x):
    for name in sys.argv[1:]:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name.startswith("graphir"):
                raise
    return x * 2

warnings.simplefilter("error")
with np.errstate(all="raise"):
    record(program, np.ones(3))
for name in sys.argv[1:]:
    for value in vars(sys.modules.get(name, sys)).values():
        values = value if isinstance(value, (tuple, list, frozenset)) else [value]
        assert all(type(x) is np.ndarray for x in values if isinstance(x, np.ndarray)), name
"""


def test_modules_are_imported_while_a_program_runs_as_before_it() -> None:
    doors = {*DOORS, "graphir.pytest_plugin", "graphir.runtime.notebook"}
    argv = [sys.executable, "-c", IMPORTS, *sorted({*MODULES} - doors)]
    subprocess.run(argv, cwd=ROOT, check=True)


def test_each_facade_is_needed() -> None:
    for module, names in FACADES.items():
        assert set(names.split()) <= set(dependencies(MODULES[module]))


def test_core_dependencies_are_three() -> None:
    known = set(sys.stdlib_module_names) | {"numpy", "ml_dtypes", "networkx", "graphir"}
    known |= {"typing_extensions"}  # for type checkers, which bring it
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


GENERATED = ROOT / "runtime" / "targets" / "python_" / "support.py"
"""The text of this module stands in exported programs, which import nothing of the project."""


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, set[Path]] = {}
    for path in {*SOURCES} - {GENERATED}:
        for name in syntax(path).classes:
            if not name.startswith("_"):
                places.setdefault(name, set()).add(path)
    assert not {name: files for name, files in places.items() if len(files) > 1}


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
    assert visible <= {"pyproject.toml", "README.md", *LAYERS, "docs", "examples", "tests"}


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

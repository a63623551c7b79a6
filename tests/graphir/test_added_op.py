"""An op costs its line, its computation, and one row of tests: everything else follows.

A composite op has a line of the catalogue, a decomposition and a row of tests. A primitive op has a
kernel in place of the decomposition; a target without a row for it refuses it by name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("graphir", "passes", "runtime", "tests/__init__.py", "tests/support", "tests/peers")
TESTS = (
    "golden/max.json",
    "test_structure.py",
    "graphir/__init__.py",
    "graphir/semantics",
    "graphir/text",
)

CATALOGUE = """
exp2 = _unary("exp2", sig.REAL_FLOATING, "2**x.")
fabs = _unary("fabs", sig.REAL_FLOATING, "|x| in a float.")
"""
DECOMPOSITION = '''

@exact
def exp2(p: Any, x: Any) -> Any:
    """The power of 2."""
    return p.pow(p.number(2, x), x)
'''
KERNEL = '    "fabs": ufunc(np.fabs),\n'
ROWS = """
    "exp2": OpRow("f", math.exp2, bound=Bound(3, 1), truth=lambda mp, x: mp.power(2, x)),
    "fabs": OpRow("f", math.fabs),
"""

PROGRAM = """
import numpy as np
from graphir import Graph, GraphirError, ops
from graphir.drawing.graphs import graph_html
from graphir.passes import cast_report, draw, lower
from graphir.runtime.native import tier
from graphir.runtime import Program, array_api as xp, interpret, jit, record, targets

values = np.float32([0, -0.0, 0.5, 3, -7.25, 200, np.inf, np.nan])


def graph_of(function):
    g = Graph("g", rules="numpy")
    g.output(function(g.input("float32", (8,), name="x")))
    return g


def same(wanted, result):
    dtypes = np.asarray(result).dtype, wanted.dtype
    return dtypes[0] == dtypes[1] and np.array_equal(wanted, result, equal_nan=True)


for name in ("exp2", "fabs"):
    g = graph_of(getattr(np, name))
    assert [symbol.op.name for symbol in g.symbols] == ["input", name]
    with np.errstate(all="ignore"):
        wanted = np.power(np.float32(2), values) if name == "exp2" else np.fabs(values)
        recording = record(getattr(np, name), values)
        if name == "fabs":  # under jit np.exp2 is refused for its bits
            assert same(wanted, jit(np.fabs)(values))
    assert name in str(recording.graph)
    assert same(wanted, interpret(g, values)) and same(wanted, interpret(lower(g), values))
    for native in ("off", "now"):
        program = Program(g, native=native)
        assert same(wanted, program(values))
    if tier("now")[0] is not None:
        assert "native for strides" in program.explain()
    assert str(Graph.parse(str(g))) == str(g)
    assert name in draw(g) and name in graph_html(g)
    half = Graph("half", rules="jax")
    half.output(getattr(ops, name)(half.input("bfloat16", (3,)).cast("float32")))
    assert "bfloat16" in str(cast_report(half))
    for rules in ("torch", "jax", "max"):
        other = Graph("other", rules=rules)
        assert getattr(ops, name)(other.input("float32", (8,))).dtype == "float32"

g = graph_of(ops.exp2)
exact = np.exp2(values)


def near(result):
    return np.allclose(result, exact, rtol=1e-5, equal_nan=True)


names = {}
exec(targets.python(g), names)
assert near(names["g"](values)) and "stablehlo.power" in targets.stablehlo(g)
assert near(np.asarray(xp.exp2(xp.asarray(values)))) and "exp2" in xp.__all__


def refused(name, target):
    try:
        target(graph_of(ops.fabs))
    except GraphirError as error:
        assert error.op == "fabs" and "has no such op" in str(error), name
    else:
        raise AssertionError(name)


for name in ("python", "stablehlo"):
    refused(name, getattr(targets, name))
for name, module in (("jax", "jax"), ("onnx", "onnxruntime"), ("dask", "dask")):
    try:
        engine = __import__(module)
    except ImportError:
        continue
    target = getattr(targets, name)
    if name == "dask":  # which runs the project's own kernels on blocks
        import dask.array as da
        blocks = da.from_array(values, 3)
        assert near(target(g)(blocks).compute())
        assert same(np.fabs(values), target(graph_of(ops.fabs))(blocks).compute())
        continue
    refused(name, target)
    if name == "jax":
        assert near(np.asarray(target(g)(values)))
    else:
        session = engine.InferenceSession(target(g).SerializeToString())
        assert near(session.run(None, {"x": values})[0])
print("all")
"""


def insert(path: Path, before: str, text: str) -> None:
    """Insert text before the only line of a file that starts with `before`."""
    source = path.read_text(encoding="utf-8")
    assert source.count(f"\n{before}") == 1, (path, before)
    path.write_text(source.replace(f"\n{before}", f"{text}\n{before}"), encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with two more ops, in their three places each."""
    folder = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in (*COPIED, *(f"tests/{name}" for name in TESTS)):
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=ignored, symlinks=True)
        else:
            target.parent.mkdir(exist_ok=True, parents=True)
            shutil.copy(source, target)
    insert(folder / "graphir/ops/catalogue.py", "sinh = ", CATALOGUE.rstrip())
    insert(folder / "graphir/ops/decompositions.py", "# -- predicates", DECOMPOSITION)
    insert(folder / "graphir/semantics/kernels.py", '    "sinh": ', f"\n{KERNEL}".rstrip())
    insert(folder / "tests/support/op_rows.py", '    "sinh": ', ROWS.rstrip())
    # The array API lacks both names; this is what an edition of it with `exp2` would say.
    insert(folder / "runtime/array_api/functions/elementwise.py", '"""\n"""The', "\n    exp2")
    return folder


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@pytest.mark.exhaustive
def test_two_ops_in_three_places_run_everywhere(project: Path) -> None:
    """By interpreter, program, machine code, NumPy's names, array API, text, drawing, targets."""
    assert "all" in run(project, "-c", PROGRAM).stdout


@pytest.mark.exhaustive
def test_the_row_of_an_op_is_all_that_the_tests_need(project: Path) -> None:
    """The tests of kernels, accuracy and text, and those that ask for a row of each op."""
    tests = "tests/graphir/semantics", "tests/graphir/text", "tests/test_structure.py"
    chosen = "exp2 or fabs or row or reference or bound or kernel_and or is_tested or every_op"
    printed = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen)
    assert "passed" in printed.stdout

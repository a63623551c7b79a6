"""docs/extend.md, followed in a copy of the project: its changes, its commands, then the tests.

A block of the language `diff` names a file. Its lines with ` ` stand in the file. Lines with `+`
are added before the line with ` ` that follows them or, before `@@` and at the end, after the one
above them. A file that is not there is written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import Block, blocks
from tests.support.tables import every

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "extend.md"
TEXT = PAGE.read_text(encoding="utf-8")
CHANGES = [block for block in blocks(PAGE) if block.language == "diff"]
FOLDERS = ("graphir", "passes", "runtime", "tests", "docs", "examples")
COPIED = (*FOLDERS, "README.md", "pyproject.toml")
NUMBERS = {"one": 1, "two": 2, "three": 3}

OPS = """
import numpy as np
from graphir import Graph, GraphirError, ops
from graphir.drawing.formats import graph_html
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


exec(targets.python(graph_of(ops.fabs)), names)  # whose table has a row for it
assert same(np.fabs(values), names["g"](values))
refused("stablehlo", targets.stablehlo)
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

RULES = """
from graphir import DType, Graph, explain, rules
from graphir.passes import cast_report, diff, draw

g = Graph("g", rules="careful")
x, y = g.input("int8", ("n",), name="x"), g.input("float16", ("n",), name="y")
g.output((x + y).sum())
assert (x + y).dtype == "float16" and g.outputs[0].dtype == "float32"
assert "careful: i8 -> i16 -> f16" in str(cast_report(g))
assert Graph.parse(str(g)).rules is rules("careful")
assert "careful" in str(explain("int8", "float16"))
assert "differ in 0 of 16 pairs" in str(diff("careful", "max"))
print("all")
"""

FUNCTION = """
import numpy as np
from graphir.runtime import execute, jit, record
from graphir import Graph

x = np.float32([[1, 2, 3], [3, 1, 0]])
f = lambda x: np.piecewise(x, [x == 1, x > 2], [5, -1, 7])
g = Graph("g", rules="numpy")
g.output(f(g.input("float32", (2, 3))))
assert (execute(g, x) == f(x)).all()
print("all")
"""

ONNX = """
import numpy as np, onnx
from onnx import helper
from graphir.runtime import execute
from graphir.runtime.sources import from_onnx

float32 = onnx.TensorProto.FLOAT
value = helper.make_tensor_value_info
node = helper.make_node("GlobalLpPool", ["x"], ["y"], p=3)
shapes = value("x", float32, [2, 1, 3]), value("y", float32, [2, 1, 1])
graph = helper.make_graph([node], "g", shapes[:1], shapes[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
x = np.float32([-3, -0.5, 0, 2, 1, 7]).reshape(2, 1, 3)
imported = from_onnx(model)
assert "call" not in {symbol.op.name for symbol in imported.symbols}
assert np.allclose(execute(imported, x), np.cbrt((abs(x) ** 3).sum(2, keepdims=True)))
print("all")
"""

PROGRAMS = {"ops": OPS, "rule set": RULES, "function of NumPy": FUNCTION, "op of ONNX": ONNX}


def section(block: Block) -> str:
    """Return the heading above a block."""
    above = TEXT[: TEXT.index(f"```diff {block.file}\n{block.text}")]
    return re.findall(r"^#+ (.*)$", above, re.M)[-1]


def apply(folder: Path, block: Block) -> None:
    """Make the changes of a block in a copy of the project."""
    path = folder / block.file
    lines = block.text.splitlines()
    if not path.exists():
        assert all(line[:1] == "+" for line in lines), block
        path.write_text("".join(f"{line[1:]}\n" for line in lines), encoding="utf-8")
        return
    text, below = path.read_text(encoding="utf-8").splitlines(), 0
    added: list[str] = []
    for line in [*lines, "@@"]:
        if line[:1] == "+":
            added.append(line[1:])
            continue
        place = below
        if line != "@@":
            (place,) = (i for i, old in enumerate(text) if old == line[1:])
        text[place:place] = added
        below, added = place + len(added) + 1, []
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


@every("title", [title for title in re.findall(r"^#+ (.*)$", TEXT, re.M) if ": " in title])
def test_a_section_changes_as_many_files_as_its_heading_says(title: str) -> None:
    files = {block.file for block in CHANGES if section(block) == title}
    (number,) = [NUMBERS[word] for word in title.split() if word in NUMBERS and word != "One"]
    assert len(files) == number


def test_the_changes_fit_the_files(tmp_path: Path) -> None:
    for file in {block.file for block in CHANGES}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / file).exists():
            shutil.copy(ROOT / file, tmp_path / file)
    for block in CHANGES:
        apply(tmp_path, block)
        compile((tmp_path / block.file).read_text(encoding="utf-8"), block.file, "exec")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with all changes of the page."""
    folder = tmp_path_factory.mktemp("project")
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache")
    for name in COPIED:
        source, target = ROOT / name, folder / name
        copy = shutil.copy if source.is_file() else None
        _ = (
            copy(source, target)
            if copy
            else shutil.copytree(source, target, ignore=ignored, symlinks=True)
        )
    for block in CHANGES:
        apply(folder, block)
    # The array API lacks both names; this is what an edition of it with `exp2` would say.
    elementwise = folder / "runtime/array_api/functions/elementwise.py"
    before, after = elementwise.read_text(encoding="utf-8").split('\n"""\n"""The')
    elementwise.write_text(f'{before}\n    exp2\n"""\n"""The{after}', encoding="utf-8")
    return folder


def run(project: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.exhaustive
@every("program", PROGRAMS)
def test_each_addition_works_everywhere(project: Path, program: str) -> None:
    """Ops by interpreter, program, machine code, NumPy's names, array API, text, targets."""
    if program == "op of ONNX":
        pytest.importorskip("onnx")
    assert "all" in run(project, "-c", PROGRAMS[program])


COMMANDS = re.findall(r"^    python -m ([\w.]+)(?= |$)", TEXT, re.M)
LONG = {"tests.numpy_reference.table"}
"""A command of many minutes, whose table an exhaustive test of its own compares."""

TESTS = """
    tests/test_structure.py tests/test_promotion_pages.py tests/test_readme.py
    tests/graphir/test_hints.py tests/graphir/ops tests/graphir/text/test_text.py
    tests/graphir/semantics/test_kernels.py tests/graphir/semantics/test_accuracy.py
    tests/graphir/promotion tests/graphir/rule_reports tests/graphir/numpy_api
    tests/passes/test_decompose.py
    tests/runtime/targets/test_target_table.py
"""


@pytest.mark.exhaustive
def test_the_additions_are_all_that_commands_and_tests_need(project: Path) -> None:
    """The commands that the page names, then the tests of all that the page adds to."""
    for module in dict.fromkeys(COMMANDS):
        if module not in LONG:
            run(project, "-m", module)
    run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS.split())

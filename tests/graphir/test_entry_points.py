"""Ops, rule sets and dtypes of other distributions: found by name, read late, else refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphir import Graph, GraphError, ops
from graphir.dtypes import float_dtype
from graphir.ops.op import Op
from tests import ROOT
from tests.support import forks

MODULE = """
import sys
import numpy as np
from graphir import DType, Lattice, Op, PromotionRules
from graphir.dtypes import float_dtype
from graphir.ops import attributes, dtype_rules, shape_rules
from graphir.ops.decompositions import Decomposition
from graphir.ops.op import Attr

print("imported", file=sys.stderr)
softsign = Op(
    "softsign", ("x",), dtype_rules.FLOATING, shape_rules.same, "x / (scale + |x|).",
    (Attr("scale", attributes.integer, 1),),
    kernel=lambda x, scale: x / (x.dtype.type(scale) + np.abs(x)),
)
halves = Op(
    "halves", ("x",), dtype_rules.FLOATING, shape_rules.same, "x / 2, one at a time.",
    kernel=lambda x: np.array([value / 2 for value in x.flat], x.dtype).reshape(x.shape),
)
composite = Op(
    "composite", ("x",), dtype_rules.ARITHMETIC, shape_rules.same, "x * x + x.",
    decomposition=Decomposition(lambda p, x: p.add(p.multiply(x, x), x)),
)
rms = Op(
    "rms", ("x",), dtype_rules.REAL_FLOATING, shape_rules.reduced, "The root mean square.",
    (Attr("axis", attributes.axes, None), Attr("keepdims", attributes.flag, False)), "reduction",
    decomposition=Decomposition(
        lambda p, x, axis, keepdims: p.sqrt(
            p.sum(x * x, axis=axis, keepdims=keepdims) / p.count(x, axis, like=x)
        ),
        ulps=4,
    ),
)
sinc = Op(
    "sinc", ("x",), dtype_rules.REAL_FLOATING, shape_rules.same, "sin(pi * x) / (pi * x).",
    decomposition=Decomposition(lambda p, x: p.where(
        p.cast(x, to="bool"),
        p.sin(x * p.number(np.pi, x)) / (x * p.number(np.pi, x)),
        p.number(1, x),
    )),
)
bare = Op("bare", ("x",), dtype_rules.FLOATING, shape_rules.same, "It computes nothing.")
add = softsign
mine = PromotionRules("mine", "A small lattice.", Lattice("mine", {"int8": ["float32"]}))
float8_own = float_dtype("float8_own", 4, 3, "fnuz", bias=11, short="f8own")
EDGES = {"float8_own": ["float16", "bfloat16"], "float16": ["float32"], "bfloat16": ["float32"]}
floats = PromotionRules("floats", "Floats, one of them of our own.", Lattice("floats", EDGES))
"""

DECLARED = """
[graphir.ops]
softsign = scratch:softsign
halves = scratch:halves
composite = scratch:composite
rms = scratch:rms
sinc = scratch:sinc
bare = scratch:bare
renamed = scratch:softsign
missing = scratch:nothing
number = scratch:np

[graphir.rules]
mine = scratch:mine
floats = scratch:floats

[graphir.dtypes]
float8_own = scratch:float8_own
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a distribution, and with a program that uses it."""
    folder = tmp_path_factory.mktemp("site")
    declare(folder, "scratch", DECLARED)
    (folder / "scratch.py").write_text(MODULE)
    (folder / "program.py").write_text(PROGRAM)
    return folder


def declare(folder: Path, name: str, entry_points: str) -> None:
    """Write what an installer writes of a distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture(scope="module")
def printed(site: Path) -> str:
    """What the program prints; it saves its graph as g.gir, too."""
    return run(site, "program.py", python=sys.executable).stdout


def run(
    site: Path, *command: str, status: int = 0, python: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program, in a fork of a process that has imported graphir unless `python` is given."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    done = subprocess.run(
        [python or forks.executable(), *command],
        cwd=site,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    return done


PROGRAM = """
import pickle
import inspect
import numpy as np
from graphir import Graph, ops, rules
from graphir.drawing.formats import graph_html
from graphir.passes import cast_report, draw, lower
from graphir.runtime import Program, execute, interpret, jit

g = Graph("g", rules="mine")
x = g.input("int8", ("n",), name="x")
y = g.input("float32", ("n",), name="y")
g.output(ops.softsign(x + y, scale=3), ops.halves(y))
print(g)
assert str(Graph.parse(str(g))) == str(g)
assert pickle.loads(pickle.dumps(g)).outputs[0].op is ops.softsign
assert "softsign" in draw(g) and "softsign" in graph_html(g)
(row,) = cast_report(g)
print(row.rule, row.source, row.target)
a, b = np.array([-4, 0, 100], np.int8), np.array([0.5, 1, -3], np.float32)
want = (a + b) / (np.float32(3) + np.abs(a + b)), b / 2
for run in (interpret, execute, lambda *args: Program(g, native="off")(*args)):
    for found, expected in zip(run(g, a, b) if run in (interpret, execute) else run(a, b), want):
        assert found.dtype == np.float32 and found.tobytes() == expected.tobytes()
print(inspect.signature(ops.softsign), "|", ops.softsign.__doc__.splitlines()[0])
g.save("g.gir")
"""


def test_a_declared_op_and_rule_set_run_print_parse_and_draw(printed: str) -> None:
    assert "rules=mine" in printed and "%1 = softsign(%0) {scale=3} : float32[n]" in printed
    assert "mine int8 float32" in printed and "(x, scale=1) | x / (scale + |x|)." in printed


@pytest.mark.usefixtures("printed")
def test_the_command_line_loads_them(site: Path) -> None:
    graphir = "-m", "graphir"
    lowered = run(site, *graphir, "lower", "g.gir").stdout
    assert "softsign" in lowered and "mine: int8 -> float32" in lowered
    assert "lhs of add" in run(site, *graphir, "casts", "g.gir").stdout
    assert "softsign" in run(site, *graphir, "plan", "g.gir").stdout
    run(site, "-c", "import numpy as np; np.save('x', np.int8([1])); np.save('y', np.float32([1]))")
    inputs = "--input", "x=x.npy", "--input", "y=y.npy"
    assert "[0.4]" in run(site, *graphir, "run", "g.gir", *inputs).stdout
    assert "float32" in run(site, *graphir, "promote", "int8", "float32", "--rules", "mine").stdout
    assert "softsign" in run(site, *graphir, "draw", "g.gir").stdout


@pytest.mark.usefixtures("printed")
@pytest.mark.parametrize("target", ["python", "stablehlo", "onnx"])
def test_a_target_without_the_op_refuses_it_by_name(site: Path, target: str) -> None:
    if target == "onnx":
        pytest.importorskip("onnx")
    command = ["-m", "graphir", "export", "g.gir", "--to", target, "--size", "n=3", "-o", "out"]
    refused = run(site, *command, status=3).stderr
    assert "softsign" in refused and "Traceback" not in refused


WRONG = {
    "bare": "op 'bare' has neither a kernel nor a decomposition",
    "renamed": "names an object of another name; got 'softsign'",
    "missing": "cannot be imported",
    "number": "names an object of another name",
    "softsing": "no op is named 'softsing'; near it are softsign",
}


COMPOSITES = """
import numpy as np
from graphir import Graph, ops
from graphir.passes import lower
from graphir.runtime import Program, interpret, targets

g = Graph("c", rules="numpy")
x = g.input("float32", (2, 3), name="x")
g.output(ops.composite(x), ops.rms(x, axis=1), np.sinc(x), ops.sinc(x.cast("float16")))
assert [symbol.op.name for symbol in g.outputs] == ["composite", "rms", "sinc", "sinc"]
assert str(Graph.parse(str(g))) == str(g)
values = np.float32([[0.1, -2, 1e30], [0, 0.5, 3]])
np.save("values", values)
wanted = values * values + values, np.sqrt((values * values).sum(1) / np.float32(3))
names = {}
exec(targets.python(g), names)
runs = [interpret(g, values), interpret(lower(g), values), names["c"](values)]
runs += [Program(g, native=native)(values) for native in ("off", "now")]
for results in runs:
    for result, expected in zip(results, [*wanted, *runs[0][2:]]):
        assert result.dtype == expected.dtype and result.tobytes() == expected.tobytes()
assert np.allclose(runs[0][2], np.sinc(values)) and runs[0][3].dtype == np.float16
print(targets.python(g), targets.stablehlo(g))
g.save("c.gir")
"""


def test_composite_ops_that_are_declared_run_everywhere(site: Path) -> None:
    """Ops that have a decomposition alone, one of them with an error bound."""
    written = run(site, "-c", COMPOSITES).stdout
    assert "stablehlo.multiply" in written and "stablehlo.sine" in written
    assert not any(f"{name}(" in written for name in ("composite", "rms", "sinc"))
    graphir = "-m", "graphir"
    for command in ("lower", "plan", "draw"):
        assert "rms" in run(site, *graphir, command, "c.gir").stdout
    assert "1.0" in run(site, *graphir, "run", "c.gir", "--input", "x=values.npy").stdout
    for target in ("python", "stablehlo"):
        run(site, *graphir, "export", "c.gir", "--to", target, "-o", "out")
        assert "rms" not in (site / "out").read_text()


DTYPES = """
import importlib.util
import pickle
import numpy as np
from graphir import DType, Graph, ops
from graphir.conversions import convert
from graphir.passes import Policy, cast_report, lower
from graphir.runtime import Program, execute, interpret, targets

assert "float8_own" not in map(str, DType)  # until a program names it


def graph_of(name, rules):
    g = Graph("d", rules=rules)
    x, y = g.input(name, (256,), name="x"), g.input("float32", (256,), name="y")
    wide = x if rules == "floats" else x.cast("float32")
    g.output(
        ops.composite(x), x / x, ops.sum(x[:40]), y.cast(name), y.cast("float64").cast(name),
        y.cast("int16").cast(name), x.cast("int8"), x.cast("float8_e5m2").cast("int16"),
        wide * y, wide + ops.sin(y),
    )
    return g


def same(results, others):
    for result, other in zip(results, others, strict=True):
        x, y = (np.asarray(each).astype(np.float32) for each in (result, other))
        number = ~np.isnan(x)
        assert np.array_equal(number, ~np.isnan(y)) and x[number].tobytes() == y[number].tobytes()


own, known = graph_of("float8_own", "floats"), graph_of("float8_e4m3b11fnuz", "explicit")
dtype, example = DType("float8_own"), DType.float8_e4m3b11fnuz
assert dtype is list(DType)[-1] is DType.float8_own is pickle.loads(pickle.dumps(dtype))
for fact in ("bits", "max", "min", "precision", "exponent_bits"):
    assert getattr(dtype, fact) == getattr(example, fact)
np.seterr(all="ignore")
near = (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32)
near = np.concatenate([near, np.nextafter(near, 0, dtype=near.dtype)])
same([convert(near, DType.float32, dtype)], [near.astype(example.storage)])

patterns = np.arange(256, dtype=np.uint8).view(example.storage)
x, y = patterns.astype(np.float32), np.ldexp(1 + near[0x3F80:0x4080] / 3, 3)[:256]
wanted = interpret(known, patterns, y)
names = {}
exec(targets.python(own), names)
for run in (interpret, execute, lambda g, *inputs: interpret(lower(g), *inputs)):
    same(run(own, x, y), wanted)
same(names["d"](x, y), wanted)
for native in ("off", "now"):
    same(Program(own, native=native)(x, y), wanted)
assert "tensor<256xf32>" in targets.stablehlo(own)
if importlib.util.find_spec("onnxruntime"):
    from onnxruntime import InferenceSession
    session = InferenceSession(targets.onnx(own).SerializeToString())
    same(session.run(None, {"x": x, "y": y})[:9], wanted[:9])
assert str(Graph.parse(str(own))) == str(own)
assert len(Policy(forbid="from:float8_own").hits(own)) == 2  # the program writes the others
assert {row.source for row in cast_report(own) if row.kind == "implicit"} == {dtype}
own.save("d.gir")
print("all")
"""


def test_a_declared_dtype_is_one_like_others(site: Path) -> None:
    """A float of ml_dtypes under another name: all its values, by all that runs a graph."""
    assert "all" in run(site, "-c", DTYPES).stdout
    graphir = "-m", "graphir"
    promote = "promote", "float8_own", "bfloat16", "--rules"
    assert "float8_own -> bfloat16: exact" in run(site, *graphir, *promote, "floats").stdout
    refused = run(site, *graphir, *promote, "numpy", status=3).stderr
    assert "NumPy has no float8_own" in refused
    assert "f8own" in run(site, *graphir, "table", "--rules", "floats").stdout
    assert "lhs of multiply" in run(site, *graphir, "casts", "d.gir").stdout
    run(site, *graphir, "casts", "d.gir", "--fail-on", "from:float8_own", status=1)
    run(site, *graphir, "rules", "floats", "-o", "floats.html")
    written = (site / "floats.html").read_text()
    for part in ("Floats, one of them of our own", "All pairs", "Lattice", "<svg", "f8own", "Laws"):
        assert part in written
    misspelt = run(site, *graphir, "promote", "float8_onw", "int8", status=2).stderr
    assert "near it are float8_own" in misspelt


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (("float16", 5, 10), "the name 'float16' is taken"),
        (("int", 4, 3), "the name 'int' is taken"),
        (("a-b", 4, 3), "is an identifier"),
        (("float9", 9, 3), "2 to 8 bits of exponent"),
        (("float9", 8, 3, "fn"), "beyond those of float32"),
        (("float9", 4, 3, "ieee", 200), "beyond those of float32"),
        (("float9", 4, 3, "none"), "specials is one of ieee, fn"),
    ],
)
def test_a_float_that_is_none_is_refused(facts: tuple[Any, ...], why: str) -> None:
    with pytest.raises(GraphError, match=re.escape(why)):
        float_dtype(*facts)


def test_what_is_declared_wrongly_is_refused(site: Path) -> None:
    code = f"""
from graphir import GraphError, ops
for name in {[*WRONG]}:
    assert not hasattr(ops, name)
    try:
        ops.find(name)
    except GraphError as error:
        print(error)
"""
    lines = run(site, "-c", code).stdout.splitlines()
    for line, why in zip(lines, WRONG.values(), strict=True):
        assert why in line


def test_two_distributions_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one", "other"):
        declare(tmp_path, name, f"[graphir.rules]\nmine = scratch:{name}\n")
    code = "from graphir import rules\ntry: rules('mine')\nexcept ValueError as e: print(e)"
    refused = run(tmp_path, "-c", code).stdout
    assert "is declared 2 times; got scratch:one and scratch:other" in refused


def test_importing_graphir_reads_no_distribution(site: Path) -> None:
    code = """
import sys
import importlib.metadata
def refuse(*_, **__): raise AssertionError("entry points were read")
importlib.metadata.entry_points = refuse
from graphir import Graph, ops
import passes, runtime
g = Graph("g", rules="numpy")
x = g.input("int8", ("n",))
g.output(ops.sin(x.cast("float32")) + 1)
runtime.execute(g, __import__("numpy").ones(3, "int8"))
assert "scratch" not in sys.modules
"""
    assert "imported" not in run(site, "-c", code, python=sys.executable).stderr


def test_an_op_registers_without_a_distribution() -> None:
    kernel: Any = lambda x: x  # noqa: E731
    same = ops.negative
    with pytest.raises(GraphError, match="exists already"):
        ops.register(Op("add", same.operands, same.signature, same.shape, "", kernel=kernel))
    with pytest.raises(GraphError, match="is an identifier"):
        ops.register(Op("a b", same.operands, same.signature, same.shape, "", kernel=kernel))
    with pytest.raises(GraphError, match="takes an Op"):
        ops.register(kernel)
    assert "a b" not in ops.CATALOGUE and Graph("g").rules.name == "max"

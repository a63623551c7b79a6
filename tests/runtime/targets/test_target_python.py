"""The Python target: what it writes, run alone, gives what `interpret` gives, to the bit."""

from __future__ import annotations

import ast
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import DType, ExecutionError, Graph, GraphirError, ops
from graphir.runtime import interpret
from graphir.runtime.targets import TargetError, python, write_python
from graphir.runtime.targets.python_.expressions import COMPOSITES, PYTHON
from graphir.runtime.targets.python_.program_text import SOURCES, names_defined
from tests.runtime.targets.target_engines import drawn
from tests.runtime.targets.target_table import rows
from tests.support.drawing import Program, programs
from tests.support.evaluator import same
from tests.support.strategies import STRONG, pool

RAISED = (TypeError, ValueError, IndexError, ZeroDivisionError)


def loaded(graph: Graph) -> Any:
    """The function that the source of a graph defines, in a namespace of its own."""
    space: dict[str, Any] = {}
    exec(compile(python(graph), "<target>", "exec"), space)
    return list(space.values())[-1]


def outcome(function: Any, *inputs: Any) -> list[Any] | None:
    """The results as arrays; None where there are none."""
    try:
        found = function(*inputs)
    except (GraphirError, *RAISED):
        return None
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def agree(program: Program) -> None:
    graph, inputs = program
    ours = outcome(lambda *x: interpret(graph, *x), *inputs)
    try:
        function = loaded(graph)
    except (TargetError, ExecutionError):  # of which constants were folded
        return
    theirs = outcome(function, *inputs)
    if ours is None or theirs is None:
        assert theirs is ours, python(graph)
        return
    for one, other in zip(ours, theirs, strict=True):
        assert same(one, other), (one, other, python(graph))
    owned = [x for x in theirs if x.ndim]
    assert all(x.flags.writeable for x in owned)
    for i, one in enumerate(owned):
        assert not any(np.may_share_memory(one, x) for x in (*inputs, *owned[:i])), python(graph)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(ops.CATALOGUE))
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_programs_of_every_op_give_the_same_bits(name: str, data: st.DataObject) -> None:
    agree(data.draw(programs(op=ops.CATALOGUE[name], steps=3)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", STRONG, ids=str)
def test_every_cast_gives_the_same_bits(source: DType) -> None:
    for target in STRONG:
        for tf32 in ("even", "away"):
            g = Graph(tf32=tf32)
            x = g.input(source, ("n",))
            try:
                g.output(x.cast(target))
            except GraphirError:
                continue
            agree(Program(g, (pool(source),)))


def test_every_op_has_a_row() -> None:
    primitives = {name for name, op in ops.CATALOGUE.items() if not op.decomposition}
    assert primitives - set(PYTHON) == {"input"}
    assert set(PYTHON) >= COMPOSITES


def test_the_source_runs_where_the_project_is_not(tmp_path: Path) -> None:
    g = Graph("net work", rules="jax")
    x, w = g.input("int16", ("n",), name="x"), g.input("bfloat16", ("2*n",), name="lambda")
    g.output(ops.gelu(x / 3), x * w[: x.shape[0]], ops.erf(w) // 2)
    given = np.arange(4, dtype=np.int16), np.arange(8).astype(w.dtype.to_numpy())
    after = "import sys\nfound = net_work(np.arange(4, dtype=np.int16), np.arange(8).astype"
    after += "(ml_dtypes.bfloat16))\nprint(*(x.tobytes().hex() for x in found))\n"
    after += "assert not {'graphir', 'runtime', 'passes'} & {*sys.modules}\n"
    file = tmp_path / "net.py"
    file.write_text(python(g) + after)
    shown = subprocess.run([sys.executable, "-I", file], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [x.tobytes().hex() for x in interpret(g, *given)]


ALONE = """
import ast, pickle, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in {*sys.stdlib_module_names, "numpy", *sys.argv[2:]}:
            raise ImportError(name)

sys.meta_path.insert(0, Refused())
for name, source, inputs, expected in pickle.load(open(sys.argv[1], "rb")):
    space = {}
    exec(source, space)
    found = space["asked"](*inputs)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
    assert found.tobytes() == expected.tobytes(), name
"""
SOME = [DType(name) for name in ("bool", "int32", "uint8", "float32", "complex64", "bfloat16")]


@pytest.mark.parametrize("besides", [[], ["ml_dtypes"]], ids=["numpy", "ml_dtypes"])
def test_every_op_runs_where_there_is_nothing_else(besides: list[str], tmp_path: Path) -> None:
    """With no other package than those, and no file of this one."""
    file, told = tmp_path / "asked.pickle", []
    for row, dtype in product(rows(), SOME):
        if graph := row.graph(dtype):
            source, inputs = python(graph), drawn(graph, 1)
            if ("ml_dtypes" in source or any("bfloat" in str(x.dtype) for x in inputs)) == bool(
                besides
            ):
                told.append((f"{row.name} {dtype}", source, inputs, interpret(graph, *inputs)))
    file.write_bytes(pickle.dumps(told))
    command = [sys.executable, "-I", "-c", ALONE, file, *besides]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not shown.returncode, shown.stderr
    assert len(told) > 100


def test_casts_tell_their_use_and_line() -> None:
    g = Graph("told")
    x, w = g.input("int16", ("n",), name="x"), g.input("float32", ("n",), name="w")
    g.output(x * w)
    line = g.outputs[0].location.line
    assert f"# lhs of multiply at tests/runtime/targets/test_target_python.py:{line}:" in python(
        g
    ).replace("\\", "/")
    assert "max: int16 -> float32" in python(g)


def test_it_reads_as_a_program_would_be_written() -> None:
    g = Graph("doubled")
    x = g.input("tensor_float32", ("n", 2), name="x")
    g.output(ops.sum(x * 2, axis=0), x.reshape(-1))
    lines = python(g)[python(g).index("def doubled") :].splitlines()
    assert [line for line in lines if "#" not in line] == [
        "def doubled(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:",
        '    """Returns tensor_float32[2], tensor_float32[2*n]."""',
        "    n = x.shape[0]",
        '    x = checked_input("x", x, np.float32, (n, 2))',
        '    x = round_fraction(x, mantissa=10, ties="even")',
        "    v2 = np.multiply(x, np.float32(2.0))",
        '    v3 = round_fraction(v2, mantissa=10, ties="even")',
        "    v5 = np.add.reduce(v3, axis=(0,), dtype=np.float32, keepdims=False)",
        '    v6 = round_fraction(v5, mantissa=10, ties="even")',
        "    v7 = x.reshape((2 * n,))",
        "    return v6, v7.copy()",
    ]


def test_a_module_has_its_data_beside_it_and_lines_that_fit(tmp_path: Path) -> None:
    g = Graph("weighted")
    x = g.input("float32", ("n", 40), name="x")
    weights = np.linspace(-2, 2, 1600, dtype=np.float32).reshape(40, 40)
    halves = g.constant(weights, "bfloat16")
    few = g.constant(np.linspace(0, 1, 40), "float32")
    parts = [ops.slice(x, start=(0, i), stop=(3, i + 2), step=(1, 1)) for i in range(12)]
    g.output(x @ weights + few, x.astype("bfloat16") @ halves, ops.concat(parts, axis=1))
    write_python(g, tmp_path / "weighted.py")
    assert {*np.load(tmp_path / "weighted.npz")} == {"c0", "c1"}
    source = (tmp_path / "weighted.py").read_text()
    assert "base64" not in source
    assert all(len(line) <= 100 or "# " in line for line in source.splitlines())
    if ruff := shutil.which("ruff", path=str(Path(sys.executable).parent)):
        check = [ruff, "format", "--isolated", "--line-length", "100", "--check", str(tmp_path)]
        subprocess.run(check, check=True, capture_output=True)
    spec = spec_from_file_location("weighted", tmp_path / "weighted.py")
    assert spec and spec.loader
    spec.loader.exec_module(module := module_from_spec(spec))
    given = np.linspace(-1, 1, 120, dtype=np.float32).reshape(3, 40)
    for one, other in zip(module.weighted(given), interpret(g, given), strict=True):
        assert same(one, other)


def test_what_is_given_is_checked() -> None:
    g = Graph("given")
    g.output((g.input("float32", ("n", 2), name="x") + 1).max(axis=0))
    function = loaded(g)
    for wrong in (np.ones((3, 2)), np.ones((3, 3), np.float32)):
        with pytest.raises((TypeError, ValueError), match=r"^x "):
            function(wrong)
    with pytest.raises(ValueError, match=r"^max: .*; got shape \[0, 2\], axis=0"):
        function(np.ones((0, 2), np.float32))


def test_a_dim_that_nothing_binds_is_named() -> None:
    g = Graph("open")
    g.output(g.input("float32", ("n*m",)) + 1)
    with pytest.raises(TargetError, match="nothing binds"):
        python(g)


def test_no_piece_has_the_name_of_another() -> None:
    found: dict[str, str] = {}
    for module in SOURCES:
        for statement in ast.parse(Path(import_module(module).__file__ or "").read_text()).body:
            for name in names_defined(statement):
                assert found.setdefault(name, module) == module, name

"""What a program tells of the native tier: what runs a region and why, and its machine code."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, Op, ops
from graphir.runtime import Program, interpret, native
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.cutting import Region
from tests import ROOT
from tests.support.engines import graph_of, inputs_of
from tests.support.evaluator import agree, outcome
from tests.support.native_runs import needs_llvmlite

N = 300_000
X = np.linspace(-2, 2, N, dtype=np.float32)
PAYS = "NumPy: to be compiled, if such calls take long enough"


@pytest.fixture(autouse=True)
def _unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tier is what a test says, whatever the environment has."""
    monkeypatch.delenv("GRAPHIR_NATIVE", raising=False)


def graph(function: Callable[..., Any] = lambda x: x * 2 + 1) -> Graph:
    made = Graph("g")
    made.output(function(made.input("float32", ("n",), name="x")))
    return made


def tiers(program: Program, *inputs: Any) -> list[str]:
    """The lines that tell of a tier."""
    lines = program.explain(*inputs).splitlines()
    return [line.strip() for line in lines if line.split()[0] in ("native", "NumPy:")]


# -- without machine code


def alone(program: Program, why: str) -> None:
    """The reason stands in the first line, once, and a region has no machine code for it."""
    assert (program(X) == interpret(program.graph, X)).all()
    for text in (program.explain(), program.explain(X)):
        assert text.splitlines()[0].endswith(f", NumPy alone: {why}")
        assert text.count("NumPy") == 1 and not tiers(program)
    with pytest.raises(ExecutionError, match=f"^no region has machine code: {why}"):
        program.ir(0)


def test_switched_off_by_an_argument() -> None:
    alone(Program(graph(), native="off"), 'native="off"')


def test_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", "0")
    alone(Program(graph(), native="now"), "GRAPHIR_NATIVE=0")


def test_without_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "is_installed", lambda: False)
    alone(Program(graph(), native="now"), "llvmlite is not installed")


def test_without_llvmlite_execute_does_not_mention_it() -> None:
    """In a process that has no such package, whose warnings are errors and whose log is shown."""
    code = """if True:
        import logging, sys
        sys.modules["llvmlite"] = None  # as if it were not there
        logging.basicConfig(level=logging.DEBUG)
        import numpy as np
        from graphir import Graph
        from graphir.runtime import execute
        g = Graph("g")
        g.output(g.input("float32", ("n",), name="x") * 2 + 1)
        x = np.ones(300_000, np.float32)
        for _ in range(50):
            assert (execute(g, x) == 3).all()
        native = "llvmlite.", "graphir.runtime.native."
        assert not any(name.startswith(native) for name in sys.modules)
        """
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={"GRAPHIR_NATIVE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


def test_an_unknown_tier() -> None:
    with pytest.raises(ExecutionError, match='native is "auto", "now" or "off"; got \'fast\''):
        Program(graph(), native="fast")  # type: ignore[arg-type]


# -- with it


def program(native: Any = "auto", **how: Any) -> Program:
    return Program(graph(**how), native=native)


@needs_llvmlite
def test_a_region_earns_its_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """In NumPy, then asked for, then compiled by another thread, for such inputs as were given."""
    asked: list[Callable[[], Any]] = []

    def submit(*call: Any) -> None:
        asked.append(partial(*call))

    monkeypatch.setattr("graphir.runtime.native.kernels.submit", submit)
    monkeypatch.setattr(COST, "STEPWISE", -1)  # views, too
    made = program()
    [told] = tiers(made)
    assert re.fullmatch(r"NumPy: 0\.0 of the \d+ ms spent after which it is compiled", told)
    while not asked:
        made(X)
        assert tiers(made)[0].startswith("NumPy: ")
    assert tiers(made) == ["NumPy: to be compiled"]
    assert tiers(made, X) == [PAYS]
    asked.pop()()
    assert tiers(made) == tiers(made, X) == ["native for strides (1)"]
    assert tiers(made, X[::3]) == [PAYS]
    made(np.repeat(X, 3)[::3])
    asked.pop()()
    assert tiers(made) == ["native for strides (1) and (3)"]
    assert tiers(made, X[::3]) == ["native for strides (3)"]


@needs_llvmlite
def test_views_are_told_of_as_they_lie() -> None:
    g = Graph("grey")
    x = g.input("uint8", ("h", "w", 3), name="x")
    g.output(x[:, :, 0].cast("float32") * 0.25 + x[:, :, 2].cast("float32"))
    made, image = Program(g, native="now"), np.full((600, 500, 3), 8, np.uint8)
    assert (made(image) == 10).all()
    assert tiers(made, image) == ["native for strides (3, 3)"]
    made.ir(len(made.steps) - 1, image)
    assert tiers(made) == ["native for strides (3, 3)"]  # that of contiguous views is not made


@needs_llvmlite
def test_compiled_now() -> None:
    made = program("now")
    assert tiers(made) == ["NumPy: to be compiled"]
    made(X)
    assert tiers(made) == ["native for strides (1)"]


@pytest.mark.parametrize("value", ["off", "2", "true", " "])
def test_the_environment_says_something_else(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", value)
    with pytest.raises(ExecutionError, match=f'GRAPHIR_NATIVE .* is "0" or "1"; got {value!r}'):
        program()


@needs_llvmlite
def test_the_environment_compiles_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", "1")
    made = program()
    made(X)
    assert tiers(made) == ["native for strides (1)"]


@needs_llvmlite
def test_an_op_without_an_emitter_stays_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphir.runtime.native.emitters import EMITTERS, has_code
    from graphir.runtime.program.codegen.tracing import select

    monkeypatch.delitem(EMITTERS, select)
    monkeypatch.setattr(
        "graphir.runtime.native.region_writer.has_code", has_code.__wrapped__
    )  # it remembers
    made = program("now", function=lambda x: ops.where(x > 0, x, -x) * 3)
    assert (made(X) == np.abs(X) * 3).all()
    why = "no machine code for select of bool, float32, float32"
    assert tiers(made) == [f"NumPy: {why}"]
    with pytest.raises(ExecutionError, match=f"^the region stays in NumPy: {why}$"):
        made.ir(0)


@needs_llvmlite
def test_the_code_of_a_region() -> None:
    made = program()
    code = made.ir(0)
    assert "fmul <" in code.llvm and "define " in code.llvm
    assert "kernel" in code.assembly and "ret" in code.assembly
    assert str(code) == f"{code.llvm}\n{code.assembly}"
    assert made.ir(0, X) == made.ir(0, x=X) == code != made.ir(0, X[::3])
    assert tiers(made) == ["native for strides (1) and (3)"]


@needs_llvmlite
def test_the_code_of_inputs_that_are_repeated() -> None:
    """What is known of their shapes decides where no arrays are given."""
    g = Graph("g")
    x, row, column = (
        g.input("float32", shape, name=f"x{i}")
        for i, shape in enumerate([("m", "n"), ("n",), ("m", 1)])
    )
    g.output(x * row + column)
    made = Program(g)
    given = [np.ones(shape, np.float32) for shape in [(200, 300), (300,), (200, 1)]]
    assert made.ir(0) == made.ir(0, *given)
    assert tiers(made) == ["native for strides (1, 1, 0)"]


@needs_llvmlite
def test_the_code_of_what_another_step_makes() -> None:
    g = Graph("g")
    x, w = (g.input("float32", ("n", "n"), name=name) for name in "xw")
    g.output(ops.matmul(x, w) * 2 + x)
    made = Program(g)
    square = np.ones((300, 300), np.float32)
    assert made.ir(1) == made.ir(1, square, square) != made.ir(1, square[::-1, ::-1], square)
    with pytest.raises(ExecutionError, match=r"^step 0 is not a region; got a call of matmul$"):
        made.ir(0)


@needs_llvmlite
@pytest.mark.parametrize("step", [-1, 1])
def test_a_step_that_is_not_there(step: int) -> None:
    with pytest.raises(ExecutionError, match=r"step -?1 does not exist; use a step from 0 to 0"):
        program().ir(step)


@needs_llvmlite
def test_small_steps_are_compiled_together() -> None:
    g = Graph("g")
    x, w = g.input("float32", ("n",), name="x"), g.input("bfloat16", (), name="w")
    g.output(x * w + 1)
    made, given = Program(g, native="now"), (X[:100], np.ones((), ml_dtypes.bfloat16))
    assert tiers(made) == ["NumPy: to be compiled"] * 2
    assert set(tiers(made, *given)) <= {PAYS, "NumPy: to be compiled"}
    for _ in range(3):
        assert (made(*given) == X[:100] + 1).all()
    assert (
        tiers(made)
        == tiers(made, *given)
        == ["native for strides (0)", "native for strides (1, 0)"]
    )


@needs_llvmlite
def test_rows_that_vectors_do_not_fit() -> None:
    g = Graph("g")
    g.output(ops.sinh(g.input("float64", ("m", "n"), name="x")).sum(axis=1))
    made, x = Program(g, native="now"), np.ones((20_000, 20))
    assert agree(made(x), interpret(g, x))
    why = "NumPy: rows of its inputs have no common stride, or are too short"
    assert tiers(made, x) == [why]
    with pytest.raises(ExecutionError, match=f"^the region stays in {why}$"):
        made.ir(0, x)


@needs_llvmlite
@pytest.mark.parametrize(
    "op", [op for op in ops.CATALOGUE.values() if op.kind == "elementwise"], ids=lambda op: op.name
)
def test_an_op_is_native_or_it_is_told_why(op: Op) -> None:
    """And gives what it should; with dtypes of each kind."""
    found = [graph_of(op.name, dtype) for dtype in (DType.bool, DType.int16, DType.float32)]
    for each in filter(None, found):
        made = Program(each, native="now")
        inputs = inputs_of(each, 0)
        assert agree(outcome(made, *inputs), outcome(interpret, each, *inputs))
        for number, step in enumerate(made.steps):
            if isinstance(step, Region):
                try:
                    assert made.ir(number).assembly
                except ExecutionError as error:
                    assert "stays in NumPy: no machine code for " in str(error)

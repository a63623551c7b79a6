"""What policies say: one error with every place and fix, and warnings at the program's lines."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphir import CastWarning, DType, Graph, PromotionError, ops
from graphir.passes import Policy
from tests import ROOT
from tests.support.tables import every

HERE = "tests/passes/analysis/test_policy_messages.py"


def lines_of(refused: pytest.ExceptionInfo[PromotionError]) -> list[str]:
    return str(refused.value).splitlines()


def test_a_line_of_the_error_has_all_that_is_asked_for() -> None:
    g = Graph("net", rules="jax", policy=Policy(casts="forbid", allow="exact"))
    x = g.input("int32", ("n",), name="x")
    w = g.input("bfloat16", ("n",), name="w")
    with g.layer("encoder"):
        y = (x + w[0]) * 2.2
    with pytest.raises(PromotionError) as refused:
        g.output(y)
    head, line, tail = lines_of(refused)
    out = refused.value.location
    assert out is not None and (out.file, out.line) == (HERE, y.location.line + 2)
    assert head == f"{out}: output: the policy of graph 'net' forbids 1 cast:"
    add = y.args[0]
    assert (add.location.column, add.location.line) == (14, y.location.line)
    assert line == (
        f"  {HERE}:{add.location.line}:14 [encoder]: add(lhs: int32[n] ({x.location}), "
        f"rhs: bfloat16[] ({add.args[1].location})): lhs int32 -> bfloat16 under 'jax' "
        "(257 becomes 256.0, 23 bits fewer), forbidden by casts='forbid'; "
        'write x.astype("float64") + w[0].astype("float64")'
    )
    assert tail.startswith(
        "Cast there, or relax the graph's Policy: its casts, forbid, allow or widest"
    )


def test_all_kinds_that_forbid_a_cast_are_named() -> None:
    g = Graph("net", policy=Policy(forbid={"lossy", "int32->*", "to:bool", "precision"}))
    with pytest.raises(PromotionError, match="forbidden by 'int32->\\*', 'lossy', 'precision';"):
        g.output(g.input("int32") * g.input("bfloat16"))


WHERE = 'ops.where(x == x, h.astype("float64"), i.astype("float64"))'


@every(
    ("build", "fix"),
    [
        (lambda x, h, y, i: i + y, 'i.astype("float64") + y.astype("float64")'),
        (lambda x, h, y, i: y * (i - 1), 'y.astype("float64") * (i - 1).astype("float64")'),
        (lambda x, h, y, i: ops.sin(i), 'ops.sin(i.astype("float64"))'),
        (lambda x, h, y, i: ops.where(x == x, h, i), WHERE),
        (lambda x, h, y, i: h * 1e6, 'h.astype("float32") * 1e6'),
        (lambda x, h, y, i: h - 1e300, 'h.astype("float64") - 1e300'),
        (lambda x, h, y, i: h + i[0], 'h.astype("float64") + i[0].astype("float64")'),
    ],
)
def test_the_fix_is_an_expression_that_is_allowed(build: Callable[..., Any], fix: str) -> None:
    """Under JAX's rules an int32 meets floats in their dtype; what is told is typed and passes."""
    g = Graph("fix", rules="jax", policy=Policy(forbid={"lossy"}))
    x, h = g.input("int8", ("n",), name="x"), g.input("float16", ("n",), name="h")
    y, i = g.input("float32", ("n",), name="y"), g.input("int32", ("n",), name="i")
    with pytest.raises(PromotionError) as refused:
        g.output(build(x, h, y, i))
    assert lines_of(refused)[1].endswith(f"; write {fix}")
    g.output(eval(fix, {"ops": ops}, {"x": x, "h": h, "y": y, "i": i}))
    assert g.policy.hits(g) == []


def test_the_fix_keeps_to_the_budget() -> None:
    g = Graph("fix", rules="numpy", policy=Policy(casts="forbid", widest="float32"))
    i, y = g.input("int32", ("n",), name="i"), g.input("float32", ("n",), name="y")
    with pytest.raises(PromotionError) as refused:
        g.output(i * y)
    assert "forbids 2 casts and 1 dtype:" in lines_of(refused)[0]
    fixes = {line.split("; write ")[1] for line in lines_of(refused)[1:4]}
    assert fixes == {'i.astype("float32") * y'}
    g.output(i.astype("float32") * y)


def test_a_hundred_are_shown_and_the_rest_counted() -> None:
    g = Graph("many", policy=Policy(forbid={"lossy"}))
    x, w = g.input("int32", ("n",)), g.input("bfloat16", ("n",))
    code = "\n".join(f"y{i} = x * w" for i in range(130))
    names: dict[str, Any] = {"x": x, "w": w}
    exec(compile(code, "many.py", "exec"), names)
    with pytest.raises(PromotionError) as refused:
        g.output(*(names[f"y{i}"] for i in range(130)))
    found = lines_of(refused)
    assert "forbids 130 casts:" in found[0] and len(found) == 1 + 100 + 1 + 1
    assert [line.split(":")[1] for line in found[1:101]] == [str(i + 1) for i in range(100)]
    assert found[101] == "  ... and 30 more: graph.policy.hits(graph) has all"


def test_a_line_that_is_run_often_is_one_hit() -> None:
    g = Graph("loop", policy=Policy(forbid={"lossy"}, widest="float64"))
    x, w = g.input("int32", ("n",)), g.input("bfloat16", ("n",))
    for _ in range(1000):
        with g.layer("block"):
            w = x * w
    with pytest.raises(PromotionError) as refused:
        g.output(w)
    assert len(lines_of(refused)) == 3 and lines_of(refused)[1].endswith(" (1,000 times)")


def test_layers_of_one_line_are_told_apart() -> None:
    g = Graph("layers", policy=Policy(forbid={"lossy"}))
    x, w = g.input("int32", ("n",)), g.input("bfloat16", ("n",))
    for name in ("first", "second"):
        with g.layer(name):
            w = x * w
    assert [hit.location.layer for hit in g.policy.hits(g)] == ["first", "second"]


# -- warnings

MODULE = """
def program(g, times=1):
    x, w = g.input("int32", ("n",), name="x"), g.input("bfloat16", ("n",), name="w")
    for _ in range(times):
        w = (w +
             x)
    return w - x[0]
"""


@pytest.fixture
def other(tmp_path: Path) -> Any:
    """A module of the user's, in a file of its own."""
    path = tmp_path / "other_program.py"
    path.write_text(MODULE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("other_program", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["other_program"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["other_program"]


def warned(build: Callable[[], object], action: Any = "default", **only: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings(action, category=CastWarning, **only)
        build()
    return caught


def test_warnings_carry_the_lines_of_the_program(other: ModuleType) -> None:
    g = Graph("warned", policy=Policy(casts="warn"))
    found = warned(lambda: g.output(other.program(g, times=1000)))
    assert {one.filename for one in found} == {other.__file__}
    assert [one.lineno for one in found] == [5, 7]
    assert all(one.category is CastWarning for one in found)
    assert str(found[0].message).endswith(
        "rhs int32 -> bfloat16 under 'max' (257 becomes 256.0, 23 bits fewer), warned of by "
        """casts='warn'; write w.astype("float64") + x.astype("float64")"""
    )
    assert len(g.outputs) == 1


def test_a_warning_of_this_file_has_its_line_and_layer() -> None:
    g = Graph("here", policy=Policy(warn={"to:bfloat16"}))
    with g.layer("head"):
        y = g.input("int32") * g.input("bfloat16")
    (found,) = warned(lambda: g.output(y))
    assert (found.filename, found.lineno) == (__file__, y.location.line)
    assert str(found.message).endswith("[head]")


def test_filters_of_modules_hold(other: ModuleType) -> None:
    def build() -> None:
        g = Graph("filtered", policy=Policy(casts="warn"))
        g.output(other.program(g))

    assert len(warned(build)) == 2
    assert warned(build, "ignore", module="other_program") == []
    assert len(warned(build, "ignore", module="tests")) == 2
    assert warned(build, "ignore", message=".*bfloat16") == []
    assert len(warned(build, "ignore", lineno=5)) == 1


def test_a_line_warns_once_however_many_graphs_are_built(other: ModuleType) -> None:
    def build() -> None:
        for _ in range(10):
            g = Graph("again", policy=Policy(casts="warn"))
            g.output(other.program(g))

    assert len(warned(build, "default")) == 2
    assert len(warned(build, "always")) == 20


def test_warnings_as_errors_refuse_the_output(other: ModuleType) -> None:
    g = Graph("errors", policy=Policy(casts="warn"))
    y = other.program(g)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CastWarning)
        with pytest.raises(CastWarning, match="int32 -> bfloat16"):
            g.output(y)
    assert g.outputs == ()
    assert len(warned(lambda: g.output(y))) == 2 and g.outputs == (y,)


def test_what_is_forbidden_comes_before_any_warning(other: ModuleType) -> None:
    g = Graph("both", policy=Policy(casts="warn", forbid={"int32->*"}))

    def build() -> None:
        with pytest.raises(PromotionError):
            g.output(other.program(g) + g.scalar[DType.int8](1))

    assert warned(build) == []


def test_code_of_no_file_warns_too() -> None:
    g = Graph("nowhere", policy=Policy(casts="warn"))
    names: dict[str, Any] = {"x": g.input("int32"), "w": g.input("bfloat16")}
    exec(compile("\n\ny = x * w", "<cell 3>", "exec"), names)
    (found,) = warned(lambda: g.output(names["y"]))
    assert (found.filename, found.lineno) == ("<cell 3>", 3)
    assert "multiply of lhs.astype" in str(found.message)


def test_the_command_line_of_python_decides(tmp_path: Path) -> None:
    code = (
        "from graphir import Graph\nfrom passes import Policy\n"
        "for _ in range(3):\n"
        "    g = Graph('g', policy=Policy(casts='warn'))\n"
        "    g.output(g.input('int32') * g.input('bfloat16'))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code, encoding="utf-8")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *options, "script.py"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    plain, errors = run(), run("-W", "error")
    assert plain.returncode == 0 and plain.stderr.count("CastWarning: multiply(") == 1
    assert "script.py:5: CastWarning" in plain.stderr
    assert errors.returncode == 1 and "graphir.errors.CastWarning" in errors.stderr
    assert run("-W", "ignore").stderr == ""


def test_a_policy_can_be_asked_of_any_graph() -> None:
    g = Graph("any")
    y = g.input("int32") * g.input("bfloat16")
    g.output(y)
    (hit,) = Policy(warn="lossy").hits(g)
    assert (hit.action, hit.location) == ("warn", y.location)
    with pytest.raises(PromotionError, match=r"^the policy of graph 'any' forbids 1 cast:"):
        Policy(forbid="lossy").check(g)
    Policy(forbid="exact").check(g)


def test_a_refusal_has_the_sentence_of_the_report() -> None:
    g = Graph("wide", rules="numpy", policy=Policy(widest="float32"))
    x, w = g.input("float32", (3,), name="x"), g.input("int32", (3,), name="w")
    with pytest.raises(PromotionError) as refused:
        g.output(x * w)
    *_, sentence, advice = str(refused.value).splitlines()
    assert (
        "  the result is float64 because line " in sentence and "; write x * w.astype" in sentence
    )
    assert advice.startswith("Cast there")

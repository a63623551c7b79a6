"""The fix of a row is a line that can be typed: typed, it removes the cast or the loss."""

from __future__ import annotations

import numpy as np
import pytest

from graphir import Graph, ops
from graphir.passes import cast_report

SHAPES = {"x": ("int64", (4,)), "y": ("uint16", (4,)), "b": ("uint8", (4,)), "k": ("uint64", (4,))}

LINES = [
    ("cupy", "0.1 == x", "lhs of equal"),
    ("numpy", "0.1 < x", "lhs of greater"),
    ("numpy", "b * True", "rhs of multiply"),
    ("torch", "-1 < k", "rhs of greater"),
    ("jax_strict", "y / y", "lhs of divide"),
    ("jax_strict", "ops.atan2(x, x)", "rhs of atan2"),
    ("max_strict", "2 / y", "rhs of divide"),
    ("jax_2020", "ops.atan2(c, c)", "lhs of atan2"),
]


def reported(tmp_path, rules, line):
    """The rows of a line of a program in a file, whose text the fix is made of."""
    graph = Graph("g", rules=rules)
    names = {name: graph.input(*given, name=name) for name, given in SHAPES.items()}
    names["c"] = graph.constant(np.array(300), "uint16")
    path = tmp_path / f"line_{abs(hash(line))}.py"
    path.write_text(line, encoding="utf-8")
    code = compile(line, str(path), "eval")
    graph.output(eval(code, {"ops": ops, "np": np, **names}))
    return {f"{row.operand} of {row.op}": row for row in cast_report(graph)}


@pytest.mark.parametrize(("rules", "line", "which"), LINES, ids=lambda one: one)
def test_fixes_can_be_typed(tmp_path, rules, line, which):
    row = reported(tmp_path, rules, line)[which]
    again = reported(tmp_path, rules, row.fix).get(which)
    assert again is None or (again.exact and not row.exact) or again.kind == "explicit"


@pytest.mark.parametrize(
    ("line", "text"), [("0.1 < x", "x"), ("x < 0.1", "x"), ("2**40 == x", "x")]
)
def test_python_asks_the_array_before_a_number(tmp_path, line, text):
    rows = reported(tmp_path, "numpy", line)
    assert {row.text for name, row in rows.items() if name.startswith("lhs")} <= {text}
    assert reported(tmp_path, "cupy", "0.1 == x")["lhs of equal"].text == "x"


def test_numbers_of_dtypes_that_numpy_lacks_have_no_fix(tmp_path):
    graph = Graph("g", rules="jax")
    path = tmp_path / "line.py"
    path.write_text("w * True", encoding="utf-8")
    code = compile("w * True", str(path), "eval")
    graph.output(eval(code, {"w": graph.input("bfloat16", (2,))}))
    (row,) = cast_report(graph)
    assert row.fix == ""


def test_a_fix_casts_to_no_dtype_that_the_rules_lack():
    graph = Graph("g", rules="python")
    graph.output(ops.any(graph.input("weak_int", ())))
    (row,) = cast_report(graph)
    assert '.astype("bool")' in row.fix

"""The piece of program at a location, and the operands in it, as a person would point at them."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from graphir import Graph, Location
from graphir.passes import cast_report
from graphir.passes.analysis.expressions import expression
from tests.support.loading import written

PROGRAM = """
from graphir import Graph, ops

g = Graph("expressions", rules="max")
i = g.input("int16", ("n",))
f = g.input("float32", ("n",))
c = g.input("bool", ("n",))
made = [
{lines}
]
g.output(*made)
"""

# An expression, and the text of each of its operands.
CASES = {
    "i * f": ["i", "f"],
    "(i + i) * f": ["(i + i)", "f"],
    "i*(f)": ["i", "(f)"],
    "((i)) + f": ["((i))", "f"],
    "i[1:] * f[1:]": ["i[1:]", "f[1:]"],
    "ops.add(i, f)": ["i", "f"],
    "ops.where(c, i, f)": ["c", "i", "f"],
    "ops.concat([i, f])": ["i", "f"],
    "ops.concat((i, f), axis=0)": ["i", "f"],
    "i.clip(f, f)": ["i", "f", "f"],
    "(i * f).sum()": ["(i * f)"],
    "i < f": ["i", "f"],
    "-f": ["f"],
    "f[\n    1:\n] + i[1:]": ["f[\n    1:\n]", "i[1:]"],
    "'é' and i + f": ["i", "f"],
    "i \\\n + f": ["i", "f"],
}


def test_operands_as_they_are_written(tmp_path: Path) -> None:
    lines = ",\n".join(f"    {case}" for case in CASES)
    made = written(tmp_path / "cases.py", PROGRAM.replace("{lines}", lines)).made
    for symbol, (case, operands) in zip(made, CASES.items(), strict=True):
        found = expression(symbol.location)
        assert found is not None
        assert found.text == case.removeprefix("'é' and ")
        assert [found.operand(i) for i in range(len(found.spans))] == operands
        assert found.operand(len(operands)) == ""


def test_in_place_operators_have_two_operands(tmp_path: Path) -> None:
    text = PROGRAM.replace("{lines}", "    i,").replace("g.output", "i += f\ng.output")
    total = written(tmp_path / "inplace.py", text).i
    found = expression(total.location)
    assert found is not None
    assert found.text == "i += f"
    assert [found.operand(0), found.operand(1)] == ["i", "f"]


def test_what_is_not_at_hand_is_none(tmp_path: Path) -> None:
    assert expression(Location.at("nowhere.py", 3, 5, 3, 9)) is None
    assert expression(Location.at("", 1)) is None
    path = tmp_path / "gone.py"
    module = written(path, PROGRAM.replace("{lines}", "    i + f,"))
    path.write_text("x\n", encoding="utf-8")
    linecache.checkcache(str(path))
    assert expression(module.made[0].location) is None


def test_operands_written_otherwise(tmp_path: Path) -> None:
    module = written(tmp_path / "otherwise.py", PROGRAM.replace("{lines}", "    (i + i) * f,"))
    found = expression(module.made[0].location)
    assert found is not None
    assert found.replaced({1: "g", 0: "h"}) == "h * g"
    assert found.replaced({}) == found.text == found.brief


# What is written under which rules, and what to type instead of each cast.
FIXES = [
    ("max", "int16", "float32", "x + y", ['x.astype("float32") + y']),
    ("max", "int32", "bfloat16", "x + y", ['x.astype("float64") + y.astype("float64")']),
    ("max", "int16", "float16", "x*y", ['x.astype("float32")*y.astype("float32")']),
    ("max", "int64", "float16", "x + y", ['x.astype("float16") + y']),
    ("jax", "float32", "float64", "x + y", ['x.astype("float64") + y']),
    ("jax", "float16", "float32", "x + y[0]", ['x.astype("float32") + y[0]']),
    ("numpy", "float32", "int8", "x + np.float64(2)", ["x + np.float32(2)"]),
    ("numpy", "float32", "int8", "x + np.float64(.1)", ['x.astype("float64") + np.float64(.1)']),
    ("max", "float16", "int8", "x + 1e-9", ['x.astype("float32") + 1e-9']),
    ("max", "float16", "int8", "x + 2.2", [""]),
    ("max", "int8", "float32", "(x + x) * y", ['(x + x).astype("float32") * y']),
    ("max", "int8", "float32", "x.cast('float32') * y", [""]),
]


@pytest.mark.parametrize(("rules", "x", "y", "text", "fixes"), FIXES)
def test_the_line_to_type(
    tmp_path: Path, rules: str, x: str, y: str, text: str, fixes: list[str]
) -> None:
    program = (
        f'import numpy as np\nfrom graphir import Graph\ng = Graph(rules="{rules}")\n'
        f'x, y = g.input("{x}", ("n",)), g.input("{y}", ("n",))\nmade = {text}\ng.output(made)\n'
    )
    path = tmp_path / f"fix{abs(hash((rules, x, y, text)))}.py"
    graph: Graph = written(path, program).g
    report = cast_report(graph)
    assert [row.fix for row in report if row.kind != "literal" or row.fix or not fixes[0]] == fixes
    if not fixes[0]:
        return
    fixed = written(path.with_stem(path.stem + "b"), program.replace(text, fixes[0])).g
    after = cast_report(fixed)
    assert not after.only("implicit", exact=False)
    assert len(after.only("implicit")) == 0

"""The types of calls that the catalogue declares are those of the ops' records."""

from __future__ import annotations

import ast
import inspect
from inspect import Parameter

import pytest

from graphir import GraphError, ops
from graphir.ops import catalogue, dtype_rules, shape_rules
from graphir.ops.decompositions import Decomposition
from graphir.ops.op import Op
from tests import ROOT
from tests.support.tables import every

FOLDER = ROOT / "graphir" / "ops"
CATALOGUE, CALLS = (
    ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    for name in ("catalogue", "op_calls")
)
MAKERS = {
    node.name: ast.unparse(node.returns).removeprefix("calls.")
    for node in CATALOGUE.body
    if isinstance(node, ast.FunctionDef) and node.returns
}
"""The class that a function of the catalogue returns; `Any` where an assignment names it."""
DECLARED = {
    node.target.id: ast.unparse(node.annotation).removeprefix("calls.")
    for node in CATALOGUE.body
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
} | {
    node.targets[0].id: MAKERS[node.value.func.id]
    for node in CATALOGUE.body
    if isinstance(node, ast.Assign)
    and isinstance(node.targets[0], ast.Name)
    and isinstance(node.value, ast.Call)
    and isinstance(node.value.func, ast.Name)
    and node.value.func.id in MAKERS
}
PARAMETERS = {
    node.name: ast.unparse(call.args)
    for node in CALLS.body
    if isinstance(node, ast.ClassDef)
    for call in node.body
    if isinstance(call, ast.FunctionDef)
}


def parameters(op: Op) -> str:
    """The parameters of a call of an op, as its record has them."""
    types = {attr.name: attr.normalize.__annotations__["value"] for attr in op.attrs}
    operand = "Sequence[ArrayOrNumber]" if op.variadic else "ArrayOrNumber"
    signature = inspect.signature(op).parameters.values()
    texts = [
        f"{parameter.name}: {types.get(parameter.name, operand)}"
        + ("" if parameter.default is Parameter.empty else f" = {parameter.default!r}")
        for parameter in signature
    ]
    late = [i for i, x in enumerate(signature) if x.kind is Parameter.KEYWORD_ONLY]
    if late:
        texts.insert(late[0], "*")
    return ast.unparse(ast.parse(f"def call(self, {', '.join(texts)}): ...").body[0].args)  # pyright: ignore


@every("name", [name for name, op in vars(catalogue).items() if isinstance(op, Op)])
def test_an_op_has_the_type_of_its_calls(name: str) -> None:
    op = ops.find(getattr(ops, name).name)
    assert PARAMETERS[DECLARED[op.name]] == parameters(op)


def test_each_class_is_of_an_op() -> None:
    assert {*DECLARED.values()} == {*PARAMETERS}


def test_a_plain_function_is_no_decomposition() -> None:
    facts = dtype_rules.FLOATING, shape_rules.same, "x."
    with pytest.raises(GraphError, match=r"use decomposition=Decomposition\(function\)"):
        Op("plain", ("x",), *facts, decomposition=lambda p, x: x)  # pyright: ignore
    assert Op("exact", ("x",), *facts, decomposition=Decomposition(lambda p, x: x)).decomposition

"""What help, inspect and dir say of ops and of the packages."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pydoc
from typing import Any

import pytest

import graphir
from graphir import Graph, GraphError, Op, ops, passes, runtime
from tests.support.tables import every

OPS = list(ops.CATALOGUE.values())


@every("op", OPS)
def test_help_speaks_of_the_op(op: Op) -> None:
    text = pydoc.plain(pydoc.render_doc(op))
    assert op.doc in text and f"{op.name}(" in text
    for name in (*op.operands, *(attr.name for attr in op.attrs)):
        assert name in text
    for line in text.splitlines():
        assert not line.rstrip().endswith(":"), line  # each attribute and rule has its sentence
    assert all(word in text for word in ("Dtype: ", "Shape: ", "PromotionError", "ShapeError"))


@every("op", OPS)
def test_the_example_of_the_help_runs(op: Op) -> None:
    names = {"Graph": Graph, "ops": ops}
    example = doctest.DocTestParser().get_doctest(op.__doc__ or "", names, op.name, None, None)
    assert example.examples or op.kind == "creation" or op.name in ("affine_view", "slice_update")
    assert not doctest.DocTestRunner().run(example).failed


@every("op", OPS)
def test_a_signature_binds_the_calls_that_the_op_takes(op: Op) -> None:
    """Operands and attributes by position, then all by name."""
    signature = inspect.signature(op)
    assert list(signature.parameters) == [*op.operands, *(attr.name for attr in op.attrs)]
    operands: list[Any] = [[object()]] if op.variadic else [object() for _ in op.operands]
    required = {attr.name: object() for attr in op.attrs if attr.required}
    bound = signature.bind(*operands, **required)
    assert op.bind(tuple(operands), required)[1] == required
    bound.apply_defaults()
    defaults = {attr.name: attr.default for attr in op.attrs if not attr.required}
    assert {**required, **defaults}.items() <= bound.arguments.items()


def test_a_call_that_the_signature_refuses_is_refused() -> None:
    x = Graph("g").input("float32", (2,))
    for args, named in (((x, x, x), {}), ((x,), {"axis": 0}), ((), {})):
        with pytest.raises(TypeError):
            inspect.signature(ops.add).bind(*args, **named)
        with pytest.raises(GraphError):
            ops.add(*args, **named)


def test_the_class_keeps_its_own_documentation() -> None:
    assert inspect.getdoc(Op) != inspect.getdoc(ops.add)
    assert "operands" in inspect.signature(Op).parameters
    assert str(inspect.signature(ops.gelu)) == "(x, approximate='none')"
    assert "One of 'none', 'tanh', 'quick'." in str(inspect.getdoc(ops.gelu))


@every("package", [graphir, passes, runtime])
def test_dir_lists_public_names_alone(package: Any) -> None:
    for name in ("array_api", "targets"):
        importlib.import_module(f"graphir.runtime.{name}")
    others = {
        runtime: {"array_api", "targets"},
        graphir: {*passes.__all__, *runtime.__all__},
    }
    assert set(dir(package)) == {*package.__all__, *others.get(package, ())}
    assert all(getattr(package, name) is not None for name in dir(package))


def test_dir_of_ops_lists_ops_and_what_finds_them() -> None:
    helpers = {"CATALOGUE", "CONTROL", "find", "register", "split", "sub", "mul", "div", "mod"}
    assert set(dir(ops)) == {*ops.CATALOGUE, *ops.CONTROL, *helpers}
    for module_alias in ("at", "sig", "shapes", "brief"):  # free for the ops of others
        assert not hasattr(ops, module_alias)
    assert all(
        callable(getattr(ops, name)) for name in dir(ops) if name not in ("CATALOGUE", "CONTROL")
    )
    with pytest.raises(AttributeError, match="no op is named 'ad'; near it are"):
        _ = ops.ad  # pyright: ignore

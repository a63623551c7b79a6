"""Errors as data: what was refused, on what, where, why, and the ways out."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, GraphError, GraphirError, ParseError, ops
from graphir.dtype_lattices.order import Cyclic, Lattice
from graphir.errors import Fix, OperandInfo, PromotionError, RulesFix, ShapeError
from graphir.passes import Pipeline
from graphir.runtime import array_api, execute
from tests.support.refusals import refuses
from tests.support.tables import every


def refusal() -> PromotionError:
    g = Graph("mixed", rules="jax_strict")
    x, y = g.input("int8", ("n",), name="x"), g.input("float32", (3,), name="y")
    with pytest.raises(PromotionError) as caught:
        _ = x[:3].rebind(3) + y
    return caught.value


def test_an_error_names_op_operands_place_problem_and_ways_out() -> None:
    error = refusal()
    assert error.op == "add" and [o.name for o in error.operands] == ["lhs", "rhs"]
    assert [o.dtype for o in error.operands] == [DType.int8, DType.float32]
    assert [o.shape for o in error.operands] == [(3,), (3,)]
    assert all(
        o.location and o.location.file.endswith("test_error_fields.py") for o in error.operands
    )
    assert error.location is not None and error.location.file.endswith("test_error_fields.py")
    assert error.problem == "int8 and float32 do not promote under 'jax_strict'"
    assert [type(fix) for fix in error.fixes] == [Fix, RulesFix]
    text = str(error)
    assert text.startswith(f"{error.location}: add(lhs: int8[3] (") and error.problem in text
    assert ".cast(DType.float32), or build the graph under" in text


def test_fields_survive_pickling_and_copying() -> None:
    for error in (refusal(), ParseError("no").having(line=3, column=7), cycle()):
        for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(twin) is type(error) and str(twin) == str(error)
            assert vars(twin).keys() == vars(error).keys()


def cycle() -> Cyclic:
    with pytest.raises(Cyclic) as caught:
        Lattice("round", {"a": ["b"], "b": ["a"]})
    assert set(caught.value.cycle) == {"a", "b"}
    return caught.value


def test_each_front_end_writes_the_ways_out_as_its_user_would() -> None:
    with refuses(PromotionError, fix="astype(x, "):
        _ = array_api.ones(3, dtype=array_api.float32) + array_api.ones(3, dtype=array_api.int64)
    with refuses(ExecutionError, op="pow", fix="astype(x, float64)"):
        int((array_api.asarray([2]) ** -1)[0])
    g = Graph()
    x = g.input("int64", (1,), name="x")
    g.output(x ** g.constant[DType.int64]([-1]))
    with refuses(ExecutionError, op="pow", fix=".cast(DType.float64)"):
        execute(g, np.array([2]))


def test_text_of_all_parts() -> None:
    operand = OperandInfo("x", None, None, "1.5")
    error = ShapeError(
        "wrong", reason="because", got="this", fix=("write a", "b"), op="sum", operands=[operand]
    )
    assert str(error) == "sum(x: 1.5): wrong: because; got this; write a, or b"
    assert str(error.within("net.gir")) == f"net.gir: {error}"
    assert str(GraphError.like(error, problem="else")).startswith("sum(x: 1.5): else: because")


def test_an_error_inside_a_pass_keeps_its_fields() -> None:
    def broken(graph: Graph) -> Graph:
        raise refusal()

    with refuses(GraphError, "int8", "float32", op="add") as caught:
        Pipeline([broken])(Graph())
    assert str(caught.value).startswith("in pass broken, after []: ")


def test_an_error_of_a_text_keeps_the_fields_of_what_it_refuses() -> None:
    text = (
        "graph @g rules=max (%x: int8[3], %y: bool[3]) -> (int8[3]) {\n  %0 = sin(%x) : int8[3]\n"
    )
    with refuses(ParseError, "int8", op="sin", got="int8", line=2) as caught:
        Graph.parse(text)
    assert str(caught.value).startswith("line 2, column ")


@every(
    ("build", "fields"),
    [
        (lambda x: ops.sin(x), {"op": "sin", "got": "int8"}),
        (lambda x: ops.logical_not(x), {"op": "logical_not", "got": "int8"}),
        (lambda x: x + 300, {"op": "add"}),
        (lambda x: ops.gather(x, x.cast("float32")), {"op": "gather", "got": "float32"}),
    ],
)
def test_central_refusals_give_fields(build: Any, fields: dict[str, str]) -> None:
    x = Graph().input("int8", (3,), name="x")
    with pytest.raises(GraphirError) as caught:
        build(x)
    error = caught.value
    assert {name: getattr(error, name) for name in fields} == fields
    assert error.fixes and error.location is not None and error.operands[0].dtype is DType.int8

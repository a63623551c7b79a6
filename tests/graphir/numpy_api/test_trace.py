"""trace: what a function does as a graph, its arguments and results in any structure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import (
    DType,
    Graph,
    GraphError,
    PromotionError,
    ShapeError,
    Slot,
    Static,
    Symbol,
    TensorType,
    ops,
    rules,
    trace,
)
from graphir.runtime import interpret
from tests.support.tables import every

T = TensorType("float32", (3,))


class Pair(NamedTuple):
    left: Any
    right: Any


def test_a_function_is_a_graph_of_its_name_and_parameters() -> None:
    def scaled(x: Any, factor: Any) -> Any:
        return x * factor

    traced = trace(scaled, ("int16", ("n",)), factor=TensorType("float32"), rules="jax")
    g = traced.graph
    assert (g.name, g.rules.name, g.input_names) == ("scaled", "jax", ["x", "factor"])
    assert [str(one.type) for one in g.inputs] == ["int16[n]", "float32[]"]
    assert traced.outputs_tree == Slot(0) and str(g.outputs[0].type) == "float32[n]"
    assert traced.inputs_tree == ((Slot(0),), {"factor": Slot(1)})
    assert g.outputs[0].location.file.endswith("test_trace.py")
    assert g.verify() is g and Graph.parse(str(g)).symbols


KINDS: list[tuple[Any, str]] = [
    (T, "float32[3]"),
    (("float32", (3,)), "float32[3]"),
    ((DType.bfloat16, ["n", 2]), "bfloat16[n, 2]"),
    ((np.float64, ()), "float64[]"),
    ((np.dtype("i4"), ("n-1",)), "int32[n-1]"),
    (np.zeros((2, 3), np.uint8), "uint8[2, 3]"),
    (np.float32(1), "float32[]"),
    (DType.int8, "int8[]"),
    (np.dtype("f2"), "float16[]"),
    (np.int16, "int16[]"),
    (float, "weak_float[]"),
    (int, "weak_int[]"),
    (complex, "weak_complex[]"),
    (bool, "bool[]"),
    (Graph().input("int8", ("k",)), "int8[k]"),
]


@every(("kind", "type_"), KINDS)
def test_what_stands_for_an_input(kind: Any, type_: str) -> None:
    traced = trace(lambda x: x, kind, rules="jax")
    assert str(traced.graph.inputs[0].type) == type_


X = np.zeros(3, np.int8)
USUAL: list[tuple[tuple[Any, ...], str]] = [
    ((X,), "numpy"),
    ((X, float), "numpy"),
    (([X, {"y": np.dtype("f4")}], "how"), "numpy"),
    ((np.float32, (np.int8, (3,))), "numpy"),
    ((X, T), "max"),
    ((DType.int8,), "max"),
    (((DType.int8, (3,)), np.int8), "max"),
    ((("int8", ("n",)), X), "max"),
    ((float,), "max"),
]


@every(("types", "name"), USUAL)
def test_without_rules_those_of_numpy_hold_for_its_arrays_and_dtypes(
    types: tuple[Any, ...], name: str
) -> None:
    def first(*values: Any) -> Any:
        return values[0][0] if isinstance(values[0], list) else values[0]

    assert trace(first, *types).graph.rules.name == name
    with rules("jax"):
        assert trace(first, *types).graph.rules.name == "jax"
    assert trace(first, *types, rules="torch").graph.rules.name == "torch"


STATIC = ["tanh", 3, 2.5, True, None, ("float32", 3), ("abc", (1,)), (1, 2), range(3), "float32"]


@every("value", STATIC)
def test_other_values_are_the_functions_own(value: Any) -> None:
    seen: list[Any] = []
    traced = trace(lambda x, y: (seen.append(y), x)[1], T, value)
    assert seen == [value] and len(traced.graph.inputs) == 1
    assert trace(lambda x, y: (seen.append(y), x)[1], T, y=Static(T)).graph.input_names == ["x"]
    assert seen[1] is T


def test_names_of_nested_inputs() -> None:
    types = {"w": T, "b": [T, T], "not an id": T, "x_1": T}
    g = trace(lambda x, params, *more, **named: x, (T, T), params=types, other=T).graph
    names = ["x_0", "x_1", "params_w", "params_b_0", "params_b_1", "params_not_an_id"]
    assert g.input_names == [*names, "params_x_1", "other"]
    taken = trace(lambda a, a_0: a_0, (T,), T).graph
    assert taken.input_names == ["a_0", "a_0_"]
    assert trace(lambda *several: several[1], T, T).graph.input_names == ["x0", "x1"]


def test_functions_without_a_signature() -> None:
    assert trace(np.add, T, T).graph.outputs[0].op is ops.add
    assert trace(ops.sin, T).graph.outputs[0].op is ops.sin


def test_results_of_any_structure() -> None:
    def several(x: Any, y: Any) -> Any:
        return {"a": x + y, "b": [x, (None, x + y)], "p": Pair(2.5, np.ones(2, np.int8)), "e": ()}

    traced = trace(several, T, T, rules="numpy")
    a, b = np.ones(3, np.float32), np.full(3, 2, np.float32)
    found = traced.outputs(interpret(traced.graph, *traced.inputs(a, b)))
    assert list(found) == ["a", "b", "p", "e"] and type(found["p"]) is Pair and found["e"] == ()
    assert (found["a"] == 3).all() and (found["b"][0] == a).all() and found["b"][1][0] is None
    assert (found["p"].left, found["p"].right.dtype) == (2.5, np.int8)
    assert found["a"] is not found["b"][1][1]


def test_an_input_may_be_the_result() -> None:
    traced = trace(lambda x: x, T)
    x = np.ones(3, np.float32)
    found = traced.outputs(interpret(traced.graph, x))
    assert (found == x).all() and found is not x


TREES: st.SearchStrategy[Any] = st.recursive(
    st.just(T),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.lists(inside, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inside, max_size=3)
    ),
    max_leaves=8,
)


@given(TREES)
def test_structures_come_back_as_they_went_in(tree: Any) -> None:
    traced = trace(lambda x, y: (x, y), T, tree)
    values = [np.full(3, i, np.float32) for i in range(len(traced.graph.inputs))]
    back = traced.outputs(interpret(traced.graph, *values))
    again = traced.inputs(*back)
    assert len(again) == len(values) and all(map(np.array_equal, again, values))
    _same_structure(back[1], tree)


def _same_structure(a: Any, b: Any) -> None:
    if b is T:
        assert isinstance(a, np.ndarray)
        return
    assert type(a) is type(b) and len(a) == len(b)
    pairs = [(a[key], b[key]) for key in b] if isinstance(b, dict) else zip(a, b, strict=True)
    for pair in pairs:
        _same_structure(*pair)


def _of_another(x: Any) -> Any:
    return Graph().input("float32", (3,))


REFUSED: list[tuple[Any, str]] = [
    (lambda: trace(lambda x: "text", T), "the result is no symbol.*got 'text'"),
    (lambda: trace(lambda x: {"a": [x, {1}]}, T), r"the result_a_1 is no symbol.*got \{1\}"),
    (lambda: trace(lambda x: None, T), "returns no symbol"),
    (lambda: trace(lambda x: [], T), "returns no symbol"),
    (lambda: trace(lambda x: x, T, T), "are not arguments of <lambda>: too many"),
    (lambda: trace(lambda x: x, y=T), "are not arguments of <lambda>: missing"),
    (lambda: trace(_of_another, T), "symbols of two graphs"),
    (lambda: trace(lambda x: x, ({"a": ("float32", ("n", -1))},)), "a dim is at least 0"),
    (lambda: trace(lambda x: x, T, rules="none"), "none"),
    (lambda: trace(lambda x: 1, T, rules="max"), "dtype"),
    (lambda: trace(lambda x: x, [T]).inputs(T), "differ in structure"),
    (lambda: trace(lambda x: x, {"a": T}).inputs({"b": T}), "differ in structure"),
]  # fmt: skip


@every(("call", "words"), REFUSED)
def test_what_is_refused(call: Any, words: str) -> None:
    with pytest.raises((GraphError, PromotionError, ShapeError), match=words):
        call()


def test_errors_of_the_function_are_its_own() -> None:
    def wrong(x: Any) -> Any:
        raise KeyError(x.dtype)

    with pytest.raises(KeyError, match="float32"):
        trace(wrong, T)
    with pytest.raises(PromotionError, match=r"test_trace\.py:\d+:\d+: sin"):
        trace(lambda x: np.sin(x), DType.int8)


def test_ops_of_no_symbol_belong_to_the_graph() -> None:
    def ramp(x: Any) -> Symbol:
        return x + ops.range(dtype="float32", start=0, step=1, size=3)

    assert trace(ramp, T).graph.outputs[0].type is T

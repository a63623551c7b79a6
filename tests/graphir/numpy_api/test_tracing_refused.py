"""What trace and jit say to who gives them what they do not take, and at whose line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import GraphError, GraphirError, PromotionError, ShapeError, trace
from graphir.passes import lower
from graphir.runtime import jit, targets


def refused(call: Any, error: type[Exception] = GraphError) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def same(x: Any) -> Any:
    return x


def test_a_dtype_that_does_not_exist():
    assert "no dtype is named 'float33'" in refused(lambda: trace(same, ("float33", (3,))))


def test_a_shape_that_is_no_tuple():
    text = refused(lambda: trace(same, ("float32", 3)))
    assert text.endswith("or ('float32', shape), shape a tuple or list")
    given = trace(lambda x, one: x.astype(one[0]), float, ("float32", 3), rules="numpy")
    assert given.graph.outputs[0].dtype.name == "float32"


def test_a_dim_that_is_none():
    text = refused(lambda: trace(same, ("float32", (3.5,))), ShapeError)
    assert "a dim is an int, a name or an expression of names; got 3.5" in text


def test_the_name_of_a_dtype_alone():
    text = refused(lambda: trace(lambda x: x + 1, "float32"))
    assert "argument x is a str, which makes no input of the graph; got 'float32'" in text
    assert "write DType.float32 for a 0-d one, or ('float32', shape)" in text
    traced = trace(lambda x, to: x.astype(to), ("int8", (3,)), "float32")
    assert traced.graph.outputs[0].dtype.name == "float32"


def test_a_number_that_has_no_dtype():
    text = refused(lambda: jit(lambda x: (x, x.shape[0]), rules="max")(np.ones(3)), PromotionError)
    assert text == (
        "the result_1 is 3, a number that has no dtype of its own under 'max'; return np.int64(3)"
    )
    assert "return np.float64(0.5)" in refused(
        lambda: trace(lambda x: 0.5, ("int8", ())), TypeError
    )


def test_an_item_of_a_symbol_is_not_changed():
    def change(x: Any) -> Any:
        x[0] = 1
        return x

    text = refused(lambda: jit(change, rules="jax")(np.ones(3)))
    assert "setitem(%" in text and "of op input" in text
    assert text.endswith("choose with ops.where(mask, value, x), or concat the parts")


def test_what_is_not_hashable_is_named():
    text = refused(lambda: jit(same)({"a": [{1, 2}]}))
    assert "it must be hashable, and a set is not; give a tuple" in text

    class Array:
        __hash__ = None  # pyright: ignore

    text = refused(lambda: jit(np.sin)(Array()))
    assert "and a Array is not" not in text and "an Array" in text
    assert "np.asarray(x)" in text and len(text) < 300


def test_arguments_that_the_function_has_not():
    text = refused(lambda: jit(lambda x, w: x)(np.ones(3)))
    assert text == "these are not arguments of <lambda>: missing a required argument: 'w'"


def test_inputs_are_of_the_line_of_the_call():
    jitted = jit(lambda x: x + 1, rules="numpy")
    graph = jitted.traced(np.ones(3)).graph
    assert [one.location.file.endswith("test_tracing_refused.py") for one in graph.symbols] == [
        True
    ] * len(graph.symbols)
    bfloat16 = trace(same, ("bfloat16", (3,)), rules="max").graph.outputs[0].dtype.to_numpy()
    with pytest.raises(GraphirError) as caught:
        jitted(np.ones(3, bfloat16))
    assert "test_tracing_refused.py" in str(caught.value) and "jit.py" not in str(caught.value)


def test_a_target_takes_a_graph():
    traced = trace(same, ("float32", (3,)))
    assert (
        refused(lambda: targets.python(traced)) == "a Graph is needed; got a Trace; give its .graph"
    )
    assert refused(lambda: lower(same)) == "a Graph is needed; got a function"  # pyright: ignore


def test_written_source_takes_arrays():
    made: dict[str, Any] = {}
    exec(targets.python(trace(same, ("float32", (3,))).graph), made)
    assert refused(lambda: made["same"]([1.0]), TypeError) == "x is an array of float32, not a list"

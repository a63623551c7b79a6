"""In-place operators on symbols: bound anew, cast to the array's dtype, or refused."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy as np
import pytest

from graphir import (
    DType,
    Graph,
    GraphError,
    GraphirError,
    PromotionError,
    ShapeError,
    Symbol,
    ops,
    trace,
)
from graphir.drawing.loss_levels import cast_kind
from graphir.ir.operators.in_place import is_scalar
from graphir.passes import Policy, cast_report, lower
from graphir.runtime import array_api, execute, interpret, jit
from tests.peers import IN_PLACE
from tests.support.numpy_calls import COMPOSITE_CALLS, FUNCTION_CALLS, UFUNCS
from tests.support.tables import every

N = ("n",)


def pair(rules: str, a: Any, b: Any, shape: Any = N) -> tuple[Any, Any]:
    g = Graph(rules=rules)
    return g.input(a, shape, name="x"), g.input(b, shape, name="y")


# The examples of the section "torch.dtype" of PyTorch's page on tensor attributes, allowed and not.
OF_THE_PAGE = {
    ("float32", "float64"): True,
    ("float32", "int32"): True,
    ("float32", "uint8"): True,
    ("float32", "bool"): True,
    ("int32", "int64"): True,
    ("int32", "uint8"): True,
    ("uint8", "int32"): True,
    ("int32", "float32"): False,
    ("bool", "int32"): False,
    ("bool", "uint8"): False,
    ("float32", "complex64"): False,
}


@every(("dtypes", "allowed"), OF_THE_PAGE.items())
def test_the_examples_of_pytorchs_page(dtypes: tuple[str, str], allowed: bool):
    x, y = pair("torch", *dtypes)
    if not allowed:
        with pytest.raises(PromotionError, match="'torch' does not write in place"):
            x *= y
        return
    before = x
    x *= y
    assert (x.type, x is before) == (before.type, False)


def test_the_result_is_cast_by_an_assignment():
    x, y = pair("numpy", "float32", "float64")
    x += y * 2
    (origin,) = x.origins
    assert (x.op, x.dtype, x.args[0].op) == (ops.cast, DType.float32, ops.add)
    assert origin.stores
    assert origin[:2] + origin[3:] == ("result", "add", "assign", DType.float64, DType.float32)
    assert origin.kind == cast_kind(x) == "assignment"
    graph = x.graph
    graph.output(x)
    assert str(Graph.parse(str(graph))) == str(graph)
    (row,) = [row for row in cast_report(graph) if row.operand == "result"]
    assert (row.text, row.fix) == ("x += y * 2", 'x += (y * 2).astype("float32")')
    assert (row.kind, row.cause, row.others) == ("assignment", None, {})
    a, b = np.float32([1, 2**24]), np.array([0.1, 0.5])
    expected = a + (b * 2)
    for found in (interpret(graph, a, b), execute(graph, a, b), interpret(lower(graph), a, b)):
        assert found.dtype == np.float32 and (found == expected.astype(np.float32)).all()


@every("name", IN_PLACE)
def test_operators_are_at_the_line_of_the_program(name: str):
    g = Graph(rules="numpy")
    shape = (2, 2) if name == "matmul" else N
    x, y = g.input("int16", shape), g.input("int16", shape)
    if name == "divide":
        x, y = x.cast("float16"), y.cast("float16")
    made = IN_PLACE[name](x, y)
    assert (made.op.name, made.args) == (name, (x, y))
    assert made.location.file.endswith("test_in_place.py")
    assert made.location.layer == "" and not made.origins


def test_what_is_refused_leaves_the_graph_as_it_was():
    x, _ = pair("numpy", "int8", "int8")
    count = len(x.graph)
    for other in (1.5, 300, np.float32(1), np.ones(1, np.float64), 1j):
        before = x
        with pytest.raises(PromotionError, match=r"^\S*test_in_place\.py:\d+:\d+: add"):
            x += other
        assert x is before and len(x.graph) == count
    wide = x.graph.input("int8", ("m", "n"))
    with pytest.raises(ShapeError, match=r"int8\[m, n\], which cannot be written in place to int8"):
        x += wide


def test_a_foreign_operand_answers_for_itself():
    class Foreign:
        def __radd__(self, other: Any) -> str:
            return f"foreign + {other.dtype}"

    x, _ = pair("numpy", "int8", "int8")
    x += Foreign()
    assert x == "foreign + int8"
    y, _ = pair("numpy", "int8", "int8")
    with pytest.raises(TypeError, match="unsupported operand"):
        y += object()


def test_numbers_are_bound_anew():
    g = Graph(rules="numpy")
    k = g.input(DType.weak_int)
    k += g.input("float32", N)
    assert str(k.type) == "float32[n]"
    for number in (g.scalar(2), g.scalar(True)):
        number += 1.5
        assert not number.origins and number.dtype in (DType.weak_float, DType.float64)


def test_a_scalar_of_numpy_is_bound_anew_and_a_0d_array_is_written_to():
    g = Graph(rules="numpy")
    wide = g.constant(np.float64(1))
    array, known = g.input("float32"), g.scalar[DType.float32](1)
    array += wide
    known += wide
    assert array.dtype is known.dtype is DType.float32
    for scalar in (g.input("float32", N).sum(), array + 1, (array + 1).cast("float32"), -known):
        scalar += wide
        assert (scalar.op, scalar.dtype) == (ops.add, DType.float64)
    for unknown in (g.input("float32", (3,))[0], ops.where(True, array, array), array.real):
        again = unknown
        again += np.float32(1)
        assert again.type == unknown.type
        with pytest.raises(PromotionError, match=r"is a scalar of float32.*or a 0-d array"):
            unknown += wide


def test_policies_judge_the_cast_of_an_assignment():
    for forbid, refused in (({"lossy"}, True), ({"to:float16"}, False)):
        g = Graph(rules="numpy", policy=Policy(forbid=forbid))
        x, y = g.input("float32", N), g.input("float64", N)
        x += y
        if refused:
            with pytest.raises(
                PromotionError, match="result float64 -> float32 under 'numpy'"
            ) as e:
                g.output(x)
            assert 'write x += y.astype("float32")' in str(e.value)
        else:
            g.output(x)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


@pytest.mark.filterwarnings("ignore")
@every("shape", [(2, 3), (3, 3), (3,), (2,), (1,), (1, 1), ()])
def test_no_0d_array_of_numpys_functions_counts_as_a_scalar(shape: tuple[int, ...]):
    """A scalar may be bound anew in a traced function, where an array may have other names."""
    ufuncs = [partial(_on_itself, ufunc) for ufunc in UFUNCS]
    count = 0
    for call in (*FUNCTION_CALLS.values(), *COMPOSITE_CALLS.values(), *ufuncs):
        x = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
        g = Graph(rules="numpy")
        try:
            them, us = leaves(call(x)), leaves(call(g.input("float64", shape)))
        except (GraphirError, ValueError, TypeError, IndexError):
            continue
        for real, symbol in zip(them, us, strict=False):
            if isinstance(symbol, Symbol) and is_scalar(symbol):
                assert type(real) is not np.ndarray, symbol
                count += 1
    assert count > 8


def _on_itself(ufunc: Any, x: Any) -> Any:
    return ufunc(*[x] * ufunc.nin)


# -- traced functions

WRITES: dict[str, Any] = {
    **{name: (lambda x, apply=apply: apply(x, x)) for name, apply in IN_PLACE.items()},
    "an alias": lambda x: (x, operator.iadd(x, 1)),
    "a view": lambda x: operator.iadd(x[0], 1),
    "an element's view": lambda x: operator.iadd(x[0, ..., 0], 1),
    "a derived array": lambda x: operator.iadd(x + 1, 1),
    "a scalar beside": lambda x: operator.iadd(x, np.float32(1)),
    "a reduction kept": lambda x: operator.iadd(x.sum(axis=0), 1),
    "a choice": lambda x: operator.iadd(np.where(True, x.sum(), 0), 1),
    "a product": lambda x: operator.iadd(np.tensordot(x, x), 1),
    "out=": lambda x: np.add(x, 1, out=x),
    "out= of a function": lambda x: np.sum(x, axis=0, out=x),
    "an array of the function's": lambda x: operator.iadd(np.zeros((2, 2)), x),
    "an item": lambda x: operator.setitem(x, 0, 1),
    "an item in place": lambda x: exec("x[0, 0] += 1", {}, {"x": x}),
    "an array's item": lambda x: operator.setitem(np.zeros((2, 2)), 0, x[0]),
    "sort": lambda x: x.sort(),
    "fill": lambda x: x.fill(0),
    "resize": lambda x: x.resize((4,)),
    "put": lambda x: x.put(0, 1),
    "partition": lambda x: x.partition(1),
    "flat": lambda x: operator.setitem(x.flat, 0, 1),
    "shape": lambda x: setattr(x, "shape", (4,)),
    "dtype": lambda x: setattr(x, "dtype", np.int32),
    "real": lambda x: setattr(x, "real", 1),
    "imag": lambda x: setattr(x, "imag", 1),
    "copyto": lambda x: np.copyto(x, 1),
    "np.put": lambda x: np.put(x, 0, 1),
    "place": lambda x: np.place(x, x > 0, 1),
    "putmask": lambda x: np.putmask(x, x > 0, 1),
    "put_along_axis": lambda x: np.put_along_axis(x, np.zeros((2, 2), int), 1, 0),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 1),
    "at": lambda x: np.add.at(x, 0, 1),
    "shuffle": lambda x: np.random.default_rng(0).shuffle(x),
}


@pytest.mark.filterwarnings("ignore:.*shuffle")
@every("way", WRITES)
@every("rules", ["jax", "torch", "array_api"])
def test_a_traced_function_writes_to_no_array(way: str, rules: str):
    x = np.ones((2, 2), np.float32 if "shift" not in way and "bit" not in way else np.int32)
    kept = x.copy()

    def function(x: Any) -> Any:
        WRITES[way](x)
        return x

    for call in (lambda: jit(function, rules=rules)(x), lambda: trace(function, x, rules=rules)):
        with pytest.raises(GraphirError) as caught:
            call()
        assert caught.value.location is not None
        assert caught.value.location.file.endswith(("test_in_place.py", "<string>"))
    assert (x == kept).all()


REFUSED = ["out= of a function", "resize", "shape", "dtype",
           "shuffle"]  # fmt: skip


@every("way", [way for way in WRITES if way not in (*REFUSED, "imag")])
def test_under_numpys_rules_a_traced_function_writes_as_numpy_does(way: str):
    def function(x: Any) -> Any:
        WRITES[way](x)
        return x

    x = np.ones((2, 2), np.float32 if "shift" not in way and "bit" not in way else np.int32)
    ours, theirs = x.copy(), x.copy()
    expected = function(theirs)
    jitted, traced = jit(function), trace(function, x)
    for _ in range(2):
        ours[...] = x
        result = jitted(ours)
        assert (result.dtype, result.tolist()) == (expected.dtype, expected.tolist())
        assert ours.tolist() == theirs.tolist()
    values = interpret(traced.graph, x)
    values = values if isinstance(values, tuple) else (values,)
    assert [values[at].tolist() for _, at in traced.writes] == [theirs.tolist()] * (way not in SAME)


SAME = [
    "a choice",
    "a derived array",
    "a product",
    "a reduction kept",
    "an array of the function's",
    "an array's item",
]
"""Those that write to no argument."""


@every("way", [*REFUSED, "imag"])
def test_what_a_traced_function_cannot_write_is_refused_at_its_line(way: str):
    x = np.ones((2, 2), np.float32)
    with pytest.raises(GraphirError) as caught:
        jit(lambda x: (WRITES[way](x), x)[1])(x)
    assert caught.value.location is not None
    assert caught.value.location.file.endswith("test_in_place.py") and (x == 1).all()


def test_the_way_round_is_named():
    def alias(x: Any) -> Any:
        y = x
        y //= 2
        return x * 2

    with pytest.raises(GraphError, match=r"keep their old values; write x = x // y$"):
        jit(alias, rules="torch")(np.zeros(3))


def test_a_jitted_function_on_symbols_is_of_their_graph():
    @jit
    def increased(x: Any, y: Any) -> Any:
        x += y
        return x

    x, y = pair("numpy", "float32", "float64")
    assert increased(x, y).dtype is DType.float32
    array = np.ones(3)
    assert increased(array, np.ones(3)).tolist() == array.tolist() == [2, 2, 2]


def test_a_graph_that_was_traced_is_built_on_as_any_other():
    g = trace(lambda x: x + 1, ("float32", (3,)), rules="numpy").graph
    x = g.inputs[0]
    x += np.float64(1)
    assert x.dtype is DType.float32


def test_numbers_and_scalars_of_a_traced_function_are_bound_anew():
    def function(x: Any, k: Any) -> Any:
        k += 1
        k *= 2
        total = 0.0
        for row in (x[0], x[1]):
            total += row.sum() * k
        kept = total
        total -= np.float64(0.5)
        return total, kept, k

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for k in (3, 2.5):
        for one, other in zip(jit(function)(x, k), function(x, k), strict=True):
            assert one == other and type(one) is type(other)


def test_arrays_of_the_array_api_change_as_ever():
    x = array_api.asarray([1, 2], dtype=array_api.float32)
    y = x
    y += 1
    assert np.asarray(x).tolist() == [2, 3]
    with pytest.raises(PromotionError, match="'array_api' does not write in place to float32"):
        x += array_api.ones(2)
    with pytest.raises(ShapeError, match="cannot be written in place"):
        x += array_api.ones((2, 2), dtype=array_api.float32)

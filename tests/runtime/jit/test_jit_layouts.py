"""Arrays in every layout under jit: NumPy rounds sums and products by the order of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import DType, ExecutionError, Graph, GraphirError, ShapeError, ops
from graphir.runtime import Program, interpret, jit, record, targets
from tests.support.tables import every, quick, sampled

DTYPES = ["f4", *(pytest.param(dtype, marks=pytest.mark.exhaustive) for dtype in ("f8", "c16"))]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x,
    "F": lambda x: np.asfortranarray(x),
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "reversed columns": lambda x: x[:, ::-1],
    "every second row": lambda x: x[::2],
    "every second column": lambda x: x[:, ::2],
    "inside": lambda x: x[1:-1, 1:-1],
    "columns transposed": lambda x: x[:, 1:4].T,
    "a row": lambda x: x[3],
    "a column": lambda x: x[:, 3],
    "a column reversed": lambda x: x[::-1, 3],
    "one row": lambda x: x[3:4],
    "one column": lambda x: x[:, 3:4],
    "broadcast": lambda x: np.broadcast_to(x[0], (5, *x[0].shape)),
    "three axes": lambda x: x[:36].reshape(3, 12, -1).transpose(2, 0, 1),
}
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "x @ x.T": lambda x, w: x @ x.T,
    "x.T @ x": lambda x, w: x.T @ x,
    "x @ copy.T": lambda x, w: x @ x.copy().T,
    "x @ w": lambda x, w: x @ w[: x.shape[-1]],
    "x @ w.T": lambda x, w: x @ w[:, : x.shape[-1]].T,
    "w @ x": lambda x, w: w[:, : x.shape[0]] @ x,
    "x @ vector": lambda x, w: x @ w[: x.shape[-1], 0],
    "x @ float32": lambda x, w: x @ w.real[: x.shape[-1]].astype("f4", order="F"),
    "dot": lambda x, w: np.dot(x, x.T),
    "dot with a vector": lambda x, w: np.dot(x, w[: x.shape[-1], 0]),
    "x.dot": lambda x, w: x.dot(w[: x.shape[-1]]),
    "inner": lambda x, w: np.inner(x, x),
    "tensordot": lambda x, w: np.tensordot(x, x, (0, 0)),
    "cov": lambda x, w: np.cov(x),
    "norm": lambda x, w: np.linalg.norm(x),
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "corrcoef": lambda x, w: np.corrcoef(x),
    "vdot": lambda x, w: np.vdot(x, x),
    "vecdot": lambda x, w: np.vecdot(x, x),
    "power": lambda x, w: x**3,
    "abs": lambda x, w: abs(x),
    "angle": lambda x, w: np.angle(x),
    "exp": lambda x, w: np.exp(x),
    "softmax": lambda x, w: np.exp(x - x.max(-1, keepdims=True)).sum(-1),
    "trapezoid": lambda x, w: np.trapezoid(x, axis=0),
    "norms": lambda x, w: np.linalg.norm(x, axis=-1),
    "ravel": lambda x, w: np.cumsum(x.ravel(order="K")),
    **{
        f"{name}({axis})": lambda x, w, name=name, axis=axis: getattr(np, name)(x, axis=axis)
        for name in ("sum", "mean", "var", "prod", "nansum", "nanstd", "average", "cumsum")
        for axis in (None, 0, -1)
    },
}


def arrays(dtype: str) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    x, w = random.normal(size=(37, 41)), random.normal(size=(45, 45))
    if np.dtype(dtype).kind == "c":
        return (x + 1j * random.normal(size=x.shape)).astype(dtype), (w - 1j * w.T).astype(dtype)
    return x.astype(dtype), w.astype(dtype)


def calls(function: Callable[[Any, Any], Any], dtype: str) -> Any:
    """Functions of an argument that is laid out inside of the function, and outside of it."""
    x, w = arrays(dtype)
    for name, layout in LAYOUTS.items():
        try:
            expected = function(layout(x), w)
        except Exception:  # NumPy refuses an array of this shape, with errors of its own
            continue
        yield f"{name} inside", (lambda x, w, layout=layout: function(layout(x), w)), x, w, expected
        yield f"{name} outside", function, layout(x), w, function(layout(x), w)


def same(a: Any, b: Any) -> bool:
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("name", quick([*PRODUCTS], 4))
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_have_numpys_bits_in_every_layout(name: str, dtype: str) -> None:
    for where, function, x, w, expected in calls(PRODUCTS[name], dtype):
        try:
            result = jit(function)(x, w)
        except GraphirError:
            assert "three axes" in where or (name == "norm" and "broadcast" in where)
            continue
        assert same(result, expected), where


@pytest.mark.parametrize("name", quick([*FUNCTIONS], 4))
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_have_numpys_bits_in_every_layout_or_a_reason(name: str, dtype: str) -> None:
    for where, function, x, w, expected in calls(FUNCTIONS[name], dtype):
        try:
            result = jit(function)(x, w)
        except GraphirError:
            continue
        assert same(result, expected), where


@sampled(3)
@every("name", ["x @ x.T", "x.T @ x", "x @ w.T", "w @ x", "dot", "x.dot"])
def test_replays_of_products_have_numpys_bits(name: str) -> None:
    for where, function, x, w, expected in calls(PRODUCTS[name], "f8"):
        if "three axes" not in where:
            recording = record(function, x, w)
            replayed = interpret(recording.graph, *recording.inputs)
            assert same(replayed, expected), where


@every("shape", [(5, 1, 7), (1, 1, 1), (1, 9, 1), (5, 3, 1)])
def test_dot_of_complex_columns_and_of_several_matrices(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    _, w = arrays("c16")
    x, y = w[:rows, :inner].copy(), w[:inner, -columns:].copy()
    for left in (x, np.stack([x, -x])):
        for function in (np.dot, np.matmul, lambda x, y: np.inner(x, y.T)):
            assert same(jit(function)(left, y), function(left, y))


def test_operands_that_are_not_aligned_are_copied_first() -> None:
    record_ = np.dtype([("flag", "i1"), ("value", "f8")])
    rows = np.zeros(41, record_)
    rows["value"] = np.linspace(0, 1, 41) ** 2
    x, _ = arrays("f8")
    assert same(jit(lambda x, v: x @ v)(x, rows["value"]), x @ rows["value"])


def test_an_argument_given_twice_is_a_gram_matrix() -> None:
    function = jit(lambda x, y: x @ y.T)
    x = np.random.default_rng(0).normal(size=(17, 33))
    for y in (x, x.copy(), x, np.asfortranarray(x)):
        assert same(function(x, y), x @ y.T)


# -- the attribute


def product(layout: Any, shape: Any = (3, 4), other: Any = (4, 3)) -> Graph:
    graph = Graph("g", rules="numpy")
    x, y = (graph.input(DType.float64, each) for each in (shape, other))
    graph.output(ops.matmul(x, y, layout=layout))
    return graph


def test_the_layout_is_in_the_text() -> None:
    graph = product(("dot", (1, 3), (5, -1), False))
    assert '{layout=["dot", [1, 3], [5, -1], false]}' in str(graph)
    assert str(Graph.parse(str(graph))) == str(graph)
    assert "{layout=" not in str(product(None))


@every("layout", [None, ("matmul", (1, 3), (3, 1), False), ("dot", (-8, 2), (3, 1), False)])
def test_tiers_and_targets_compute_the_product(layout: Any) -> None:
    random = np.random.default_rng(0)
    graph, x, y = product(layout), random.normal(size=(3, 4)), random.normal(size=(4, 3))
    expected = interpret(graph, x, y)
    assert np.allclose(expected, x @ y)
    for left in (x, np.asfortranarray(x), x[::-1].copy()[::-1]):
        assert same(Program(graph)(left, y), expected)
    source = targets.python(graph)
    assert "layout" not in source
    names: dict[str, Any] = {}
    exec(source, names)
    assert np.allclose(names["g"](x, y), expected)


@every(
    ("layout", "error", "words"),
    [
        (("matmul", (1,), (3, 1), False), ShapeError, "needs 2 strides"),
        (("sum", (1, 3), (3, 1), False), GraphirError, "four parts"),
        (3, GraphirError, "four parts"),
    ],
)
def test_a_wrong_layout_is_refused(layout: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        product(layout)


@every(
    ("layout", "words"),
    [
        (("matmul", (0, 1), (3, 1), False), "different elements into one place"),
        (("matmul", (4, 1), (1, 4), True), "the left one transposed"),
    ],
)
def test_a_layout_that_the_values_contradict_is_refused(layout: Any, words: str) -> None:
    x = np.arange(12.0)
    for run in (interpret, lambda graph, *args: Program(graph)(*args)):
        with pytest.raises(ExecutionError, match=words):
            run(product(layout), x.reshape(3, 4), x.reshape(4, 3))

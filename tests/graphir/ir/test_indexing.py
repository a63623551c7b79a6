"""Indexing is NumPy's: shapes and values of random keys, and symbolic sizes at real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import Dim, ExecutionError, Graph, GraphError, GraphirError, ShapeError, ops
from graphir.ops.dims import evaluate, shape_text
from graphir.runtime import interpret
from tests.support.tables import every

BOUNDS = st.none() | st.integers(-6, 6)
SLICES = st.builds(slice, BOUNDS, BOUNDS, st.none() | st.integers(-4, 4).filter(bool))


ONE = SLICES | SLICES | SLICES | st.integers(-4, 3) | st.sampled_from([None, np.int64(1)])


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A shape, and a basic key for some of its axes: at times too many, or out of range."""
    shape = tuple(draw(st.lists(st.integers(0, 4) | st.integers(1, 4), max_size=3)))
    plain = draw(st.lists(ONE, min_size=min(1, len(shape)), max_size=len(shape) + 1))
    if draw(st.booleans()):
        return shape, tuple(plain)
    if len(plain) == 1:
        return shape, plain[0]
    at = draw(st.integers(0, len(plain)))
    return shape, (*plain[:at], Ellipsis, *plain[at:])


def array(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)


@given(cases())
@settings(max_examples=6 * settings().max_examples)
def test_static_indexing_is_numpy_s(case: tuple[tuple[int, ...], Any]):
    shape, key = case
    g = Graph()
    x = g.input("int16", shape)
    try:
        wanted = array(shape)[key]
    except IndexError:
        with pytest.raises(ShapeError):
            _ = x[key]
        return
    y = x[key]
    assert y.shape == wanted.shape
    g.output(y)
    found = interpret(g, array(shape))
    assert found.dtype == np.int16 and found.shape == wanted.shape
    assert found.tolist() == wanted.tolist()


@given(st.tuples(SLICES | st.none(), SLICES | st.integers(-2, 2)), st.integers(0, 7))
@settings(max_examples=200)
def test_symbolic_indexing_is_numpy_s_where_the_key_fits(key: tuple[Any, ...], n: int):
    """A bound outside a symbolic dim is refused when the graph runs; all others are NumPy's."""
    g = Graph()
    x = g.input("int16", ("n", 5))
    wanted = array((n, 5))
    try:
        y = x[key]
    except ShapeError:  # a slice that is empty or backwards whatever n may be
        assert not _fits(key, n)
        return
    g.output(y)
    try:
        found = interpret(g, wanted)
    except ExecutionError:
        assert not _fits(key, n)
        return
    assert found.tolist() == wanted[key].tolist()
    assert tuple(evaluate(d, {"n": n}) for d in y.shape) == wanted[key].shape


def _fits(key: tuple[Any, ...], n: int) -> bool:
    """Whether no bound of the symbolic axis lies outside it, nor crosses the other."""
    first = next(k for k in key if k is not None)
    if isinstance(first, int):
        return -n <= first < n
    bounds = [b for b in (first.start, first.stop) if b is not None]
    start, stop, step = first.indices(n)
    crossed = stop < start if step > 0 else stop > start
    # Upwards a bound lies between elements, downwards it names one.
    top = n if step > 0 else n - 1
    return not crossed and all(-n <= b <= top for b in bounds)


@every(
    ("key", "shown"),
    [
        (slice(1, None), "[n-1, 3]"),
        (slice(None, -1), "[n-1, 3]"),
        (slice(2, -2), "[n-4, 3]"),
        (slice(None, None, 2), "[((n+1)//2), 3]"),
        (slice(1, None, 3), "[((n+1)//3), 3]"),
        (slice(None, None, -1), "[n, 3]"),
        (slice(-1, None, -2), "[((n+1)//2), 3]"),
        (slice(-3, None), "[3, 3]"),
        (slice(None, 2), "[2, 3]"),
        (slice("m", None), "[-m+n, 3]"),
        (slice(None, Dim.of("m")), "[m, 3]"),
        (slice("m", "m+2"), "[2, 3]"),
        (0, "[3]"),
        (-1, "[3]"),
        ((0, 0), "[]"),
        (None, "[1, n, 3]"),
        ((Ellipsis, None), "[n, 3, 1]"),
        ((slice(None), None, 1), "[n, 1]"),
        (Ellipsis, "[n, 3]"),
        ((), "[n, 3]"),
        (np.int8(1), "[3]"),
    ],
)
def test_symbolic_shapes(key: Any, shown: str):
    x = Graph().input("float32", ("n", 3))
    assert shape_text(x[key].shape) == shown


def test_a_static_axis_takes_symbolic_bounds():
    g = Graph()
    x = g.input("int16", (6,))
    shown = [shape_text(x[key].shape) for key in (slice("m"), slice("m", None), slice(-2, "m", -1))]
    assert shown == ["[m]", "[-m+6]", "[-m+4]"]
    g.output(x[:"m"], x["m":], x[-2:"m":-1], g.input("int8", ("m",)))
    for m in range(5):
        found = interpret(g, array((6,)), np.zeros(m, np.int8))
        wanted = [array((6,))[key].tolist() for key in (slice(m), slice(m, None), slice(-2, m, -1))]
        assert [f.tolist() for f in found[:3]] == wanted


@every("key", [slice(None), Ellipsis, (), slice(0, None), slice(None, None, 1)])
def test_a_key_that_takes_everything_adds_nothing(key: Any):
    x = Graph().input("float32", ("n", 3))
    assert x[key] is x and len(x.graph) == 1


@every("bound", ["start", "stop"])
def test_python_clamps_a_known_size_and_a_symbolic_one_is_checked_at_run_time(bound: str):
    g = Graph()
    x = g.input("int16", ("n",), name="x")
    key = slice(3, None) if bound == "start" else slice(None, 3)
    g.output(x[key])
    assert interpret(g, array((5,))).tolist() == array((5,))[key].tolist()
    with pytest.raises(ExecutionError, match=r"test_indexing\.py:\d+.*slice.*axis 0"):
        interpret(g, array((2,)))


@every(
    ("key", "near"),
    [
        (5, "index 5 is out of range for axis 0 of size 4"),
        (-5, "index -5 is out of range"),
        ((0, 0, 0), r"float32\[4, 3\]; got 3 indices"),
        ((Ellipsis, Ellipsis), "2 ellipses"),
        (slice(None, None, 0), "step of a slice is not 0"),
    ],
)
def test_keys_that_do_not_fit(key: Any, near: str):
    x = Graph().input("float32", (4, 3))
    with pytest.raises(ShapeError, match=near) as caught:
        _ = x[key]
    assert "test_indexing.py:" in str(caught.value) and len(x.graph) == 1


@every("key", [1.5, True, np.bool_(True), object(), (0, 1.0), {}])
def test_keys_of_a_wrong_kind(key: Any):
    x = Graph().input("float32", (4, 3))
    with pytest.raises(GraphError, match=r"must be an int, a slice, None or \.\.\."):
        _ = x[key]


@every("key", [slice(1.5, None), slice(None, "n+"), slice(None, None, "2"), "a"])
def test_slices_of_a_wrong_kind_are_errors_of_graphir(key: Any):
    for shape in ((4,), ("n",)):
        with pytest.raises(GraphirError):
            _ = Graph().input("float32", shape)[key]


@every("mask", [[True, False], np.array([True, False]), "symbol"])
def test_masks_are_refused_with_the_way_out(mask: Any):
    x = Graph().input("float32", (2,))
    with pytest.raises(GraphError, match=r"ops\.where\(mask, x, other\)"):
        _ = x[x > 0 if isinstance(mask, str) else mask]


@given(
    st.lists(st.integers(-4, 3), min_size=1, max_size=6),
    st.sampled_from(["int8", "uint64", "int64"]),
)
def test_gathering_is_numpy_s(at: list[int], dtype: str):
    indices = np.array([abs(i) for i in at] if dtype == "uint64" else at, dtype)
    indices = indices % 4 if dtype == "uint64" else indices
    data = array((4, 3))
    g = Graph()
    x, i = g.input("int16", (4, 3)), g.input(dtype, ("k",))
    g.output(x[i], x[indices], x[indices.tolist()], ops.gather(x, np.array([2, 0]), axis=1))
    by_symbol, by_array, by_list, columns = interpret(g, data, indices)
    assert by_symbol.tolist() == by_array.tolist() == by_list.tolist() == data[indices].tolist()
    assert columns.tolist() == data[:, [2, 0]].tolist()


def test_an_index_out_of_range_is_an_error_when_the_graph_runs():
    g = Graph()
    g.output(g.input("int16", (4,))[g.input("int8", ("k",))])
    for wrong in (4, -5):
        with pytest.raises(ExecutionError, match=rf"index {wrong} is out of range.* of 4 elements"):
            interpret(g, array((4,)), np.array([0, wrong], np.int8))


def test_an_array_among_several_keys_says_what_to_do():
    x = Graph().input("float32", (4, 3))
    for key in ((np.array([0, 1]), 0), (x.cast("int8"), 0), ([0, 1], slice(None))):
        with pytest.raises(GraphError, match="must be an int, a slice, None"):
            _ = x[key]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(-2, 1))
def test_split_is_the_slices_of_numpy(sizes: list[int], axis: int):
    shape = [2, 2]
    shape[axis] = sum(sizes)
    data = array(tuple(shape))
    g = Graph()
    pieces = g.input("int16", data.shape).split(sizes, axis)
    g.output(*pieces)
    found = interpret(g, data)
    found = found if isinstance(found, tuple) else (found,)
    wanted = np.split(data, np.cumsum(sizes)[:-1], axis)
    assert [f.tolist() for f in found] == [w.tolist() for w in wanted]


def test_a_symbol_is_no_bound():
    g = Graph()
    x, i = g.input("float32", (4,)), g.input("int64")
    with pytest.raises(GraphError, match="an int is needed"):
        _ = x[i:]


def test_an_integer_symbol_of_no_axes_gathers_one_element():
    g = Graph()
    x, i = g.input("int16", (4, 2)), g.input("int32")
    g.output(x[i])
    assert interpret(g, array((4, 2)), -1).tolist() == [6, 7]
    with pytest.raises(GraphirError, match=r"gather\(.*indices must be integers"):
        _ = x[g.input("float32")]

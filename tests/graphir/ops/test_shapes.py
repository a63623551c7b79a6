"""The shape rule of every op: symbolic shapes as texts, and by NumPy's own shapes at real sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import Graph, GraphError, GraphirError, ShapeError, Symbol, TensorType, ops
from graphir.ops.dims import evaluate, shape_of, shape_text
from tests.support.tables import every

SIZES = ({"n": 4, "m": 3, "k": 2}, {"n": 1, "m": 1, "k": 1}, {"n": 2, "m": 5, "k": 7})
Shapes = list[tuple[Any, ...]]


def inputs(shapes: Shapes, dtype: str = "float32") -> list[Symbol]:
    g = Graph()
    return [g.input(dtype, shape) for shape in shapes]


# Each: the op by graphir, the same by NumPy, the shapes of its operands, the shape of its result.
RULES: list[tuple[str, Callable[..., Any], Callable[..., Any], Shapes, str]] = [
    ("same", lambda x, y: x + y, np.add, [("n", 3), ("n", 3)], "[n, 3]"),
    ("1 meets n", lambda x, y: x + y, np.add, [("n", 3), (1, 3)], "[n, 3]"),
    ("n meets 1", lambda x, y: x + y, np.add, [(1,), ("n",)], "[n]"),
    ("lower rank", lambda x, y: x * y, np.multiply, [("n", "m"), ("m",)], "[n, m]"),
    ("0-d", lambda x, y: x - y, np.subtract, [(), ("n", "m")], "[n, m]"),
    ("both stretch", lambda x, y: x + y, np.add, [("n", 1), (1, "m")], "[n, m]"),
    ("unary", lambda x: -x, np.negative, [("n", 3)], "[n, 3]"),
    ("compare", lambda x, y: x < y, np.less, [("n",), ()], "[n]"),
    ("sum", lambda x: x.sum(), np.sum, [("n", "m")], "[]"),
    ("sum 0", lambda x: x.sum(axis=0), lambda x: x.sum(0), [("n", "m")], "[m]"),
    ("sum -1", lambda x: x.sum(axis=-1), lambda x: x.sum(-1), [("n", "m")], "[n]"),
    ("sum 0,2", lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), [("n", "m", "k")], "[m]"),
    (
        *("keep", lambda x: x.max(axis=1, keepdims=True)),
        *(lambda x: x.max(1, keepdims=True), [("n", "m")], "[n, 1]"),
    ),
    ("argmax", lambda x: x.argmax(), np.argmax, [("n", "m")], "[]"),
    ("argmax 1", lambda x: x.argmax(axis=1), lambda x: x.argmax(1), [("n", "m")], "[n]"),
    (
        *("argmin keep", lambda x: x.argmin(axis=0, keepdims=True)),
        *(lambda x: x.argmin(0, keepdims=True), [("n", "m")], "[1, m]"),
    ),
    (
        *("argmax keep all", lambda x: x.argmax(keepdims=True)),
        *(lambda x: np.argmax(x, keepdims=True), [("n", "m")], "[1, 1]"),
    ),
    ("cumsum", ops.cumulative_sum, lambda x: x.cumsum(-1), [("n", "m")], "[n, m]"),
    ("sort", ops.sort, np.sort, [("n", "m")], "[n, m]"),
    ("matmul", lambda x, y: x @ y, np.matmul, [("n", "k"), ("k", "m")], "[n, m]"),
    ("mat vec", lambda x, y: x @ y, np.matmul, [("n", "k"), ("k",)], "[n]"),
    ("vec mat", lambda x, y: x @ y, np.matmul, [("k",), ("k", "m")], "[m]"),
    ("vec vec", lambda x, y: x @ y, np.matmul, [("k",), ("k",)], "[]"),
    ("batched", lambda x, y: x @ y, np.matmul, [(2, "n", "k"), ("k", "m")], "[2, n, m]"),
    ("batches", lambda x, y: x @ y, np.matmul, [("m", 1, 3, 4), (5, 4, 2)], "[m, 5, 3, 2]"),
    ("tensordot", ops.tensordot, np.tensordot, [("n", 2, "k"), (2, "k", "m")], "[n, m]"),
    (
        *("tensordot 1", lambda x, y: ops.tensordot(x, y, axes=1)),
        *(lambda x, y: np.tensordot(x, y, 1), [("n", "k"), ("k", "m")], "[n, m]"),
    ),
    (
        *("tensordot 0", lambda x, y: ops.tensordot(x, y, axes=0)),
        *(lambda x, y: np.tensordot(x, y, 0), [("n",), ("m",)], "[n, m]"),
    ),
    (
        *("tensordot lists", lambda x, y: ops.tensordot(x, y, axes=([0, 2], [1, 0]))),
        *(lambda x, y: np.tensordot(x, y, ([0, 2], [1, 0])), [("n", 3, "m"), ("m", "n")], "[3]"),
    ),
    ("tensordot all", lambda x, y: ops.tensordot(x, y), np.tensordot, [("n", 2), ("n", 2)], "[]"),
    ("outer", ops.outer, np.outer, [("n",), ("m",)], "[n, m]"),
    ("softmax", ops.softmax, lambda x: x, [("n", "m")], "[n, m]"),
    ("layer_norm", ops.layer_norm, lambda x, s, b: x * s + b, [("n", 3), (3,), (3,)], "[n, 3]"),
    (
        *("where", ops.where, lambda c, x, y: np.where(c, x, y)),
        *([("n", 1), ("m",), ()], "[n, m]"),
    ),
    ("clip", lambda x, y, z: x.clip(y, z), np.clip, [("n", "m"), ("m",), ()], "[n, m]"),
    ("reshape", lambda x: x.reshape(-1), lambda x: x.reshape(-1), [("n", "m")], "[m*n]"),
    ("reshape -1", lambda x: x.reshape("n", -1), None, [("n", 2, "m")], "[n, 2*m]"),  # type: ignore
    ("reshape 3", lambda x: x.reshape(-1, 3), lambda x: x.reshape(-1, 3), [("n", 6)], "[2*n, 3]"),
    ("flatten", lambda x: x.flatten(), np.ravel, [("n", 2, "m")], "[2*m*n]"),
    ("broadcast", lambda x: x.broadcast_to("m", 3), None, [(1, 3)], "[m, 3]"),  # type: ignore
    (
        "transpose",
        lambda x: x.transpose(0, 2),
        lambda x: x.swapaxes(0, 2),
        [("n", 2, "m")],
        "[m, 2, n]",
    ),
    ("mT", lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2), [(2, "n", "m")], "[2, m, n]"),
    ("swap", lambda x: x.transpose(), lambda x: x.swapaxes(-1, -2), [(2, "n", "m")], "[2, m, n]"),
    ("T", lambda x: x.T, np.transpose, [("n", 2, "m")], "[m, 2, n]"),
    (
        *("permute", lambda x: x.permute(1, 2, 0)),
        *(lambda x: x.transpose(1, 2, 0), [("n", 2, "m")], "[2, m, n]"),
    ),
    ("squeeze", lambda x: x.squeeze(1), lambda x: x.squeeze(1), [("n", 1, "m")], "[n, m]"),
    ("unsqueeze", lambda x: x.unsqueeze(-1), lambda x: x[..., None], [("n", "m")], "[n, m, 1]"),
    ("unsqueeze 0", lambda x: x.unsqueeze(0), lambda x: x[None], [("n", "m")], "[1, n, m]"),
    (
        *("concat", lambda x, y, z: ops.concat([x, y, z])),
        *(lambda *a: np.concatenate(a), [("n", 3), ("m", 3), (2, 3)], "[m+n+2, 3]"),
    ),
    (
        *("concat 1", lambda x, y: ops.concat([x, y], axis=-1)),
        *(lambda *a: np.concatenate(a, -1), [("n", "m"), ("n", "m")], "[n, 2*m]"),
    ),
    ("stack", lambda x, y: ops.stack([x, y]), lambda *a: np.stack(a), [("n",), ("n",)], "[2, n]"),
    (
        *("stack -1", lambda x, y: ops.stack([x, y], axis=-1)),
        *(lambda *a: np.stack(a, -1), [("n",), ("n",)], "[n, 2]"),
    ),
    (
        *("pad", lambda x: ops.pad(x, [(1, 2), (0, 3)])),
        *(lambda x: np.pad(x, [(1, 2), (0, 3)]), [("n", 2)], "[n+3, 5]"),
    ),
    ("pad 1", lambda x: ops.pad(x, 1), lambda x: np.pad(x, 1), [("n", "m")], "[n+2, m+2]"),
    (
        *("repeat", lambda x: ops.repeat(x, 3, axis=0)),
        *(lambda x: np.repeat(x, 3, 0), [("n", "m")], "[3*n, m]"),
    ),
    (
        *("repeat inner", lambda x: ops.repeat(x, 2, axis=1)),
        *(lambda x: np.repeat(x, 2, 1), [("n", "m", "k")], "[n, 2*m, k]"),
    ),
    ("tile", lambda x: ops.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), [("n", 2)], "[2*n, 6]"),
    ("flip", ops.flip, np.flip, [("n", "m")], "[n, m]"),
    (
        *("roll", lambda x: ops.roll(x, 2, axis=0)),
        *(lambda x: np.roll(x, 2, 0), [("n", "m")], "[n, m]"),
    ),
    ("differences", lambda x: x[1:] - x[:-1], np.diff, [("n",)], "[n-1]"),
    ("stride", lambda x: x[::2], lambda x: x[::2], [("n", 3)], "[((n+1)//2), 3]"),
    ("backwards", lambda x: x[::-1], lambda x: x[::-1], [("n",)], "[n]"),
    ("int index", lambda x: x[0], lambda x: x[0], [("n", "m")], "[m]"),
    ("last", lambda x: x[..., -1], lambda x: x[..., -1], [("n", "m")], "[n]"),
]
BY_NUMPY = [rule for rule in RULES if rule[2] is not None]


def arrays(shapes: Shapes, sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    return [np.zeros([evaluate(d, sizes) for d in shape_of(shape)], np.float32) for shape in shapes]


def operands(name: str, shapes: Shapes) -> list[Symbol]:
    made = inputs(shapes)
    return [made[0] > 0, *made[1:]] if name == "where" else made


@every(("name", "op", "numpy", "shapes", "wanted"), RULES)
def test_symbolic_shapes(name: str, op: Any, numpy: Any, shapes: Shapes, wanted: str):
    result = op(*operands(name, shapes))
    assert shape_text(result.shape) == wanted
    if numpy is not None:
        for sizes in SIZES:
            expected = np.shape(numpy(*arrays(shapes, sizes)))
            assert tuple(evaluate(d, sizes) for d in result.shape) == expected, sizes


@every(("name", "op", "numpy", "shapes", "wanted"), BY_NUMPY)
def test_static_shapes(name: str, op: Any, numpy: Any, shapes: Shapes, wanted: str):
    for sizes in SIZES:
        given_ = [a.shape for a in arrays(shapes, sizes)]
        assert op(*operands(name, given_)).shape == numpy(*arrays(shapes, sizes)).shape


def gathered(x: tuple[Any, ...], indices: tuple[Any, ...], axis: int) -> str:
    g = Graph()
    result = ops.gather(g.input("float32", x), g.input("int32", indices), axis=axis)
    return shape_text(result.shape)


def test_gather_puts_the_indices_axes_in_place_of_the_axis():
    assert gathered(("n", 3), ("m",), 0) == "[m, 3]"
    assert gathered(("n", 3), ("m", 2), -1) == "[n, m, 2]"
    assert gathered(("n",), (), 0) == "[]"
    g = Graph()
    x, i = g.input("float32", ("n", 3)), g.input("int8", ("m",))
    assert x[i].type is TensorType("float32", ("m", 3))
    assert x[np.array([[0, 1]])].type is TensorType("float32", (1, 2, 3))
    assert x[[0, 2, 1]].type is TensorType("float32", (3, 3))


def test_updates_have_the_shape_of_what_they_update():
    g = Graph()
    x, v = g.input("float32", ("n", 5)), g.input("float32", (5,))
    rows = {"start": (1, 0), "stop": ("n-1", 5), "step": (1, 1)}
    assert ops.slice_update(x, v, **rows).type is x.type
    assert ops.slice_update(x, g.input("float32", ("n-2", 5)), **rows).type is x.type
    i = g.input("int64", (3, 2))
    assert ops.index_update(x, g.input("float32", (3, 2, 5)), i, axis=0).type is x.type
    assert ops.index_update(x, g.input("float32", (3, 1)), i).type is x.type
    assert ops.item(x, ("n-1", 4)).type is TensorType("float32", ())
    windows = {"origin": (0, 1), "steps": ((1, 0), (1, 0), (0, 2))}
    assert ops.affine_view(x, ("n-2", 3, 2), **windows).type is TensorType("float32", ("n-2", 3, 2))
    for call, message in [
        (lambda: ops.affine_view(x, (2, 2, 3), **windows), "positions 1 to 5 exceed axis 1 of"),
        (lambda: ops.affine_view(x, ("n", 2, 2), **windows), "positions 0 to n exceed axis 0 of"),
        (lambda: ops.affine_view(x, (2, 2), **windows), r"axis of \[2, 2\] takes a vector"),
        (lambda: ops.affine_view(x, (2,), (0, 0), ((1,),)), "takes 2 steps; got .*1,"),
        (lambda: ops.slice_update(x, x, **rows), r"n meets n-2"),
        (lambda: ops.slice_update(v, x, start=0, stop=5, step=1), "do not broadcast to"),
        (
            lambda: ops.slice_update(v, v, start=0, stop=6, step=1),
            "beyond an axis of 5; got stop 6",
        ),
        (lambda: ops.index_update(x, v, i), r"\[5\] and \[3, 2\] do not broadcast"),
        (lambda: ops.item(x, (0, 5)), "index 5 is out of range for axis 1"),
        (lambda: ops.item(x, (0,)), "takes one limit; got 1 limits"),
    ]:
        with pytest.raises(ShapeError, match=message):
            call()


def test_take_along_and_scatter_have_the_shape_of_indices_and_of_data():
    g = Graph()
    x, i = g.input("float32", ("n", 5)), g.input("int64", ("n", 2))
    assert ops.take_along(x, i).type is TensorType("float32", ("n", 2))
    assert ops.scatter(x, g.input("float32", ("n", 2)), i).type is x.type
    with pytest.raises(ShapeError, match=r"take_along.*in an axis other than 0"):
        ops.take_along(x, i, axis=0)
    with pytest.raises(ShapeError, match="updates and indices differ in shape"):
        ops.scatter(x, g.input("float32", ("n", 3)), i)
    with pytest.raises(ShapeError, match=r"scatter.*in an axis other than 1"):
        ops.scatter(x, g.input("float32", (4, 2)), g.input("int64", (4, 2)))


def test_searchsorted_has_the_shape_of_the_values():
    g = Graph()
    x, values = g.input("float32", ("n",)), g.input("float32", ("m", 2))
    assert ops.searchsorted(x, values).type is TensorType("int64", ("m", 2))
    with pytest.raises(ShapeError, match="sorted operand has one axis"):
        ops.searchsorted(values, x)


def test_split_is_a_tuple_of_slices():
    g = Graph()
    x = g.input("int8", ("n", 6))
    assert [shape_text(p.shape) for p in x.split(2, axis=1)] == ["[n, 2]"] * 3
    assert [shape_text(p.shape) for p in x.split([1, 2, 3], axis=-1)] == [
        "[n, 1]",
        "[n, 2]",
        "[n, 3]",
    ]
    assert [shape_text(p.shape) for p in x.split([1, "n-1"])] == ["[1, 6]", "[n-1, 6]"]
    assert isinstance(ops.split(x, 3, 1), tuple) and len(ops.split(x, 3, 1)) == 2
    assert [shape_text(p.shape) for p in x.split(["k", "n-k"])] == ["[k, 6]", "[-k+n, 6]"]


@every(
    ("sizes", "axis", "near"),
    [
        (4, 1, "does not split into equal pieces of 4"),
        (0, 1, "pieces of 0"),
        (2, 0, "does not split"),
        ([1, 2], 1, "sum to 3 do not split an axis of 6"),
        (["n"], 1, "sum to n do not split an axis of 6"),
        ([1], 0, "sum to 1 do not split an axis of n"),
        (2, 2, "axis 2 is out of range"),
    ],
)
def test_a_split_that_does_not_come_out_even_is_refused(sizes: Any, axis: int, near: str):
    with pytest.raises(ShapeError, match=near):
        Graph().input("int8", ("n", 6)).split(sizes, axis)


def test_a_refused_split_leaves_the_graph_as_it_was():
    g = Graph()
    x = g.input("int8", (6,))
    with pytest.raises(ShapeError):
        x.split([1, 2])
    assert len(g) == 1


def test_rebind_renames_dims():
    g = Graph()
    x, y = g.input("float32", ("n", 3)), g.input("float32", ("m", 3))
    assert (x + y.rebind("n", 3)).type is TensorType("float32", ("n", 3))
    assert x.rebind((5, 3)).shape == (5, 3)
    for shape in ((4, 4), ("n",), ("n", 3, 1)):
        with pytest.raises(ShapeError, match="no operand of this type has shape"):
            x.rebind(shape)


def test_shape_of_and_creation():
    g = Graph()
    assert ops.shape_of(g.input("int8", ("n", 3, "m"))).type is TensorType("int64", (3,))
    assert g.range(0, "n", dtype="int32").type is TensorType("int32", ("n",))
    assert g.range(2, "n", 3, "int32").shape == (shape_of("(n-2+2)//3")[0],)
    for args in ((7,), (2, 9), (0, 10, 3), (5, 0, -2), (0.0, 1.0, 0.25), (3, 3), (5, 2)):
        assert g.range["float64"](*args).shape == np.arange(*args).shape
    assert g.eye["float32"]("n").shape == (*shape_of("n"), *shape_of("n"))
    assert g.eye["float32"](2, 3).shape == (2, 3)
    assert g.full["int8"](7, ("n", 2)).type is TensorType("int8", ("n", 2))


@given(st.lists(st.integers(0, 3), max_size=3), st.lists(st.integers(0, 3), max_size=3))
def test_broadcasting_is_that_of_numpy(a: list[int], b: list[int]):
    x, y = inputs([tuple(a), tuple(b)])
    try:
        wanted = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            _ = x + y
    else:
        assert (x + y).shape == wanted


@given(st.lists(st.integers(1, 3), max_size=4), st.lists(st.integers(1, 3), max_size=4))
def test_matmul_shapes_are_those_of_numpy(a: list[int], b: list[int]):
    x, y = inputs([tuple(a), tuple(b)])
    try:
        wanted = np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        with pytest.raises(ShapeError):
            _ = x @ y
    else:
        assert (x @ y).shape == wanted


@given(st.lists(st.integers(0, 4), max_size=3), st.lists(st.integers(-1, 6), max_size=3))
def test_reshapes_are_those_of_numpy(old: list[int], new: list[int]):
    (x,) = inputs([tuple(old)])
    try:
        wanted = np.zeros(old).reshape(new).shape
    except ValueError:
        with pytest.raises(ShapeError):
            x.reshape(new)
    else:
        assert x.reshape(new).shape == wanted


# -- refusals


@every(
    ("shapes", "build", "near"),
    [
        ([("n",), ("m",)], lambda x, y: x + y, r"\[n\] and \[m\].*n meets m.*rebind"),
        ([("n", 3), (5, 3)], lambda x, y: x * y, r"\[n, 3\] and \[5, 3\].*n meets 5.*rebind"),
        ([(2, 3), (2, 4)], lambda x, y: x < y, r"\[2, 3\] and \[2, 4\].*3 meets 4"),
        ([("n",), ("n+1",)], lambda x, y: x - y, r"n meets n\+1"),
        ([("n", 3), ("m", 4)], lambda x, y: x @ y, "inner dims 3 and m differ.*rebind"),
        ([(), (3,)], lambda x, y: x @ y, "at least one axis"),
        ([(2, 3), (4,)], ops.outer, r"vectors.*float32\[2, 3\]"),
        ([(2, 3), (3, 4)], ops.tensordot, "contracted axes .* differ in size|cannot be contracted"),
        ([(2,), (2,)], lambda x, y: ops.tensordot(x, y, axes=2), "2 axes cannot be contracted"),
        ([(2,), (2,)], lambda x, y: ops.tensordot(x, y, axes=([0], [1])), "axis 1 is out of range"),
        ([("n", 2), ("m", 3)], lambda x, y: ops.concat([x, y]), "in an axis other than 0"),
        ([(2,), (2, 3)], lambda x, y: ops.concat([x, y]), "in an axis other than"),
        ([(2,), (3,)], lambda x, y: ops.stack([x, y]), "the operands differ in shape"),
        ([("n",), ("m",)], lambda x, y: ops.layer_norm(x, y, y), "scale and shift"),
        ([()], ops.sort, "at least one axis|axis -1 is out of range"),
        ([()], ops.softmax, "at least one axis|axis -1 is out of range"),
        ([("n", 2)], lambda x: x.reshape(3, -1), r"2\*n elements.*\[3, -1\].*rebind"),
        ([("n",)], lambda x: x.reshape("m"), "n elements do not fill .m.; got"),
        ([(6,)], lambda x: x.reshape(-1, -1), r"\[-1, -1\]"),
        ([(6,)], lambda x: x.reshape(4, -1), r"\[4, -1\]"),
        ([(6,)], lambda x: x.reshape(-2, 3), "a dim is at least 0"),
        ([("n",)], lambda x: x.squeeze(0), "only an axis of size 1 is squeezed"),
        ([(2, 3)], lambda x: x.sum(axis=2), "axis 2 is out of range for rank 2"),
        ([(2, 3)], lambda x: x.sum(axis=(0, -2)), "axis is repeated"),
        ([(2, 3)], lambda x: x.permute(0, 0), "permutation of range.2."),
        ([(2, 3)], lambda x: x.unsqueeze(4), "axis 4 is out of range"),
        ([(2, 3)], lambda x: x.broadcast_to(2, 4), "do not broadcast"),
        ([(2, 3)], lambda x: x.broadcast_to(3), "does not broadcast to"),
        ([(2, 3)], lambda x: ops.slice(x, (0,), (1,), (1, 1)), "takes one limit; got 1 limits"),
        (
            [(2, 3)],
            lambda x: ops.slice(x, (0, 0), (2, 4), (1, 1)),
            "stop of a slice lies beyond an axis of 3; got stop 4",
        ),
        (
            [(2, 3)],
            lambda x: ops.slice(x, (0, 0), (2, 3), (1, 0)),
            "step of a slice is positive; got 0",
        ),
        ([(2, 3)], lambda x: ops.slice(x, (0, 2), (2, 1), (1, 1)), "before its start|before"),
        ([(2, 3)], lambda x: ops.tile(x, (2,)), "takes one count; got 1 counts"),
        ([(2, 3)], lambda x: ops.pad(x, [(1, 1)] * 3), "for each of the 2 axes"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: Shapes, build: Any, near: str):
    with pytest.raises(ShapeError, match=near):
        build(*inputs(shapes))


def test_a_variadic_op_takes_a_list():
    x = Graph().input("float32", (2, 3))
    for build in (lambda: ops.concat(x), lambda: ops.stack(x, 0), lambda: ops.concat()):
        with pytest.raises(GraphError, match="a list of at least one operand"):
            build()


@every(
    "build",
    [
        lambda x: x.sum(axis=1.0),
        lambda x: x.sum(axis=True),
        lambda x: x.sum(keepdims=1),
        lambda x: ops.repeat(x, -1, axis=0),
        lambda x: ops.repeat(x, 1.5, axis=0),
        lambda x: ops.pad(x, -1),
        lambda x: ops.pad(x, 1, value="zero"),
        lambda x: ops.roll(x, 0.5, axis=0),
        lambda x: x.reshape(2.5),
        lambda x: x.reshape("a b"),
        lambda x: ops.concat([]),
    ],
)
def test_attributes_of_a_wrong_kind_are_refused(build: Any):
    g = Graph()
    with g, pytest.raises((GraphError, ShapeError)) as caught:
        build(g.input("float32", (2, 3)))
    assert isinstance(caught.value, GraphirError)


def test_split_is_of_symbols():
    with pytest.raises(GraphError, match="takes a symbol"):
        ops.split([1, 2], 1)

"""Refusals: each an error of the right class that names op, operands, line and fix."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import (
    AxisError,
    DType,
    ExecutionError,
    Graph,
    GraphError,
    GraphirError,
    ParseError,
    PromotionError,
    ShapeError,
    Symbol,
    TensorType,
    ops,
)
from graphir.runtime import execute, interpret
from tests.support.refusals import refuses
from tests.support.tables import every

HERE = r"[^ (]*test_errors\.py:\d+:\d+"


def one(dtype: str = "float32", shape: Any = (3,)) -> Symbol:
    return Graph().input(dtype, shape, name="x")


# -- the classes


@every(
    ("kind", "builtin"),
    [
        *((PromotionError, TypeError), (ShapeError, ValueError), (GraphError, ValueError)),
        *((ParseError, ValueError), (ExecutionError, ValueError)),
        *((AxisError, ValueError), (AxisError, IndexError)),
    ],
)
def test_every_error_is_a_graphir_error_and_a_builtin(kind: type[Exception], builtin: type):
    assert issubclass(kind, GraphirError) and issubclass(kind, builtin)
    error = pickle.loads(pickle.dumps(kind("what happened")))
    assert type(error) is kind and "what happened" in str(error)


@every(
    ("build", "kind", "operands", "fix"),
    [
        (lambda x, y: x + y, PromotionError, ("add", "int8", "complex64"), r"\.cast\(DType\."),
        (lambda x, y: x @ y, PromotionError, ("matmul", "int8", "complex64"), r"\.cast\("),
        (lambda x, y: x + 200, PromotionError, ("add", "int8", "200"), r"cast|g\.scalar"),
        (lambda x, y: 1.5 * x, PromotionError, ("multiply", "int8", "1.5"), r"cast|g\.scalar"),
        (lambda x, y: ops.sin(x), PromotionError, ("sin", "int8"), r"\.cast\(DType\.float32\)"),
        (lambda x, y: x.mean(), PromotionError, ("mean", "int8"), r"\.cast\("),
        (lambda x, y: y < y, PromotionError, ("less", "complex64"), r"\.real"),
        (lambda x, y: y // y, PromotionError, ("floor_divide", "complex64"), r"\.real"),
        (lambda x, y: y.cast("float32"), PromotionError, ("cast", "complex64"), r"\.real"),
        (lambda x, y: ops.logical_not(x), PromotionError, ("logical_not", "int8"), "x != 0"),
        (lambda x, y: y & y, PromotionError, ("bitwise_and", "complex64"), r"\.cast\("),
        (lambda x, y: x[y.real], PromotionError, ("gather", "int8", "float32"), r"\.cast\("),
        (lambda x, y: -(x == x), PromotionError, ("negative", "bool"), r"\.cast\("),
        (lambda x, y: x + x[1:], ShapeError, ("add", "[3]", "[2]"), "3 meets 2"),
        (lambda x, y: x @ x[1:], ShapeError, ("matmul", "[3]", "[2]"), "rebind"),
        (lambda x, y: x.reshape(2, -1), ShapeError, ("reshape", "int8[3]"), "rebind"),
        (lambda x, y: ops.concat([x, x.sum()]), ShapeError, ("concat", "x[1]", "int8[]"), "differ"),
        (lambda x, y: ops.sum(x, axs=0), GraphError, ("sum", "'axs'"), "it takes axis"),
        (lambda x, y: x.cast("int9"), GraphError, ("cast", "'int9'"), "near it are"),
    ],
)
def test_a_message_names_the_op_its_operands_the_line_and_the_fix(
    build: Any, kind: type[GraphirError], operands: tuple[str, ...], fix: str
):
    g = Graph()
    x, y = g.input("int8", (3,), name="x"), g.input("complex64", (3,), name="y")
    with pytest.raises(kind, match=HERE) as caught:
        build(x, y)
    message = str(caught.value)
    line = build.__code__.co_firstlineno
    assert f"test_errors.py:{line}:" in message
    for operand in operands:
        assert operand in message
    with pytest.raises(kind, match=fix):
        build(x, y)


# -- symbols of two graphs


@every(
    "mix",
    [
        lambda x, y: x + y,
        lambda x, y: ops.multiply(x, y),
        lambda x, y: ops.concat([x, y]),
        lambda x, y: ops.where(x > 0, x, y),
        lambda x, y: x.clip(0, y),
        lambda x, y: x == y,
        lambda x, y: x[y],
        lambda x, y: x.graph.output(y),
        lambda x, y: x.graph.output(x, y),
    ],
)
def test_symbols_of_two_graphs_never_mix(mix: Any):
    x = Graph("one").input("int16", (3,), name="x")
    y = Graph("two").input("int16", (3,), name="y")
    with pytest.raises(
        GraphError, match=rf"graph 'one' was given %y: int16\[3\] \({HERE}\) of graph 'two'.*input"
    ):
        mix(x, y)
    assert x.graph.outputs == () and all(s.graph is x.graph for s in x.graph)


def test_graphs_whose_types_have_met_before_do_not_mix_either():
    g, h = Graph("one"), Graph("two")
    x, y = g.input("int16", (3,)), h.input("int16", (3,))
    for _ in range(2):
        _ = x + x, y + y  # now the sum of such types is known to both
        with pytest.raises(GraphError, match="graph 'one' was given"):
            _ = x + y


# -- names


@every(
    ("name", "near"),
    [("ad", "; near it are .*add"), ("matmull", "; near it are matmul"), ("reduce_sum", "$")],
)
def test_an_unknown_op(name: str, near: str):
    with pytest.raises(GraphError, match=f"^no op is named '{name}'{near}"):
        ops.find(name)


@every("name", ["flaot32", "unit8", "bflot16"])
def test_an_unknown_dtype_wherever_one_is_taken(name: str):
    g = Graph()
    x = g.input("int8")
    for build in (
        lambda: x.cast(name),
        lambda: g.input(name),
        lambda: g.scalar[name](1),
        lambda: g.constant([1], name),
        lambda: TensorType(name),
        lambda: x.sum(dtype=name),
        lambda: g.rules.promote("int8", name),
    ):
        with pytest.raises(GraphError, match=f"'{name}'; near it are"):
            build()


# -- outputs


def test_a_graph_without_outputs_cannot_run():
    g = Graph("lonely")
    g.input("int8", name="x")
    for run in (execute, interpret):
        with pytest.raises(ExecutionError, match=r"'lonely' has no outputs.*g\.output"):
            run(g, np.int8(1))


def test_outputs_are_named_once():
    g = Graph("g")
    x = g.input("int8")
    g.output(x)
    with pytest.raises(GraphError, match="'g' already has outputs; pass all outputs to one"):
        g.output(x)
    assert g.outputs == (x,)


@every(
    ("outputs", "near"),
    [
        ((), "at least one"),
        ((1,), r"got 1; use g\.scalar"),
        ((np.ones(2),), "must be a symbol; got"),
    ],
)
def test_what_is_no_output(outputs: Any, near: str):
    g = Graph("g")
    with pytest.raises(GraphError, match=rf"{HERE}.*{near}"):
        g.output(*outputs)
    with pytest.raises(GraphError, match="symbol"):
        g.output([g.input("int8")])  # type: ignore[arg-type]
    assert g.outputs == ()


# -- inputs of a run


def runnable() -> Graph:
    g = Graph("g")
    x = g.input("float32", ("n", 3), name="x")
    y = g.input("int16", ("n",), name="y")
    g.output(x.sum(axis=1) + y)
    return g


X, Y = np.ones((2, 3), np.float32), np.ones(2, np.int16)


def test_inputs_by_position_and_name_give_the_same():
    wanted = [4.0, 4.0]
    for args, named in (((X, Y), {}), ((X,), {"y": Y}), ((), {"y": Y, "x": X})):
        for run in (execute, interpret):
            assert run(runnable(), *args, **named).tolist() == wanted


@every(
    ("args", "named", "near"),
    [
        ((X,), {}, r"missing y; it takes \(x: float32\[n, 3\], y: int16\[n\]\)"),
        ((), {}, "missing x, y"),
        ((X, Y, Y), {}, "takes 2 inputs .*got 3"),
        ((X, Y), {"z": Y}, "no input 'z'; it takes"),
        ((X, Y), {"x": X}, "one value for input 'x'; got two"),
        ((X.astype(np.float64), Y), {}, r"'x'.*float32\[n, 3\].*array of float64.*astype"),
        ((X, Y.astype(np.int32)), {}, "'y'.*int16.*array of int32"),
        ((X[0], Y), {}, r"'x'.*2 axes; got an array of shape \(3,\)"),
        ((X, Y[0]), {}, "'y'.*1 axes; got an array of shape"),
        ((X[:, :2], Y), {}, "axis 1 of input 'x'.* is 3; got 2"),
        ((X, Y[:1]), {}, "axis 0 of input 'y'.* is n, which is 2 here; got 1"),
        ((X, [1, 2]), {}, r"'y'.*got a list; use np\.asarray\(\.\.\., np\.int16\)"),
        ((X.tolist(), Y), {}, "'x'.*got a list"),
        ((X, None), {}, "'y'.*got a NoneType"),
        ((X, "12"), {}, "'y'.*got a str"),
        ((X, 3), {}, "'y'.*got the number 3; use an array"),
        ((X, np.ma.masked_array(Y, mask=[0, 1])), {}, "'y'.*got a MaskedArray"),
        ((X, Y.view(np.uint16)), {}, "array of uint16"),
        ((X, Y.view(ml_dtypes.bfloat16)), {}, "array of bfloat16"),
        ((X, Y.astype(object)), {}, "array of object"),
    ],
)
def test_wrong_inputs_say_which_and_how(args: Any, named: Any, near: str):
    for run in (execute, interpret):
        with pytest.raises(ExecutionError, match=near):
            run(runnable(), *args, **named)


@every(
    ("dtype", "value", "fits"),
    [
        ("int8", 5, True),
        ("int8", 200, False),
        ("int8", 1.5, False),
        ("float32", 1, True),
        ("float32", 1e40, False),
        ("bool", True, True),
        ("complex64", 1j, True),
        ("float32", 1j, False),
        ("bfloat16", 0.5, True),
        ("index", -1, False),
        ("index", 2**64 - 1, True),
        ("float32", 2**24 + 1, False),
    ],
)
def test_a_number_serves_a_0_d_input_that_it_fits(dtype: str, value: Any, fits: bool):
    g = Graph()
    g.output(g.input(dtype, name="x"))
    if fits:
        found = execute(g, value)
        assert found.dtype == DType(dtype).storage and found.shape == () and found == value
    else:
        with pytest.raises(ExecutionError, match=rf"'x'.*{dtype}.*does not fit"):
            execute(g, value)


@every(
    ("dim", "good", "bad"),
    [("2*n", (4, 2), (3, 2)), ("n+1", (3, 2), (1, 2)), ("n*n", (4, 2), (5, 2))],
)
def test_expressions_of_dims_are_solved_and_checked(dim: str, good: Any, bad: Any):
    g = Graph()
    x, y = g.input("int8", (dim,), name="x"), g.input("int8", ("n",), name="y")
    g.output(x.sum() + y.sum())
    assert execute(g, np.ones(good[0], np.int8), np.ones(good[1], np.int8)) == sum(good)
    with pytest.raises(ExecutionError, match="axis 0 of input 'x'"):
        execute(g, np.ones(bad[0], np.int8), np.ones(bad[1], np.int8))


def test_an_expression_alone_binds_its_name():
    for dim, size, n in (("n+1", 3, 2), ("2*n", 6, 3), ("7-n", 2, 5), ("3*n+2", 2, 0)):
        g = Graph()
        g.output(g.input("int8", (dim,)), g.full["int8"](0, ("n",)))
        assert execute(g, np.ones(size, np.int8))[1].shape == (n,)


def test_a_float32_given_for_a_tensor_float32_is_rounded_on_entry():
    g = Graph()
    g.output(g.input("tensor_float32", (2,)))
    found = execute(g, np.array([1 + 2**-12, 1 + 2**-11 + 2**-12], np.float32))
    assert found.dtype == np.float32 and found.tolist() == [1.0, 1 + 2**-10]


def test_plain_dims_bind_before_expressions_whatever_their_order():
    g = Graph()
    x, y = g.input("int8", ("n+n//3",), name="x"), g.input("int8", ("n",), name="y")
    g.output(x.sum() + y.sum())
    for n in range(8):
        assert execute(g, np.ones(n + n // 3, np.int8), np.ones(n, np.int8)) == 2 * n + n // 3


@every(
    ("dim", "size"),
    [("n+1", 0), ("2*n", 3), ("3*n+1", 0), ("5-n", 6), ("n//3", 0), ("(3*n+2)//4", 2)],
)
def test_no_size_is_negative_a_fraction_or_a_guess(dim: str, size: int):
    g = Graph()
    g.output(g.input("int8", (dim,), name="x") + 1)
    with pytest.raises(ExecutionError, match=r"axis 0 of input 'x'.*nothing binds 'n'"):
        execute(g, np.ones(size, np.int8))


def test_a_dim_that_nothing_binds_is_named():
    g = Graph()
    x = g.input("int8", ("n*m",), name="x")
    g.output(x + 1)
    with pytest.raises(ExecutionError, match=r"nothing binds '[nm]'"):
        execute(g, np.ones(6, np.int8))


def test_a_dim_of_a_creation_that_nothing_binds_is_named():
    g = Graph()
    g.output(g.full["int8"](1, ("k",)) + g.input("int8"))
    with pytest.raises(ExecutionError, match="nothing binds 'k'"):
        execute(g, 1)


def test_a_run_that_cannot_compute_names_the_user_s_line():
    g = Graph()
    x = g.input("int32", (3,))
    g.output(x**x)
    for run in (execute, interpret):
        with pytest.raises(ExecutionError, match=rf"{HERE}.*pow.*-1.*\.cast\(DType\.float64\)"):
            run(g, np.array([1, 2, -1], np.int32))


def test_rebind_is_checked_when_the_graph_runs():
    g = Graph()
    x, y = g.input("int8", ("n",)), g.input("int8", ("m",))
    g.output(x + y.rebind("n"))
    assert execute(g, np.ones(2, np.int8), np.ones(2, np.int8)).tolist() == [2, 2]
    with pytest.raises(ExecutionError, match=rf"{HERE}.*rebind.*is \[2\]; got .*\[3\]"):
        execute(g, np.ones(2, np.int8), np.ones(3, np.int8))


# -- what has no value in Python


@every(
    ("ask", "what"),
    [
        (bool, "bool"),
        (float, "float"),
        (int, "int"),
        (complex, "complex"),
        (len, "len"),
        (iter, "iter"),
        (list, "iter"),
        (lambda x: x in [1, 2], "bool"),
        (lambda x: 1 in x, "in"),
        (lambda x: 1 if x == 1 else 2, "bool"),
        (lambda x: not x, "bool"),
        (lambda x: x and x, "bool"),
        (lambda x: 0 < x < 1, "bool"),
        (lambda x: range(x), "int"),
        (lambda x: [1, 2, 3][x], "int"),
        (np.asarray, "np.asarray"),
    ],
)
def test_python_cannot_ask_a_symbol_for_its_value(ask: Any, what: str):
    x = one("int64", ())
    with refuses(GraphError, op=what) as e:
        ask(x)
    assert isinstance(e.value, TypeError) and e.value.fixes
    (operand,) = e.value.operands
    assert str(operand.dtype) in ("int64", "bool") and operand.location is not None
    assert operand.location.file.endswith("test_errors.py")


def test_len_of_a_static_axis_is_known_and_of_a_symbolic_one_is_not():
    assert len(one("int8", (5, 2))) == 5
    with pytest.raises(GraphError, match=r"first axis is symbolic: \.shape\[0\] is n"):
        len(one("int8", ("n",)))

"""Calls of ops, methods of symbols, and what a symbol knows of itself."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphError, Symbol, TensorType, ops
from tests.support.tables import every


def one(dtype: str = "float32", shape: Any = (3,)) -> Symbol:
    return Graph().input(dtype, shape, name="x")


def value(symbol: Symbol) -> Any:
    assert symbol.op is ops.constant
    return symbol.attrs["value"]


def test_operands_and_attributes_by_name_or_position():
    x = one("float32", (2, 3))
    assert ops.add(x, rhs=1).args[0] is x
    assert ops.subtract(lhs=1, rhs=x).args[1] is x
    assert ops.sum(x, 1, True).attrs == {"axis": (1,), "keepdims": True, "dtype": None}
    assert ops.sum(x, keepdims=True, axis=-1).attrs["axis"] == (1,)


@every(
    ("build", "near"),
    [
        (lambda x: ops.add(x), r"add: the op has 2 operands \(lhs, rhs\); got 1"),
        (lambda x: ops.add(x, x, x), "takes fewer arguments"),
        (lambda x: ops.sum(x, None, False, None, 3), "takes fewer arguments"),
        (
            lambda x: ops.sum(x, axes=1),
            "no attribute is named 'axes'; it takes axis, keepdims, dtype",
        ),
        (lambda x: ops.sin(x, out=None), "no attribute is named 'out'; it takes none"),
        (lambda x: ops.reshape(x), "the attribute 'shape' is missing"),
        (lambda x: ops.add(x, x, lhs=x), "lhs"),
        (lambda x: ops.sum(x, 1, axis=0), "sum: two values for the attribute 'axis'"),
    ],
)
def test_calls_that_do_not_fit_an_op(build: Any, near: str):
    with pytest.raises(GraphError, match=near):
        build(one())


def test_properties():
    x = one("complex64", ("n", 3))
    assert (x.dtype, x.shape, x.rank, x.ndim) == (DType.complex64, x.type.shape, 2, 2)
    assert str(x.size) == "3*n" and not x.weak and x.name == "%x" and x.origins == ()
    assert x.real.dtype is x.imag.dtype is DType.float32 and x.conj().dtype is DType.complex64
    assert x.graph.name_of(x.real) == "%3"


@every(
    "name", ["sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin", "any", "all"]
)
def test_reduction_methods_are_the_ops_with_their_defaults(name: str):
    x = one("bool" if name in ("any", "all") else "float32", (2, 3))
    made, by_op = getattr(x, name)(), getattr(ops, name)(x)
    assert made.op is by_op.op and made.attrs == by_op.attrs and made.shape == ()
    kept = getattr(x, name)(axis=1, keepdims=True)
    assert kept.shape == (2, 1) and getattr(x, name)(0).shape == (3,)
    if name in ("var", "std"):
        assert made.attrs["correction"] == 0
        assert getattr(x, name)(correction=1).attrs["correction"] == 1
    if name in ("sum", "prod"):
        assert getattr(x, name)(dtype="float64").dtype is DType.float64


def test_clip_may_leave_out_a_limit():
    x = one()
    low, high, both = x.clip(0), x.clip(high=1), x.clip(0, 1)
    assert (low.op.name, high.op.name, both.op.name) == ("maximum", "minimum", "clip")
    assert low.args[0] is high.args[0] is both.args[0] is x
    assert [value(a) for a in (low.args[1], high.args[1], *both.args[1:])] == [0, 1, 0, 1]
    assert x.clip().op is ops.positive  # the array itself, as in NumPy 2


def test_axes_may_be_a_list_or_come_one_by_one():
    x = one("int8", (2, 3, 4))
    for made in (x.permute(2, 0, 1), x.permute([2, 0, 1]), x.permute((2, 0, 1))):
        assert made.shape == (4, 2, 3)
    for made in (x.reshape(4, 6), x.reshape([4, 6]), x.reshape((4, 6))):
        assert made.shape == (4, 6)
    for made in (x.broadcast_to(5, 2, 3, 4), x.broadcast_to((5, 2, 3, 4))):
        assert made.shape == (5, 2, 3, 4)
    assert x.permute([2, 0, 1]).attrs["dims"] == (2, 0, 1)


def test_which_ops_compute_and_which_only_move():
    compute = ("add", "sin", "sum", "argmax", "matmul", "softmax", "sort", "where", "equal")
    move = ("reshape", "concat", "gather", "pad", "cast", "constant", "input", "range", "shape_of")
    assert all(ops.find(name).computes is True for name in compute)
    assert all(ops.find(name).computes is False for name in move)


def test_ops_are_frozen_and_compared_by_identity():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ops.add.name = "plus"  # type: ignore[misc]
    twin = dataclasses.replace(ops.add)
    assert twin != ops.add and len({twin, ops.add}) == 2
    assert repr(ops.add) == "<op add>" and pickle.loads(pickle.dumps(ops.add)) is ops.add


def test_symbols_hash_by_identity_and_never_change_the_others():
    x = one()
    y = x + 1
    assert len({x, y, x}) == 2 and hash(x) != hash(y)
    assert y.index == 2 and x.index == 0
    with pytest.raises(AttributeError):
        x.note = "slots only"  # type: ignore[attr-defined]


@every("dtype", ["float64", np.float64, DType.float64, np.dtype("f8"), "f64"])
def test_cast(dtype: Any):
    x = one("int8", ("n",))
    for made in (x.cast(dtype), x.astype(dtype), ops.cast(x, dtype), ops.cast(x, to=dtype)):
        assert made.op is ops.cast and made.attrs == {"to": DType.float64}
        assert made.type is TensorType("float64", ("n",)) and made.origins == ()


def test_a_cast_to_the_same_dtype_is_a_cast_still():
    x = one()
    assert x.cast("float32") is not x and x.cast("float32").args == (x,)

"""NumPy called on symbols: what it would compute, in dtype and values, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import Graph, GraphirError, PromotionError, Symbol, ops, trace
from graphir.numpy_api.ufuncs import ACCUMULATIONS, REDUCTIONS
from graphir.runtime import interpret
from tests import ROOT
from tests.support.numpy_calls import (
    DTYPES,
    FUNCTION_CALLS,
    UFUNCS,
    agrees,
    allowed,
    symbols,
    values,
)
from tests.support.tables import every, sampled

# -- universal functions


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda one: one.__name__)
def test_every_ufunc_that_has_an_op_is_numpys(ufunc: Any, dtype: Any) -> None:
    others = [values(dtype)] if ufunc.nin == 1 else [values(one) for one in DTYPES]
    for other in others:
        arrays = [values(dtype), other, other][: ufunc.nin]
        if allowed(ufunc, *arrays):
            agrees(ufunc, *arrays)


@pytest.mark.filterwarnings("ignore")
@sampled(4)
@every("other", [True, 2, 1.5, np.float32(2), np.int8(3), values("i2")])
@every("ufunc", [one for one in UFUNCS if one.nin == 2])
def test_numbers_and_arrays_stand_on_either_side(ufunc: Any, other: Any) -> None:
    for dtype in DTYPES:
        for call in (lambda x: ufunc(x, other), lambda x: ufunc(other, x)):
            if ufunc is np.nextafter and dtype.kind + dtype.char not in ("ff", "fd"):
                continue  # others may be in float16, which the op has not
            if ufunc is np.power and dtype == np.bool_ and type(other) is int:
                continue  # the op is that of `**`, which for NumPy is not power where it is 2
            if allowed(call, values(dtype)):
                agrees(call, values(dtype))


@every("rules", ["max", "jax", "numpy", "torch"])
def test_a_ufunc_is_its_operator_under_all_rules(rules: str) -> None:
    g = Graph(rules=rules)
    x, y = g.input("int16", (3,)), g.input("float32", (3,))
    array = values("f4")
    pairs = [
        (np.add(x, y), x + y),
        (np.add(x, 1), x + 1),
        (np.multiply(np.float32(2), x), np.float32(2) * x),
        (array - y, ops.subtract(array, y)),
        (np.matmul(array, y), array @ y),
        (np.float64(2) < x, ops.less(np.float64(2), x)),
    ]
    for made, same in pairs:
        assert made.op is same.op and made.type is same.type and len(made.args) == len(same.args)
        assert [one.type for one in made.args] == [one.type for one in same.args]


def test_where_an_op_arose_is_the_users_line() -> None:
    (x,) = symbols(values("f4"))
    for made in (np.sin(x), np.sum(x, axis=0), values("f4") + x, np.add.outer(x, x), np.rint(x)):
        assert made.location.file.endswith("test_numpy_symbols.py")
        assert "for made in (np.sin(x), np.sum(x" in _line(made)


def _line(symbol: Symbol) -> str:
    return Path(__file__).read_text(encoding="utf-8").splitlines()[symbol.location.line - 1]


# -- methods of universal functions


@pytest.mark.filterwarnings("ignore")
@every("dtype", DTYPES)
@every("axis", [0, -1, None, (0, 1)])
def test_reductions(dtype: Any, axis: Any) -> None:
    for ufunc in REDUCTIONS:
        for keep in (False, True):
            agrees(
                lambda x, u=ufunc, k=keep: u.reduce(x, axis=axis, keepdims=k), values(dtype, (2, 3))
            )


@pytest.mark.filterwarnings("ignore")
@every("dtype", DTYPES)
def test_accumulations_and_outer_products(dtype: Any) -> None:
    for ufunc in ACCUMULATIONS:
        agrees(ufunc.accumulate, values(dtype, (2, 3)))
        agrees(lambda x, u=ufunc: u.accumulate(x, 1), values(dtype, (2, 3)))
    for ufunc in (np.add, np.multiply, np.less, np.maximum):
        agrees(ufunc.outer, values(dtype, (2, 2)), values("f4"))
        agrees(lambda x, u=ufunc: u.outer(x, 2), values(dtype))
    agrees(lambda x: np.add.reduce(x, dtype=np.float64), values("f4", (2, 3)))


# -- other functions


@pytest.mark.filterwarnings("ignore")
@sampled(2)
@every("dtype", DTYPES)
@every("call", FUNCTION_CALLS.values())
def test_functions_are_numpys(call: Callable[..., Any], dtype: Any) -> None:
    x = values(dtype, (2, 3))
    if allowed(call, x):
        agrees(call, x)


def test_questions_of_shape_are_answered() -> None:
    (x,) = symbols(values("F", (2, 3)))
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert (np.iscomplexobj(x), np.isrealobj(x)) == (True, False)


def test_symbolic_dims_go_through() -> None:
    g = Graph()
    x = g.input("float32", ("n", 3))
    assert str(np.ravel(x).type) == "float32[3*n]"
    assert str(np.concatenate([x, x]).type) == "float32[2*n, 3]"
    assert str(np.sum(x, axis=1).type) == "float32[n]"
    assert str(np.diff(x, axis=0).type) == "float32[n-1, 3]"


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_chains_of_calls_are_numpys(data: st.DataObject) -> None:
    pool = ["sum", "where", "stacks", "flips", "roll", "reshape", "axes", "cumulative", "sort"]
    names = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from("bhilf"))

    def chain(x: Any) -> Any:
        found: Any = ()
        for name in names:
            found = FUNCTION_CALLS[name](x)
            found = found if isinstance(found, tuple) else (found,)
            x = np.tile(np.ravel(found[-1])[:1], (2, 3))
        return found

    agrees(chain, values(dtype, (2, 3)))


# -- what is refused

X = Graph("refused", rules="numpy").input("float32", (3,), name="x")
Y = X.graph.input("float32", ("n", 3), name="y")
A = np.ones(3, np.float32)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no op": (lambda: np.spacing(X), "np.spacing: no op does this.*nearest: nextafter"),
    "no function": (lambda: np.quantile(X, 0.5), "np.quantile: no op does this.*nearest: sort"),
    "a module's": (lambda: np.linalg.inv(X), "inv: no op does this; call np.linalg.inv on arrays"),
    "fft": (lambda: np.fft.fft(X), r"np\.fft\.fft: no op does this; call np\.fft\.fft"),
    "no reduction": (lambda: np.ldexp.reduce(X), "np.ldexp.reduce: no op does this"),
    "reduceat": (lambda: np.hypot.reduceat(X, [0, 1]), "np.hypot.reduceat: no op does this"),
    "at": (lambda: np.add.at(X, [0], 1), "np.add.at: writes to an array"),
    "at an array": (lambda: np.add.at(A, [0], X), "np.add.at: writes to an array"),
    "out": (lambda: np.sin(X, out=A), "takes no out=; a symbol never changes"),
    "out of a function": (lambda: np.sum(X, out=A[0]), "takes no out=; a symbol never changes"),
    "in place": (lambda: A.__iadd__(X), "takes no out="),
    "out of arrays": (lambda: np.add(A, A, out=X), "takes no out="),
    "where": (lambda: np.sin(X, where=A > 0), r"takes no where=; choose with np\.where"),
    "where of a function": (lambda: np.nansum(X, where=A > 0), "takes no where="),
    "where of a sum": (lambda: np.max(X, where=A > 0), r"pass initial="),
    "initial": (lambda: np.hypot.reduce(X, initial=1), "takes no initial="),
    "dtype": (lambda: np.add(X, X, dtype="f8"), r"takes no dtype=; cast an operand"),
    "another argument": (lambda: np.sort(X, order="a"), "takes no order="),
    "a list": (lambda: np.add(X, [1, 2, 3]), "does not take"),
    "a mode": (lambda: np.pad(X, 1, mode="edge"), "got mode='edge'"),
    "column-major": (lambda: np.ravel(X, order="F"), "row-major"),
    "unlike shifts": (lambda: np.roll(X, (1, 2), (0,)), "got 2 shifts and 1 axes"),
    "unlike letters": (lambda: np.einsum("ij", X), "do not match the ranks"),
    "unlike factors": (lambda: np.einsum("i,i", X), "has 2 inputs; got 1"),
    "a letter that is not": (lambda: np.einsum("i->j", X), "labels no axis"),
    "an axis list": (lambda: np.einsum(X, [0]), "must be text"),
    "an unknown diagonal": (lambda: np.diagonal(Y), "known sizes; got n and 3"),
    "no matrix": (lambda: np.diag(Y[None]), "takes a vector or a matrix"),
    "no pieces": (lambda: np.split(X, 0), "into 0 equal pieces"),
    "differences": (lambda: np.diff(X, -1), "a count is at least 0"),
    "places": (lambda: np.where(X), "depends on values"),
    "unequal pieces": (lambda: np.split(X, 2), "into 2 equal pieces"),
    "to copy into": (lambda: np.copyto(A, X), "np.copyto: writes to an array.*np.where"),
    "full": (lambda: np.full(3, X), "no value in Python"),
    "another graph": (lambda: np.add(X, symbols(A)[0]), "symbols of two graphs"),
    "an array": (lambda: np.asarray(X), "no value in Python"),
    "of a list": (lambda: np.array([X, X]), "np.stack on a list"),
    "of numbers too": (lambda: np.array([1.0, X]), "no value in Python"),
    "to object": (lambda: np.array(X, dtype=object), "no value in Python"),
}  # fmt: skip


@every(("call", "words"), REFUSED.values())
def test_what_has_no_op_is_an_error_at_the_users_line(call: Any, words: str) -> None:
    before = A.copy()
    with pytest.raises(GraphirError, match=words) as refused:
        call()
    assert "test_numpy_symbols.py:" in str(refused.value)
    assert (before == A).all()


def test_dtypes_are_refused_as_operators_refuse_them() -> None:
    x = Graph(rules="max").input("int16", (3,))
    with pytest.raises(PromotionError, match=r"test_numpy_symbols\.py"):
        np.sin(x)
    with pytest.raises(PromotionError, match=r"test_numpy_symbols\.py.*does not fit int16"):
        np.add(x, 100_000)
    assert np.add(x, 1).op is ops.add


class Foreign:
    __array_ufunc__ = None

    def __radd__(self, other: object) -> str:
        return "radd"


def test_what_is_no_operand_gets_its_turn() -> None:
    assert X + Foreign() == "radd"
    with pytest.raises(TypeError):
        np.add(X, None)


def test_the_tables_are_read_at_first_use() -> None:
    code = "import sys, graphir; sys.exit('graphir.numpy_api.dispatch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_clip_without_bounds_is_the_array():
    graph = trace(lambda x: x.clip(), np.ones(2, np.float32)).graph
    assert interpret(graph, np.float32([1, -2])).tolist() == [1, -2]

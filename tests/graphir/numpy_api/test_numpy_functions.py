"""NumPy's functions that are several ops of symbols, and what each other function of NumPy says."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np
import pytest

from graphir import Graph, GraphirError, Symbol
from graphir.numpy_api.functions import FUNCTIONS
from graphir.runtime import interpret, record
from tests.support.numpy_calls import (
    ANSWERS,
    COMPARED_BY_VALUE,
    COMPOSITE_CALLS,
    DTYPES,
    FLOAT_CALLS,
    FUNCTION_CALLS,
    REFUSED_CALLS,
    agrees,
    allowed,
    run,
    symbols,
    values,
)
from tests.support.tables import every, sampled


def with_odd_values(dtype: Any) -> Any:
    """Also NaN and infinities, where there are any."""
    x = values(dtype, (2, 3))
    if x.dtype.kind in "fc":
        x[0, 1], x[1, 1], x[1, 0] = np.nan, np.inf, -np.inf
    return x


@pytest.mark.filterwarnings("ignore")
@sampled(3)
@every("dtype", DTYPES)
@every("call", COMPOSITE_CALLS.values())
def test_functions_are_numpys(call: Callable[..., Any], dtype: Any) -> None:
    for x in (values(dtype, (2, 3)), with_odd_values(dtype)):
        if allowed(call, x):
            agrees(call, x)


@every("name", [*COMPOSITE_CALLS])
def test_each_is_called_in_float64_at_least(name: str) -> None:
    assert allowed(COMPOSITE_CALLS[name], values("d", (2, 3)))


def test_comparisons_of_whole_arrays() -> None:
    for dtype in "?bIfdD":
        x = with_odd_values(dtype)
        pairs = [(x, x), (x, values(dtype, (2, 3))), (values(dtype), values(dtype)), (x, x[0])]
        for a, b in pairs:
            same = [np.array_equal(*symbols(a, b)), np.array_equal(*symbols(a, b), True)]
            expected = [np.array_equal(a, b), np.array_equal(a, b, True)]
            near = np.allclose(*symbols(a, b), equal_nan=True)
            if a.shape == b.shape or a.shape[1:] == b.shape:
                same.append(near)
                expected.append(np.allclose(a, b, equal_nan=True))
            for one, want in zip(same, expected, strict=True):
                assert run(one, (a, b))[0] == want


@pytest.mark.filterwarnings("ignore")
def test_medians_of_any_number() -> None:
    for size in range(1, 7):
        for x in (np.arange(size)[::-1].astype("f4"), np.full(size, np.nan), np.arange(size)):
            agrees(lambda x: (np.median(x), np.nanmean(x), np.nanmax(x), np.nanvar(x)), x)


@every("call", FLOAT_CALLS.values())
def test_functions_of_floats_are_numpys(call: Callable[..., Any]) -> None:
    agrees(call, values("d", (2, 3)))


@every("call", ANSWERS.values())
def test_types_answer_as_numpy(call: Callable[..., Any]) -> None:
    x = values("d", (2, 3))
    assert call(*symbols(x)) == call(x)


@every("call", COMPARED_BY_VALUE.values())
def test_comparisons_give_a_symbol(call: Callable[..., Any]) -> None:
    x = values("d", (2, 3))
    assert run(call(*symbols(x)), (x,))[0] == call(x)


@every("call", REFUSED_CALLS.values())
def test_a_function_is_refused_with_its_reason(call: Callable[..., Any]) -> None:
    with pytest.raises(GraphirError, match=r"^test_numpy_functions|np\.\w+: .*use |numpy_calls"):
        call(*symbols(values("d", (2, 3))))


def test_calls_reach_every_function_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of all tables of calls run the implementation of every function."""
    reached: set[Any] = set()

    def observe(function: Any, implementation: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(implementation)
        def call(*args: Any, **keywords: Any) -> Any:
            reached.add(function)
            return implementation(*args, **keywords)

        return call

    for function, implementation in FUNCTIONS.items():
        monkeypatch.setitem(FUNCTIONS, function, observe(function, implementation))
    tables = FUNCTION_CALLS, COMPOSITE_CALLS, FLOAT_CALLS, ANSWERS, COMPARED_BY_VALUE, REFUSED_CALLS
    for dtype in "di":
        for call in (call for table in tables for call in table.values()):
            with suppress(GraphirError):  # other tests compare the values of calls
                call(*symbols(values(dtype, (2, 3))))
    assert FUNCTIONS.keys() == reached


SHARED: dict[str, Callable[..., Any]] = {
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "concatenate flat": lambda x: np.concatenate([x, x[0]], axis=None),
    "roll": lambda x: np.roll(x, 1),
    "roll of axes": lambda x: np.roll(x, (1, 2), axis=(0, 1)),
    "dot": lambda x: np.dot(x, x.T),
    "inner": lambda x: np.inner(x, x),
    "vdot": lambda x: np.vdot(x, x),
    "einsum": lambda x: np.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "einsum of a diagonal": lambda x: np.einsum("ii", x[:, :2]),
    "einsum of ellipses": lambda x: np.einsum("...j,j", x, x[0]),
    "diagflat": lambda x: np.diagflat(x, 1),
    "trace": lambda x: np.trace(x, 1),
    "mean": lambda x: np.mean(x, axis=1, keepdims=True),
    "var": lambda x: np.var(x, ddof=1),
    "std": lambda x: np.std(x, axis=0),
    "argmax": lambda x: np.argmax(x, axis=1),
    "take": lambda x: np.take(x, [0, 2], axis=1),
    "argsort": lambda x: np.argsort(x, axis=0),
}


@every("call", SHARED.values())
def test_recordings_have_the_ops_of_symbols(call: Callable[..., Any]) -> None:
    x = values("f", (2, 3))
    recording = record(call, x)
    assert {note.what for note in recording.notes} <= {"numpy.einsum"}  # of another order
    made = call(*symbols(x))
    ours, theirs = (
        [one.op.name for one in graph if one.op.kind != "creation"]
        for graph in (made.graph, recording.graph)
    )
    views = {"slice", "reshape", "permute", "squeeze"}
    assert [op for op in ours if op not in views] == [op for op in theirs if op not in views]
    assert recording.result.dtype == call(x).dtype
    assert (recording.result == call(x)).all()


# -- what has no op

MODULES = (np, np.linalg, np.fft, np.random)
LEFT = {"test", "info", "show_config", "show_runtime", "save", "savez", "savez_compressed",
        "savetxt", "load", "printoptions", "loadtxt", "genfromtxt", "fromfile", "fromregex",
        "seterrcall", "set_printoptions", "setbufsize", "seterr", "set_state", "seed"}  # fmt: skip
"""Of the machine, of files and of settings."""
OWN = {"array", "asarray", "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray",
       "asmatrix", "require", "bmat", "typename", "isfortran", "from_dlpack", "frombuffer",
       "fromstring", "fromiter", "fromregex"}  # fmt: skip
"""Those that NumPy does not hand over, and that say so themselves of what is no array."""


def _public() -> list[Any]:
    found: list[Any] = []
    for module in MODULES:
        for name in sorted(module.__all__):
            one: Any = getattr(module, name)
            if callable(one) and not isinstance(one, type) and name not in LEFT:
                found.append(pytest.param(one, id=f"{module.__name__}.{name}"))
    return found


def _holds_objects(found: Any) -> bool:
    if isinstance(found, (list, tuple)):
        return any(map(_holds_objects, found))
    return isinstance(found, np.ndarray) and found.dtype == object


@pytest.mark.filterwarnings("ignore")
@every("function", _public())
def test_no_function_of_numpy_hangs_or_makes_objects(function: Any) -> None:
    g = Graph("all", rules="numpy")
    x = g.input("float32", (3, 3), name="x")
    array = np.ones((3, 3), np.float32)
    ways = [(x,), (x, x), (x, 1), (1, x), ([x, x],), (x, x, x), (array, x), (x, [0, 1])]
    signal.alarm(20)
    try:
        for args in ways:
            try:
                assert not _holds_objects(function(*args)), args
            except GraphirError as error:
                assert len(str(error)) > 30
            except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
                assert str(error)  # NumPy's own, of what it does not hand over
    finally:
        signal.alarm(0)
    assert (array == 1).all()
    g.verify()


HANDED = [one for one in _public() if type(one.values[0]) in (type(np.sum), np.ufunc)]


@pytest.mark.filterwarnings("ignore")
@every("function", HANDED)
def test_what_numpy_hands_over_is_done_or_refused_clearly(function: Any) -> None:
    x = Graph("one", rules="numpy").input("float32", (3, 3), name="x")
    if function.__name__ in OWN:
        pytest.skip("NumPy looks at the kind of its argument first")
    try:
        found = function(*(x,) * getattr(function, "nin", 1))
    except GraphirError as error:
        assert "test_numpy_functions.py:" in str(error)
        assert error.fixes or any(
            one in str(error) for one in ("nearest: ", "take", "value", "vector", "text first")
        )
    except (TypeError, ValueError) as error:  # of too few arguments, or of no list
        assert any(one in str(error) for one in ("missing", "arg", "dispatcher", "operand"))
    else:
        assert isinstance(found, (Symbol, tuple, list, int, bool)), found


Z = Graph("refused", rules="numpy").input("float32", ("n", 3), name="z")
W = Z.graph.input("complex64", (3,), name="w")
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "percentile": (lambda: np.percentile(Z, 5), "nearest: sort"),
    "unique": (lambda: np.unique_values(Z), "nearest: sort"),
    "inverse": (
        lambda: np.linalg.inv(Z),
        "call np.linalg.inv on arrays, outside of the traced function",
    ),
    "singular": (lambda: np.linalg.norm(Z, 2), "the norm 2 of a matrix has no op"),
    "no such norm": (lambda: np.linalg.norm(Z[0], "fro"), "vectors have no norm 'fro'"),
    "three axes": (lambda: np.linalg.norm(Z[None], 1, (0, 1, 2)), "one axis or two"),
    "median": (lambda: np.median(Z), "known size; got float32"),
    "planes": (lambda: np.cross(Z[:, :2], Z[:, :2]), "vectors of 3"),
    "apart": (lambda: np.unstack(Z), "known size; got n"),
    "compress": (lambda: np.compress(Z[:, 0] > 0, Z), "depends on values"),
    "shift": (lambda: np.fft.fftshift(Z), "known size; got n"),
    "weights": (lambda: np.average(Z, 1, weights=np.ones(2)), "give the one axis"),
    "letters": (lambda: np.trace(Z, "two"), r"it takes \(a, offset, axis1, axis2, dtype\): bad"),
    "one axis twice": (lambda: np.squeeze(Z[:1, :1], (0, 0)), "repeated"),
    "a new axis twice": (lambda: np.expand_dims(Z, (0, -4)), "repeated"),
    "places": (lambda: np.moveaxis(Z, (0, 1), 1), "as many distinct axes"),
    "size of complex": (lambda: np.fabs(W), "fabs.*: it is not defined for complex"),
    "angle of complex": (
        lambda: np.rad2deg(W),
        "np.rad2deg: it is not defined for complex.*multiply",
    ),
}


@every(("call", "words"), REFUSED.values())
def test_what_is_refused(call: Any, words: str) -> None:
    with pytest.raises(GraphirError, match=words) as refused:
        call()
    assert "test_numpy_functions.py:" in str(refused.value)


@every("function", [np.tril, np.triu])
def test_triangles_of_vectors_are_those_of_repeated_rows(function: Any) -> None:
    x = np.arange(1.0, 4.0)
    with Graph("triangles", rules="numpy") as g:
        g.output(function(g.input("float64", (3,)), 1))
    np.testing.assert_array_equal(interpret(g, x), function(x, 1))

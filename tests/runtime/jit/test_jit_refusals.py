"""Programs that catch errors: NumPy's value, or a refusal that leaves jit whatever they catch."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import random
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from graphir import GraphError, GraphirError, ShapeError, trace
from graphir.control import fori_loop
from graphir.runtime import jit, record
from tests.runtime.jit.fuzz_handlers import outcome
from tests.support.tables import every, sampled

A = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
X = np.array([3.0, 1.0, 2.0, 2.0])

# What NumPy computes, and what traces refuse at least in part. Each is called on A.
REFUSED: dict[str, Callable[[Any], Any]] = {
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "solve": lambda a: np.linalg.solve(a, a[0]),
    "cholesky": np.linalg.cholesky,
    "pinv": np.linalg.pinv,
    "eigvalsh": np.linalg.eigvalsh,
    "svd": lambda a: np.linalg.svd(a, compute_uv=False),
    "lstsq": lambda a: np.linalg.lstsq(a, a[0], rcond=None)[0],
    "matrix_rank": np.linalg.matrix_rank,
    "choose": lambda a: np.choose(a.astype(int) % 2, [a, a + 1]),
    "unique": np.unique,
    "polyfit": lambda a: np.polyfit(a[0], a[1], 1),
    "bincount": lambda a: np.bincount(a[0].astype(int)),
    "piecewise": lambda a: np.piecewise(a, [a < 1], [lambda v: v + 1, 2.0]),
    "apply_along_axis": lambda a: np.apply_along_axis(np.sort, 0, a),
    "einsum": lambda a: np.einsum("ij,jk,kl->il", a, a, a),
    "median": lambda a: np.median(a, overwrite_input=True),
    "where(cond)": lambda a: np.where(a > 1)[0],
    "argwhere": lambda a: np.argwhere(a > 1),
    "x[np.nonzero(x)]": lambda a: a[np.nonzero(a)],
    "x[mask]": lambda a: a[a > 1],
    "compress": lambda a: np.compress(a[0] > 0, a, axis=0),
    "astype(str)": lambda a: a.astype(str).astype(float),
    "astype(object)": lambda a: a.astype(object).astype(float),
    "view": lambda a: a.view(np.int64),
    "byteswap": lambda a: a.byteswap(),
    "partition": lambda a: a.partition(1) or a,
    "spacing": np.spacing,
    "frexp": lambda a: np.frexp(a)[1],
    "fft": lambda a: np.abs(np.fft.fft(a)),
    "histogram": lambda a: np.histogram(a)[0],
    "interp": lambda a: np.interp(a[0], a[1], a[2], period=3.0),
    "setflags": lambda a: a.setflags(True) or a + 1,
    "resize": lambda a: np.resize(a, (2, 2)),
    "ctypes": lambda a: (a.ctypes.data > 0) + a,
    "data": lambda a: a.data.nbytes + a,
    "tofile": lambda a: a.tofile("/dev/null") or a,
    "interface": lambda a: a.__array_interface__["strides"] or a,
    "getattr": lambda a: a.getfield(np.float64),
    "hash": lambda a: (hash(a[0, 0]) == hash(2.0)) + a,
    "dict": lambda a: {a[0, 0]: 1.0}.get(2.0, 0.0) + a,
    "f-string": lambda a: float(f"{a[0, 0]:.1f}") + a,
    "str": lambda a: len(str(a)) + a,
    "repr": lambda a: len(repr(a)) + a,
    "%": lambda a: float("%s" % a[0, 0]) + a,  # noqa: UP031
    "bytes": lambda a: np.frombuffer(bytes(a)) + 1,
    "pickle": lambda a: pickle.loads(pickle.dumps(a)) + 1,
    "deepcopy": lambda a: copy.deepcopy(a) + 1,
    "float": lambda a: float(a[0, 0]) + a,
    "math": lambda a: math.sqrt(a[0, 0]) + a,
    "round": lambda a: round(a[0, 0]) + a,
    "index": lambda a: a[int(a[0, 0])],
    "range": lambda a: sum(range(int(a[1, 1]))) + a,
    "if": lambda a: a if a[0, 0] > 1 else a + 1,
    "in": lambda a: a if 3.0 in a else a + 1,
    "sorted": lambda a: np.array(sorted(a[0])),
    "tolist": lambda a: np.array(a.tolist()) + 1,
    "item": lambda a: a[0, 0].item() + a,
    "np.float64": lambda a: np.float64(a[0, 0]) + a,
    "nditer": lambda a: sum(float(v) for v in np.nditer(a)) + a,
    "vectorize": lambda a: np.vectorize(lambda v: v + 1)(a),
    "frompyfunc": lambda a: np.frompyfunc(lambda v: v + 1, 1, 1)(a).astype(float),
    "require": lambda a: np.require(a, np.float64, ["C"]) + 1,
    "asarray_chkfinite": lambda a: np.asarray_chkfinite(a) + 1,
    "== None": lambda a: (a == None) + a,  # noqa: E711
    "!= text": lambda a: (a != "a") + a,
    "Fraction": lambda a: (a + Fraction(1, 2)).astype(float),
    "== object": lambda a: (a == object()) + a,
    "ndarray.sum": lambda a: np.asarray(a.sum(where=a > 0)),
}
if sys.version_info >= (3, 12):  # before, Python asks no method for a buffer
    REFUSED["memoryview"] = lambda a: np.asarray(memoryview(a)) + 1
    REFUSED["ndarray(buffer)"] = lambda a: np.ndarray((3, 3), buffer=a) + 1


def _except(call: Callable[[Any], Any], a: Any) -> Any:
    try:
        return call(a)
    except Exception:
        return a - 7


def _else_and_finally(call: Callable[[Any], Any], a: Any) -> Any:
    done = 0
    try:
        b = call(a)
    except (TypeError, ValueError, AttributeError, np.linalg.LinAlgError):
        b = a - 7
    else:
        done += 1
    finally:
        done += 1
    return b * done


def _suppressed(call: Callable[[Any], Any], a: Any) -> Any:
    b = a - 7
    with contextlib.suppress(Exception):
        b = call(a)
    return b + 1


def _raises_another(call: Callable[[Any], Any], a: Any) -> Any:
    def inner() -> Any:
        try:
            yield call(a)
        except Exception as error:
            raise KeyError("mine") from error

    try:
        return next(inner()) + 1
    except KeyError:
        return a - 7


def _outcome(function: Callable[..., Any], *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


WAYS = _except, _else_and_finally, _suppressed, _raises_another


@sampled(3)
@every("way", WAYS)
def test_a_caught_refusal_leaves_jit(way: Callable[..., Any]) -> None:
    refused = 0
    for name, call in REFUSED.items():

        def program(a: Any, call: Callable[[Any], Any] = call) -> Any:
            return way(call, a)

        theirs = _outcome(program, A.copy())
        try:
            ours = _outcome(jit(program, static="call"), A.copy())
        except GraphirError as error:
            refused += 1
            assert error.location is None or "test_jit_refusals" in error.location.file, name
            continue
        assert np.array_equal(ours, theirs), name
        assert ours.dtype == theirs.dtype, name
    assert refused > 30


# What NumPy refuses for these types and shapes, whatever the values: the error is the program's.
GENUINE: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "shapes": (ValueError, lambda x: x + np.ones(7)),
    "symbolic shapes": (ValueError, lambda x: x + x[1:]),
    "int8 + 300": (OverflowError, lambda x: x.astype(np.int8) + 300),
    "x[9]": (IndexError, lambda x: x[9]),
    "x[0, 0]": (IndexError, lambda x: x[0, 0]),
    "x['a']": (IndexError, lambda x: x["a"]),
    "axis": (np.exceptions.AxisError, lambda x: x.sum(axis=4)),
    "reshape": (ValueError, lambda x: x.reshape(3, 5)),
    "bool": (ValueError, bool),
    "hash": (TypeError, hash),
    "float": (TypeError, lambda x: float(x[:3])),
    "index": (TypeError, lambda x: range(x[0])),
    "+ None": (TypeError, lambda x: x + None),
    "+= None": (TypeError, lambda x: x.__iadd__(None)),
    "scalar * list": (TypeError, lambda x: x[0] * [1, 2]),
    "scalar @ list": (TypeError, lambda x: x[0] @ [1, 2]),
    "casting": (TypeError, lambda x: np.sin(x.astype(int), casting="no")),
    "copy": (ValueError, lambda x: x.copy("Z")),
    "copy of a scalar": (TypeError, lambda x: x[0].copy(x)),
    "sort": (TypeError, lambda x: x.sort(bar=1)),
    "np.array": (TypeError, lambda x: np.array(x, bar=1)),
    "< text": (TypeError, lambda x: x < "a"),
    "^": (TypeError, lambda x: x ^ 1.5),
    "- bools": (TypeError, lambda x: (x > 1) - (x > 2)),
    "in-place": (TypeError, lambda x: x.astype(int).__iadd__(1.5)),
    "concatenate": (ValueError, lambda x: np.concatenate([x, x.reshape(2, 2)])),
    "matmul": (ValueError, lambda x: x @ np.ones(3)),
    "max of none": (ValueError, lambda x: x[:0].max()),
    "attribute": (AttributeError, lambda x: x.rank),
    "attribute of a scalar": (AttributeError, lambda x: x[0].cast),
    "del": (ValueError, lambda x: x.__delitem__(0)),
    "argument": (TypeError, lambda x: x.sum(bar=1)),
    "ragged": (ValueError, lambda x: np.array([x, x[1:]])),
    "len of a scalar": (TypeError, lambda x: len(x[0])),
    "iter of a scalar": (TypeError, lambda x: iter(x[0])),
    "known": (np.linalg.LinAlgError, lambda x: np.linalg.inv(np.zeros((2, 2)))),
    "format": (TypeError, lambda x: format(x, ".2f")),
}


@every("rules", ["trace", "jit"])
def test_an_error_of_numpy_is_the_programs(rules: str) -> None:
    others = (ValueError, TypeError, IndexError, OverflowError, AttributeError, ArithmeticError)
    for name, (kind, call) in GENUINE.items():
        with pytest.raises(kind):
            call(X.copy())

        def program(x: Any, call: Any = call, kind: Any = kind) -> Any:
            try:
                call(x)
            except kind as error:
                caught = [each for each in others if isinstance(error, each)]
                return x * len(caught)
            return x - 7

        if rules == "jit":
            assert np.array_equal(jit(program, static=("call", "kind"))(X), program(X)), name
        else:
            trace(program, X)


def test_an_uncaught_error_has_the_class_of_numpy_and_is_ours() -> None:
    for name, (kind, call) in GENUINE.items():
        with pytest.raises(kind) as raised:
            jit(lambda x, call=call: (call(x), x)[1], static="call")(X.copy())
        is_pythons = name in ("hash", "iter of a scalar", "len of a scalar", "scalar @ list")
        assert isinstance(raised.value, GraphirError) or is_pythons, name
    error = _error_of(lambda x: x.astype(np.int8) + 300)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def _error_of(call: Callable[[Any], Any]) -> Exception:
    with pytest.raises(GraphirError) as raised:
        jit(call)(X)
    return raised.value


def test_later_ops_raise_the_refusal_again() -> None:
    seen: list[Any] = []

    def program(x: Any) -> Any:
        for attempt in range(3):
            try:
                return np.unique(x) if not attempt else x + attempt
            except GraphirError as error:
                seen.append(str(error))
        return 1.0

    with pytest.raises(GraphError, match="unique"):
        jit(program)(X)
    assert len(seen) == 3 and len(set(seen)) == 1


def test_errors_of_callbacks_are_the_programs() -> None:
    def program(x: Any) -> Any:
        def body(row: Any) -> Any:
            raise KeyError

        try:
            np.apply_along_axis(body, 0, x)
        except KeyError:
            x = x + 1
        try:
            fori_loop(0, 2, lambda i, v: v[9], x)
        except IndexError:
            x = x + 1
        return x

    with pytest.raises(GraphirError):  # np.apply_along_axis itself is refused
        jit(program)(A)

    def refuses_in_a_body(x: Any) -> Any:
        def body(_: Any, v: Any) -> Any:
            try:
                return np.unique(v)
            except Exception:
                return v + 1

        return fori_loop(0, 2, body, x)

    with pytest.raises(GraphirError, match="unique"):
        jit(refuses_in_a_body)(X)


def test_a_refusal_under_other_rules_ends_the_trace_too() -> None:
    def program(x: Any) -> Any:
        try:
            return np.linalg.inv(x)
        except Exception:
            return x - 7

    def asks(x: Any) -> Any:
        try:
            return x if x[0, 0] > 1 else x + 1
        except TypeError:
            return x - 7

    def mismatch(x: Any) -> Any:
        try:
            return x + np.ones(7, np.float32)
        except ShapeError:
            return x + 1

    for rules in ("jax", "torch", "max"):
        x = A.astype(np.float32)
        for function in (program, asks):
            with pytest.raises(GraphirError):
                jit(function, rules=rules)(x)
        assert np.array_equal(jit(mismatch, rules=rules)(x), x + 1)


def test_drawn_calls_give_numpys_values_or_are_refused() -> None:
    _check_drawn(0, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3, 8))
def test_more_drawn_calls_give_numpys_values_or_are_refused(seed: int) -> None:
    _check_drawn(seed, 500)


def _check_drawn(seed: int, programs: int) -> None:
    draw, refused = random.Random(seed), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(programs):
            call, what = outcome(draw)
            assert what in ("same", "refused", "left out"), f"{call}: {what}"
            refused += what == "refused"
    assert refused <= programs * 0.1


# -- what a value is


def _names(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


SYMBOLS = [
    "rank",
    "graph",
    "location",
    "weak",
    "cast",
    "broadcast_to",
    "permute",
    "rebind",
    "type",
    "op",
    "read",
    "write",
    "cell",
]


@every("kind", ["array", "known", "float64", "int32", "bool", "complex128"])
def test_attributes_are_those_of_numpys_values(kind: str) -> None:
    def value_in(x: Any) -> Any:
        if kind in ("array", "known"):
            return x if kind == "array" else np.ones((2, 2))
        return x.astype(kind)[0, 0]

    has = {name: hasattr(value_in(A), name) for name in (*_names(value_in(A)), *SYMBOLS)}

    def probes(x: Any) -> Any:
        value = value_in(x)
        there = {name: hasattr(value, name) for name in has}
        absent = [getattr(value, name, 5.0) for name in has if not has[name]]
        return x * (there == has) * (absent == [5.0] * len(absent))

    assert np.array_equal(jit(probes)(A), A)
    assert np.array_equal(record(probes, A).result, A)


def _reads_file_or_array(x: Any) -> Any:
    try:
        return x.read()
    except AttributeError:
        return x + 1


def _asks_dims_cell_and_rank(x: Any) -> Any:
    seen = 0
    for name in (lambda: x.dims, lambda: x[0, 0].symbol, lambda: x.cell, lambda: x.in_order):
        try:
            name()
        except AttributeError:
            seen += 1
    return x * seen


def _sets_attributes(x: Any) -> Any:
    class Named:
        pass

    named: Any = Named()
    named.memory, named.graph, named.steps = 2, 3, 5
    try:
        x.memory = 1
    except AttributeError:
        x = x.copy()
        x[::2] = named.memory
    return x * named.graph * named.steps


def test_attributes_that_numpys_values_lack_are_hidden_from_programs() -> None:
    for program in (_reads_file_or_array, _asks_dims_cell_and_rank, _sets_attributes):
        assert np.array_equal(jit(program)(A), program(A)), program
        assert np.array_equal(record(program, A).result, program(A)), program


def test_every_attribute_is_right_or_refused() -> None:
    simple = (bool, int, float, complex, str, tuple, type(None), np.dtype)
    for to in (None, "float64", "int32", "bool", "complex128"):
        sample = A if to is None else A.astype(to)[0, 0]
        for name in _names(sample):
            theirs = getattr(sample, name)

            seen: list[Any] = []

            def asks(x: Any, name: str = name, to: Any = to, *, seen: Any = seen) -> Any:
                value = x if to is None else x.astype(to)[0, 0]
                seen.append(getattr(value, name))
                return x

            try:
                jit(asks, static=("name", "to"))(A)
            except GraphirError:
                continue
            if isinstance(theirs, simple) and not isinstance(theirs, np.generic):
                assert seen[0] == theirs, (to, name)
            else:
                assert callable(seen[0]) == callable(theirs), (to, name)


def test_buffers_of_traced_values_are_refused_even_if_caught() -> None:
    def known(x: Any) -> Any:
        view: Any = memoryview(np.arange(4.0))
        return x[0] * len(view) * (type(view) is memoryview) * isinstance(view, memoryview)

    for text in ("memoryview", "bytearray"):  # names that the program's code loads
        space: dict[str, Any] = {"np": np, "__name__": "user"}
        lines = [f"return x[0] + len({text}(x))", "return x[0]"]
        exec(f"def f(x):\n try:\n  {lines[0]}\n except Exception:\n  {lines[1]}\n", space)
        with pytest.raises(GraphirError):
            jit(space["f"])(A)
    assert np.array_equal(jit(known)(A), known(A))


def test_the_class_of_a_value_is_numpys() -> None:
    def program(x: Any, k: Any) -> Any:
        return (
            x * (type(x) is np.ndarray)
            + (type(x[0]) is np.float64)
            + (type(x.astype(int)[0]) == np.int64)  # noqa: E721
            + (type(np.ones(3)) is np.ndarray)
            + (type(x > 1) in (np.ndarray, list))
            + (type(k) is int)
            + isinstance(k, int)
            + (type(type(x)) is type)
            + isinstance(type(x), type)
            + issubclass(type(x), np.ndarray)
            + {np.ndarray: 3.0}[type(x)]
            + len(type("Made", (), {}).__name__)
        )

    assert np.array_equal(jit(program)(X, 3), program(X, 3))
    assert np.array_equal(record(program, X, 3).result, program(X, 3))
    assert "type" not in globals() and "hasattr" not in globals()
    jitted = jit(program)
    assert jitted.traced(X, 3) is jitted.traced(X, 4)


def test_floating_point_errors_and_warnings_are_not_handled() -> None:
    def error(x: Any) -> Any:
        try:
            with np.errstate(divide="raise"):
                return 1 / (x - x)
        except FloatingPointError:
            return x

    def call(x: Any) -> Any:
        with np.errstate(call=lambda *_: None, divide="call"):
            return 1 / x

    def known(x: Any) -> Any:
        try:
            with np.errstate(all="raise"):
                return x + 1 / np.zeros(4)
        except FloatingPointError:
            return x

    def warned(x: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return np.log(x - x)
        except RuntimeWarning:
            return x

    def counted(x: Any) -> Any:
        with warnings.catch_warnings(record=True) as seen:
            y = np.log(x - x)
        return y if not seen else x

    for function in (error, call, known, warned, counted):
        with pytest.raises(GraphirError, match="test_jit_refusals"):
            print(function, jit(function)(X))

    def usual(x: Any) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return 1 / x

    assert np.array_equal(jit(usual)(X), 1 / X)


def test_text_of_symbols_outside_of_the_trace() -> None:
    kept: list[Any] = []
    jit(lambda x: kept.append(x) or x * 2)(X)
    assert "float64[4]" in repr(kept[0]) and "float64[4]" in f"{kept[0]}"
    with pytest.raises(GraphirError, match="known when the graph runs"):
        jit(lambda x: print(x) or x)(X)
    assert jit(lambda x: x + len(str(np.ones(3))))(X)[0] == X[0] + len(str(np.ones(3)))


FIXES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "np.float64": (np.float64, "x.astype"),
    "asarray_chkfinite": (np.asarray_chkfinite, "has no value in Python"),
    "vectorize": (lambda x: np.vectorize(lambda v: v)(x), "has no value in Python"),
    "frombuffer": (lambda x: np.frombuffer(x), "bytes of an array"),
    "view": (lambda x: x.view(np.matrix), "no subclasses of ndarray"),
    "eig": (lambda x: np.linalg.eig(np.outer(x, x)), "call np.linalg.eig on arrays, outside of"),
    "unique": (np.unique, "the nearest: sort$"),
}


def test_refusals_name_the_users_line_and_a_way_out() -> None:
    for name, (call, fix) in FIXES.items():
        with pytest.raises(GraphirError, match=f"^{__name__.replace('.', '/')}.*{fix}") as raised:
            jit(lambda x, call=call: call(x), static="call")(X)
        text = str(raised.value)
        assert "site-packages" not in text and "cos" not in text, name
    x = np.arange(4)
    for way in (lambda x: np.require(x, int, "C"), lambda x: np.asarray_chkfinite(x)):
        assert np.array_equal(jit(lambda x, way=way: way(x) + 1, static="way")(x), x + 1)

"""jit: results of functions of arrays, one Program for each signature, from any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import (
    DType,
    ExecutionError,
    Graph,
    GraphError,
    GraphirError,
    PromotionError,
    Symbol,
    rules,
    set_default_rules,
    trace,
)
from graphir.runtime import interpret, jit
from graphir.runtime import jit as decorator
from graphir.runtime.jit.jit import KEPT_SIGNATURES
from tests.support.tables import every

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Config:
    k: Any


def counted(**settings: Any) -> tuple[Any, list[Any]]:
    """A jitted function, and a list that grows when it is traced."""
    traces: list[Any] = []

    @jit(**settings)
    def f(x: Any, k: Any = 1.0) -> Any:
        traces.append((x, k))
        return x * k + x

    return f, traces


def test_results_are_those_of_the_graph() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        """Its doc."""
        return np.tanh(x) @ y.T + 1

    assert (f.__name__, f.__doc__) == ("f", "Its doc.")
    traced = trace(f.__wrapped__, X, X)
    for _ in range(3):
        found = f(X, X)
        assert type(found) is np.ndarray
        assert np.array_equal(found, interpret(traced.graph, X, X))
    assert f.program(X, X) is f.program(X + 1, X)


def test_each_signature_is_traced_once() -> None:
    f, traces = counted(rules="numpy")
    for _ in range(3):
        for x in (X, X.astype(np.float64), X[0], np.float32(2), X.astype(">f4")):
            assert np.array_equal(f(x, 2.0), x * np.float32(2) + x)
    assert len(traces) == 4  # byte order is none of it
    f(X, k=2.0)
    assert len(traces) == 5


@every("name", ["numpy", "jax", "torch", "array_api"])
def test_values_of_numbers_are_no_part_of_it(name: str) -> None:
    f, traces = counted(rules=name)
    for k in (2.0, 3.0, -0.0, float("nan")):
        np.testing.assert_array_equal(f(X, k), X * np.float32(k) + X)
        assert f(X, k).dtype == np.float32
    assert len(traces) == 1 and (type(traces[0][1]) is Symbol) == (name == "jax")
    f(X, 2), f(X, 3)
    assert len(traces) == 2


@every("name", ["max", "max_strict", "numpy_legacy"])
def test_rules_that_look_at_values_trace_for_each(name: str) -> None:
    f, traces = counted(rules=name)
    for k in (2.0, 3.0, 2.0, 0.0, -0.0, float("nan"), float("nan")):
        np.testing.assert_array_equal(f(X, k), X * np.float32(k) + X)
    assert [repr(k) for _, k in traces] == ["2.0", "3.0", "0.0", "-0.0", "nan"]
    assert np.signbit(f(np.float32([1]) * 0, -0.0)).tolist() == [False]


def test_literals_are_checked_by_their_values() -> None:
    f, _ = counted(rules="max")
    with pytest.raises(PromotionError, match=r"test_jit\.py.*0\.5"):
        f(X.astype(np.int16), 0.5)


def test_numbers_that_do_not_fit_are_told() -> None:
    f, _ = counted(rules="numpy")
    with pytest.raises(OverflowError, match=r"test_jit\.py.*300 does not fit int8") as raised:
        f(X.astype(np.int8), 300)
    assert isinstance(raised.value, GraphirError) and not isinstance(raised.value, TypeError)


def test_other_values_are_static() -> None:
    seen: list[Any] = []

    @jit(rules="numpy")
    def f(x: Any, how: Any) -> Any:
        seen.append(how)
        return np.sum(x, axis=None) if how == "all" else x if how else -x

    for how in ("all", True, False, None, 1 > 0, "all"):
        assert np.array_equal(f(X, how), f.__wrapped__(X, how))
    assert [one for one in seen if not isinstance(one, np.ndarray)][:2] == ["all", "all"]
    assert f.signature_count == 4
    with pytest.raises(GraphError, match=r"f: an argument.*hashable"):
        f(X, {1, 2})


def test_structures_in_and_out() -> None:
    @jit(rules="numpy")
    def step(params: Any, batch: Any, rate: Any = 0.5) -> Any:
        return {"w": params["w"] - rate * batch[0]}, Pair(batch[1], None), [(params["w"],)]

    for _ in range(2):
        found = step({"w": X}, (X, X[0]), rate=0.25)
        assert np.array_equal(found[0]["w"], X - np.float32(0.25) * X)
        assert type(found[1]) is Pair and found[1].right is None
        assert np.array_equal(found[1].left, X[0]) and np.array_equal(found[2][0][0], X)
    assert step({"w": X}, [X, X[0]])[0]["w"].shape == (2, 3)


def test_tuples_are_what_the_function_gives() -> None:
    @jit
    def f(x: Any, how: str) -> Any:
        kinds: dict[str, Any] = {"one": (x,), "two": (x, -x), "list": [x, -x], "pair": Pair(x, -x)}
        return kinds[how]

    for how, kind in (("one", tuple), ("two", tuple), ("list", list), ("pair", Pair)):
        assert type(f(X, how)) is kind and len(f(X, how)) == 1 + (how != "one")

    two = jit(lambda x: (x, x))
    for _ in range(3):
        assert type(two(X)) is tuple and two(X)[0] is two(X)[1] is X


def test_the_rules_in_force_are_those_of_the_call() -> None:
    f = jit(lambda x, y: x + y)
    x, y = np.ones(2, np.int32), np.ones(2, np.float32)
    for _ in range(2):
        with rules("jax"):
            assert f(x, y).dtype == np.float32
        with rules("numpy"):
            assert f(x, y).dtype == np.float64
    assert jit(rules="jax")(f.__wrapped__)(x, y).dtype == np.float32


def test_without_rules_arrays_promote_as_in_numpy() -> None:
    x = np.array([100, 100], np.int8)
    f = jit(lambda x: np.sum(x))
    assert f(x) == np.sum(x) and f(x).dtype == np.sum(x).dtype
    with rules("max"):
        assert f(x) == -56 and f(x).dtype == np.int8
    set_default_rules("max")
    try:
        assert f(x) == -56
    finally:
        set_default_rules(None)
    assert f(x) == 200
    assert jit(lambda x: np.sum(x), rules="max")(x) == -56


@every("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_without_rules_the_types_of_ml_dtypes_are_refused(name: str) -> None:
    x = np.ones(3, DType(name).to_numpy())
    for call in (jit(lambda x: x * x), lambda x: trace(lambda x: x * x, x)):
        with pytest.raises(PromotionError, match=f"{name} .*rules='max' or rules='jax'"):
            call(x)
        for each in ("max", "jax"):
            with rules(each):
                call(x)


def test_on_symbols_it_is_the_function_itself() -> None:
    inner, traces = counted()
    outer = jit(lambda x: inner(x, k=x) - x)
    assert np.array_equal(outer(X), X * X)
    x = Graph().input("float32", ("n",))
    assert inner(x, 2.0).graph is x.graph and len(traces) == 2 and not inner.signature_count
    with pytest.raises(GraphError, match="no Program"):
        inner.program(x)


def test_methods() -> None:
    class Model:
        scale = 3

        @jit(rules="numpy")
        def f(self, x: Any) -> Any:
            return x * self.scale

    assert np.array_equal(Model().f(X), X * 3)


def test_old_signatures_are_forgotten() -> None:
    f, traces = counted()
    for n in range(KEPT_SIGNATURES + 10):
        f(np.ones(n, np.float32))
    assert f.signature_count == KEPT_SIGNATURES
    f(np.ones(KEPT_SIGNATURES + 9, np.float32))
    assert len(traces) == KEPT_SIGNATURES + 10
    f(np.ones(0, np.float32))
    assert len(traces) == KEPT_SIGNATURES + 11


def test_many_threads_call_it() -> None:
    f, _ = counted(rules="numpy")
    sizes = [n % 20 for n in range(400)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: f(np.full(n, n, np.float32), float(n)), sizes))
    for n, one in zip(sizes, found, strict=True):
        assert np.array_equal(one, np.full(n, n * n + n, np.float32))
    assert f.signature_count == 20


@given(st.lists(st.sampled_from([X, X[0], 2.0, 3, 1j, np.int8(1)]), min_size=1, max_size=3))
def test_sums_of_anything(values: list[Any]) -> None:
    values = [X, *values]
    g = _SUM(values, *values)
    expected = sum(values) + sum(values)
    assert np.array_equal(g, np.asarray(expected)) and g.dtype == np.asarray(expected).dtype


def _sum(values: Any, *more: Any) -> Any:
    return sum(values) + sum(more)


_SUM = decorator(_sum, rules="numpy")


def test_what_it_refuses_is_said_by_its_parts() -> None:
    f, _ = counted()
    with pytest.raises(GraphError, match="not arguments of f: too many"):
        f(X, 1.0, 2.0)
    with pytest.raises(ExecutionError, match="filled"):
        f(np.ma.masked_array(X))
    assert "f, 1 signatures" in repr(f)


# -- static parameters


def test_static_parameters_are_part_of_the_signature() -> None:
    seen: list[Any] = []

    @jit(static=("n", "how"), rules="numpy")
    def f(x: Any, n: Any = 2, k: Any = 1.0, *, how: Any = ("a",)) -> Any:
        seen.append((n, how))
        return np.reshape(x, (n, -1)) * k if how == ("a",) else x

    for _ in range(3):
        for n, k in ((2, 1.0), (3, 2.5), (3, 7.5), (6, 1.0)):
            assert np.array_equal(f(X, n, k), X.reshape(n, -1) * np.float32(k))
            assert np.array_equal(f(X, n=n, k=k), X.reshape(n, -1) * np.float32(k))
    assert f(X, how="b").shape == (2, 3) and f(X).shape == (2, 3)
    assert seen == [(2, ("a",))] * 2 + [(3, ("a",))] * 2 + [(6, ("a",))] * 2 + [(2, "b"), seen[-1]]
    assert f.program(X, 3) is not f.program(X, 2) and f.traced(X, n=3).graph.inputs[0].name == "%x"


ALIKE = [1, 1.0, True, 0.0, -0.0, 1 + 0j, "1", (1,), (1.0,), (True,), (0.0,), (-0.0,), None]
ALIKE += [np.float32(0.0), np.float32(-0.0), np.float64(0.0), np.int8(1), (("a", 1),), Pair(1, 2)]
KINDS = [1, True, 1.0, 0.0, -0.0]
ALIKE += [*map(Config, KINDS), *(frozenset({one}) for one in KINDS)]


def test_static_values_that_are_equal_are_told_apart() -> None:
    for named in (False, True):
        f = decorator(lambda x, v: x, static="v", rules="numpy")
        for _ in range(2):
            for one in (*ALIKE, float("nan"), (float("nan"),)):
                f(X, v=one) if named else f(X, one)
        assert f.signature_count == len(ALIKE) + 2


def test_other_values_and_keys_that_are_equal_are_told_apart() -> None:
    f = jit(lambda x, how: x * how.k, rules="numpy")
    g = jit(lambda named: {k: x * k for k, x in named.items()}, rules="numpy")
    for k in (*KINDS, *KINDS):
        x = np.arange(3, dtype=np.int8)
        found, ((key, named),) = f(x, Config(k)), g({k: x}).items()
        for one in (found, named):
            assert (one.dtype, one.tobytes()) == ((x * k).dtype, (x * k).tobytes())
        assert repr(key) == repr(k)


def test_static_arguments_of_methods_and_among_symbols() -> None:
    class Model:
        @jit(static="n", rules="numpy")
        def f(self, x: Any, n: Any) -> Any:
            return x * n if type(n) is int else x

    model = Model()
    assert np.array_equal(model.f(X, 3), X * 3) and np.array_equal(model.f(X, 2.0), X)
    x = Graph(rules="numpy").input("float32", (3,))
    assert model.f(x, 3).op.name == "multiply"


@every("value", [[1], {1}, {"a": 1}, ([1],), X])
def test_static_values_are_hashable(value: Any) -> None:
    f = decorator(lambda x, n: x, static="n")
    kind = type(value).__name__
    with pytest.raises(GraphError, match=f"static argument 'n' of .*hashable, and a {kind} is not"):
        f(X, value)


def test_static_parameters_are_those_of_the_function() -> None:
    with pytest.raises(GraphError, match=r"<lambda> has no parameter 'm' .*use one of \(x, n\)"):
        decorator(lambda x, n: x, static=("n", "m"))
    f = decorator(lambda x, **named: x * named["k"], static="k", rules="numpy")
    assert np.array_equal(f(X, k=3), X * 3) and f.signature_count == 1
    f(X, k=4)
    assert f.signature_count == 2


# -- numbers


def test_what_the_function_makes_of_numbers_are_numbers() -> None:
    for name in ("numpy", "torch", "array_api", "jax"):
        f = decorator(lambda x, k: (k + 1) * x + k / 3, rules=name)
        for dtype in (np.float32, np.float64):
            expected = 3 * X.astype(dtype) + dtype(2 / 3)
            assert f(X.astype(dtype), 2).dtype == dtype
            np.testing.assert_array_max_ulp(f(X.astype(dtype), 2), expected, 1)


def test_numbers_keep_what_only_a_wider_array_has() -> None:
    for name in ("numpy", "torch", "tensorflow", "array_api", "jax"):
        f = decorator(lambda x, k: x * k, rules=name)
        assert f(np.ones(1), 0.1).tolist() == [0.1], name

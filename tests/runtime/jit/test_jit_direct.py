"""The fast path of jitted calls: the Program of the last trace, if its guards hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import GraphError, GraphirError, rules
from graphir.runtime import jit
from graphir.runtime.jit import jit as module
from tests.support.evaluator import same

pytestmark = pytest.mark.parametrize("native", ["0", "1"])

FACTOR = 2.0
X = np.linspace(-2, 2, 12, dtype=np.float32)


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch, native: str) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", native)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The signatures that calls have to compute."""
    keys: list[Any] = []
    flat_key = module.flat_key

    def noted(*args: Any) -> Any:
        keys.append(flat_key(*args))
        return keys[-1]

    monkeypatch.setattr(module, "flat_key", noted)
    return keys


def warm(function: Any, *args: Any) -> Any:
    for _ in range(4):
        result = function(*args)
    return result


def test_no_signature_is_computed(slow: list[Any]) -> None:
    function = jit(lambda x, y: x * y + 1)
    warm(function, X, X)
    slow.clear()
    assert same(function(X, X), X * X + 1) and not slow
    assert same(function(X[::2], X[1::2]), X[::2] * X[1::2] + 1) and slow


def test_a_guard_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    function = jit(lambda x: x * FACTOR)
    assert same(warm(function, X), X * np.float32(2))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert same(warm(function, X), X * np.float32(3))
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert same(warm(function, X), X * np.float32(2))


def test_rules_of_the_caller() -> None:
    function = jit(lambda x, y: x + y)
    wide = np.arange(12, dtype=np.int64)
    assert warm(function, X, wide).dtype == np.float64
    with rules("jax"):
        assert function(X, wide).dtype == np.float32
        assert warm(function, X, wide).dtype == np.float32
    assert function(X, wide).dtype == np.float64
    explicit = jit(lambda x, y: x + y, rules="jax")
    warm(explicit, X, wide)
    with rules("numpy"):
        assert explicit(X, wide).dtype == np.float32


def test_layouts_of_products() -> None:
    function = jit(lambda x, w: x @ w + 1)
    x, w = (np.random.default_rng(k).standard_normal((33, 33)).astype("f") for k in (0, 1))
    for left, right in ((x, w), (x.T, w), (x, w.T), (x, w), (x[:, ::-1], w), (x, w)):
        assert same(warm(function, left, right), left @ right + 1)
    grams = jit(lambda x, y: x @ y.T)
    for left, right in ((x, w), (x, x), (w, x), (w, w)):
        assert same(warm(grams, left, right), left @ right.T)


def test_other_arguments() -> None:
    function = jit(lambda x, y=None: x + 1)
    warm(function, X)
    assert same(function(X.astype(np.float64)), X.astype(np.float64) + 1)
    assert same(function(x=X), X + 1) and same(function(X, None), X + 1)
    assert same(np.asarray(function(np.float32(2))), np.asarray(np.float32(3)))
    assert function(2) == 3
    with pytest.raises(GraphError):
        function(X, X, X)  # pyright: ignore

    class Special(np.ndarray[Any, Any]):
        pass

    with pytest.raises(GraphError, match="may differ"):
        function(X.view(Special))
    masked = np.ma.masked_array(X)
    with pytest.raises(GraphirError, match="MaskedArray"):
        function(masked)


def test_scalars_of_numpy(slow: list[Any]) -> None:
    function = jit(lambda x, y: (x * y + x) / (y * y + 2))
    x, y = np.float32(1.5), np.float64(2.5)
    assert same(np.asarray(warm(function, x, y)), np.asarray(function.__wrapped__(x, y)))
    assert same(np.asarray(function(y, y)), np.asarray(function.__wrapped__(y, y)))
    flat = np.asarray(x), np.asarray(y)
    assert same(np.asarray(warm(function, *flat)), np.asarray(function.__wrapped__(*flat)))
    assert same(warm(function, X, y), function.__wrapped__(X, y))
    assert same(warm(function, y, X), function.__wrapped__(y, X))
    scaled = jit(lambda x, k: x * k)
    for k in (2, 3, 2.5):
        assert same(np.asarray(warm(scaled, x, k)), np.asarray(x * k))
    assert slow


def test_an_outer_trace_sees_the_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = jit(lambda x: x * FACTOR)
    warm(inner, X)
    outer = jit(lambda x: x + inner(X))
    assert same(warm(outer, X), X + X * np.float32(2))
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert same(warm(outer, X), X + X * np.float32(5))


def test_captured_arrays_writes_and_numbers() -> None:
    captured = X.copy()
    function = jit(lambda x: x + captured)
    warm(function, X)
    captured += 1
    assert same(function(X), X + captured)

    def add(x: Any) -> Any:
        x += 1
        return x

    writes, own = jit(add), X.copy()
    warm(writes, own)
    assert same(own, X + 1 + 1 + 1 + 1)
    scaled = jit(lambda x, k: x * k)
    assert same(warm(scaled, X, 2), X * 2) and same(warm(scaled, X, 3), X * 3)

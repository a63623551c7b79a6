"""Programs of JAX, their gradients and their vmaps: dtypes and values are those of JAX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Symbol
from graphir.passes.rewriter import bodies_of
from graphir.runtime import from_jax, interpret

jax = pytest.importorskip("jax")
from graphir.runtime.sources.jax_.source import Importer  # noqa: E402
from tests.runtime.sources.jax_programs import CASES  # noqa: E402
from tests.support.tables import every  # noqa: E402

X = np.arange(6, dtype="float32").reshape(2, 3)


def symbols(graph: Graph) -> Iterator[Symbol]:
    for symbol in graph.symbols:
        yield symbol
        for body in bodies_of(symbol):
            yield from symbols(body)


def agree(graph: Graph, arguments: Any, result: Any) -> None:
    def data(x: Any) -> Any:
        is_key = jax.dtypes.issubdtype(getattr(x, "dtype", None), jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if is_key else x)

    values = interpret(graph, *map(data, jax.tree.leaves(arguments)))
    several = values if isinstance(values, tuple) else (values,)
    for value, right in zip(several, map(data, jax.tree.leaves(result)), strict=True):
        assert (value.dtype, value.shape) == (right.dtype, right.shape)
        if right.dtype.kind in "bui":
            np.testing.assert_array_equal(value, right)
        else:
            np.testing.assert_allclose(value, right, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_programs_have_the_dtypes_and_values_of_jax(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repaired: list[tuple[str, str]] = []
    conformed = Importer.conformed

    def watched(self: Any, symbol: Any, type_: Any) -> Any:
        if symbol.type is not type_ and not (symbol.dtype.weak or type_.dtype.weak):
            repaired.append((str(symbol), str(type_)))
        return conformed(self, symbol, type_)

    monkeypatch.setattr(Importer, "conformed", watched)
    function, args = CASES[name]
    agree(from_jax(function, *args).verify(), args, function(*args))
    assert not repaired


def test_few_equations_are_calls() -> None:
    names = [x.op.name for f, args in CASES.values() for x in symbols(from_jax(f, *args))]
    assert names.count("call") <= len(names) // 50


def key_carry(key: Any, x: Any) -> Any:
    def step(key: Any, row: Any) -> Any:
        key, part = jax.random.split(key)
        return key, row + jax.random.normal(part, (3,))

    return jax.lax.scan(step, key, x)


KEYED = {
    "input": lambda key, x: x + jax.random.normal(key, (3,)),
    "split": lambda key, x: [jax.random.uniform(part) for part in jax.random.split(key)],
    "constant": lambda key, x: x * jax.random.uniform(jax.random.key(3)),
    "carry": key_carry,
    "branch": lambda key, x: jax.lax.cond(
        x[0, 0] > 0, lambda: key, lambda: jax.random.fold_in(key, 1)
    ),
    "vmap": lambda key, x: jax.vmap(jax.random.uniform)(jax.random.split(key, 3)),
}


@every("name", KEYED)
def test_typed_keys_are_their_data(name: str) -> None:
    key = jax.random.key(0)
    graph = from_jax(KEYED[name], key, X)
    assert [str(x.type) for x in graph.inputs] == ["uint32[2]", "float32[2, 3]"]
    agree(graph, (key, X), KEYED[name](key, X))


def test_a_mapped_loop_stops_each_row_by_itself() -> None:
    def halve(x: Any) -> Any:
        return jax.lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    function = jax.vmap(halve)
    x = np.array([0.5, 9, 3], "float32")
    agree(from_jax(function, x), (x,), function(x))


def test_float0_is_no_output() -> None:
    function = jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True)
    n = np.arange(3, dtype="int32")
    assert len(from_jax(function, X, n).outputs) == 1


def test_an_effect_in_a_body_is_said() -> None:
    def run(x: Any) -> Any:
        def step(total: Any, row: Any) -> Any:
            jax.debug.print("{}", total)
            return total + row.sum(), None

        return jax.lax.scan(step, 0.0, x)[0]

    (note,) = from_jax(run, X).notes
    assert note.startswith("debug_print of line ")


def test_strict_promotion_and_wide_types() -> None:
    with jax.numpy_dtype_promotion("strict"):
        agree(from_jax(lambda x: x * 2 + 1, X), (X,), X * 2 + 1)
    with jax.enable_x64(True):

        def wide(x: Any, y: Any) -> Any:
            return x * y, jax.numpy.sum(x), jax.numpy.arange(3) * x, x.sum() + np.float64(1)

        y = np.linspace(0, 1, 3)
        agree(from_jax(wide, X, y), (X, y), wide(jax.numpy.array(X), y))

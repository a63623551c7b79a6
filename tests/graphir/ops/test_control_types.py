"""Types of control flow: carries keep theirs, or the op that changes a type is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphError, PromotionError, ShapeError, control
from graphir.control import cond, fori_loop, scan, switch, while_loop
from graphir.passes import lower
from graphir.runtime import execute, interpret
from tests.support.evaluator import agree, outcome
from tests.support.tables import every

F, PLACES = np.ones(3, np.float32), np.arange(3, dtype=np.int32)
WIDE = np.float64(2)


def built(function: Any, *inputs: Any, rules: str = "numpy") -> Graph:
    graph = Graph("built", rules=rules)
    symbols = [graph.input(DType.from_numpy(x.dtype), x.shape) for x in inputs]
    with graph:
        results = function(*symbols)
    graph.output(*(results if isinstance(results, (tuple, list)) else [results]))
    return graph.verify()


# -- weak carries


@every(
    ("function", "dtype", "value"),
    [
        (lambda x: fori_loop(0, 3, lambda i, c: c + x.sum(), 0.0), DType.float32, 9.0),
        (lambda x: fori_loop(0, 3, lambda i, c: c + x.sum(), 0), DType.float32, 9.0),
        (lambda x: fori_loop(0, 3, lambda i, c: c * 2, 1), DType.weak_int, 8),
        (lambda x: fori_loop(0, 3, lambda i, c: c + 0.5, 0), DType.float64, 1.5),
        (lambda x: scan(lambda c, _: (c + 0.5, c), 0, None, 3)[0], DType.float64, 1.5),
        (lambda x: scan(lambda c, r: (c + r, c), 0, x)[0], DType.float32, 3.0),
        (lambda x: fori_loop(0, 0, lambda i, c: c + x.sum(), 0), DType.float32, 0.0),
        (lambda x: fori_loop(0, 3, lambda i, c: c + 1, np.float16(0)), DType.float16, 3.0),
        (
            lambda x: while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + 0.5), (0, 0))[1],
            DType.float64,
            1.5,
        ),
    ],
)
def test_weak_carries_become_what_jax_makes_of_them(function: Any, dtype: Any, value: Any) -> None:
    """The dtypes of jax.lax 0.10.2 with 64 bits enabled; a promoted carry is strong."""
    graph = built(function, F, rules="jax")
    assert graph.outputs[0].dtype is dtype
    meaning = outcome(interpret, graph, F)
    assert meaning[0] == value
    for run, each in ((execute, graph), (interpret, lower(graph, verify_each=True))):
        assert agree(outcome(run, each, F), meaning)


def test_a_weak_value_enters_a_carry_of_a_strong_dtype() -> None:
    graph = built(lambda x: fori_loop(0, 3, lambda i, c: 2.0, x[0]), F, rules="jax")
    assert graph.outputs[0].dtype is DType.float32
    assert agree(outcome(execute, graph, F), (np.array(2, np.float32),))


# -- carries that change


@every(
    ("function", "cause"),
    [
        (lambda x, k: fori_loop(0, 3, lambda i, c: c * WIDE, x), "multiply"),
        (lambda x, k: fori_loop(0, 3, lambda i, c: (c + np.sin(k)) * 2 + 1, x), "add"),
        (lambda x, k: scan(lambda c, r: (np.sqrt(c + r), c), np.float16(0), x), "add"),
        (lambda x, k: while_loop(lambda c: c[0] < 1, lambda c: np.stack([c, k])[0], x), "stack"),
        (
            lambda x, k: fori_loop(
                0, 3, lambda i, c: fori_loop(0, 2, lambda j, d: d + 1, c * WIDE), x
            ),
            "multiply",
        ),
        (
            lambda x, k: fori_loop(
                0, 3, lambda i, c: cond(i > 1, lambda: c, lambda: c - WIDE) * 2, x
            ),
            "subtract",
        ),
        (
            lambda x, k: fori_loop(
                0, 3, lambda i, c: control.map(lambda r: np.exp(r / WIDE), c) + 1, x
            ),
            "divide",
        ),
    ],
)
def test_the_op_that_widens_a_carry_is_named(function: Any, cause: str) -> None:
    words = rf"the body must keep the type of carry \d, float.*: {cause} of .* makes it float"
    with pytest.raises(PromotionError, match=words) as refusal:
        built(function, F, np.ones(3))
    assert "; return x.cast(DType.float" in str(refusal.value)


@every(
    ("function", "cause"),
    [
        (lambda x: fori_loop(0, 3, lambda i, c: c[1:] * 2, x), "slice"),
        (lambda x: scan(lambda c, r: (c + r, c), x[0], x[:, None]), "add"),
        (lambda x: fori_loop(0, 3, lambda i, c: control.map(lambda r: r * 2, c[1:]), x), "slice"),
        (lambda x: while_loop(lambda c: c.sum() < 9, lambda c: np.stack([c, c]), x), "stack"),
    ],
)
def test_the_op_that_changes_the_shape_of_a_carry_is_named(function: Any, cause: str) -> None:
    words = rf"the body must keep the type of carry \d, float32\S*: {cause} of .* makes it float32"
    with pytest.raises(ShapeError, match=words):
        built(function, F)


# -- structures, branches, conditions


@every(
    ("function", "words"),
    [
        (lambda x, i: fori_loop(0, 3, lambda i, c: (c, c), x), "keep the carry's structure"),
        (lambda x, i: fori_loop(0, 3, lambda i, c: None, x), "keep the carry's structure"),
        (lambda x, i: scan(lambda c, r: c, x[0], x), r"must return a pair \(carry, y\)"),
        (lambda x, i: scan(lambda c, r: (c, r), x[0], [x, x[1:]]), "must have the same length"),
        (lambda x, i: scan(lambda c, r: (c, r), x[0], x[0]), "must have an axis"),
        (lambda x, i: scan(lambda c, r: (c, r), x[0]), "no length"),
        (lambda x, i: cond(x[0] > 0, lambda: x, lambda: (x, x)), "values of one structure"),
        (lambda x, i: cond(x[0] > 0, lambda: x, lambda: x[1:]), "results of one shape"),
        (lambda x, i: cond(x > 0, lambda: x, lambda: x), r"0-d bool or integer; got bool\[3\]"),
        (lambda x, i: switch(x[0], [lambda: x]), r"0-d bool or integer; got float32\[\]"),
        (lambda x, i: switch(i[0], []), "at least one branch"),
        (lambda x, i: while_loop(lambda c: c > 0, lambda c: c, x), r"0-d bool; got bool\[3\]"),
        (lambda x, i: while_loop(lambda c: (c, c), lambda c: c, x), "one 0-d value"),
    ],
)
def test_what_does_not_fit_is_refused(function: Any, words: str) -> None:
    with pytest.raises((GraphError, PromotionError, ShapeError), match=words):
        built(function, F, PLACES)


def test_branches_meet_by_the_rules() -> None:
    for rules, dtype in (("numpy", DType.float64), ("jax", DType.float32)):
        graph = built(lambda x, i: cond(i[1] > 0, lambda: x, lambda: i), F, PLACES, rules=rules)
        assert graph.outputs[0].dtype is dtype
    with pytest.raises(PromotionError, match="int32 and float32 do not promote"):
        built(lambda x, i: cond(x[1] > 0, lambda: x, lambda: i), F, PLACES, rules="tensorflow")

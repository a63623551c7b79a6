"""Cheap values that are computed again after a reduction over outer axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret
from tests.support.evaluator import same
from tests.support.tables import every

X = np.random.default_rng(0).normal(size=(6000, 60))


def standardized(x: Any) -> Any:
    centred = x - x.mean(axis=0)
    return centred / np.sqrt((centred * centred).mean(axis=0))


def twice(x: Any) -> Any:
    shifted = x + 1
    first = shifted / shifted.max(axis=0)
    return first - shifted / (shifted * first).sum(axis=0)


def by_rows(x: Any) -> Any:
    shifted = x - 1
    return shifted / shifted.sum(axis=1, keepdims=True)


def returned(x: Any) -> Any:
    shifted = x - 1
    return shifted, shifted / shifted.sum(axis=0)


def subtractions(function: Callable[[Any], Any], x: Any) -> int:
    program = Program(trace(function, x, rules="numpy").graph, native="off")
    names = [symbol.op.name for symbol in program.lowered.symbols]
    return names.count("subtract") + names.count("add")


@every("function", [standardized, twice, by_rows, returned])
@every("native", ["off", "now"])
def test_the_results_keep_their_bits(function: Callable[[Any], Any], native: Any) -> None:
    graph = trace(function, X, rules="numpy").graph
    results, expected = Program(graph, native=native)(X), interpret(graph, X)
    if not isinstance(results, tuple):
        results, expected = (results,), (expected,)
    assert all(map(same, results, expected))


def test_what_is_computed_again() -> None:
    assert subtractions(standardized, X) == 2
    assert subtractions(standardized, X[:50]) == 1  # the cache holds the difference
    assert subtractions(by_rows, X) == 1  # the rows stay in the cache
    assert subtractions(returned, X) == 1  # the difference is in memory
    assert subtractions(twice, X) == 3

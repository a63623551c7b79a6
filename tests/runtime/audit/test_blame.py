"""The order in which the static report ranks casts, beside the blame that a run measures."""

from __future__ import annotations

import numpy as np
import pytest

from graphir.passes import cast_report
from graphir.runtime import audit, execute
from tests.runtime.audit.blamed_programs import PROGRAMS, Blamed
from tests.support.tables import every


def ranks(numbers: list[float]) -> np.ndarray:
    """Ranks from 0, equal numbers sharing the mean of theirs."""
    values = np.asarray(numbers)
    below = (values[:, None] > values).sum(axis=1)
    return below + ((values[:, None] == values).sum(axis=1) - 1) / 2


def spearman(one: list[float], other: list[float]) -> float:
    """The correlation of ranks (Spearman, 1904)."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def test_spearman_of_known_orders() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # The difference of ranks: 1 - 6 * (1 + 1) / (4 * 15).
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert ranks([5, 1, 5]).tolist() == [1.5, 0, 1.5]


def test_ten_programs_of_different_kinds() -> None:
    assert len(PROGRAMS) == 10
    graphs = [make().graph for make in PROGRAMS.values()]
    assert {graph.rules.name for graph in graphs} == {"max", "jax", "torch"}
    for graph in graphs:
        report = cast_report(graph)
        assert len(report) >= 4
        assert report.only(exact=False)
        assert len({symbol.dtype for symbol in graph.symbols}) >= 3


@every("name", PROGRAMS)
def test_the_static_order_agrees_with_the_measured_blame(name: str) -> None:
    program: Blamed = PROGRAMS[name]()
    report = audit(program.graph, **program.inputs)
    measured = [row for row in report if row.measured is not None]
    assert len(measured) >= 4
    found = spearman([row.damage for row in measured], [row.share for row in measured])
    assert found >= 0.5
    results = execute(program.graph, **program.inputs)
    for result, told in zip(
        results if isinstance(results, tuple) else (results,), report.results, strict=True
    ):
        np.testing.assert_array_equal(result, told)

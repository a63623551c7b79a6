"""`every`, by which a test runs all cells of a table: each is run, each failure names its cell."""

from __future__ import annotations

import inspect

import pytest

from tests.support.tables import every


def test_every_runs_all_cells_and_names_those_that_fail() -> None:
    seen = []

    @every("a, b", [(1, 2), pytest.param(3, 4, id="pair")])
    @every("c", [5, 6])
    def table(a: int, b: int, c: int, fixture: str) -> None:
        seen.append((a, b, c, fixture))
        assert a + c < 8

    assert [*inspect.signature(table).parameters] == ["fixture"]
    with pytest.raises(ExceptionGroup, match="2 of 4 cells failed") as caught:
        table(fixture="f")
    assert seen == [(a, b, c, "f") for a, b in ((1, 2), (3, 4)) for c in (5, 6)]
    notes = [error.__notes__[-1] for error in caught.value.exceptions]
    assert notes == [f"in the cell {{'a': 3, 'b': 4, 'c': {c}}}" for c in (5, 6)]


def test_every_skips_where_all_cells_do() -> None:
    @every("a", [1, 2])
    def some(a: int) -> None:
        if a == 1:
            pytest.skip("one")

    @every("a", [1, 2])
    def none(a: int) -> None:
        pytest.skip(f"cell {a}")

    some()
    with pytest.raises(pytest.skip.Exception, match="cell 1"):
        none()

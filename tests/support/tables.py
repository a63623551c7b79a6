"""Tables of tests: golden ones as tests/golden keeps them, and tests that run all cells of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import product
from math import prod
from random import Random
from typing import Any

import pytest


def every(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[..., Any]:
    """Decorator as pytest.mark.parametrize, but one test runs all cells and shows all failures.

    pytest takes about a millisecond for a test. Tables of several decorators are multiplied. Cells
    share the fixtures, and cells that skip are left out, unless all do.
    """
    keys = tuple(names.replace(",", " ").split()) if isinstance(names, str) else names
    rows = [_cells(row, len(keys)) for row in values]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        tables = [(keys, rows), *getattr(test, "tables", [])]
        run_cell = getattr(test, "run_cell", test)

        @wraps(test)
        def run(*of_class: Any, chosen: Sequence[int] | None = None, **fixtures: Any) -> None:
            errors: list[BaseException] = []
            skips: list[pytest.skip.Exception] = []
            cells = [*product(*(rows for _, rows in tables))]
            cells = cells if chosen is None else [cells[i] for i in chosen]
            for cell in cells:
                pairs = zip((key for keys, _ in tables for key in keys), sum(cell, ()), strict=True)
                arguments = dict(pairs)
                try:
                    run_cell(*of_class, **fixtures, **arguments)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the cell {arguments}")
                    errors.append(error)
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(cells)} cells failed", errors)
            if cells and len(skips) == len(cells):
                raise skips[0]

        bound = {key for keys, _ in tables for key in keys}
        signature = inspect.signature(run_cell)
        fixtures = [x for name, x in signature.parameters.items() if name not in bound]
        vars(run).update(
            tables=tables, run_cell=run_cell, __signature__=signature.replace(parameters=fixtures)
        )
        return run

    return decorate


def sampled(part: int) -> Callable[..., Any]:
    """Decorator above `every`: the test runs one cell in `part`, an exhaustive test the others."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        count = prod(len(rows) for _, rows in vars(test)["tables"])
        some = sorted(Random(0).sample(range(count), -(-count // part)))
        others = sorted({*range(count)} - {*some})

        @wraps(test)
        def run(*of_class: Any, chosen: Sequence[int], **fixtures: Any) -> None:
            test(*of_class, chosen=chosen, **fixtures)

        signature = inspect.signature(test)
        chosen = inspect.Parameter("chosen", inspect.Parameter.KEYWORD_ONLY)
        fixtures = [*signature.parameters.values(), chosen]
        vars(run).update(__signature__=signature.replace(parameters=fixtures))
        parts = [
            pytest.param(some, id="some"),
            pytest.param(others, id="others", marks=pytest.mark.exhaustive),
        ]
        return pytest.mark.parametrize("chosen", parts)(run)

    return decorate


def quick(values: Sequence[Any], part: int) -> list[Any]:
    """Values as parameters of a test: one in `part` as they are, the others exhaustive."""
    mark = pytest.mark.exhaustive
    return [x if i % part == 0 else pytest.param(x, marks=mark) for i, x in enumerate(values)]


def _cells(row: Any, count: int) -> tuple[Any, ...]:
    """A row as a tuple; that of a pytest.param, which has no marks."""
    if hasattr(row, "marks"):
        assert not row.marks, "a cell has the marks of its test"
        return row.values
    return tuple(row) if count > 1 else (row,)


def cells(table: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """What each row and column has, by their names; `-` is an error."""
    rows = {row: line.split() for row, line in table.items()}
    columns = rows.pop("")
    return {
        (row, column): cell
        for row, line in rows.items()
        for column, cell in zip(columns, line, strict=True)
    }

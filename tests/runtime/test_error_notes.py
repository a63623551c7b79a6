"""A note on an exception names the lines behind it; an exception about something else has none."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from graphir.runtime import from_jax, from_torch, jit, record
from graphir.runtime.error_notes import ProgramValues, noting_errors

X = np.ones(3, np.uint8)


class Odd:
    """An object that does not like to be asked."""

    @property
    def dtype(self) -> Any:
        raise ValueError("no dtype")


def added(counts: Any, odd: Any = None) -> Any:
    wide = counts.astype(np.int64)
    wide = wide * 2
    counts += wide if odd is None else np.add(wide, 1, out=wide, dtype=f"float{odd.__class__}")
    return counts


def missing(counts: Any) -> Any:
    return {}["key"]


def noted(function: Any, *arguments: Any) -> None:
    with noting_errors(ProgramValues()):
        function(*arguments)


def note_of(function: Any, *arguments: Any) -> str:
    with pytest.raises(Exception) as caught:
        function(*arguments)
    (note,) = getattr(caught.value, "__notes__", ("",))
    return note


def test_a_note_has_the_line_the_dtypes_and_the_last_assignments() -> None:
    line = added.__code__.co_firstlineno + 3
    wide = {noted: (line - 1, "wide = wide * 2"), record: (line - 2, "counts.astype(np.int64)")}
    for run, (number, text) in wide.items():  # the assignment, and the birth of the dtype
        note = note_of(run, added, X.copy())
        assert note.startswith(f"line {line}: counts += wide")
        assert "counts is uint8[3]" in note
        assert f"wide is int64[3] since line {number}: {text}" in note


def test_an_exception_about_something_else_has_no_note() -> None:
    assert note_of(noted, missing, X) == ""


def test_an_object_that_raises_does_not_hide_the_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="data type"):
        noted(added, X.copy(), Odd())


IMPORTERS: dict[str, Callable[..., Any]] = {
    "numpy": record,
    "jax": from_jax,
    "torch": from_torch,
}


@pytest.mark.parametrize("library", IMPORTERS)
def test_a_note_names_the_lines_behind_an_exception(library: str) -> None:
    pytest.importorskip(library)
    module: Any = import_module(f"tests.runtime.raising_programs.raising_{library}")
    lines = inspect.getsource(module).splitlines()
    missed: dict[str, set[int]] = {}
    first = 0
    for name, (program, inputs) in module.CASES.items():
        last = _last_line(lines, program, name)
        marked = {i for i in range(first + 1, last + 1) if "# named" in lines[i - 1]}
        first = last
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as caught:
                IMPORTERS[library](program, *inputs)
        text = "\n".join((str(caught.value), *getattr(caught.value, "__notes__", ())))
        missed[name] = marked - {int(x) for x in re.findall(r"\bline (\d+)", text)}
    assert not {name: numbers for name, numbers in missed.items() if numbers}


def _last_line(lines: list[str], program: Any, name: str) -> int:
    """Return the last line of a program, that of its case if it is a module."""
    if inspect.isfunction(program):
        source, first = inspect.getsourcelines(program)
        return first + len(source) - 1
    return next(i for i, line in enumerate(lines, 1) if f'CASES["{name}"]' in line)


def exact(values: Any) -> Any:
    total = values.sum() * 2
    if total > 5:
        raise ValueError(f"too many: {total}")
    return total


def singular(values: Any) -> Any:
    return np.linalg.inv(values[:, None] * values)


def hashed(values: Any) -> Any:
    code = np.uint32(2166136261)
    for value in values:
        code = (code ^ value) * np.uint32(16777619)
    raise ValueError(f"no slot {code % 7}")


def test_an_exception_without_a_loss_behind_it_has_no_note() -> None:
    assert note_of(record, exact, np.arange(5)) == ""
    assert note_of(record, singular, np.ones(2, np.float32)) == ""
    with np.errstate(over="ignore"):
        assert note_of(record, hashed, np.arange(1, 5, dtype=np.uint32)) == ""


@jit
def step(state: Any, row: Any) -> Any:
    return {"sum": state["sum"] + row.sum(), "count": state["count"] + 1}


def summed(rows: Any) -> Any:
    state = {"sum": 0.0, "count": np.int32(0)}
    for row in rows:
        state = step(state, row)
    return state


def test_a_jitted_function_names_the_argument_by_which_it_was_traced_again() -> None:
    summed(np.ones((3, 2), np.float32))
    line = summed.__code__.co_firstlineno + 1
    (sentence,) = step.retraces
    assert sentence.startswith("step is traced twice: `state['sum']` is a Python float since ")
    assert f"since line {line}: state = {{" in sentence and "and float32 in the next" in sentence

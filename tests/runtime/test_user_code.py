"""An exception about dtypes has a note with the user's lines; no other exception changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.user_code import noting_errors

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
    with noting_errors():
        function(*arguments)


def note_of(function: Any, *arguments: Any) -> str:
    with pytest.raises(Exception) as caught:
        function(*arguments)
    (note,) = getattr(caught.value, "__notes__", ("",))
    return note


def test_a_note_has_the_line_the_dtypes_and_the_last_assignments() -> None:
    line = added.__code__.co_firstlineno + 3
    for note in (note_of(noted, added, X.copy()), note_of(record, added, X.copy())):
        assert note.startswith(f"line {line}: counts += wide")
        assert "counts is uint8[3]" in note
        assert f"wide is int64[3] since line {line - 1}: wide = wide * 2" in note


def test_an_exception_about_something_else_has_no_note() -> None:
    assert note_of(noted, missing, X) == ""


def test_an_object_that_raises_does_not_hide_the_error_of_the_program() -> None:
    with pytest.raises(TypeError, match="data type"):
        noted(added, X.copy(), Odd())

"""The bar that long commands show at a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from graphir.runtime import progress
from graphir.runtime.progress import Bar


def test_the_bar_is_drawn_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    now = iter((0.0, 0.5, 1.5, 1.6))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    bar = Bar("steps", after=1)
    bar(1, 10)
    assert screen.getvalue() == ""
    bar(3, 10)
    bar(3, 10)
    assert screen.getvalue() == f"\r[{'#' * 9}{'.' * 21}]  30 %, 3 of 10 steps"
    bar(10, 10)
    assert screen.getvalue().endswith("100 %, 10 of 10 steps\n")

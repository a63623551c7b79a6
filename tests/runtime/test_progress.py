"""The bar that long commands show at a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from graphir.runtime import progress
from graphir.runtime.progress import Pulse


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_is_drawn_after_a_second_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    now = iter((0.0, 0.5, 1.5, 1.6))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "monotonic", lambda: next(now))
    with Pulse("steps") as pulse:
        assert pulse.watch is pulse
        pulse(1, 10)
        assert screen.getvalue() == ""
        pulse(3, 10)
        text = f"[{'#' * 9}{'.' * 21}]  30 %, 3 of 10 steps"
        assert screen.getvalue() == f"\r{text}"
        pulse(3, 10)
    assert screen.getvalue() == f"\r{text}\r{' ' * len(text)}\r"


def test_nothing_is_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with Pulse("steps") as pulse:
        assert pulse.watch is False
    assert capsys.readouterr() == ("", "")

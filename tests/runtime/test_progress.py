"""The line that long commands show at a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from graphir.runtime.progress import Pulse


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(text: str) -> list[str]:
    """The lines of a screen after all returns of the carriage."""
    lines = []
    for line in text.split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return lines


def test_the_line_makes_way_for_output(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    with Pulse("graphir", "steps") as pulse:
        pulse.draw()
        assert shown(screen.getvalue()) == ["graphir: 0 s"]
        print("an answer that is longer")
        assert pulse.watch is pulse
        pulse(3, 10)
        pulse.draw()
        last = shown(screen.getvalue())[-1]
        assert last == f"[{'#' * 9}{'.' * 21}]  30 %, 3 of 10 steps"
        print("no end of line", end="", file=sys.stderr)
        pulse.draw()  # not over the text
        print(" yet")
    assert shown(screen.getvalue()) == ["an answer that is longer", "no end of line yet", ""]
    assert sys.stdout is screen and sys.stderr is screen


def test_nothing_is_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    stdout = sys.stdout
    with Pulse("graphir") as pulse:
        assert pulse.watch is False and sys.stdout is stdout
    assert capsys.readouterr() == ("", "")

"""Right uses run, wrong ones raise at the line that says so."""

from __future__ import annotations

import runpy
import traceback
from pathlib import Path

import pytest

from tests.support.guilty_lines import marked_lines
from tests.support.tables import every

FOLDER = Path(__file__).parent
RIGHT, WRONG = (sorted((FOLDER / kind).glob("*.py")) for kind in ("right", "wrong"))


@every("path", RIGHT)
def test_a_right_use_runs(path: Path) -> None:
    assert not marked_lines(path.read_text(encoding="utf-8"), "# wrong")
    runpy.run_path(str(path))


@every("path", WRONG)
def test_a_wrong_use_raises_at_its_line(path: Path) -> None:
    (number,) = marked_lines(path.read_text(encoding="utf-8"), "# wrong")
    with pytest.raises(Exception) as error:  # of any kind: the line is what counts
        runpy.run_path(str(path))
    frames = traceback.extract_tb(error.value.__traceback__)
    assert number in [frame.lineno for frame in frames if frame.filename == str(path)]


def test_there_are_forty_of_each() -> None:
    assert len(RIGHT) == 40 and len(WRONG) == 40

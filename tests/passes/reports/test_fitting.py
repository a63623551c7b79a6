"""A report in a terminal: its rows fit the lines, and it says which columns it leaves out."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from graphir.display import brief
from graphir.passes import CastReport
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.text import answers_text, report_text
from graphir.rule_reports.terminal import short_place
from graphir.runtime import record
from tests.support.loading import written
from tests.support.reports import audited, mixed

TEXT = """import numpy as np

def measured_temperatures_of_all_stations(samples, calibration_offsets):
    total = samples + calibration_offsets.astype(np.float16)
    for _ in range(3):
        total = total * np.float32(1.1)
    wrapped = (samples * 100).astype(np.int8) * np.int8(2) + np.int8(100)
    return total, wrapped.astype(np.uint8)
"""


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> CastReport:
    folder = tmp_path_factory.mktemp("a_folder_of_a_package_with_a_long_name")
    program = written(folder / "a_module_with_a_rather_long_name.py", TEXT)
    inputs = np.linspace(0, 1, 50).astype(np.float16), np.linspace(-1, 1, 50)
    return record(program.measured_temperatures_of_all_stations, *inputs).audit()


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_every_line_fits(width: int, long_report: CastReport) -> None:
    for report in (long_report, mixed(), audited()):
        lines = report_text(report, width).splitlines()
        places = {str(row.location).partition(" ")[0] for row in report.rows + report.losses}
        long = [line for line in lines if len(line) > width and not line.startswith(EDITS)]
        assert places.issuperset(long)  # a place without room beside it
        text = "\n".join(lines)
        assert all(f"{x.row.location}".partition(" ")[0] in text for x in report.lines)


def test_a_narrow_table_keeps_lines_and_figures(long_report: CastReport) -> None:
    text = report_text(long_report, 100)
    assert "(columns without room: bytes, rule and path" in text
    for site in long_report.sites:
        assert f".py:{site.row.location.line}:" in text
    titles = next(line for line in text.splitlines() if line.startswith("where")).split()
    assert {"loss", "changed", "error", "share", "from", "to"} <= set(titles)


def test_a_wide_table_is_whole(long_report: CastReport) -> None:
    full = report_text(long_report)
    assert report_text(long_report, 1000) == full == REPORT_FORMATS["text"](long_report)


EDITS = "  write: ", "  and: "


SHARED = """import numpy as np

def mixed(pixels, others):
    ramp = np.arange(len(pixels)) / len(pixels)
    return pixels * ramp + others * ramp + 1.0 - 2.0
"""


@pytest.fixture
def shared(tmp_path: Path) -> CastReport:
    program = written(tmp_path / "a_program_with_a_name_that_no_column_has_room_for.py", SHARED)
    return record(program.mixed, np.ones(4, np.float32), np.ones(4, np.float32)).report()


@pytest.mark.parametrize("width", [40, 80, None])
def test_the_answer_is_first_and_its_edit_and_line_numbers_are_whole(
    width: int | None, shared: CastReport
) -> None:
    lines = report_text(shared, width).splitlines()
    edit = next(i for i, line in enumerate(lines) if line.startswith("  write in line 4: "))
    assert edit <= 3 and lines[0].startswith("the result is float64 because")
    made = '(np.arange(len(pixels)) / len(pixels)).astype("float32")'
    assert lines[edit].partition("  inferred")[0].rstrip() == f"  write in line 4: {made}"
    counts = next(i for i, line in enumerate(lines) if line.startswith("graph mixed: "))
    rows = [line for line in lines[counts + 1 :] if re.match(r"\S+:\d+:\d+(-\d+)?( |$)", line)]
    assert edit < counts and len(rows) == len(shared.lines)
    assert report_text(shared, width).startswith(answers_text(shared, width))


def test_tables_leave_out_exact_numbers_and_merge_equal_casts_of_a_line(shared: CastReport) -> None:
    text = report_text(shared)
    assert "; 3 exact literals not shown: --all" in text
    (site,) = [x for x in shared.lines if x.row.source == "float32"]
    assert site.times == 2 and ":5:12-40 " in text and len(shared.lines) == 2
    assert len(shared.in_full().lines) == len(shared.only(kind="literal").lines) + 2
    assert len(json.loads(shared.to_json())["casts"]) == len(shared.sites) == 6
    assert "not shown" not in report_text(shared.only(kind="literal"))


@pytest.mark.parametrize(
    ("place", "size", "short"),
    [
        ("a/b.py:7:5 [main]", 17, "a/b.py:7:5 [main]"),
        ("a/b.py:7:5 [main]", 16, "a/b.py:7:5"),
        ("a/b.py:7:5 [main/inner]", 19, "a/b.py:7:5 [\u2026inner]"),
        ("/home/user/project/net.py:120:13", 24, "/home/us\u2026t/net.py:120:13"),
        ("/home/user/project/net.py:120:13-40", 12, "\u2026y:120:13-40"),
        ("/encoder/layer.0/MatMul", 15, "/encode\u2026/MatMul"),
    ],
)
def test_a_place_keeps_its_line_and_loses_the_middle_of_its_path(
    place: str, size: int, short: str
) -> None:
    assert short_place(place, size) == short


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_rows_that_fit(
    monkeypatch: pytest.MonkeyPatch, long_report: CastReport
) -> None:
    assert str(long_report) == report_text(long_report)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert str(long_report) == report_text(long_report, 100)
    assert repr(long_report) == brief(str(long_report))

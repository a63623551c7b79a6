"""A report in a terminal: its rows fit the lines, and it says which columns it leaves out."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from graphir.display import brief
from graphir.passes import CastReport
from graphir.passes.reports import REPORT_FORMATS
from graphir.passes.reports.text import report_text
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
        assert max(map(len, lines)) <= width
        table = next(i for i, line in enumerate(lines) if line.startswith("where"))
        rows = [line for line in lines[table + 1 :] if line and line[0] not in "( "]
        assert len(rows) == len(report.sites)  # a row has one line


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

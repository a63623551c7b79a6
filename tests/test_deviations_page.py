"""The page of deviations is what the table of deviations says."""

from __future__ import annotations

from pathlib import Path

from tests.peers.table import DEVIATIONS, page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "deviations.md"


def test_the_page_is_what_the_table_writes():
    assert PAGE.read_text(encoding="utf-8") == page.text(), "python -m tests.peers.table.page"


def test_each_row_has_its_words_and_its_source_once():
    assert len({row.what for row in DEVIATIONS}) == len(DEVIATIONS)
    assert all(row.source and row.what for row in DEVIATIONS)

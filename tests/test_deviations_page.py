"""The page of deviations is what the table of deviations says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphir import rules
from tests.peers.libraries import LIBRARIES
from tests.peers.table import DEVIATIONS, page
from tests.peers.table.operands import SVML

PAGE = Path(__file__).resolve().parent.parent / "docs" / "deviations.md"


RULE_SETS = (PAGE.parent / "rule-sets.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not SVML, reason="the page has an example that NumPy computes by SVML")
def test_the_page_is_what_the_table_writes():
    assert PAGE.read_text(encoding="utf-8") == page.text(), "python -m tests.peers.table.page"


def test_each_row_has_its_words_and_its_source_once():
    assert len({row.what for row in DEVIATIONS}) == len(DEVIATIONS)
    assert all(row.source and row.what for row in DEVIATIONS)


def test_the_page_says_of_each_rule_set_what_it_was_checked_against():
    documented = set(
        re.findall(r"`([a-z_0-9]+)`", RULE_SETS.split("| rule set |")[1].split("\n\n")[0])
    )
    assert page.CHECKED.keys() == documented and all(rules(name) for name in documented)
    live = {name for name, what in page.CHECKED.items() if "random programs" in what}
    assert live == LIBRARIES.keys()

"""Tables and lattices as the command line shows them, in every format."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser

import graphir
from graphir import DType, Lattice, rules
from graphir.drawing import lattice_dot
from graphir.promotion.tables import FORMATS
from tests.commands import cli, refused

# -- table


def test_every_format_of_every_rule_set():
    for each in graphir.rule_sets():
        for kind in FORMATS:
            status, out, err = cli("table", "--rules", each.name, "--format", kind)
            assert (status, err) == (0, "")
            assert len(out.splitlines()) > len(each.dtypes)


def test_table_as_json_is_the_table():
    found = json.loads(cli("table", "--rules", "max_strict", "--format", "json")[1])
    assert found["rules"] == "max_strict"
    assert found["table"]["int16"]["float32"] == "float32"
    assert found["table"]["int32"]["bfloat16"] is None
    expected = rules("max_strict").table()
    assert found["table"] == {
        str(a): {str(b): None if to is None else str(to) for b, to in row.items()}
        for a, row in expected.items()
    }
    assert found["dtypes"] == [str(d) for d in DType if d in expected]


def test_table_as_csv_is_the_table():
    rows = list(
        csv.reader(io.StringIO(cli("table", "--rules", "max_strict", "--format", "csv")[1]))
    )
    columns = rows[0][1:]
    cells = {
        (row[0], b): cell for row in rows[1:] for b, cell in zip(columns, row[1:], strict=True)
    }
    assert cells["int16", "float32"] == "float32"
    assert cells["int32", "bfloat16"] == "-"
    assert len(cells) == len(rules("max_strict").dtypes) ** 2


def test_table_as_text_is_aligned():
    lines = cli("table")[1].splitlines()
    assert lines[0].split() == [d.short for d in DType if d in rules("max").lattice]
    at = lines[0].index("bf16")
    row = next(line for line in lines if line.startswith("i16 "))
    assert row[at : at + 4] == "bf16"


def test_table_as_markdown():
    lines = cli("table", "--format", "markdown")[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {len(row) for row in cells} == {17}
    assert set(cells[1]) == {"---"}
    row = next(row for row in cells if row[0] == "**int16**")
    assert row[cells[0].index("float32")] == "float32"


class Cells(HTMLParser):
    """Collects the cells of a page, and checks that every tag is closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.cells, self.tags = [], [], set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("meta",):
            self.open.append(tag)
        if tag == "td":
            self.cells.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_table_as_html_is_one_page_that_shows_what_is_lost():
    page = cli("table", "--rules", "max_strict", "--format", "html")[1]
    assert page.startswith("<!DOCTYPE html>")
    assert "http" not in page and "<script" not in page and "<link" not in page
    found = Cells(page)
    titles = {cell["title"]: cell["class"] for cell in found.cells}
    assert len(titles) == len(rules("max_strict").dtypes) ** 2
    assert titles["int16 with float32: float32; exact"] == "exact"
    assert titles["int32 with bfloat16: an error"] == "raises"
    page = cli("table", "--rules", "max", "--format", "html")[1]
    titles = {cell["title"]: cell["class"] for cell in Cells(page).cells}
    assert titles["int32 with bfloat16: bfloat16; int32 loses 257"] == "loses"
    assert titles["uint64 with int64: float16; uint64 loses 2049 and int64 loses 2049"] == "loses"


# -- lattice


def test_lattice_as_text_lists_levels_from_below():
    lines = cli("lattice")[1].splitlines()
    assert "16 nodes, 19 edges, 10 levels" in lines[0]
    assert any(line.split() == ["level", "2", "int16", "->", "int32"] for line in lines)
    assert lines[-1].split() == ["level", "9", "float64", "(top)"]


def test_levels_put_every_node_above_what_lies_below_it():
    for each in graphir.rule_sets():
        if each.lattice is not None:
            height = {d: i for i, layer in enumerate(each.lattice.levels()) for d in layer}
            assert set(height) == set(each.lattice.nodes)
            for low, above in each.lattice.edges.items():
                assert all(height[low] < height[high] for high in above)


def test_lattice_as_dot_and_mermaid_has_every_edge():
    dot = cli("lattice", "--format", "dot")[1]
    assert dot.startswith('digraph "max" {') and dot.rstrip().endswith("}")
    assert '"int16" -> "int32";' in dot and dot.count(" -> ") == 19
    mermaid = cli("lattice", "--format", "mermaid")[1]
    assert mermaid.startswith("flowchart BT\n") and mermaid.count(" --> ") == 19
    assert '["bfloat16"]' in mermaid


def test_names_are_quoted_in_dot():
    assert r'"a\"b" -> "c d";' in lattice_dot(Lattice("odd", {'a"b': ["c d"]}))


def test_rules_without_a_lattice_say_so():
    assert "rule set 'explicit' has no lattice" in refused(1, "lattice", "--rules", "explicit")

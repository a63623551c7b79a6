"""Tables and lattices as the command line shows them, in every format."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout

import pytest

import graphir
from graphir import DType, Lattice, PromotionError, PromotionRules, rules
from graphir.drawing.formats import lattice_dot
from graphir.rule_reports.tables import FORMATS, text_table, unlike
from graphir.runtime.cli.main import main
from tests.support.commands import cli, refused

# -- table


@pytest.mark.exhaustive
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


# -- what each cell loses, in colour

ANSI = re.compile(r"\x1b\[([0-9;]+)m([^\x1b]*)\x1b\[0m")
GREEN, YELLOW, GREY = "32", "33", "90"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(*argv, terminal=False):
    """What `graphir table` prints, to a terminal or not."""
    out = Terminal() if terminal else io.StringIO()
    with redirect_stdout(out):
        assert main(["table", *argv]) == 0
    return out.getvalue()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_colour_changes_nothing_but_the_colour():
    for each in graphir.rule_sets()[::3]:
        coloured = text_table(each, color=True)
        assert ANSI.sub(r"\2", coloured) == text_table(each) != coloured


def test_a_cell_has_the_colour_of_what_it_loses():
    lines = text_table(rules("max_strict"), color=True).splitlines()
    columns = lines[0].split()
    row = ANSI.findall(next(line for line in lines if line.startswith("i32 ")))
    cells = {b: (style, cell.strip()) for b, (style, cell) in zip(columns, row, strict=True)}
    assert cells["i16"] == (GREEN, "i32")
    assert cells["bf16"] == (GREY, "-")
    lines = text_table(rules("max"), color=True).splitlines()
    columns = lines[0].split()
    row = ANSI.findall(next(line for line in lines if line.startswith("i32 ")))
    assert dict(zip(columns, row, strict=True))["bf16"] == (YELLOW, "bf16")


def test_the_last_line_counts_the_cells_of_each_colour():
    lines = text_table(rules("max_strict"), color=True).splitlines()
    body = [style for line in lines[1:-2] for style, _ in ANSI.findall(line)]
    legend = {style: int(text.split()[0]) for style, text in ANSI.findall(lines[-1])}
    assert legend == {style: body.count(style) for style in (GREEN, YELLOW, GREY)}
    assert lines[-1].startswith(f"{len(body)} pairs: ")


def test_colour_is_for_terminals():
    assert "\x1b" in printed(terminal=True)
    assert "\x1b" not in printed(terminal=False)


def test_no_color_and_dumb_terminals_are_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(terminal=True)
    monkeypatch.setenv("NO_COLOR", "")  # which says nothing, by no-color.org
    assert "\x1b" in printed(terminal=True)
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in printed(terminal=True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in printed(terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in printed(terminal=False)


# -- asymmetric tables, weak members


class Lopsided(PromotionRules):
    """The first operand wins, but int8 with int32, which raises in one order."""

    def join(self, dtypes):
        if dtypes == (DType.int32, DType.int8):
            raise PromotionError("not in this order")
        return dtypes[0]


LATTICE = Lattice("three", {"int8": ["int16"], "int16": ["int32"]})
SYMMETRIC = PromotionRules("even", "By the lattice.", LATTICE)
LOPSIDED = Lopsided("lopsided", "By order.", LATTICE)


def test_an_asymmetric_table_says_so_and_in_how_many_pairs():
    assert text_table(LOPSIDED).splitlines()[-1] == (
        "row = lhs, column = rhs; not symmetric in 3 pairs"
    )
    assert "symmetric" not in text_table(SYMMETRIC)
    assert unlike(LOPSIDED.table()) == [
        *((DType.int8, DType.int16), (DType.int8, DType.int32), (DType.int16, DType.int32)),
    ]


def test_asymmetric_cells_are_marked():
    lines = text_table(LOPSIDED, color=True).splitlines()
    styles = [[style for style, _ in ANSI.findall(line)] for line in lines[1:4]]
    assert styles == [
        [GREEN, f"{YELLOW};4", f"{YELLOW};4"],
        [f"{GREEN};4", GREEN, f"{YELLOW};4"],
        [f"{GREY};4", f"{GREEN};4", GREEN],
    ]


def test_weak_members_have_short_names():
    lines = text_table(rules("python")).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["bool", "i*", "f*", "c*"],
        ["bool", "bool", "i*", "f*", "c*"],
        ["i*", "i*", "i*", "f*", "c*"],
    ]


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
    assert dot.startswith('digraph "Lattice max" {') and dot.rstrip().endswith("}")
    assert '"int16" -> "int32" [' in dot and dot.count(" -> ") == 19
    mermaid = cli("lattice", "--format", "mermaid")[1]
    assert mermaid.startswith("flowchart BT\n") and mermaid.count(" --> ") == 19
    assert '["bfloat16"]' in mermaid


def test_names_are_quoted_in_dot():
    assert r'"a\"b" -> "c d" [' in lattice_dot(Lattice("odd", {'a"b': ["c d"]}))


def test_rules_without_a_lattice_say_so():
    assert "rule set 'explicit' has no lattice" in refused(3, "lattice", "--rules", "explicit")

"""The SVG of a promotion table, read back: each cell's text, colour and frame."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from graphir import DType, Lattice, PromotionError, PromotionRules, rules
from graphir.drawing.promotion_tables import TableCell, grid_svg, table_svg
from tests.support.commands import cli
from tests.support.tables import every, sampled

SVG = "{http://www.w3.org/2000/svg}"
GREEN, ORANGE, GREY = "#d9f0dd", "#ffe2b3", "#e3e3e8"
BOX = re.compile(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z")


def boxes(root: ElementTree.Element, fill: str) -> list[tuple[int, int, int, int]]:
    paths = [path for path in root.iter(f"{SVG}path") if path.get("fill") == fill]
    return [tuple(map(int, box)) for path in paths for box in BOX.findall(path.get("d", ""))]


def texts(root: ElementTree.Element) -> dict[tuple[float, float], str]:
    """The texts by their places."""
    upright = [text for text in root.iter(f"{SVG}text") if text.get("x")]
    return {(float(t.get("x", "")), float(t.get("y", ""))): t.text or "" for t in upright}


def read(svg: str) -> dict[tuple[str, str], tuple[str, str, bool]]:
    """The text, the colour and whether there is a frame, by row and column."""
    root = ElementTree.fromstring(svg)
    by_place = texts(root)
    left = min(x for x, _ in by_place)
    upwards = {t.get("transform", ""): t.text or "" for t in root.iter(f"{SVG}text")}
    heads = {
        float(place[1]) - 4: text
        for transform, text in upwards.items()
        if (place := re.match(r"translate\((\S+) ", transform))
    }
    names = {y: text for (x, y), text in by_place.items() if x == left}
    table: dict[tuple[str, str], tuple[str, str, bool]] = {}
    for y, row in names.items():
        for x, column in heads.items():
            near = {text for (at, line), text in by_place.items() if line == y and abs(at - x) < 1}
            at = [
                fill
                for fill in (GREEN, ORANGE, GREY, "none")
                for a, b, w, h in boxes(root, fill)
                if a < x < a + w and b < y - 4 < b + h
            ]
            if at:
                table[row, column] = (near or {"-"}).pop(), at[0], "none" in at
    return table


def color(a: DType, b: DType, result: DType | None) -> str:
    if result is None:
        return GREY
    return GREEN if a.exact_in(result) and b.exact_in(result) else ORANGE


@sampled(2)
@every("name", ["max", "max_strict", "tensorflow"])
def test_each_cell_has_its_text_color_and_frame(name: str) -> None:
    rule_set = rules(name)
    table = read(table_svg(rule_set))
    assert len(table) == len(rule_set.dtypes) ** 2
    for a in rule_set.dtypes:
        for b in rule_set.dtypes:
            result, swapped = rule_set.answer(a, b), rule_set.answer(b, a)
            text = "-" if result is None else result.short
            expected = text, color(a, b, result), result is not swapped
            assert table[str(a), b.short] == expected, (a, b)


class FirstWins(PromotionRules):
    """The first operand wins, but int8 with int32 raises in one order."""

    def join(self, dtypes):
        if dtypes == (DType.int32, DType.int8):
            raise PromotionError("not in this order")
        return dtypes[0]


def test_the_legend_counts_the_cells_and_explains_the_frames() -> None:
    order = Lattice("three", {"int8": ["int16"], "int16": ["int32"]})
    svg = table_svg(FirstWins("first_wins", "By order.", order))
    shown = set(texts(ElementTree.fromstring(svg)).values())
    assert {"5 hold every value of both", "3 can lose values", "1 do not mix (-)"} <= shown
    assert "row = lhs, column = rhs; not symmetric in 3 pairs" in shown
    assert "symmetric" not in table_svg(rules("max"))


def test_long_heads_are_written_upwards_and_an_absent_cell_is_empty() -> None:
    cells = [TableCell("i8", "exact"), None, TableCell("-", "raises")]
    svg = grid_svg("<a title>", ["a_long_head", "b", "c"], {"int8": cells}, {})
    root = ElementTree.fromstring(svg)
    assert root[0].text == "<a title>"
    upwards = [text.text for text in root.iter(f"{SVG}text") if text.get("transform")]
    assert upwards == ["a_long_head", "b", "c"]
    assert [len(boxes(root, fill)) for fill in (GREEN, ORANGE, GREY)] == [1, 0, 1]


def test_the_command_draws_it() -> None:
    status, out, err = cli("table", "--rules", "max", "--format", "svg")
    assert (status, out, err) == (0, table_svg(rules("max")) + "\n", "")

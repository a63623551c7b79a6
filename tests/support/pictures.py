"""Reads the SVG of a lattice back: its boxes, its lines as points, and where those meet."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from typing import NamedTuple
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
STEPS = 19  # odd, so that curves that are alike do not meet in points of both


class Rect(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> Rect:
        return Rect(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def holds(self, x: float, y: float) -> bool:
        return self.left < x < self.right and self.top < y < self.bottom

    def overlaps(self, other: Rect) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class Picture:
    """What a browser would show: boxes and lines by the texts that they bear."""

    def __init__(self, svg: str) -> None:
        self.root = ElementTree.fromstring(svg)
        self.width, self.height = map(float, self.root.attrib["viewBox"].split()[2:])
        self.boxes: dict[str, Rect] = {}
        self.rects: dict[str, ElementTree.Element] = {}
        self.texts: dict[str, ElementTree.Element] = {}
        for group in self.root.iter(f"{SVG}g"):
            rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
            if rect is not None and text is not None and text.text:
                assert text.text not in self.boxes, "a node has one box"
                self.boxes[text.text] = rectangle(rect)
                self.rects[text.text], self.texts[text.text] = rect, text
        self.paths = {ends(path): path for path in self.root.iter(f"{SVG}path")}
        self.lines = {pair: sampled(path.attrib["d"]) for pair, path in self.paths.items()}
        assert len(self.lines) == len(list(self.root.iter(f"{SVG}path"))), "an edge has one line"

    def crossings(self) -> int:
        """Pairs of lines with no end in common that cross anywhere."""
        return sum(
            any(cross(*a, *b) for a in pairwise(self.lines[p]) for b in pairwise(self.lines[q]))
            for p, q in combinations(self.lines, 2)
            if not set(p) & set(q)
        )


def rectangle(rect: ElementTree.Element) -> Rect:
    x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
    return Rect(x, y, x + width, y + height)


def ends(path: ElementTree.Element) -> tuple[str, str]:
    title = path.find(f"{SVG}title")
    assert title is not None and title.text
    low, high = title.text.split(" < ")
    return low, high


def sampled(data: str) -> list[tuple[float, float]]:
    """Points along a path of M, V and C commands, from its start to its end."""
    points: list[tuple[float, float]] = []
    assert re.fullmatch(r"M\S+( V\S+ C\S+ \S+ \S+)* V\S+", data)
    for command, text in re.findall(r"([MVC])([^MVC]*)", data):
        if command == "V":
            (x, y), to_y = points[-1], float(text)
            points += [(x, y + (to_y - y) * i / 6) for i in range(1, 7)]
            continue
        to = [(float(x), float(y)) for x, y in (pair.split(",") for pair in text.split())]
        if command == "C":
            start = points[-1]
            points += [bezier(i / STEPS, start, *to) for i in range(1, STEPS + 1)]
        else:
            points += to
    return points


def bezier(t: float, *points: tuple[float, float]) -> tuple[float, float]:
    while len(points) > 1:
        points = tuple((x + (u - x) * t, y + (v - y) * t) for (x, y), (u, v) in pairwise(points))
    return points[0]


def cross(
    a: tuple[float, float], b: tuple[float, float], c: tuple[float, float], d: tuple[float, float]
) -> bool:
    """Whether two segments cross in a point inside both."""

    def side(p: tuple[float, float], q: tuple[float, float], r: tuple[float, float]) -> float:
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0

"""Graphs whose reports are written in tests, measured ones too, and pieces that read HTML back."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from graphir import Graph, ops
from graphir.passes import CastReport, CastRow, cast_report
from graphir.passes.analysis.casts import Measured, OutputError
from tests.support.loading import example

VOID = {"meta", "input", "br", "wbr"}


def mixed() -> CastReport:
    """Casts of all kinds of use: lossy, exact, of numbers, written, in layers, with a cascade."""
    graph = Graph("mixed")
    x = graph.input("int16", ("n",), name="x")
    w = graph.input("float16", ("n",), name="w")
    big = graph.input("int64", (4,), name="big")
    with graph.layer("first"):
        product = x * w
        total = product + x
    with graph.layer("second"), graph.layer("part"):
        narrow = ops.maximum(
            big,
            w[:4] * 0.1,
        )
        bytes_ = narrow.cast("uint8")
    graph.output(total, bytes_, product.cast("float64") + x)
    return cast_report(graph)


def assigned() -> CastReport:
    """Casts of assignments, which lose a fraction's last digits and what follows from them."""
    graph = Graph("assigned", rules="numpy")
    x = graph.input("float32", ("n",), name="x")
    y = graph.input("float64", ("n",), name="y")
    x += y * 2
    with graph.layer("later"):
        x -= y
    graph.output(x, x + y)
    return cast_report(graph)


def audited() -> CastReport:
    """The same with what a run might have seen."""
    report = mixed()
    places = [row.symbol.index for row in report]
    measures = {
        places[0]: Measured(1000, 12, 3, 4, 1, 0.25, 1.5, (2049, 2048.0)),
        places[1]: Measured(4),
    }
    outputs = [
        OutputError("total", "float16", 1000, 12, 1, 2.0, 0.5, 0.125, {places[0]: 0.75}),
        OutputError("bytes", "uint8", 4),
        OutputError("sum", "float64", 1000, 7, 0, float("inf"), 0.5, float("inf"), {}),
    ]
    return report.measured(measures, outputs)


REPORTS: dict[str, Callable[[], CastReport]] = {
    "mixed": mixed,
    "assigned": assigned,
    "audited": audited,
    "compared": lambda: audited().compared("numpy"),
    "none": lambda: cast_report(Graph("none")),
    "filtered": lambda: mixed().only(kind="legalization"),
    "parsed": lambda: cast_report(Graph.parse(str(mixed().graph))),
    "image": lambda: cast_report(example("image_pipeline").pipeline("tensor_float32")),
}


def source_of(row: CastRow) -> list[str]:
    return Path(row.location.file).read_text(encoding="utf-8").splitlines()


def program(text: str, file: str, **names: Any) -> dict[str, Any]:
    """What a program defines whose source is known under the name of a file."""
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), names)
    return names


class Elements(HTMLParser):
    """The elements of a page as a parser finds them; tags must be closed in their order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.texts.append(data)

    def ids(self) -> list[str]:
        return [value for _, name, value in self.attributes if name == "id"]

    def links(self) -> list[str]:
        return [value for _, name, value in self.attributes if name in ("href", "src")]

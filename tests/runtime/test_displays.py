"""What a terminal and a notebook show of each object: short, whatever the size and the names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Lattice, TensorType, explain, lattice, laws, rules, trace
from graphir.display import BRIEF, LARGEST, brief, fragment, paragraphs, table, verbatim
from graphir.passes import cast_report, diff
from graphir.promotion import registry
from graphir.runtime import Program, record
from graphir.runtime.program.report import MachineCode
from tests.passes.reports.hostile_reports import HOSTILE, report_of
from tests.support.reports import Elements, audited, mixed
from tests.support.tables import every, sampled

LONG = "a_name_of_many_letters_" * 20


def wide_sum(x: Any, weights: Any) -> Any:
    return (x * weights).sum() / np.float64(3)


def recorded() -> Any:
    return record(wide_sum, np.ones(3, np.float32), np.arange(3))


def large_graph() -> Graph:
    """Three thousand symbols in layers with long names, with a lossy cast in every third."""
    g = Graph(LONG)
    x = g.input("float32", ("n",), name="x" * 300)
    narrow = g.input("float16", ("n",))
    y = x
    for layer in range(100):
        with g.layer(f"{LONG}{layer}"):
            for _ in range(10):
                y = (y + x).cast("float16") * narrow + x
    g.output(y)
    return g


def large_lattice() -> Lattice[str]:
    """A lattice in which two of forty nodes without a join have several upper bounds."""
    low, high = ([f"{LONG}{side}{i}" for i in range(20)] for side in "ab")
    return Lattice(LONG, dict.fromkeys(low, high))


def many_outputs() -> Any:
    def split(x: Any) -> Any:
        return [x[i] * np.float64(2) for i in range(len(x))]

    return record(split, np.ones((60, 3), np.float32))


OBJECTS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "Graph": (lambda: mixed().graph, ("4 ", "rules", "cast")),
    "CastReport": (mixed, ("uses of casts", "int16", "Where")),
    "an audit": (audited, ("12 of 1,000", "75 %", "Share")),
    "a report with a comparison": (lambda: mixed().compared("torch"), ("torch",)),
    "PromotionRules": (lambda: rules("jax"), ("33 dtypes", "weak types are members", "c128")),
    "PromotionTable": (lambda: rules("jax").table(), ("bf16", "and 15 narrow dtypes", "324 pairs")),
    "Lattice": (lambda: lattice("jax"), ("33 nodes", "<svg", "level 0")),
    "Explanation": (lambda: explain("int16", "float16"), ("loses values", "2049", "float32 under")),
    "laws that hold": (lambda: laws(lattice("max")), ("associativity: holds",)),
    "laws that break": (lambda: laws("jax_2020"), ("64 triples", "exactness", "Counterexamples")),
    "RulesDiff": (lambda: diff("max", "jax"), ("10 of 169 pairs", "Op by op", "bf16")),
    "GraphDiff": (lambda: diff(mixed().graph, "max_strict"), ("max_strict refuses", "refused")),
    "a plan": (lambda: Program(mixed().graph).explain(), ("steps", "region [")),
    "Trace": (lambda: trace(lambda x: x + 1, TensorType("int8", (3,))), ("int8", "add", "<svg")),
    "Recording": (recorded, ("1 output", "2 inputs", "float32[3]", "weights")),
}


@every("name", OBJECTS)
def test_a_notebook_shows_what_matters(name: str) -> None:
    make, phrases = OBJECTS[name]
    page = Elements(shown := make()._repr_html_())
    text = " ".join(page.texts)
    assert page.names[:2] == ["div", "style"] and len(shown) < 25_000
    for phrase in phrases:
        assert phrase in text or phrase in shown, phrase


LARGE: dict[str, Callable[[], Any]] = {
    "Graph": large_graph,
    "CastReport": lambda: cast_report(large_graph()),
    "GraphDiff": lambda: diff(large_graph(), "max_strict"),
    "Lattice": large_lattice,
    "laws": lambda: laws(large_lattice()),
    "a plan": lambda: Program(large_graph()).explain(),
    "Recording": many_outputs,
    "an audit": lambda: many_outputs().audit(),
}


@sampled(3)
@every("name", LARGE)
def test_large_objects_are_shown_short(name: str) -> None:
    shown = LARGE[name]()
    assert len(repr(shown).split("\n")) <= BRIEF + 1
    html = shown._repr_html_()
    page = Elements(html)
    assert len(html) <= LARGEST and page.names[:2] == ["div", "style"]
    assert page.names.count("tr") <= 60


@every("name", OBJECTS)
def test_a_terminal_shows_few_lines(name: str) -> None:
    text = repr(OBJECTS[name][0]())
    assert len(text.split("\n")) <= BRIEF + 2 and len(text) < 5000
    assert "frozenset" not in text and "array(" not in text and "namespace" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_outside_are_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = HOSTILE[name]
    report = report_of(hostile)
    monkeypatch.setitem(registry._REGISTRY, hostile, rules("max"))
    named = type(rules("max"))(hostile, hostile, lattice("max"), hostile)
    subjects = [
        *(report, report.graph, report.against),
        *(named, diff(named, "jax"), Lattice(hostile, {hostile: [f"{hostile}1"]})),
    ]
    for shown in subjects:
        assert shown is not None
        html = shown._repr_html_()
        page = Elements(html)
        assert "script" not in page.names and not page.links() and len(html) <= LARGEST
        assert not any(key.startswith("on") for _, key, _ in page.attributes)


def test_pieces_without_room_are_left_out() -> None:
    html = fragment(paragraphs(["first"]), "x" * LARGEST, "last")
    assert len(html) < LARGEST and "first" in html and "too large" in html and "last" not in html
    rows = [["y" * 1000]] * 100
    assert "... and 71 more" in table(("a",), rows, 100)
    assert "... and 98 more" in table(("a",), rows, 100, most=2)
    assert verbatim(map(str, range(5)), 3) == "<pre>0\n1\n2\n... and 2 more lines</pre>"
    assert brief("a\nb\nc", 2) == "a\nb\n... and 1 more, which print() shows"


def test_machine_code_is_short() -> None:
    code = MachineCode("a\nb", "c")
    assert repr(code) == "<MachineCode, 2 lines of LLVM IR, 1 lines of assembly>"

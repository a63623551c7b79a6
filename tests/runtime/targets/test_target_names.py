"""Names of graphs, inputs and dims in what targets and drawings write: any legal name will do."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import unicodedata
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphir import Graph, GraphirError
from graphir.passes import draw
from graphir.runtime import interpret
from graphir.runtime.targets import python, stablehlo
from graphir.runtime.targets.emission import specialized
from graphir.runtime.targets.python_.program_text import Identifiers, defined, identifier

ODD = sorted(
    {
        *dir(builtins),
        *keyword.kwlist,
        *keyword.softkwlist,
        *defined(),
        *("np", "ml_dtypes", "base64", "numpy", "v0", "v1", "v2", "v1_2", "self", "__name__"),
        *("fi", "\ufb01", "\N{MATHEMATICAL BOLD SMALL X}", "x", "\u212b", "\u00c5", "A\u030a"),
        *("a\u00b7b", "x\u00b2", "\N{MATHEMATICAL BOLD SMALL D}ef", "\u0e33", "\u1e9b\u0323"),
        *("_", "__", "___", "n_2", "n", "graph", "x_2", "\u540d", "\u0130", "\u2118", "\u309b"),
    }
)
"""Names that mean something to Python, or that it reads as others."""

names = st.sampled_from(ODD) | st.text(min_size=1, max_size=12)
dims = st.sampled_from([name for name in ODD if name.isidentifier()])


def named(title: str, inputs: list[str], sizes: list[str]) -> Graph:
    """A graph whose names are given, with sums and casts of all of its inputs."""
    graph = Graph(title)
    rows = [
        graph.input("int16", (size,), name=name) for name, size in zip(inputs, sizes, strict=True)
    ]
    total = graph.input("float32", ())
    for x in rows:
        total = total + x.cast("float32").sum() * 2
    graph.output(total, *[(x + x).reshape((x.shape[0], 1)) for x in rows])
    return graph


def same_results(graph: Graph) -> None:
    """The source of a graph compiles, runs, and gives what `interpret` gives, also by name."""
    space: dict[str, Any] = {}
    exec(compile(python(graph), "<target>", "exec"), space)
    function = list(space.values())[-1]
    arrays = [np.arange(3 + i, dtype=np.int16) for i in range(len(graph.inputs) - 1)]
    given_ = [*arrays, np.float32(0.5)]
    expected = interpret(graph, *given_)
    parameters = function.__wrapped__.__code__.co_varnames[: len(given_)]
    by_name = function(**dict(zip(parameters, given_, strict=True)))
    for results in (function(*given_), by_name):
        for one, other in zip(results, expected, strict=True):
            assert np.asarray(one).tobytes() == other.tobytes()


@settings(max_examples=150, deadline=None)
@given(
    names,
    st.lists(names, min_size=1, max_size=4, unique=True),
    st.lists(dims, min_size=4, max_size=4, unique=True),
)
@example("sum", ["complex", "__debug__", "np", "checked_input"], ["sum", "complex", "np", "int"])
@example("fi", ["\ufb01", "\N{MATHEMATICAL BOLD SMALL X}", "x"], ["fi", "\ufb01", "x", "n"])
def test_sources_of_any_names_run(title: str, inputs: list[str], sizes: list[str]) -> None:
    try:
        graph = named(title, inputs, sizes[: len(inputs)])
    except GraphirError:  # no name of an input, say
        return
    same_results(graph)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ODD)
def test_each_odd_name_of_a_graph_an_input_and_a_dim(name: str) -> None:
    for title, given_, size in ((name, "x", "n"), ("g", name, "n"), ("g", "x", name)):
        try:
            graph = named(title, [given_], [size])
        except GraphirError:
            continue
        same_results(graph)


def test_long_dims_of_other_scripts_are_written_whole() -> None:
    for length in range(60, 130):
        graph = named("long", ["x", "y"], ["\u540d" * length, "\u00e9" * length])
        same_results(graph)


@given(st.lists(names, max_size=8))
def test_identifiers_are_valid_and_distinct(wished: list[str]) -> None:
    made = Identifiers()
    found = [made.new(name) for name in wished]
    assert len({unicodedata.normalize("NFKC", name) for name in found}) == len(found)
    for name in found:
        assert name.isidentifier() and unicodedata.is_normalized("NFKC", name)
        assert not keyword.iskeyword(name) and not hasattr(builtins, name)
        assert name not in defined() and not re.fullmatch("__.+__", name)


@given(st.characters())
def test_any_character_has_an_identifier(character: str) -> None:
    for text in (character, f"a{character}", f"{character}a", character * 3):
        name = identifier(text)
        assert name.isidentifier() and unicodedata.is_normalized("NFKC", name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ODD)
def test_stablehlo_and_drawings_take_the_same_names(name: str) -> None:
    try:
        graph = named(name, [name], ["n"])
    except GraphirError:
        return
    with graph.layer(name):
        pass
    text = stablehlo(specialized("StableHLO", graph, {"n": 3}))
    assert re.match(r"module @_[\w$.-]* \{\n", text, re.ASCII)
    ElementTree.fromstring(draw(graph))
    for line in draw(graph, "dot").splitlines():
        for quoted in re.findall(r'"(?:[^"\\]|\\.)*"', line):
            assert json.dumps(quoted)
    assert draw(graph, "mermaid").startswith("flowchart")

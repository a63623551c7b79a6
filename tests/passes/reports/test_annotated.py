"""The annotated source of programs: as text in 80 and 120 columns, as HTML, and as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import Annotated, annotate
from graphir.passes.reports.annotated import annotated_text, cells, types_text
from graphir.passes.reports.html import annotated_html
from graphir.passes.reports.json_ import schema
from graphir.runtime import record
from tests.support.reports import Elements, program

FOG = """\
import numpy as np

def faded(colour, fog):
    return colour * (1 - fog)

def blend(image, depth):
    fog = depth * np.float32(0.01)
    total = np.float32(0)
    for k in range(3):
        total = total + fog[k]
    if total < 0:
        return None
    near = np.where(depth < 4, image, faded(image, fog))
    near[0] = fog[0]
    return near.astype(np.float32), total
"""
FOG_TEXT = """\
fog.py
 3 | def faded(colour, fog):                                   # colour: float32[4], fog: float64[4]
 4 |     return colour * (1 - fog)                             # float64[4]
   |            ^^^^^^ float32 -> float64
 5 |
 6 | def blend(image, depth):                                  # image: float32[4], depth: int32[4]
 7 |     fog = depth * np.float32(0.01)                        # fog: float64[4]
   |           ^^^^^ int32 -> float64
   |                   ^^^^^^^^^^^^^^^^ float32 -> float64
 8 |     total = np.float32(0)                                 # total: float32[]
 9 |     for k in range(3):
10 |         total = total + fog[k]                            # total: float64[]
   |                 ^^^^^ float32 -> float64, 1 of 3 times
11 |     if total < 0:                                         # bool[]
12 |         return None
13 |     near = np.where(depth < 4, image, faded(image, fog))  # near: float64[4]
   |                     ^^^^^^^^^ bool[4]
   |                                ^^^^^ float32 -> float64
14 |     near[0] = fog[0]                                      # near: float64[4]
15 |     return near.astype(np.float32), total                 # float32[4], float64[]
   |            ^^^^ float64 -> float32, can lose range"""
FOG_80 = """\
fog.py
 3 | def faded(colour, fog):             # colour: float32[4], fog: float64[4]
 4 |     return colour * (1 - fog)       # float64[4]
   |            ^^^^^^ float32 -> float64
 5 |
 6 | def blend(image, depth):            # image: float32[4], depth: int32[4]
 7 |     fog = depth * np.float32(0.01)  # fog: float64[4]
   |           ^^^^^ int32 -> float64
   |                   ^^^^^^^^^^^^^^^^ float32 -> float64
 8 |     total = np.float32(0)           # total: float32[]
 9 |     for k in range(3):
10 |         total = total + fog[k]      # total: float64[]
   |                 ^^^^^ float32 -> float64, 1 of 3 times
11 |     if total < 0:                   # bool[]
12 |         return None
13 |     near = np.where(depth < 4, image, faded(image, fog))
   |                     ^^^^^^^^^ bool[4]
   |                                ^^^^^ float32 -> float64
   |     # near: float64[4]
14 |     near[0] = fog[0]                # near: float64[4]
15 |     return near.astype(np.float32), total  # float32[4], float64[]
   |            ^^^^ float64 -> float32, can lose range"""


def recorded(source: str, name: str, *arrays: Any, file: str = "recorded.py") -> Annotated:
    """The annotated source of a function that runs on arrays."""
    return annotate(record(program(source, file)[name], *arrays))


@pytest.fixture
def fog() -> Annotated:
    return recorded(
        FOG, "blend", np.ones(4, np.float32), np.arange(4, dtype=np.int32), file="fog.py"
    )


# -- golden texts


def test_a_numpy_program_with_a_loop_and_a_helper(fog: Annotated) -> None:
    assert str(fog) == annotated_text(fog) == FOG_TEXT


def test_the_lines_fit_the_columns(fog: Annotated) -> None:
    assert annotated_text(fog, 80) == FOG_80
    assert annotated_text(fog, 120) == FOG_TEXT
    for width in (40, 60, 80, 100, 120):
        text = annotated_text(fog, width)
        assert max(map(len, text.splitlines())) <= width
        assert re.findall(r"^ ?(\d+) \|", text, re.M) == [str(x) for x in range(3, 16)]


GRAPH = """\
from graphir import Graph, control
import numpy as np

g = Graph("net", rules="numpy")
x, y = g.input("float32", ("n",), name="x"), g.input("int32", ("n",), name="y")
z = x + y; half = x[::2] * 2
with g.layer("head"):
    mask = (z > 0)
def body(state):
    i, v = state
    return i + 1, (v * np.float64(3)).cast("float32")
i, v = control.while_loop(lambda s: s[0] < 4, body, (np.int32(0), x))
g.output(mask, half, v)
"""
GRAPH_TEXT = """\
net.py
 5 | x, y = g.input("float32", ("n",), name="x"), g.input("int32", ("n",),
   |         name="y")             # x: float32[n], y: int32[n]
 6 | z = x + y; half = x[::2] * 2  # z: float64[n], half: float32[((n+1)//2)]
   |     ^ float32 -> float64
   |         ^ int32 -> float64
 7 | with g.layer("head"):
 8 |     mask = (z > 0)            # mask: bool[n]
 9 | def body(state):
10 |     i, v = state              # i: int32[], v: float32[n]
11 |     return i + 1, (v * np.float64(3)).cast("float32")
   |                    ^ float32 -> float64
   |                    ^^^^^^^^^^^^^^^^^ float64 -> float32, can lose range
   |     # int32[], float32[n]
12 | i, v = control.while_loop(lambda s: s[0] < 4, body, (np.int32(0), x))
   |                                     ^^^^^^^^ bool[]
   | # i: int32[], v: float32[n]"""


def test_a_graph_that_is_built_here() -> None:
    graph: Graph = program(GRAPH, "net.py")["g"]
    assert annotated_text(annotate(graph), 80) == GRAPH_TEXT


def test_a_function_of_jax_with_a_scan() -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    from graphir.runtime import from_jax

    source = """\
import jax, jax.numpy as jnp

def cumulative(x, y):
    z = jnp.sin(x) * y
    def step(c, row):
        return c + row, c
    last, sums = jax.lax.scan(step, jnp.float32(0), z)
    return last, sums.mean()
"""
    names = program(source, "scanned.py")
    graph = from_jax(names["cumulative"], np.ones(3, np.float32), np.ones(3, np.int32))
    lines = str(annotate(graph)).splitlines()
    assert [line.rpartition("  # ")[2] for line in lines if "  # " in line] == [
        "x: float32[3], y: int32[3]",
        "z: float32[3]",
        "c: float32[], row: float32[]",
        "float32[], float32[]",
        "last: float32[], sums: float32[3]",
        "float32[], float32[]",
    ]


# -- types


def values(source: str, *arrays: Any) -> dict[str, str]:
    """The types of each name that the program assigns, and of what its last function returns."""
    file = recorded(f"import numpy as np\n\n{source}", "f", *arrays).files[0]
    annotations = [x for _, line in sorted(file.values.items()) for x in line]
    return {x.name or "return": types_text(x.types) for x in annotations}


X = np.ones(4, np.float32)
LOOP = """
def f(x):
    for k in range(2):
        y = x[k:] * np.float64(2)
        x = x * np.ones(1)
    return x
"""
BRANCHES = """
def f(x):
    if x.sum() > 0:
        y = x
    else:
        y = x * np.float64(2)
    try:
        z = x > 0
    except ValueError as error:
        z = None
    with np.errstate(all="ignore"):
        w = y / 2
    u = v = y if z.any() else w
    return {"w": w}
"""
CALLS = """
class Scale:
    def __init__(self, factor):
        self.factor = factor * np.float64(2)

    def run(self, rows, *, shift):
        rows[1:] += shift
        return rows * self.factor, shift, "text"

def f(x):
    scaled, moved, _ = Scale(x).run(x.copy(), shift=np.float32(1))
    first, *rest = np.unique(x, return_counts=True)
    return scaled * 2
"""
NAN = """
def f(x):
    means = np.nanmean(x.reshape(2, 2).astype(np.float16), axis=0)
    a, b = np.divmod(x, 2)
    return np.exp(x), x[::2], means
"""


def test_loops_have_each_type_that_a_line_had() -> None:
    found = values(LOOP, X)
    assert (found["y"], found["x"], found["return"]) == ("float64[*]", "float64[4]", "float64[4]")


def test_branches_that_did_not_run_have_no_types() -> None:
    found = values(BRANCHES, X)
    assert found["z"] == "bool[4]" and found["w"] == found["v"] == "float32[4]"
    assert found["y"] == "float32[4]"


def test_names_have_the_types_with_which_operators_read_them() -> None:
    found = values(CALLS, X)
    assert (found["factor"], found["self.factor"]) == ("float32[4]", "float64[4]")
    assert (found["rows"], found["shift"]) == ("float32[4]", "float32[]")
    assert (found["scaled"], found["return"]) == ("float64[4]", "float64[4]")
    assert "moved" not in found and "first" not in found


def test_calls_of_several_steps_have_the_type_of_what_they_return() -> None:
    found = values(NAN, X)
    assert found["means"] == "float16[2]" and found["a"] == found["b"] == "float32[4]"
    assert found["return"].startswith("float32[4]")


# -- unusual sources

UNUSUAL = """\
import numpy as np
double = lambda v: v * np.float64(2); twice = lambda w: w + w
def one(x): return x * 2
class Box:
\tdef run(self, x):
\t\t\u6570\u636e = x * np.float64(1); z = "\u5bbd" and (x + \u6570\u636e).astype(np.float16)
\t\treturn z
def f(x):
    a = (
        double(x)
        + twice(x)
    )
    return Box().run(x), one(a)
"""


def test_lambdas_tabs_wide_characters_and_expressions_of_several_lines() -> None:
    text = annotated_text(recorded(UNUSUAL, "f", X), 80)
    lines = text.splitlines()
    assert all(cells(line) <= 80 for line in lines)
    assert lines[1:5] == [
        " 2 | double = lambda v: v * np.float64(2); twice = lambda w: w + w",
        "   |                    ^ float32 -> float64",
        "   |                    ^^^^^^^^^^^^^^^^^ float64[4]",
        "   | # v: float32[4], w: float32[4]",
    ]
    wide = next(i for i, line in enumerate(lines) if "\u6570\u636e = x" in line)
    before, _, label = lines[wide + 1].partition("^")
    assert lines[wide][: len(before) - 2].endswith("\u636e = ") and label.startswith(" float32 ->")
    assert "11 |         + twice(x)" in text and "# a: float64[4]" in text


def test_lines_that_are_longer_than_the_terminal_go_on_below() -> None:
    source = f"import numpy as np\ndef f(x):\n    y = x {'* x ' * 40}+ np.ones(1); return y\n"
    text = annotated_text(recorded(source, "f", X), 60)
    assert max(map(len, text.splitlines())) <= 60
    assert "float32 -> float64" in text and re.findall(r"^\d+ \|", text, re.M) == ["2 |", "3 |"]


def test_a_deeply_nested_expression_costs_no_error() -> None:
    source = f"def f(x):\n    y = x {'+ x' * 900}\n    return y * 2\n"
    graph = Graph("deep")
    graph.output(program(source, "deep.py")["f"](graph.input("float32", (4,))))
    assert "return y * 2  # float32[4]" in annotated_text(annotate(graph))


def test_a_missing_source_gives_a_list_by_place() -> None:
    graph: Graph = program(GRAPH, "net.py")["g"]
    text = str(annotate(Graph.parse(str(graph))))
    assert text.startswith("net.py, whose lines cannot be read\nplace  dtype")
    assert "\n6:5    float64[n]" in text and "float32 -> float64; int32 -> float64" in text


def test_a_graph_without_places_says_so() -> None:
    graph = Graph.parse("graph @g rules=max (%x: int8[2]) -> (int8[2]) {\n  return %x\n}")
    assert str(annotate(graph)) == "graph g: no expression of a source file is known"


def test_hostile_text_is_safe() -> None:
    source = "import numpy as np\ndef f(x):\n    return x + np.ones(1)  # \x1b[31m<b>\u202e\n"
    annotated = recorded(source, "f", X)
    assert "\x1b" not in str(annotated) and "<b>" not in annotated_html(annotated)


# -- other formats


def test_json_is_as_its_schema_says(fog: Annotated) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(schema("annotated"))
    document = json.loads(fog.to_json())
    jsonschema.validate(document, schema("annotated"))
    del document["expressions"][0]["types"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema("annotated"))


def test_json_has_the_places_of_expressions(fog: Annotated) -> None:
    lines = FOG.splitlines()
    texts = {}
    for hint in json.loads(fog.to_json())["expressions"]:
        assert hint["file"] == "fog.py" and hint["line"] == hint["end_line"]
        text = lines[hint["line"] - 1][hint["column"] - 1 : hint["end_column"] - 1]
        texts[hint["line"], text] = hint
        assert hint["kind"] == "expression" or hint["name"] in (text, "near")
    assert texts[7, "fog"]["label"] == "float64[4]"
    assert texts[7, "fog"]["types"] == [[{"dtype": "float64", "shape": [4]}]]
    assert texts[3, "colour"]["kind"] == "parameter"
    (cast,) = texts[15, "near"]["casts"]
    assert (cast["from"], cast["to"], cast["loss"]) == ("float64", "float32", "range")
    assert cast["loses"] and cast["times"] == 1
    assert texts[7, "depth"]["casts"][0]["loses"] is None


def test_the_page_has_a_tooltip_for_each_expression(fog: Annotated) -> None:
    page = annotated_html(fog)
    assert 'title="float64[4]"' in page and "default-src" in page
    assert '<mark class="range" title="float64 -&gt; float32, can lose range">near</mark>' in page
    assert "ol" in Elements(page).names and "color-scheme: light dark" in page
    assert "# fog: float64[4]" in page


def test_a_notebook_shows_the_lines(fog: Annotated) -> None:
    html = fog._repr_html_()
    assert "graphir-view" in html and "# total: float64[]" in html
    assert repr(fog) == str(fog) or len(repr(fog).splitlines()) == 21

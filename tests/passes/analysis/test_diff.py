"""What changes in a program with the rules: first causes, what follows, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import DType, Graph, GraphError, GraphirError, TensorType, ops, rules
from graphir.passes import GraphDiff, diff, implicit_cast, lower
from graphir.passes.analysis.diff import Change
from graphir.passes.analysis.rebuild import is_literal
from graphir.text.printer import large_constants
from tests.passes.analysis.programs import NAMES, Program, programs

OTHER = st.sampled_from(NAMES)


def ends(change: Change) -> tuple[str, ...]:
    return tuple("-" if isinstance(e, GraphirError) else str(e) for e in change[1:3])


def told(found: GraphDiff) -> list[tuple[Any, ...]]:
    """Every change by places, without what parsed text cannot know."""
    return [
        (
            change.symbol.index,
            change.symbol.op.name,
            *ends(change),
            [s.index for s in change.causes],
        )
        for change in (*found, *found.both_refused)
    ]


# -- against programs built anew


@given(programs(), OTHER, OTHER)
def test_the_changes_are_those_between_the_programs_built_under_either(
    program: Program, before: str, after: str
):
    found = diff(program.build(), before, after)
    try:
        one, other = program.build(before), program.build(after)
    except GraphirError:
        assert found.refused or found.both_refused
        return
    assert not found.refused and not found.both_refused
    if len(one) != len(other):  # one of them converts an array as it enters, with a cast
        return
    changed = [a.index for a, b in zip(one, other, strict=True) if a.dtype is not b.dtype]
    # A literal in an expression shows in its user.
    assert [c.symbol.index for c in found if not is_literal(c.symbol)] == [
        i for i in changed if not is_literal(one.symbols[i])
    ]
    assert {c.symbol.index for c in found} <= set(changed)
    for change in found:
        place = change.symbol.index
        assert change[1:3] == (one.symbols[place].dtype, other.symbols[place].dtype)


@given(programs(), OTHER)
def test_where_the_new_rules_raise_first_is_the_first_refusal(program: Program, other: str):
    found = diff(program.build(), other)
    try:
        program.build(other)
    except GraphirError as error:
        first = found.refused[0]
        assert first.after.location == error.location and isinstance(first.before, DType)
    else:
        assert not found.refused


@given(programs(), OTHER, OTHER)
def test_parsed_graphs_give_the_same(program: Program, before: str, after: str):
    graph = program.build()
    parsed = Graph.parse(str(graph), large_constants(graph))
    assert told(diff(parsed, before, after)) == told(diff(graph, before, after))


@given(programs(), OTHER)
def test_swapping_the_rules_swaps_the_answers_where_nothing_is_refused(
    program: Program, other: str
):
    graph = program.build()
    there, back = diff(graph, program.rules, other), diff(graph, other, program.rules)
    if not (there.refused or there.both_refused):
        assert [(c.symbol, c.before, c.after) for c in there] == [
            (c.symbol, c.after, c.before) for c in back
        ]


@given(programs())
def test_nothing_changes_under_the_same_rules(program: Program):
    graph = program.build()
    assert len(diff(graph, program.rules)) == len(diff(graph, "jax", "jax")) == 0


# -- what it says


def question() -> tuple[Graph, dict[str, Any]]:
    """Two lines differ between max and jax by themselves, others follow."""
    g = Graph("question", rules="max")
    at: dict[str, Any] = {}
    x, y = g.input("int8", ("n",), name="x"), g.input("uint64", ("n",), name="y")
    at["join"] = x + y
    at["follows"] = at["join"] * 2.5
    at["halved"] = x / 2
    at["fixed"] = at["follows"].cast("float32") + 1
    with g.layer("head"):
        at["both"] = at["halved"] - at["follows"]
    g.output(at["both"], at["fixed"])
    return g, at


def test_first_causes_and_what_follows():
    g, at = question()
    found = diff(g, "jax")
    assert [(c.symbol, *ends(c)) for c in found] == [
        (at["join"], "float16", "weak_float"),
        (at["follows"], "float16", "weak_float"),
        (at["halved"], "float64", "float32"),
        (at["both"], "float64", "float32"),
    ]
    assert {c.symbol: c.causes for c in found} == {
        at["join"]: (),
        at["follows"]: (at["join"],),
        at["halved"]: (),
        at["both"]: (at["halved"], at["follows"]),
    }
    assert [c.symbol for c in found.causes] == [at["join"], at["halved"]]
    assert found.refused == found.both_refused == ()


def test_the_text_has_the_lines_first_causes_first():
    g, at = question()
    head, sentence, edit, columns, *lines = str(diff(g, "jax")).splitlines()
    assert edit.startswith("  write: ") and "write" not in sentence
    assert head == (
        f"graph question, max -> jax: 4 of {len(g)} symbols change, 2 of them first causes, "
        "jax refuses 0, max 0, both 0"
    )
    assert columns.split() == ["where", "symbol", "max", "jax", "because", "of"]
    line = at["halved"].location.line
    cause = f"because line {line} is float32, not float64: "
    assert sentence.startswith(f"output0 is float32 under jax and float64 under max, {cause}")
    place = {name: str(symbol.location) for name, symbol in at.items()}
    names = {name: symbol.name for name, symbol in at.items()}
    assert [line.split() for line in lines] == [
        [place["join"], names["join"], "add", "float16", "weak_float", "itself"],
        [place["halved"], names["halved"], "divide", "float64", "float32", "itself"],
        [
            *(place["follows"], names["follows"], "multiply", "float16", "weak_float"),
            *(names["join"], f"({place['join']})"),
        ],
        [
            *(place["both"], "[head]", names["both"], "subtract", "float64", "float32"),
            *(names["halved"], f"({place['halved']}),", names["follows"], f"({place['follows']})"),
        ],
    ]


def test_what_is_refused_is_told_once_with_its_line():
    g, at = question()
    found = diff(g, "max_strict")
    assert [c.symbol for c in found.refused] == [at["join"]]
    [error] = found.refused[0].errors
    assert error is found.refused[0].after and found.refused[0].before is DType.float16
    text = str(found)
    assert "\nmax_strict refuses:\n" in text and "\nmax refuses:\n" not in text
    assert text.count(str(error)) == 1 and f"{at['join'].location}: add(lhs: int8[n]" in text


def test_symbols_that_either_rule_set_refuses_and_both():
    g = Graph("places", rules="max")
    x, i = g.input("int8", ("n",), name="x"), g.input("index", ("n",), name="i")
    doubled, halved, total = x * 2, x / i, i + i
    g.output(doubled, halved, total)
    found = diff(g, "jax", "explicit")
    assert told(found) == [
        (1, "input", "-", "index", []),
        (5, "add", "-", "index", [1]),
        (4, "divide", "-", "-", [1]),
    ]
    assert [c.symbol for c in found.both_refused] == [halved]
    text = str(found)
    assert f"2 of {len(g)} symbols change, 1 of them first causes, explicit refuses 0" in text
    assert "jax 2, both 1" in text
    assert text.index("jax refuses:") < text.index("both refuse:")
    assert text.count("there is no index under 'jax': JAX has no index") == 3


def test_an_input_of_a_dtype_that_is_lacking_and_its_users():
    g = Graph(rules="max")
    i = g.input("index", name="i")
    g.output((i + 1) * 2, i.cast("int32") + 1)
    found = diff(g, "jax")
    assert [(c.symbol.op.name, ends(c)[1], len(c.causes)) for c in found] == [
        *(("input", "-", 0), ("add", "-", 1), ("multiply", "-", 1)),
    ]


def test_what_a_refused_symbol_had_before_is_what_its_users_go_on_with():
    g = Graph(rules="jax")
    x, y = g.input("int8", ("n",)), g.input("float64", ("n",))
    g.output((x / 3 + y) * 2.0)
    # jax_strict refuses the sum of float32 and float64, and not the product with what jax had.
    found = diff(g, "jax_strict")
    assert [(c.symbol.op.name, *ends(c)) for c in found] == [("add", "float64", "-")]


def test_a_loop_is_one_row():
    g = Graph("loop", rules="max")
    x = g.input("int8", ("n",), name="x")
    for _ in range(12):
        _ = x / 3
    lines = str(diff(g, "jax")).splitlines()
    assert len(lines) == 3 and "%1 ... %23 (12) divide  float64  float32  itself" in lines[2]
    assert len(diff(g, "jax")) == 12


def test_literals_and_numbers_without_a_dtype():
    g = Graph(rules="jax")
    x = g.input("float16", ("n",))
    two = g.scalar(2)
    g.output(x * two, x + 1, x - g.scalar(2))
    found = diff(g, "max")
    assert [(c.symbol.op.name, *ends(c)) for c in found] == [
        *(("constant", "weak_int", "-"), ("constant", "weak_int", "-")),
    ]
    assert len(diff(g, "jax_x32")) == 0
    g = Graph(rules="max")
    g.output(g.input("int32", ("n",)) + 1)
    assert len(diff(g, "jax")) == 0  # a literal's own dtype is no change


def test_a_broken_promise_is_told():
    g = Graph(out_types=[TensorType("float64", ("n",))], rules="max")
    g.output(g.input("int16", ("n",)) / 2)
    found = diff(g, "jax")
    assert "promises (float64[n]) and has (float32[n]) under 'jax'" in str(found.broken)
    assert str(found).splitlines()[-2:] == ["broken promise:", f"  {found.broken}"]
    assert json.loads(found.to_json())["broken"] == str(found.broken)
    assert diff(g, "max_strict").broken is None


def test_as_json():
    g, at = question()
    read = json.loads(diff(g, "max_strict", "jax").to_json())
    assert (read["graph"], read["before"], read["after"]) == ("question", "max_strict", "jax")
    assert (read["symbols"], read["both_refused"]) == (len(g), [])
    first = read["changes"][0]
    error = diff(g, "max_strict").refused[0].after
    assert first == {
        "symbol": at["join"].name,
        "op": "add",
        "location": {
            "file": at["join"].location.file,
            "line": at["join"].location.line,
            "column": at["join"].location.column,
            "layer": "",
        },
        "before": None,
        "after": "weak_float",
        "because": [],
        "errors": {"before": str(error)},
    }
    both = next(one for one in read["changes"] if one["symbol"] == at["both"].name)
    assert both["location"]["layer"] == "head" and at["halved"].name in both["because"]


def test_rules_are_given_by_name_or_themselves():
    g, _ = question()
    expected = told(diff(g, "max", "jax"))
    assert told(diff(g, rules("jax"))) == told(diff(g, rules("max"), rules("jax"))) == expected
    assert told(diff(g, "jax", "max")) != expected


def test_it_is_a_sequence():
    g, _ = question()
    found = diff(g, "jax")
    assert found[0] is found.changes[0] and [*found[1:]] == [*found.changes[1:]]
    assert repr(found) == str(found) and len([*found]) == len(found)


def test_an_explicit_graph_is_refused_with_the_reason():
    g, _ = question()
    for graph in (implicit_cast(g), lower(g)):
        for asked in (("jax",), ("max", "jax"), ("explicit", "jax")):
            with pytest.raises(GraphError, match="'question' is explicit: what 'max' decided"):
                diff(graph, *asked)


# -- large graphs


def refused(count: int) -> Graph:
    """A chain of which every symbol is refused under jax."""
    g = Graph(rules="max")
    x = g.input("index", ("n",))
    for _ in range(count):
        x = ops.add(x, x)
    g.output(x)
    return g


def seconds(graph: Graph, after: str) -> float:
    start = time.perf_counter()
    found = diff(graph, after)
    assert len(found) == len(graph) and str(found)
    return time.perf_counter() - start


@pytest.mark.exhaustive
def test_time_grows_with_the_graph_and_not_with_its_square():
    small, large = refused(2_000), refused(32_000)
    times = [min(seconds(graph, "jax") for _ in range(3)) for graph in (small, large)]
    assert times[1] / times[0] < 64  # 16 where it is linear, 256 where it is quadratic


def test_sentences_name_the_first_cause_and_what_both_would_make_alike():
    g = Graph("two", rules="numpy")
    x, w = g.input("float32", (3,), name="x"), g.input("int32", (3,), name="w")
    scaled = x * w
    g.output(scaled + 1, x * 2, scaled)
    first, third = diff(g, "torch").sentences
    line = scaled.location.line
    cause = f"because line {line} is float32, not float64: x * w; "
    assert first.startswith(f"output0 is float32 under torch and float64 under numpy, {cause}")
    assert first.endswith('; write x.astype("float64") * w.astype("float64")')
    assert third.startswith("output2 is float32 under torch")
    assert json.loads(diff(g, "torch").to_json())["sentences"] == [first, third]
    assert diff(g, "numpy_legacy").sentences == []
    refused = Graph("refused", rules="numpy")
    refused.output(refused.input("float32", (3,)) * refused.input("float64", (3,)))
    assert diff(refused, "jax_strict").sentences == []


def test_the_notes_of_a_graph_stand_above_its_differences() -> None:
    g = Graph("noted", rules="numpy")
    g.output(g.input("int8", (2,)) + g.input("float32", (2,)))
    g.describe(notes=["line 3: rand is random"])
    assert diff(g, "jax").sentences[0] == "line 3: rand is random"

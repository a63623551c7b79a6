"""Locations: the very expression that made a symbol, read back from this file."""

from __future__ import annotations

import functools
import operator
import pickle
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, Location, PromotionError, Symbol, ops, rules
from tests.support.tables import every

HERE = Path(__file__)
SOURCE = HERE.read_text(encoding="utf-8").splitlines()


def inputs(*shape: Any) -> tuple[Graph, Symbol, Symbol]:
    g = Graph()
    return g, g.input("int16", shape, name="x"), g.input("float32", shape, name="y")


def text(place: Location | Symbol) -> str:
    """What stands in this file where the location says, lines joined by a space."""
    at = place.location if isinstance(place, Symbol) else place
    assert Path(at.file).resolve() == HERE.resolve()
    lines = SOURCE[at.line - 1 : at.end_line]
    if len(lines) == 1:
        return lines[0][at.column - 1 : at.end_column - 1]
    ends = [lines[0][at.column - 1 :], *lines[1:-1], lines[-1][: at.end_column - 1]]
    return " ".join(line.strip() for line in ends)


# -- each kind of expression


def test_operators():
    _, x, y = inputs(3)
    made = x + y
    assert text(made) == "x + y"
    made = 2 * x - y
    assert (text(made), text(made.args[0])) == ("2 * x - y", "2 * x")
    made = -(x / 3)
    assert (text(made), text(made.args[0])) == ("-(x / 3)", "x / 3")
    made = (x < y) | (x == 1)
    assert [text(s) for s in (made, *made.args)] == ["(x < y) | (x == 1)", "x < y", "x == 1"]
    made = ~x
    assert text(made) == "~x"
    made = x
    made += y
    assert text(made) == "made += y"
    made = abs(x)
    assert text(made) == "abs(x)"


def test_the_constant_of_a_literal_stands_where_the_literal_is_used():
    _, x, _ = inputs(3)
    made = x + 1
    assert made.args[1].op is ops.constant and text(made.args[1]) == "x + 1"
    made = np.ones(3, np.float32) * x
    assert text(made) == text(made.args[0]) == "np.ones(3, np.float32) * x"


def test_methods_properties_and_indexing():
    _, x, y = inputs(3, 4)
    made = [x.sum(axis=0), x.cast(DType.float32), x.reshape(-1), x.T, x[1:, ::2], x[0], y.real]
    wanted = [
        "x.sum(axis=0)",
        "x.cast(DType.float32)",
        "x.reshape(-1)",
        "x.T",
        "x[1:, ::2]",
        "x[0]",
    ]
    assert [text(s) for s in made] == [*wanted, "y.real"]
    # An int index is a slice and a squeeze: both stand at the one expression.
    assert text(made[5].args[0]) == "x[0]"
    pieces = x.split([1, 2])
    assert [text(p) for p in pieces] == ["x.split([1, 2])"] * 2
    made = x.clip(low=0)
    assert (text(made), text(made.args[1])) == ("x.clip(low=0)", "x.clip(low=0)")
    made = divmod(x, 3)
    assert [text(s) for s in made] == ["divmod(x, 3)"] * 2


def test_functions_of_ops():
    _, x, y = inputs(3)
    made = ops.where(x > 0, x, y)
    assert (text(made), text(made.args[0])) == ("ops.where(x > 0, x, y)", "x > 0")
    made = ops.concat([x, y], axis=0)
    assert text(made) == "ops.concat([x, y], axis=0)"


def test_makers_and_inputs():
    g = Graph()
    made = [
        g.input("int8", (3,), name="x"),
        g.scalar[DType.int16](1),
        g.scalar(1, "int8"),
        g.constant[DType.int8]([1, 2]),
        g.vector["float32"]([1.0]),
        g.range["int32"](0, 5),
        g.full["int8"](0, (2,)),
        g.eye["float32"](2),
    ]
    wanted = [
        'g.input("int8", (3,), name="x")',
        "g.scalar[DType.int16](1)",
        'g.scalar(1, "int8")',
        "g.constant[DType.int8]([1, 2])",
        'g.vector["float32"]([1.0])',
        'g.range["int32"](0, 5)',
        'g.full["int8"](0, (2,))',
        'g.eye["float32"](2)',
    ]
    assert [text(s) for s in made] == wanted


def test_several_on_one_line_are_told_apart():
    _, x, y = inputs(3)
    made = [x + y, x * y, x + y, x - y]
    assert [text(s) for s in made] == ["x + y", "x * y", "x + y", "x - y"]
    columns = [s.location.column for s in made]
    assert columns == sorted(set(columns)) and len({s.location.line for s in made}) == 1
    assert made[0].location != made[2].location


def test_an_expression_over_several_lines():
    _, x, y = inputs(3)
    # fmt: off
    made = (x +
            ops.sin(y)
            * 2)
    # fmt: on
    assert text(made) == "x + ops.sin(y) * 2"
    assert text(made.args[1]) == "ops.sin(y) * 2"
    assert made.location.end_line == made.location.line + 2
    assert made.args[1].location.line == made.location.line + 1


def test_columns_count_characters():
    _, größe, y = inputs(3)
    straße = größe + y
    assert text(straße) == "größe + y"


# -- through other frames


def helper(a: Symbol, b: Symbol) -> Symbol:
    return a * b + 1


def test_a_helper_function_is_the_user_s_code():
    _, x, y = inputs(3)
    made = [helper(x, y), helper(y, x)]
    assert [text(s) for s in made] == ["a * b + 1"] * 2
    assert made[0].location is made[1].location


def test_nested_functions_lambdas_and_comprehensions():
    _, x, y = inputs(3)

    def outer() -> Symbol:
        def inner() -> Symbol:
            return x - y

        return inner()

    made = outer()
    assert text(made) == "x - y"
    made = (lambda a: a * 3)(x)
    assert text(made) == "a * 3"
    made = [x + i for i in range(3)]
    assert {text(s) for s in made} == {"x + i"}
    made = list(map(lambda a: -a, [x, y]))  # noqa: C417
    assert {text(s) for s in made} == {"-a"}


def test_functions_written_in_c_stand_at_their_call():
    _, x, y = inputs(3)
    made = sum([x, y], start=x)
    assert text(made) == "sum([x, y], start=x)"
    made = functools.reduce(operator.mul, [x, y, x])
    assert text(made) == "functools.reduce(operator.mul, [x, y, x])"


def test_code_without_a_file():
    space: dict[str, Any] = {"x": inputs(3)[1]}
    exec(textwrap.dedent("""
        y = x + 1
        z = y * y
    """), space)  # fmt: skip
    assert str(space["y"].location) == "<string>:2:5"
    assert (space["z"].location.line, space["z"].location.end_column) == (3, 10)


def test_a_decorated_method_of_the_user_s_class():
    class Model:
        def __init__(self, g: Graph) -> None:
            self.w = g.scalar["float32"](2.0)

        @functools.lru_cache  # noqa: B019
        def __call__(self, x: Symbol) -> Symbol:
            return self.w * x

    g, x, _ = inputs(3)
    made = Model(g)(x)
    assert text(made) == "self.w * x" and text(made.args[0]) == 'g.scalar["float32"](2.0)'


# -- one object for each place


def test_uses_in_a_loop_share_one_location():
    _, x, y = inputs(3)
    made = []
    for _ in range(10):
        made.append(x + y)
    assert len({id(s.location) for s in made}) == 1
    cold = [ops.sin(y) for _ in range(10)]
    assert len({id(s.location) for s in cold}) == 1


def test_two_places_of_one_line_are_two_objects_of_equal_line():
    _, x, y = inputs(3)
    a, b = x + y, x + y
    assert a.location is not b.location and a.location != b.location
    assert a.location.line == b.location.line


def test_layers_have_locations_of_their_own():
    g, x, y = inputs(3)
    made = []
    for name in ("one", "two", "one"):
        with g.layer(name):
            made.append(x + y)
    assert [s.location.layer for s in made] == ["one", "two", "one"]
    assert made[0].location == made[2].location != made[1].location
    assert hash(made[0].location) == hash(made[2].location)
    assert {text(s) for s in made} == {"x + y"}
    with g.layer("a"), g.layer("b"):
        made = x + y
    assert made.location.layer == "a/b"
    assert (x + y).location.layer == ""


def test_threads_build_graphs_of_their_own():
    def build(n: int) -> list[str]:
        _, x, y = inputs(n)
        return [text(x + y) for _ in range(50)]

    with ThreadPoolExecutor(4) as pool:
        assert {t for texts in pool.map(build, range(1, 9)) for t in texts} == {"x + y"}


# -- what a location is


def test_a_location_pickles_resolved():
    _, x, y = inputs(3)
    at = (x + y).location
    back = pickle.loads(pickle.dumps(at))
    assert back == at and hash(back) == hash(at) and text(back) == text(at)
    assert str(back) == str(at) == f"{at.file}:{at.line}:{at.column}"
    assert (back.end_line, back.end_column, back.layer) == (at.end_line, at.end_column, "")


def test_a_location_by_its_numbers():
    at = Location.at("a.py", 3, 7)
    assert (at.file, at.line, at.column, at.end_line, at.end_column) == ("a.py", 3, 7, 3, 7)
    assert str(at) == "a.py:3:7" and repr(at) == "<Location a.py:3:7>"
    assert at == Location.at("a.py", 3, 7) != Location.at("a.py", 3, 8)
    assert at != Location.at("a.py", 3, 7, layer="encoder") and at != "a.py:3:7"


def test_files_are_shown_relative_to_the_working_directory(monkeypatch: Any, tmp_path: Path):
    monkeypatch.chdir(HERE.parent)
    _, x, y = inputs(3)
    assert (x + y).location.file == HERE.name
    monkeypatch.chdir(tmp_path)
    made = x - y
    assert made.location.file == str(HERE)


# -- errors point there too


def test_an_error_says_the_line_that_was_refused():
    with rules("max_strict"):
        _, x, y = inputs(3)
    with pytest.raises(PromotionError) as caught:
        _ = x.cast("int32") * y
    location = caught.value.location
    assert isinstance(location, Location)
    assert text(location) == 'x.cast("int32") * y'
    assert str(caught.value).startswith(str(location))
    assert f"int32[3] ({location.file}:{location.line}:" in str(caught.value)


@every(
    "build",
    [
        lambda x: x + 1e40,
        lambda x: x.reshape(7),
        lambda x: x[5],
        lambda x: x.split([1]),
        lambda x: ops.sin(x),
        lambda x: ops.concat([x, x.sum()]),
        lambda x: x.cast("flaot32"),
        lambda x: x.clip(0, 2.5),
        lambda x: x.graph.scalar[DType.int8](300),
        lambda x: x.graph.input("int8", name="x"),
        lambda x: x.graph.input("int9"),
        lambda x: x.graph.output(),
        lambda x: x.graph.output(3),
        lambda x: x.graph.constant([1]),
    ],
)
def test_every_refusal_of_the_builder_names_the_user_s_line(build: Any):
    _, x, _ = inputs(3)
    with pytest.raises(GraphirError, match=r"test_locations\.py:\d+:\d+: ") as caught:
        build(x)
    assert str(caught.value).count(f"{caught.value.location}: ") == 1, "said once"
    assert isinstance(caught.value.location, Location)
    assert text(caught.value.location) in SOURCE[build.__code__.co_firstlineno - 1]


def test_code_that_is_gone_gives_its_id_to_no_code_of_the_user() -> None:
    """Generated code of ours dies, and Python makes the user's code in its memory."""
    template = "def call(x):\n{gap}    return {body}\n"
    g = Graph("ids")
    x = g.input("float32", ("n",))
    for line in range(2, 60):
        ours: dict[str, Any] = {"__name__": "graphir.generated"}
        exec(template.format(gap="", body="x * x"), ours)
        assert Path(ours.pop("call")(x).location.file).resolve() == HERE.resolve()
        theirs: dict[str, Any] = {"__name__": "users"}
        source = template.format(gap="\n" * (line - 2), body="x + x")
        exec(compile(source, "theirs.py", "exec"), theirs)
        place = theirs.pop("call")(x).location
        assert (place.file, place.line) == ("theirs.py", line)

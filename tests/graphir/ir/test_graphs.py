"""Graphs: what makes symbols, inputs and outputs, layers, pickling, and rules of one's own."""

from __future__ import annotations

import contextlib
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import (
    DType,
    Graph,
    GraphError,
    Lattice,
    PromotionError,
    PromotionRules,
    ShapeError,
    TensorType,
    implicit_cast,
    ops,
    passes,
    register,
    rules,
)
from graphir.promotion.operands import ALONE, Place
from graphir.promotion.registry import _REGISTRY  # type: ignore[attr-defined]
from tests.support.tables import every


def held(symbol: Any) -> np.ndarray[Any, Any]:
    assert symbol.op is ops.constant
    return symbol.attrs["value"]


# -- makers


@every("dtype", [DType.int16, "int16", "i16", np.int16, np.dtype("int16")])
def test_scalar_in_both_forms(dtype: Any):
    g = Graph()
    for made in (g.scalar[dtype](7), g.scalar(7, dtype), g.scalar(7, dtype=dtype)):
        assert made.type is TensorType("int16")
        assert held(made).tobytes() == np.int16(7).tobytes() and held(made).shape == ()


@every(
    ("value", "dtype"),
    [
        *((np.float32(0.1), "float32"), (np.int8(3), "int8"), (np.bool_(True), "bool")),
        *((ml_dtypes.bfloat16(2), "bfloat16"), (np.complex64(1j), "complex64")),
    ],
)
def test_a_numpy_scalar_keeps_its_dtype(value: Any, dtype: str):
    made = Graph().scalar(value)
    assert made.dtype is DType(dtype) and held(made).tobytes() == value.tobytes()


@every("value", [2, 2.5, True, 1j])
def test_a_python_scalar_without_a_dtype_is_refused_under_max(value: Any):
    with pytest.raises(PromotionError, match=r"write g\.scalar"):
        Graph().scalar(value)


@every(
    ("dtype", "value"),
    [
        *(("int8", 128), ("uint8", -1), ("int16", 1.5), ("float32", 1e40), ("float16", 2049)),
        *(("bool", 2), ("float32", 1j), ("uint64", 2**64), ("int64", 2**100), ("int4", 8)),
        *(("float8_e8m0fnu", 0), ("float8_e8m0fnu", -1.0), ("float8_e4m3fn", 1000.0)),
    ],
)
def test_a_scalar_that_does_not_fit_is_refused(dtype: str, value: Any):
    g = Graph()
    with pytest.raises(GraphError, match=rf"does not fit {dtype}: .*(choose|write|take) "):
        g.scalar[dtype](value)
    with pytest.raises(GraphError, match=f"does not fit {dtype}"):
        g.constant[dtype]([value])
    assert len(g) == 0


@every("value", ["1", None, [1], {}, np.zeros(2)])
def test_what_is_no_scalar_is_refused(value: Any):
    with pytest.raises(GraphError, match="a Python or NumPy scalar is needed; got "):
        Graph().scalar[DType.float32](value)


@every("dtype", [d for d in DType if d is not DType.float8_e8m0fnu])
def test_constants_of_every_dtype(dtype: DType):
    values = [True, False] if dtype is DType.bool else [1, 0, 1]
    g = Graph()
    for made in (g.constant[dtype](values), g.constant(values, dtype), g.vector[dtype](values)):
        assert made.type is TensorType(dtype, (len(values),))
        assert held(made).dtype == dtype.storage
        assert held(made).astype(np.complex128).tolist() == [complex(v) for v in values]


def test_constants_take_the_dtype_of_an_array():
    array = np.arange(6, dtype=np.uint16).reshape(2, 3)[:, ::-1]
    made = Graph().constant(array)
    assert made.type is TensorType("uint16", (2, 3))
    assert held(made).tolist() == array.tolist() and held(made).flags.c_contiguous
    assert not held(made).flags.writeable
    with pytest.raises(GraphError, match=r"a list has no dtype.*g\.constant\[DType"):
        Graph().constant([1, 2])


@every(
    ("array", "dtype", "fits"),
    [
        (np.array([1, 127]), "int8", True),
        (np.array([1, 128]), "int8", False),
        (np.array([0.1, 2.0]), "float32", True),
        (np.array([1e40]), "float32", False),
        (np.array([np.inf, np.nan]), "float16", True),
        (np.array([2**24 + 1]), "float32", False),
        (np.array([1.5]), "int32", False),
        (np.array([1.0]), "int32", False),
        (np.array([1j]), "float32", False),
        (np.array([True]), "float32", True),
        (np.array([2**63], np.uint64), "index", True),
        (np.array([-1]), "address", False),
        (np.array([], np.float64), "int8", True),
        (np.array([2**70, 1], object), "float64", False),
        (np.array([2**64 - 1, 1], object), "uint64", True),
    ],
)
def test_an_array_in_another_dtype_must_fit_value_by_value(array: Any, dtype: str, fits: bool):
    if fits:
        assert held(Graph().constant[dtype](array)).dtype == DType(dtype).storage
    else:
        with pytest.raises(GraphError, match=f"fit {dtype}"):
            Graph().constant[dtype](array)


def test_nested_lists_and_ragged_ones():
    made = Graph().constant["float32"]([[1, 2.5], [3, 4]])
    assert held(made).tolist() == [[1.0, 2.5], [3.0, 4.0]]
    for ragged in ([[1], [1, 2]], ["a"], [None], [[1], 2]):
        with pytest.raises(GraphError):
            Graph().constant["float32"](ragged)


def test_constants_keep_signed_zeros_and_nans():
    values = held(Graph().constant["bfloat16"]([0.0, -0.0, float("nan"), float("-inf")]))
    wide = values.astype(np.float64)
    assert np.signbit(wide[:2]).tolist() == [False, True]
    assert np.isnan(wide[2]) and wide[3] == -np.inf


def test_tensor_float32_constants_are_rounded_on_entry():
    g = Graph()
    third = np.float32(1 / 3)
    for made in (g.scalar["tf32"](1 / 3), g.constant["tf32"](np.array([third]))):
        bits = held(made).view(np.uint32)
        assert (bits & 0x1FFF).max() == 0 and abs(float(held(made).max()) - 1 / 3) < 2**-12
    tie = np.float32(1 + 2**-11)
    assert float(held(g.scalar["tf32"](float(tie)))) == 1.0
    away = Graph(tf32="away")
    assert float(held(away.scalar["tf32"](float(tie)))) == 1 + 2**-10
    with pytest.raises(GraphError, match="'even', 'away'"):
        Graph(tf32="up")


def test_a_vector_has_one_axis():
    with pytest.raises(GraphError, match="one axis; got 2 axes"):
        Graph().vector["int8"]([[1]])


@every("args", [(5,), (2, 9), (0, 10, 3), (9, 0, -2), (3, 3), (-4, 4)])
def test_ranges_are_those_of_python(args: Any):
    g = Graph()
    for made in (g.range["int16"](*args), g.range(*args, dtype="int16")):
        start, step, size = (made.attrs[name] for name in ("start", "step", "size"))
        assert [start + i * step for i in range(size)] == list(range(*args))
        assert made.dtype is DType.int16


@every(
    ("args", "dtype", "near"),
    [
        ((0, 10, 0), "int8", "step of a range is not 0"),
        ((0, 200), "int8", "199 does not fit int8"),
        ((0.5, 3), "int8", "does not fit int8"),
        ((0, "n", -1), "int64", "positive int step"),
        ((0, "n+"), "int64", "is not a dim"),
        ((0, 10), None, "a dtype is needed"),
    ],
)
def test_ranges_that_are_refused(args: Any, dtype: Any, near: str):
    with pytest.raises((GraphError, ShapeError), match=near):
        Graph().range(*args, dtype=dtype)


def test_full_and_eye_in_both_forms():
    g = Graph()
    for made in (g.full["int8"](7, (2, "n")), g.full(7, (2, "n"), "int8")):
        assert made.type is TensorType("int8", (2, "n")) and made.attrs["value"] == 7
    assert g.full(np.float32(1), 3).type is TensorType("float32", (3,))
    for made in (g.eye["bfloat16"](2, 3), g.eye(2, 3, "bfloat16")):
        assert made.type is TensorType("bfloat16", (2, 3))
    with pytest.raises(GraphError, match="does not fit int8"):
        g.full["int8"](300, (2,))


# -- inputs and outputs


def test_in_types_make_inputs_at_once():
    types = [TensorType("float32", ("n",)), TensorType("int8")]
    g = Graph("g", in_types=types)
    assert [x.type for x in g.inputs] == types and g.input_names == ["x0", "x1"]
    assert g[0] is g.inputs[0] and g[1].dtype is DType.int8 and g[-1] is g[1]
    y = g.input("bool", name="flag")
    assert g[2] is y and y.name == "%flag" and g.input(types[0]).name == "%x3"


@every(
    ("name", "near"), [("x", "already"), ("1x", "identifier"), ("a b", "identifier"), ("", "ident")]
)
def test_names_of_inputs(name: str, near: str):
    g = Graph()
    g.input("int8", name="x")
    with pytest.raises(GraphError, match=near):
        g.input("int8", name=name)
    assert len(g.inputs) == len(g.symbols) == 1


def test_symbols_are_numbered_without_the_inputs_before_them():
    g = Graph()
    x = g.input("int8", name="x")
    a = -x
    y = g.input("int8", name="y")
    b = a + y
    assert [s.name for s in (x, a, y, b)] == ["%x", "%0", "%y", "%1"]


def test_an_automatic_name_gives_way_to_one_that_is_taken():
    g = Graph()
    g.input("int8", name="x1")
    assert g.input("int8").name == "%x2"
    with pytest.raises(GraphError, match="already has an input named 'x1'"):
        g.input("int8", name="x1")


def test_outputs_are_checked_against_out_types_and_never_cast():
    wanted = [TensorType("float32", ("n",))]
    g = Graph("g", in_types=[TensorType("int8", ("n",))], out_types=wanted)
    with pytest.raises(GraphError, match=r"promises \(float32\[n\]\) and has \(int8\[n\]\).*cast"):
        g.output(g[0])
    assert g.outputs == ()
    g.output(g[0].cast("float32"))
    assert [y.type for y in g.outputs] == wanted


def test_a_graph_is_its_symbols_in_order():
    g = Graph("name")
    x = g.input("int8")
    y = x + 1
    assert len(g) == 3 and list(g) == g.symbols and [s.index for s in g] == [0, 1, 2]
    assert g.symbols[2] is y and repr(g) == "<Graph name, 3 symbols, rules max>"


def test_a_with_block_names_the_graph_of_ops_without_symbols():
    with Graph("outer") as outer:
        with Graph("inner") as inner:
            assert ops.range(dtype="int8", start=0, step=1, size=3).graph is inner
        assert ops.add(np.int8(1), 2).graph is outer
    with pytest.raises(GraphError, match="its graph is not known"):
        ops.range(dtype="int8", start=0, step=1, size=3)


def test_layers_nest_and_end():
    g = Graph()
    x = g.input("int8")
    with g.layer("encoder"):
        a = x + 1
        with g.layer("attention"):
            b = x + 2
        c = x + 3
    with contextlib.suppress(ZeroDivisionError), g.layer("left early"):
        _ = 1 // 0
    d = x + 4
    assert [s.location.layer for s in (x, a, b, c, d)] == [
        *("", "encoder", "encoder/attention", "encoder", "")
    ]


# -- pickling and copying


def sample() -> Graph:
    g = Graph("sample", rules="max_strict", tf32="away")
    x = g.input("int8", ("n", 2), name="x")
    with g.layer("encoder"):
        y = x[1:] + x[:-1]
    g.output(y * g.constant["int16"]([[1, -2]]), y)
    return g


@every("again", [lambda g: pickle.loads(pickle.dumps(g)), copy.deepcopy])
def test_graphs_survive_pickling_with_their_locations(again: Any):
    g = sample()
    back = again(g)
    assert (back.name, back.rules, back.tf32, back.input_names) == (
        "sample",
        g.rules,
        "away",
        ["x"],
    )
    assert len(back) == len(g)
    for one, other in zip(g, back, strict=True):
        assert other.graph is back and other.op is one.op and other.type is one.type
        assert [a.index for a in other.args] == [a.index for a in one.args]
        assert other.location == one.location and other.location.layer == one.location.layer
        assert other.location.end_column == one.location.end_column
    assert back.outputs[0] is back.symbols[g.outputs[0].index]
    back.verify()
    assert (back.outputs[1] + 1).op is ops.add and len(back) == len(g) + 2


# -- a rule set of one's own


class Wrapping(PromotionRules):
    """Everything meets in float64 but integers, which meet in the first of them."""

    def position(self, op: str) -> DType:
        return DType.int32

    def join(self, dtypes: tuple[DType, ...]) -> DType:
        return dtypes[0] if all(d.is_integer for d in dtypes) else DType.float64

    def literal(self, value: Any, place: Place = ALONE) -> DType:
        return self.common(place.partners) if place.partners else DType.float64

    def floating(self, dtype: DType, op: str) -> DType:
        return DType.float64


@pytest.fixture
def wrapping() -> Iterator[PromotionRules]:
    yield register(Wrapping("wrapping", "Integers meet in the first of them."))
    del _REGISTRY["wrapping"]


def test_a_rule_set_of_one_s_own_decides(wrapping: PromotionRules):
    assert rules("wrapping") is wrapping
    g = Graph(rules="wrapping")
    x, y, z = g.input("int8", (3,)), g.input("int64", (3,)), g.input("float16", (3,))
    assert (x + y).dtype is DType.int8 and (y + x).dtype is DType.int64
    assert (x * z).dtype is DType.float64 and ops.sin(x).dtype is DType.float64
    assert z.argmax().dtype is DType.int32 and g.scalar(2).dtype is DType.float64
    with wrapping:
        assert Graph().rules is wrapping
    assert Graph("g", rules=wrapping).rules is wrapping
    assert pickle.loads(pickle.dumps(g)).rules is wrapping


def test_a_rule_set_may_be_just_a_lattice():
    tiny = Lattice("tiny", {DType.int8: [DType.float16], DType.float16: []})
    g = Graph(rules=PromotionRules("tiny", "Two dtypes.", tiny))
    assert (g.input("int8") + g.input("float16")).dtype is DType.float16
    with pytest.raises(PromotionError, match="int16 is not in its lattice"):
        _ = g[0] + g.input("int16")


def test_rules_without_a_lattice_or_a_join_say_so():
    g = Graph(rules=PromotionRules("empty", "Nothing."))
    with pytest.raises(PromotionError, match="neither a lattice nor a join"):
        _ = g.input("int8") + g.input("int16")


# -- a graph that is tried


def test_an_attempt_that_keeps_nothing_leaves_the_graph_as_it_was() -> None:
    g = Graph("tried")
    x = g.input("float32", (2,), name="x")
    before = str(g)
    with g.attempt():
        g.input("float32", (2,), name="y")
        _ = x * x
    with contextlib.suppress(ZeroDivisionError), g.attempt():
        _ = x + 1 / 0
    assert str(g) == before and g.input_names == ["x"]
    with g.attempt() as attempt:
        y = attempt.keep(x * x)
    g.output(y + g.input("float32", (2,), name="y"))
    assert [symbol.op.name for symbol in g] == ["input", "multiply", "input", "add"]


WRITE = re.compile(
    r"^ +(?:[\w.]+, )*(?:[\w.]*[._])?(?:graph|new|body|whole|before|after)"
    r"\.(?:symbols|inputs|input_names|outputs|out_types|rules_before|has_bodies|provenance|policy"
    r"|tf32|functions|builder)(?:\[.*\])?(?:, [\w.]+)* = ",
    re.M,
)
"""An assignment to an attribute that a graph's own package writes."""

FOLDERS = [Path(__file__).parents[3] / name for name in ("graphir", "passes", "runtime")]
MODULES = [path for folder in FOLDERS for path in folder.rglob("*.py")]


def test_a_graph_is_written_by_its_own_package_alone() -> None:
    assert WRITE.search("    self.new.outputs = ()") and WRITE.search("    x, graph.inputs[0] = y")
    others = [path for path in MODULES if "/graphir/ir/" not in path.as_posix()]
    assert not [path for path in others if WRITE.search(path.read_text(encoding="utf-8"))]


def test_functions_of_one_name_name_each_other() -> None:
    g = Graph("g")
    x, y = g.input("int16", (2,)), g.input("float32", (2,))
    for wrong in (lambda: implicit_cast(g), lambda: implicit_cast(a=x, b=g)):  # pyright: ignore
        with pytest.raises(GraphError, match=r"got .*Graph; write passes.implicit_cast\(graph\)"):
            wrong()
    for wrong in (lambda: passes.implicit_cast(x, y), lambda: passes.implicit_cast(x)):  # pyright: ignore
        with pytest.raises(GraphError, match=r"got Symbol.*; write graphir.implicit_cast\(x, y\)"):
            wrong()
    assert implicit_cast(a=x, b=y)[0].dtype is DType.float32
    g.output(x + y)
    assert passes.implicit_cast(graph=g).rules.name == "explicit"

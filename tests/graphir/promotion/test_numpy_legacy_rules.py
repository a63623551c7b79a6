"""NumPy 1.26's rules against what it answered: golden/numpy_legacy.json, made by tests/peers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionError, TensorType, ops
from graphir.passes import implicit_cast, lower
from graphir.promotion.numpy_ import NUMPY
from graphir.promotion.numpy_legacy import NUMPY_LEGACY
from graphir.runtime import execute, interpret
from tests import GOLDEN
from tests.peers import CALLS, in_place, ours
from tests.support.tables import every, sampled

TABLES: dict[str, Any] = json.loads((GOLDEN / "numpy_legacy.json").read_text())
JEP: dict[str, Any] = json.loads((GOLDEN / "numpy_jep.json").read_text())
CHARS = {char: DType(np.dtype(char)) for char in TABLES["dtypes"]}
DTYPES = list(CHARS.values())
CHAR_OF = {dtype: char for char, dtype in CHARS.items()} | {None: "-"}
ZERO = {"weak_int": 0, "weak_float": 0.0, "weak_complex": 0j}
BY_VALUE = ("add", "where", "clip", "divide", "pow", "floor_divide", "atan2", "bitwise_and")


def number(text: str) -> Any:
    """A Python scalar from its repr."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(text)


def operand(name: str) -> Any:
    """A dtype of "b", a NumPy scalar of "b=-1", a Python one of "=300"."""
    char, equals, text = name.partition("=")
    if not equals:
        return CHARS[char]
    return np.array(number(text)).astype(CHARS[char].storage)[()] if char else number(text)


def rows(grouped: dict[str, str]) -> dict[str, str]:
    """Names to their rows, `object` as refused."""
    return {name: row.replace("O", "-") for row, names in grouped.items() for name in names.split()}


RESULT_TYPE = rows(TABLES["result_type with scalars"])


def rows_of(op: str) -> dict[str, str]:
    """What NumPy answers for each n-d array and a scalar; none differs by the side it is on."""
    return RESULT_TYPE | rows(TABLES[f"{op} with scalars, where not the result_type"])


def operands(op: str, array: Any, scalar: Any) -> Iterator[list[Any]]:
    """The calls that the golden file keeps for an op, an n-d array and a scalar."""
    if op == "where":
        condition = (DType.bool, (2,))
        yield from ([condition, array, scalar], [condition, scalar, array])
    elif op == "clip":
        yield [array, scalar, scalar]
    else:
        yield from ([array, scalar], [scalar, array])


# -- the golden file, cell by cell


def test_ops_of_one_operand():
    asked = rows(TABLES["unary"])
    for op, row in asked.items():
        answers = (ours(NUMPY_LEGACY, op, *CALLS[op].operands(dtype)) for dtype in DTYPES)
        assert "".join(CHAR_OF[found] for found in answers) == row, op
    assert len(asked) == 53


def test_ops_of_two_arrays():
    """All, but nextafter in float16, which graphir does not compute."""
    for table, names in TABLES["binary"].items():
        for (a, row), op in product(zip(DTYPES, table.split(), strict=True), names.split()):
            for b, char in zip(DTYPES, row, strict=True):
                if op == "result_type":
                    found = NUMPY_LEGACY.answer(a, b)
                else:
                    found = ours(NUMPY_LEGACY, op, *CALLS[op].operands(*chosen(op, a, b)))
                half = op == "nextafter" and char == "e"
                assert CHAR_OF[found] == ("-" if half else char), (op, a, b)


def chosen(op: str, a: DType, b: DType) -> tuple[DType, ...]:
    return (a, b, b) if op == "clip" else (a, b)


def test_scalars_beside_arrays_by_promote():
    for name, row in RESULT_TYPE.items():
        scalar = operand(name)
        for dtype, char in zip(DTYPES, row, strict=True):
            for pair in ((dtype, scalar), (scalar, dtype)):
                assert CHAR_OF[NUMPY_LEGACY.answer(*pair)] == char, pair


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", BY_VALUE)
def test_scalars_beside_arrays_in_graphs(op: str):
    for name, row in rows_of(op).items():
        scalar = operand(name)
        for dtype, char in zip(DTYPES, row, strict=True):
            for call in operands(op, (dtype, (2,)), scalar):
                assert CHAR_OF[ours(NUMPY_LEGACY, op, *call)] == char, (name, dtype)


def test_exponents_of_which_another_function_is_made():
    """A 0-d bool counts as a scalar, wherever it comes from."""
    asked = rows(TABLES["to the power of a number"])
    for name in asked:
        exponent = number(name[1:])
        for i, dtype in enumerate(DTYPES):
            base = "s" if name[0] == "0" and dtype is DType.bool else name[0]
            char = asked[base + name[1:]][i]
            g = Graph(rules=NUMPY_LEGACY)
            x = g.input(dtype, (2,) if base == "1" else ())
            assert CHAR_OF[power(ops.conj(x) if base == "s" else x, exponent)] == char, name
    assert len(asked) == 39


def test_powers_of_scalars_keep_the_dtype_of_arrays():
    asked = rows(TABLES["to the power of a scalar"])
    for name in asked:
        kind, _, text = name[1:].partition("=")
        exponent = np.array(float(text)).astype(kind)
        for i, dtype in enumerate(DTYPES):
            base = "s" if name[0] == "0" and dtype is DType.bool else name[0]
            x = Graph(rules=NUMPY_LEGACY).input(dtype, (2,) if base == "1" else ())
            x = ops.conj(x) if base == "s" and dtype is not DType.bool else x
            for each in (exponent[()], exponent):
                assert CHAR_OF[power(x, each)] == asked[base + name[1:]][i], (name, dtype, each)
    assert len(asked) == 96


def power(x: Any, exponent: Any) -> DType | None:
    try:
        return (x**exponent).dtype
    except GraphirError:
        return None


def test_several_operands_fold_from_left_to_right():
    for names, char in TABLES["several"].items():
        found = NUMPY_LEGACY.answer(*map(operand, names.split()))
        assert CHAR_OF[found] == char.replace("O", "-"), names
    i8, bools = DType.int8, DType.bool
    assert NUMPY_LEGACY.promote(np.int64(1), i8, bools) is DType.int8
    assert NUMPY_LEGACY.promote(np.int64(1), bools, i8) is DType.int16


def test_scalars_alone_promote_by_their_dtypes():
    assert TABLES["two scalars, where not the result_type of their dtypes"] == {}
    for a, b in product(DTYPES, repeat=2):
        x, y = a.storage.type(1), b.storage.type(1)
        assert NUMPY_LEGACY.promote(x, y) is NUMPY_LEGACY.promote(a, b) is NUMPY.promote(a, b)
        g = Graph(rules=NUMPY_LEGACY)
        assert (g.scalar(x) + g.input(b)).dtype is NUMPY.promote(a, b)
    assert NUMPY_LEGACY.promote(np.int8(1), 1) is DType.int64
    assert NUMPY_LEGACY.promote(np.float32(3), 3.0) is DType.float64


def test_the_table_that_jep_9407_prints():
    """It was measured with np.add on arrays and Python's zeros."""
    for a, b in product(JEP["table"], repeat=2):
        found = NUMPY_LEGACY.answer(ZERO.get(a, a), ZERO.get(b, b))
        assert (found and str(found)) == JEP["table"][a][b], (a, b)


# -- an operand of rank 0 whose value is not known


@sampled(2)
@every("op", [op for op in BY_VALUE if op != "clip"])
def test_without_its_value_an_operand_is_taken_where_all_values_answer_alike(op: str):
    """The golden file has a value of every sort, of each dtype."""
    taken = 0
    for scalar, (i, dtype) in product(DTYPES, enumerate(DTYPES)):
        of_dtype = [r[i] for n, r in rows_of(op).items() if n.startswith(CHAR_OF[scalar] + "=")]
        alike = of_dtype[0] if len({*of_dtype}) == 1 else "-"
        for call in operands(op, (dtype, (2,)), (scalar, ())):
            assert CHAR_OF[ours(NUMPY_LEGACY, op, *call)] == alike, (scalar, dtype)
        taken += alike != "-"
    assert taken > 40


def test_what_a_refusal_says_and_that_its_ways_out_are_ways_out():
    g = Graph(rules=NUMPY_LEGACY)
    x, y = g.input("float32", (3,)), g.input("float64")
    with pytest.raises(PromotionError, match="depends on the value of the 0-d operand of float64"):
        x + y
    with pytest.raises(PromotionError, match=r"it may be float32 or float64; \.cast"):
        NUMPY_LEGACY.promote(x, y)
    assert (x + y.cast(DType.float32)).dtype is DType.float32
    assert (x + g.scalar[DType.float64](0.1)).dtype is DType.float32
    assert (x + y.unsqueeze(0)).dtype is DType.float64
    with pytest.raises(PromotionError, match="NumPy 1 has no index"):
        NUMPY_LEGACY.promote("index", y)


def test_types_of_python_scalars_are_scalars_whose_values_are_not_known():
    assert NUMPY_LEGACY.promote("int64", int) is DType.int64
    assert NUMPY_LEGACY.promote("int8", float) is DType.float64
    assert NUMPY_LEGACY.promote(np.int8(1), int) is DType.int64
    with pytest.raises(PromotionError, match="may be int8 or int16 or int32 or int64;"):
        NUMPY_LEGACY.promote("int8", int)


def test_where_the_result_does_not_depend_on_it_a_value_need_not_be_known():
    g = Graph(rules=NUMPY_LEGACY)
    x, y, z = g.input("int8", (3,)), g.input("int64"), g.input("float64")
    w = g.input("float32", (3,))
    assert (x == y).dtype is (x < y).dtype is DType.bool
    assert ops.logical_and(w, z).dtype is DType.bool
    assert (x / y).dtype is (x / z).dtype is (x + z).dtype is DType.float64
    g.output(x == y, x < y)
    found = interpret(g, np.array([1, -1, 0], np.int8), np.int64(-1), 0.0, np.zeros(3, np.float32))
    assert [one.tolist() for one in found] == [[False, True, False], [False, False, False]]


# -- both ways: through promote and through graphs, which lower and go through text

FACTS: list[tuple[str, Any, str]] = [
    ("int8", 127, "int8"),
    ("int8", 128, "int16"),
    ("int8", 300, "int16"),
    ("uint8", 300, "uint16"),
    ("uint8", -1, "int16"),
    ("uint64", -1, "float64"),
    ("int8", 2**63, "float64"),
    ("float32", 1e39, "float64"),
    ("float32", 3.0e38, "float32"),
    ("float16", 65000.0, "float32"),
    ("float16", 300, "float32"),
    ("float32", 65536, "float64"),
    ("float32", np.float64(1), "float32"),
    ("int8", np.int64(1), "int8"),
    ("int8", np.int64(1000), "int16"),
    ("int8", 1.5, "float64"),
    ("float32", 1j, "complex64"),
    ("float64", float("nan"), "float64"),
    ("bool", 1, "int64"),
]


def graph_of(dtype: str, value: Any) -> Graph:
    """Sums with a literal or 0-d constant on either side, products, comparisons, choices."""
    g = Graph(rules=NUMPY_LEGACY)
    x = g.input(dtype, (3,))
    g.output(x + value, value + x, ops.multiply(x, value), x == value, ops.where(x, x, value))
    return g


@every(("dtype", "value", "result"), FACTS)
def test_values_count_in_promote_and_in_graphs(dtype: str, value: Any, result: str):
    assert NUMPY_LEGACY.promote(dtype, value) is NUMPY_LEGACY.promote(value, dtype)
    assert str(NUMPY_LEGACY.promote(TensorType(dtype, (3,)), value)) == result
    g = graph_of(dtype, value)
    assert [str(one.dtype) for one in g.outputs] == [*[result] * 3, "bool", result]


@every(("dtype", "value"), [fact[:2] for fact in FACTS])
def test_such_graphs_lower_run_and_read_back(dtype: str, value: Any):
    g = graph_of(dtype, value)
    read = Graph.parse(str(g)).verify()
    assert str(read) == str(g) and [s.type for s in read] == [s.type for s in g]
    lowered = lower(g, verify_each=True)
    assert [one.type for one in lowered.outputs] == [one.type for one in g.outputs]
    assert str(Graph.parse(str(lowered))) == str(lowered)
    x = np.array([0, 1, 100]).astype(dtype)
    expected = [one.tobytes() for one in interpret(g, x)]
    for graph, run in product((g, read, lowered), (interpret, execute)):
        assert [one.tobytes() for one in run(graph, x)] == expected


def test_a_constant_of_rank_0_is_a_scalar_and_no_other_constant():
    g = Graph(rules=NUMPY_LEGACY)
    x = g.input("int8", (3,))
    assert (x + g.scalar[DType.int64](1)).dtype is DType.int8
    assert (x + g.scalar[DType.int64](300)).dtype is DType.int16
    assert (x + g.constant(np.array(1))).dtype is DType.int8
    assert (x + g.vector[DType.int64]([1])).dtype is DType.int64
    assert (x + (g.scalar(1) + g.scalar(1)).cast(DType.int8)).dtype is DType.int8
    with pytest.raises(PromotionError, match="not known before the graph runs"):
        x + (g.scalar(1) + g.scalar(1))


def test_a_literal_that_numpy_would_make_an_object_is_refused():
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(PromotionError, match="does not fit 64 bits"):
            NUMPY_LEGACY.promote("int8", value)


def test_casts_say_what_the_value_decided():
    g = Graph(rules=NUMPY_LEGACY)
    g.output(g.input("float32", (3,)) * 0.5 + 1e39)
    product_, total = (s for s in implicit_cast(g) if s.op in (ops.multiply, ops.add))
    assert [arg.dtype.short for arg in product_.args] == ["f32", "f32"]
    assert [arg.dtype.short for arg in total.args] == ["f64", "f64"]


def test_ops_that_search_loops_try_the_signed_ones_first():
    g = Graph(rules=NUMPY_LEGACY)
    u8, u64 = g.input("uint8", (3,)), g.input("uint64", (3,))
    assert (u8 + 256).dtype is DType.uint16 and (u8 // 256).dtype is DType.int16
    assert (u64 << np.int64(1)).dtype is DType.uint64
    assert ops.atan2(g.input("int8", (3,)), 300).dtype is DType.float32
    with pytest.raises(GraphirError, match="must be integers"):
        u64 & -1
    with pytest.raises(GraphirError, match="must be integers"):
        u64 & g.input("int64", (3,))


def test_what_numpy_2_changed_besides():
    one = (DType.int32, (2,))
    assert ours(NUMPY_LEGACY, "floor", one) is DType.float64
    assert ours(NUMPY, "floor", one) is DType.int32
    assert NUMPY.promote("float32", np.float64(1)) is DType.float64


# -- in-place operators


def in_place_dtype(name: str, x: DType, y: Any) -> DType | None:
    shape = (2, 2) if name == "matmul" else (2,)
    g = in_place(NUMPY_LEGACY, name, (x, shape), (y, shape) if isinstance(y, DType) else y)
    return None if g is None else g.outputs[0].dtype


def test_in_place_operators_on_two_arrays():
    count = 0
    for table, names in TABLES["in place"].items():
        for (x, row), name in product(zip(DTYPES, table.split(), strict=True), names.split()):
            for y, char in zip(DTYPES, row.replace("O", "-"), strict=True):
                assert CHAR_OF[in_place_dtype(name, x, y)] == char, (name, x, y)
                count += 1
    assert count == 13 * len(DTYPES) ** 2


@sampled(3)
@every("name", ["add", "divide", "pow"])
def test_in_place_operators_beside_scalars(name: str):
    """But `int_array **= 2.0`, which squares in integers there, and is refused here."""
    for scalar, row in rows(TABLES[f"{name} in place with scalars"]).items():
        given = operand(scalar)
        if isinstance(given, int) and not -(2**63) <= given < 2**64:
            continue  # an object there
        for x, char in zip(DTYPES, row, strict=True):
            if (
                name == "pow"
                and x.is_integer
                and isinstance(given, (int, np.integer))
                and given < 0
            ):
                continue  # refused there, and here when the graph runs
            found = CHAR_OF[in_place_dtype(name, x, given)]
            squares = name == "pow" and x.is_integer and scalar == "=2.0"
            assert found == ("-" if squares else char), (x, scalar)

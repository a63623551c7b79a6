"""The rule set "max_strict" against what MAX 26.7 was measured to answer; MAX itself not needed."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionError, ops, rules
from graphir.passes import cast_report, lower
from graphir.promotion.max import COMPOSED_OPS
from graphir.runtime import execute, interpret, jit
from tests.peers import CALLS, max_questions, ours
from tests.peers.max_questions import DTYPES, MEASURED, golden, golden_rows, letter, questions
from tests.support.tables import every

STRICT = rules("max_strict")


def sample(dtype: str, shape: tuple[int, ...] = (2, 2)) -> Any:
    return Graph(rules="max_strict").input(dtype, shape, name="x")


@pytest.mark.exhaustive
@pytest.mark.parametrize("section", max_questions.SECTIONS)
def test_every_answer_is_the_measured_one(section: str):
    measured = golden()[section]
    assert {op for names in measured for op in names.split()} == {
        op for op, _ in questions(section)
    }
    for op, rows in questions(section):
        answers = ["".join(letter(ours(STRICT, *one)) for one in asked) for asked in unpack(rows)]
        assert answers == golden_rows(section, op), op


def unpack(rows: max_questions.Rows) -> list[list[tuple[Any, ...]]]:
    return [[(op, *operands) for op, operands in row] for row in rows]


def test_the_dtypes_are_those_measured():
    assert golden()["dtypes"].split() == [str(dtype) for dtype in DTYPES]
    assert {dtype for dtype in DType if STRICT.has(dtype) and not dtype.weak} == {*DTYPES}


# -- ops and dtypes that MAX lacks


@every("op", sorted({*CALLS} - MEASURED - COMPOSED_OPS))
def test_an_op_that_was_not_measured_is_refused_and_says_so(op: str):
    g = Graph(rules="max_strict")
    x = [g.input("float32", shape) for shape in CALLS[op].shapes]
    with pytest.raises(PromotionError, match=rf"{op} is not measured under 'max_strict'.*'max'"):
        ops.CATALOGUE[op](*([x] if ops.CATALOGUE[op].variadic else x), **CALLS[op].attrs)


def test_eye_was_not_measured_either():
    with pytest.raises(PromotionError, match="eye is not measured"):
        Graph(rules="max_strict").eye(2, dtype="float32")


@every("op", ["sum", "prod", "cumulative_sum", "argmax", "argsort", "shape_of"])
def test_ops_take_no_dtype(op: str):
    with pytest.raises(PromotionError, match=rf"{op} takes no dtype .*\.cast\(DType.int32\)"):
        ops.CATALOGUE[op](sample("int16", (2,)), dtype="int32")


@every("dtype", ["complex64", "index", "tensor_float32", "int4", "float8_e4m3"])
def test_a_dtype_that_max_lacks_is_refused_wherever_it_is_named(dtype: str):
    g = Graph(rules="max_strict")
    x = g.input("float32", ())
    for make in (lambda: g.input(dtype, ()), lambda: x.cast(dtype), lambda: g.full(1, (), dtype)):
        with pytest.raises(PromotionError, match=f"MAX has no {dtype}"):
            make()


@every("dtype", ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])
def test_constants_narrower_than_a_byte_are_made_by_a_cast(dtype: str):
    g = Graph(rules="max_strict")
    for make in (lambda: g.scalar(1, dtype), lambda: g.full(1, (2,), dtype)):
        with pytest.raises(PromotionError, match=rf"narrower than a byte.*\.cast\(DType.{dtype}\)"):
            make()
    assert g.scalar(1, "float16").cast(dtype).dtype is DType(dtype)


# -- NumPy's scalars and arrays, which take the dtype of the tensor


def test_an_array_becomes_the_tensors_dtype_by_a_cast_of_its_own():
    x = sample("int8")
    y = x + np.array([[100, -100], [0, 1]])
    assert y.dtype is DType.int8 and y.args[1].op is ops.cast
    assert execute_of(y, np.ones((2, 2), np.int8)).tolist() == [[101, -99], [1, 2]]
    assert STRICT.promote("float32", np.array([2**24])) is DType.float32


def execute_of(symbol: Any, *arrays: Any) -> Any:
    symbol.graph.output(symbol)
    return execute(symbol.graph, *arrays)


@every(
    ("dtype", "array", "why"),
    [
        ("int8", np.array([1, 300]), "int8 does not hold its element 300"),
        ("float16", np.array([-2049]), "float16 does not hold its element -2049"),
        ("int32", np.array([1.0]), "a float array does not become int32"),
        ("float32", np.ones(1, ml_dtypes.bfloat16), "no NumPy array of bfloat16"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(dtype: str, array: Any, why: str):
    for ask in (lambda: sample(dtype) + array, lambda: STRICT.promote(dtype, array)):
        with pytest.raises(PromotionError, match=rf"{why}.*g\.constant"):
            ask()


def test_numpy_scalars_are_pythons():
    x = sample("int8")
    assert (x + np.int64(100)).dtype is DType.int8
    assert not any(symbol.op is ops.cast for symbol in x.graph.symbols)
    for number in (np.bool_(True), np.complex64(1)):
        with pytest.raises(PromotionError, match=r"MAX takes no .* scalar"):
            _ = x + number


# -- what no kernel computes


@every("op", sorted(MEASURED))
def test_a_type_is_computed_or_refused_by_its_line(op: str):
    """Of every dtype: a graph runs, alike in both engines, or both name op, type and way out."""
    for dtype in (DType.bool, DType.int16, DType.float32):
        g = Graph(rules="max_strict")
        call = CALLS[op]
        shapes = ((2,),) if op == "argsort" else call.shapes
        dtypes = [call.fixed.get(i, dtype) for i in range(len(shapes))]
        made = [g.input(one, shape) for one, shape in zip(dtypes, shapes, strict=True)]
        try:
            operands = [made] if ops.CATALOGUE[op].variadic else made
            result = ops.CATALOGUE[op](*operands, **call.attrs)
        except GraphirError:
            continue
        g.output(result)
        arrays = [np.ones(shape, one.storage) for one, shape in zip(dtypes, shapes, strict=True)]
        if op in ("gather", "scatter"):
            arrays[-1] = np.zeros(shapes[-1], np.int64)
        answers = [outcome(run, g, arrays) for run in (execute, interpret)]
        if isinstance(answers[1], str):
            assert all(f"'max_strict' types this {result.type}" in text for text in answers)
            assert all(f"{op}(" in text for text in answers)
            assert all("test_max_strict_rules.py" in text for text in answers)
        else:
            assert answers[0].dtype == answers[1].dtype == result.dtype.storage
            assert np.array_equal(answers[0], answers[1])


def outcome(run: Any, graph: Graph, arrays: list[Any]) -> Any:
    try:
        return run(graph, *arrays)
    except GraphirError as error:
        return str(error)


def interpret_ones(dtype: DType, graph: Graph) -> Any:
    return interpret(graph, np.ones((2, 2), dtype.storage))


def test_types_that_no_kernel_computes():
    for op, dtype in (("sin", "int32"), ("mean", "int32"), ("subtract", "bool")):
        x = sample(dtype)
        y = ops.CATALOGUE[op](*(x,) * len(ops.CATALOGUE[op].operands))
        assert y.dtype is x.dtype
        y.graph.output(y)
        run = partial(interpret_ones, x.dtype)
        for refuse in (lower, cast_report, run):
            with pytest.raises(GraphirError, match=rf"\.py:\d+:\d+.* {op}\(.*'max_strict' types"):
                refuse(y.graph)
    with pytest.raises(GraphirError, match=r"mean\(.*'max_strict' types"):
        jit(lambda x: x.mean(), rules="max_strict")(np.ones(3, np.int32))


# -- integers of more than 64 bits, which one dtype takes


def test_a_scale_format_takes_ints_up_to_its_greatest():
    x = sample("float8_e8m0fnu", ())
    y = x * 2**100
    y.graph.output(y)
    assert str(Graph.parse(str(y.graph))) == str(y.graph)
    one = np.ones((), x.dtype.to_numpy())
    for value in (2**64, 2**100 + 2**99 - 1, 2**100 + 2**99, 2**127):
        g = Graph(rules="max_strict")
        g.output(g.input("float8_e8m0fnu", ()) * value)
        whole = 2 ** (value.bit_length() - 1)
        tie = value - whole >= whole // 2  # to the even exponent field, here the greater
        assert float(execute(g, one)) == (whole * 2 if tie else whole)


def test_promotion_of_three_is_checked_once_all_have_joined():
    for a, b, c in product(DTYPES[:13], repeat=3):
        joined = STRICT.lattice.join(a, b, c)  # pyright: ignore[reportOptionalMemberAccess]
        holds = all(x.exact_in(joined) for x in (a, b, c)) or a is b is c
        assert (STRICT.answer(a, b, c) is joined) == holds

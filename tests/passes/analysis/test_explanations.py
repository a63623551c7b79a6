"""Why a value has its dtype: the entries, their births, and fixes that hold in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphir import DType, Graph
from graphir.ir.inlining import inlined
from graphir.passes import CastReport, cast_report
from graphir.runtime import record
from tests.support.dtype_walks import unedited
from tests.support.work import count_work

X = np.linspace(1, 2, 6, dtype=np.float32)
COUNTS = np.arange(6, dtype=np.int32)


def born_elsewhere(x: Any) -> Any:
    steps = np.arange(len(x))
    half = steps / 2
    return (x * half).sum()


def two_births(x: Any) -> Any:
    weights = np.ones(len(x))
    return x * weights + np.linspace(0, 1, len(x))


def followed(x: Any) -> Any:
    y = x * np.float64(2)
    buffer = np.zeros_like(y)
    buffer[1:] = y[:-1]
    return buffer + x.astype(y.dtype)


def returned(x: Any) -> Any:
    weights = np.ones(len(x))
    return x * weights, weights


def asked_for(x: Any) -> Any:
    return x.astype(np.float64) * 2


def counted(counts: Any) -> Any:
    return counts / 255


def stored(x: Any) -> Any:
    table = np.zeros((2, len(x)))
    table[0] = x
    return table


def stored_whole(x: Any) -> Any:
    out = np.zeros(len(x))
    out[:] = x * 2
    return out


def stored_in_corners(x: Any) -> Any:
    turns = np.zeros((len(x), 2, 2))
    turns[..., 0, 0] = turns[..., 1, 1] = np.cos(x)
    turns[..., 0, 1] = -np.sin(x)
    turns[..., 1, 0] = np.sin(x)
    return np.einsum("bij,bj->bi", turns, np.stack([x, x], axis=1))


def scaled(depth: Any) -> Any:
    return depth * np.float32(0.01)


def mixed_listed(x: Any) -> Any:
    return x * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def report_of(function: Any, *arrays: Any) -> CastReport:
    return record(function, *arrays).report()


def edits(report: CastReport) -> list[str]:
    fix = report.dtype_causes[0].fix
    return [] if fix is None else [edit.text for edit in fix.edits]


def line_of(function: Any, number: int) -> int:
    return function.__code__.co_firstlineno + number


def test_a_cause_has_the_entry_and_the_birth_of_the_dtype() -> None:
    (cause,) = report_of(born_elsewhere, X).dtype_causes
    assert cause.place.line == line_of(born_elsewhere, 3)
    assert cause.birth is not None and cause.birth.location.line == line_of(born_elsewhere, 2)
    assert (cause.before, cause.after) == (DType.float32, DType.float64)
    assert cause.fix is not None and cause.fix.grade == "inferred"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (born_elsewhere, ['(steps / 2).astype("float32")']),
        (
            two_births,
            ["np.ones(len(x), dtype=np.float32)", "np.linspace(0, 1, len(x), dtype=np.float32)"],
        ),
        (followed, ["np.float32(2)"]),
        (stored, ["np.zeros((2, len(x)), dtype=np.float32)"]),
        (stored_whole, ["np.zeros(len(x), dtype=np.float32)"]),
        (stored_in_corners, ["np.zeros((len(x), 2, 2), dtype=np.float32)"]),
        (mixed_listed, ["x * np.float32([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])"]),
    ],
)
def test_the_edits_give_the_result_the_dtype_of_the_data(
    function: Any, expected: list[str]
) -> None:
    assert edits(report_of(function, X)) == expected


def test_a_scalar_becomes_one_of_the_type_or_is_cast_where_numpy_has_none() -> None:
    def report(dtype: str) -> CastReport:
        g = Graph("scaled", rules="jax")
        g.output(g.input(dtype, (4,), name="x") * np.float64(2))
        return cast_report(g)

    assert edits(report("float32")) == ['g.input(dtype, (4,), name="x") * np.float32(2)']
    assert edits(report("bfloat16")) == [
        'g.input(dtype, (4,), name="x") * np.float64(2).astype("bfloat16")'
    ]


def test_a_birth_that_is_a_result_itself_is_left_as_it_is() -> None:
    assert edits(report_of(returned, X)) == ['x * weights.astype("float32")']


@pytest.mark.parametrize(("function", "array"), [(asked_for, X), (counted, COUNTS)])
def test_what_a_program_asks_for_is_no_cause(function: Any, array: Any) -> None:
    assert report_of(function, array).dtype_causes == []


def test_a_dtype_to_keep_makes_causes_of_what_the_program_asks_for() -> None:
    (sentence,) = report_of(asked_for, X).keeping("float32").sentences
    assert "converts float32 to float64" in sentence
    assert sentence.endswith("write x.astype(np.float32) (inferred: float32)")
    (sentence,) = report_of(counted, COUNTS).keeping("float32").sentences
    assert 'write counts.astype("float32") / 255 (' in sentence
    assert sentence.endswith("(inferred: float32, loses 16777217)")
    wide = X.astype(np.float64)
    (sentence,) = report_of(stored, wide).keeping("float32").sentences[:1]
    assert "the argument `x` is float64" in sentence


def test_a_fix_says_the_first_integer_that_it_loses() -> None:
    (sentence,) = report_of(scaled, COUNTS).sentences
    assert 'write depth.astype("float32") * np.float32(0.01)' in sentence
    assert sentence.endswith("(inferred: float32, loses 16777217)")


def scaled_by_layers(x: Any) -> Any:
    scale = np.ones(len(x))
    for _ in range(3):
        x = (x * scale).astype(np.float32)
        scale = scale * scale
    return np.interp(x, x, scale).astype(np.float32) * scale


@pytest.mark.parametrize("function", [born_elsewhere, two_births, followed, scaled_by_layers])
def test_an_edit_to_the_dtype_that_a_value_has_changes_nothing(function: Any) -> None:
    unedited(inlined(report_of(function, X).graph))


def sums(x: Any, steps: int) -> Any:
    scale = np.ones(len(x))
    for _ in range(steps):
        scale = scale * scale
        x = (x * scale).astype(np.float32)
    return x


def interpolated(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = np.interp(x, X, X).astype(np.float32)
    return x


@pytest.mark.parametrize("function", [sums, interpolated])
def test_the_causes_of_many_entries_are_found_in_linear_time(function: Any) -> None:
    def calls(steps: int) -> int:
        report = report_of(function, X, steps)
        return count_work(lambda: report.dtype_causes).calls

    calls(10)  # fills the caches
    assert calls(40) < 2.5 * calls(20)


def test_a_thousand_steps_are_explained_in_linear_time() -> None:
    def calls(steps: int) -> int:
        g = Graph("long", rules="numpy")
        x = g.input("float32", (4,), name="x")
        wide = g.constant[DType.float64](np.ones(4))
        value = x * wide
        for _ in range(steps):
            value = value + x
        g.output(value)
        report = cast_report(g)
        return count_work(lambda: report.dtype_causes).calls

    assert calls(1000) < 2.5 * calls(500)

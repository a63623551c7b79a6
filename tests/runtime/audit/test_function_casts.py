"""Casts that NumPy functions make by themselves: implicit rows that name the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import Graph, trace
from graphir.ops import CATALOGUE
from graphir.passes import CastReport, cast_report
from graphir.runtime import audit
from tests.support.tables import every

TAPS = np.array([0.25, 0.5, 0.25])
POINTS = np.arange(9.0)


class Filter:
    taps = TAPS


def convolved(x: Any) -> Any:
    return np.convolve(x * np.float32(2), TAPS)


def correlated(x: Any) -> Any:
    return np.correlate(x * np.float32(2), Filter.taps, "same")


def interpolated(x: Any) -> Any:
    return np.interp(x, x, x)


def interpolated_wide(x: Any) -> Any:
    return np.interp(x, x, POINTS)


def covariance(x: Any) -> Any:
    return np.cov(x.reshape(3, 3))


def slopes(x: Any) -> Any:
    return np.gradient(x.astype(np.int32))


def counts(x: Any) -> Any:
    return np.histogram(x, bins=4)[0]


def mean_in(x: Any) -> Any:
    return np.mean(x, dtype=np.float64)


def covariance_in(x: Any) -> Any:
    return np.cov(x.reshape(3, 3), dtype=np.float64)


def written(x: Any) -> Any:
    return np.interp(x.astype(np.float64), POINTS, POINTS)


def by_user_code(x: Any) -> Any:
    return np.apply_along_axis(lambda row: row.astype(np.float64) * 2, 0, x)


DATA = np.array([0.5, 1, 2, 2.5, 3, 4, 5, 6, 8], np.float32)


def casts(report: CastReport) -> list[tuple[str, str, str]]:
    """The kind and the operand of each cast of a report but those of Python numbers."""
    return [
        (site.row.kind, site.row.operand, site.row.op)
        for site in CastReport.in_order(report).sites
        if site.row.kind != "literal" and site.row.kind not in CATALOGUE
    ]


@every(
    ("program", "expected"),
    [
        (convolved, [("implicit", "a", "np.convolve")]),
        (correlated, [("implicit", "a", "np.correlate")]),
        (covariance, [("implicit", "m", "np.cov")]),
        (slopes, [("explicit", "x", "cast"), ("implicit", "f", "np.gradient")]),
        (counts, [("implicit", "intermediate", "np.histogram")]),
        (mean_in, [("explicit", "x", "cast")]),
        (covariance_in, [("explicit", "x", "cast")]),
        (written, [("explicit", "x", "cast")]),
        (by_user_code, [("explicit", "x", "cast")]),
    ],
)
def test_a_recording_names_the_function_unless_the_program_asks(
    program: Callable[..., Any], expected: list[tuple[str, str, str]]
) -> None:
    report = audit(program, DATA)
    assert [x for x in casts(report) if x[0] != "implicit" or x[2] not in CATALOGUE] == expected
    for graph in (report.graph, report.explicit):
        assert str(Graph.parse(str(graph))) == str(graph)
    parsed = cast_report(Graph.parse(str(report.graph)))
    assert casts(parsed) == casts(report)


@every(
    ("program", "cause"),
    [
        (convolved, "has np.convolve of `TAPS`, a float64; write {}"),
        (correlated, "has np.correlate of `Filter.taps`, a float64; write {}"),
        (interpolated, "promotes float32 to float64: np.interp(x, x, x)"),
        (interpolated_wide, "promotes float32 to float64: np.interp(x, x, POINTS)"),
        (covariance, "promotes float32 to float64: np.cov(x.reshape(3, 3))"),
    ],
)
def test_the_sentence_names_the_call_and_its_wide_argument(
    program: Callable[..., Any], cause: str
) -> None:
    (sentence,) = audit(program, DATA).sentences
    fixes = {
        convolved: 'np.convolve(x * np.float32(2), TAPS.astype("float32"))',
        correlated: 'np.correlate(x * np.float32(2), Filter.taps.astype("float32"), "same")',
    }
    line = program.__code__.co_firstlineno + 1
    expected = cause.format(f"{fixes.get(program)} (inferred: float32)")
    assert sentence == f"the result is float64 because line {line} {expected}"
    if program in fixes:  # what the sentence advises to write makes the narrow result
        names = {"np": np, "TAPS": TAPS, "Filter": Filter, "x": DATA}
        assert eval(fixes[program], names).dtype == np.float32


def test_a_dtype_that_the_program_asked_for_needs_no_sentence() -> None:
    for program in (mean_in, covariance_in, written, by_user_code):
        assert not audit(program, DATA).sentences, program


def test_functions_of_symbols_name_themselves() -> None:
    graph = Graph("symbols", rules="numpy")
    x, k = graph.input("float32", (9,), name="x"), graph.input("int32", (3,), name="k")
    outputs = np.interp(x, x[1:4], np.arange(3.0)), np.degrees(k), np.mean(x, dtype=np.float64)
    graph.output(*outputs, np.nanmean(x), x.cast("float16"))
    assert casts(cast_report(graph)) == [
        ("implicit", "x", "np.interp"),
        ("implicit", "xp", "np.interp"),
        ("implicit", "x", "np.degrees"),
        ("explicit", "x", "cast"),
        ("implicit", "x", "sum"),
        ("implicit", "intermediate", "np.nanmean"),
        ("implicit", "intermediate", "np.nanmean"),
        ("implicit", "result", "np.nanmean"),
        ("explicit", "x", "cast"),
    ]
    assert str(Graph.parse(str(graph))) == str(graph)


def test_a_trace_names_the_function() -> None:
    report = cast_report(trace(convolved, Graph("t").input("float32", (9,)).type).graph)
    assert ("implicit", "a", "np.convolve") in casts(report)

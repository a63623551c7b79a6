"""Assertions about the dtypes and casts of one call, for tests of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphir.passes import CastReport, cast_report
from graphir.passes.reports.text import report_text
from graphir.public import DType
from graphir.runtime.recording import record
from graphir.runtime.sources import from_jax, record_torch
from graphir.runtime.testing.signatures import dtype_text, library_of, result_leaves


def casts_of(function: Callable[..., Any], /, *args: Any, **keywords: Any) -> CastReport:
    """Run a function once, on arrays of NumPy, JAX or torch; return the report of its casts."""
    return _run(function, args, keywords)[1]


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[dict[str, str], CastReport]:
    """Return the dtypes of the results of a call, by their paths, and the report of its casts."""
    library = library_of([*args, *keywords.values()])
    if library:
        if library == "jax":
            graph = from_jax(function, *args, **keywords)
        else:
            graph = record_torch(function, *args, **keywords).graph
        several = len(graph.outputs) > 1
        dtypes = {
            f"[{place}]" if several else "result": str(getattr(x.type, "dtype", ""))
            for place, x in enumerate(graph.outputs)
        }
        return dtypes, cast_report(graph)
    recording = record(function, *args, **keywords)
    dtypes = {path: dtype_text(x) for path, x in result_leaves(recording.result)}
    return dtypes, recording.report()


def assert_keeps_dtype(function: Callable[..., Any], /, *args: Any, **keywords: Any) -> None:
    """Assert that all floats and complex numbers in the result have the width of the arguments'.

    The width is that of the widest array among the arguments, of integers if no array has floats.
    Python numbers in the result have no width. The AssertionError has the line that widened it.
    """
    dtypes, report = _run(function, args, keywords)
    arguments = list(_array_dtypes([*args, *keywords.values()]))
    allowed = {x.bits // (2 if x.is_complex else 1) for x in arguments if x.is_inexact}
    if not allowed:
        allowed = {x.bits for x in arguments if x.is_integer}
    for path, text in dtypes.items():
        dtype = None if text in _PYTHON else DType(text.removeprefix("np."))
        if dtype is None or not allowed or dtype is DType.bool:
            continue
        bits = dtype.bits // (2 if dtype.is_complex else 1)
        same_family = dtype.is_inexact or not any(x.is_inexact for x in arguments)
        if same_family and bits not in allowed:
            names = ", ".join(dict.fromkeys(str(x) for x in arguments))
            raise AssertionError(_message(f"{path} is {text}, the arguments are {names}", report))


def assert_no_lossy_casts(function: Callable[..., Any], /, *args: Any, **keywords: Any) -> None:
    """Assert that no implicit cast and no assignment of a call can lose a value.

    The AssertionError has the report of those that can. Comments in the source accept casts:
    `# graphir: ignore[cast/precision]`.
    """
    report = casts_of(function, *args, **keywords).without_accepted()
    lossy = [row for row in report if row.kind in ("implicit", "assignment") and not row.exact]
    if lossy:
        count = "1 cast" if len(lossy) == 1 else f"{len(lossy)} casts"
        raise AssertionError(_message(f"{count} can lose something", report.only(exact=False)))


_PYTHON = ("int", "float", "complex", "")


def _message(problem: str, report: CastReport) -> str:
    return f"{problem}\n{report_text(report)}"


def _array_dtypes(values: list[Any]) -> Iterator[DType]:
    for value in values:
        for _, leaf in result_leaves(value):
            text = dtype_text(leaf)
            if text not in _PYTHON:
                yield DType(text.removeprefix("np."))

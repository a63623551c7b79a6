"""Datetimes and timedeltas in recordings and audits, beside Python's exact integers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from graphir.passes.reports.text import report_details
from graphir.runtime import execute, record
from graphir.runtime.recording.numpy_.dates import integers
from tests.support.tables import every

pytestmark = pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")

T = np.array(["2024-01-01T00:00:00.25", "2024-03-02", "1969-06-01T00:00:01.5"], "M8[ms]")
DAYS = np.array(["2024-01-05", "2023-01-02", "1960-03-01"], "M8[D]")
SECONDS = np.array([10, 3_000_000, -7], np.int32)
SHORT = np.array([5, -7, 3], "m8[s]")
FINE = np.array([50_000, -70_001, 3], "m8[ms]")
HUGE = np.array([2**62 + 9, -(2**62) - 5, 7], "m8[ns]")
HOURS = np.array([2_600_000, -3, 2**40], "m8[h]")
DAY, SECOND = 86_400_000, 1000


def counts(array: Any) -> list[int]:
    return [int(count) for count in integers(array)]


def stored(t: Any, d: Any) -> Any:
    t = t.copy()
    t[1:] = d[1:]
    return t


def added_in_place(t: Any, d: Any) -> Any:
    t = t.copy()
    t += d
    return t


def in_microseconds(t: Any, d: Any) -> Any:
    sums = np.zeros(len(t), "M8[us]")
    np.add(t, d, out=sums)
    return sums


EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]] = {
    "int32 seconds": (
        lambda t, s: t + (s * 1000).astype("m8[ms]"),
        (T, SECONDS),
        lambda t, s: [a + b * 1000 for a, b in zip(t, s, strict=True)],
    ),
    "int32 differences": (
        lambda t: np.diff(t).astype(np.int64).astype(np.int32),
        (T,),
        lambda t: [b - a for a, b in pairwise(t)],
    ),
    "a wrapped sum": (lambda x: x + x, (HUGE,), lambda x: [2 * a for a in x]),
    "hours as ns": (
        lambda x: x.astype("m8[ns]"),
        (HOURS,),
        lambda x: [a * 3600 * 10**9 for a in x],
    ),
    "hours as ns in a sum": (
        lambda x, y: x + y,
        (HOURS, HUGE),
        lambda x, y: [a * 3600 * 10**9 + b for a, b in zip(x, y, strict=True)],
    ),
    "days beside ms": (
        lambda t, d: t - d,
        (T, DAYS),
        lambda t, d: [a - b * DAY for a, b in zip(t, d, strict=True)],
    ),
    "whole days": (lambda t: t.astype("M8[D]"), (T,), lambda t: [a // DAY for a in t]),
    "whole days again in ms": (
        lambda t: t.astype("M8[D]").astype("M8[ms]"),
        (T,),
        lambda t: [a // DAY * DAY for a in t],
    ),
    "minutes": (lambda x: x.astype("m8[m]"), (FINE,), lambda x: [a // 60_000 for a in x]),
    "a quotient of units": (
        lambda x: x / np.timedelta64(1, "s"),
        (FINE,),
        lambda x: [a / SECOND for a in x],
    ),
    "a floored quotient": (
        lambda x, y: x // y,
        (FINE, SHORT),
        lambda x, y: [a // (b * SECOND) for a, b in zip(x, y, strict=True)],
    ),
    "a remainder": (
        lambda x, y: x % y,
        (FINE, SHORT),
        lambda x, y: [a % (b * SECOND) for a, b in zip(x, y, strict=True)],
    ),
    "times integers": (
        lambda x, s: x * s,
        (SHORT, SECONDS),
        lambda x, s: [a * b for a, b in zip(x, s, strict=True)],
    ),
    "times a float": (
        lambda x: x * 2.5,
        (SHORT,),
        lambda x: [math.trunc(Fraction(5 * a, 2)) for a in x],
    ),
    "by an integer": (lambda x: x / 2, (SHORT,), lambda x: [math.trunc(Fraction(a, 2)) for a in x]),
    "by an integer, //": (
        lambda x: x // 2,
        (SHORT,),
        lambda x: [math.trunc(Fraction(a, 2)) for a in x],
    ),
    "a mean": (lambda x: x.mean(), (SHORT,), lambda x: [math.trunc(Fraction(sum(x), len(x)))]),
    "a number without a unit": (lambda x: x + 5, (SHORT,), lambda x: [a + 5 for a in x]),
    "ns as float64": (
        lambda t: t.astype("M8[ns]").astype(float),
        (T,),
        lambda t: [a * 10**6 for a in t],
    ),
    "comparisons": (
        lambda t, d: (t < d) | (t == d),
        (T, DAYS),
        lambda t, d: [a <= b * DAY for a, b in zip(t, d, strict=True)],
    ),
    "sorted": (lambda t: np.sort(t), (T,), sorted),
    "the extremes": (lambda t: t.max() - t, (T,), lambda t: [max(t) - a for a in t]),
    "chosen": (
        lambda t, d: np.where(t > d, t, d),
        (T, DAYS),
        lambda t, d: [max(a, b * DAY) for a, b in zip(t, d, strict=True)],
    ),
    "concatenated": (
        lambda t, d: np.concatenate([t[::-1], d[[2, 0]]]),
        (T, DAYS),
        lambda t, d: [*t[::-1], d[2] * DAY, d[0] * DAY],
    ),
    "stored": (stored, (T, DAYS), lambda t, d: [t[0], d[1] * DAY, d[2] * DAY]),
    "in place": (
        added_in_place,
        (T, SHORT),
        lambda t, d: [a + b * SECOND for a, b in zip(t, d, strict=True)],
    ),
    "out=": (
        in_microseconds,
        (T, SHORT),
        lambda t, d: [(a + b * SECOND) * 1000 for a, b in zip(t, d, strict=True)],
    ),
    "asarray": (lambda t: np.asarray(t, "M8[s]"), (T,), lambda t: [a // SECOND for a in t]),
    "bits": (lambda t: t.view(np.int64) // 7, (T,), lambda t: [a // 7 for a in t]),
    "swapped bytes": (lambda t: t.astype(">M8[ms]") + 1, (T,), lambda t: [a + 1 for a in t]),
}


@every("name", [*EXACT])
def test_audits_count_what_differs_from_exact_integers(name):
    program, arguments, exact = EXACT[name]
    try:
        plain = program(*arguments)
    except OverflowError as error:  # a wrap, since NumPy 2.5
        with pytest.raises(OverflowError, match=re.escape(str(error))):
            record(program, *arguments)
        return
    recording = record(program, *arguments)
    real, result = recording.result, integers(recording.result).reshape(-1)
    assert type(plain) is type(real) and plain.dtype == real.dtype
    assert np.array_equal(plain, real, equal_nan=plain.dtype.kind == "f")
    run = execute(recording.graph, *recording.inputs)
    assert np.asarray(run).tobytes() == result.tobytes()
    error = recording.audit().outputs[0]
    pairs = zip(result, exact(*map(counts, arguments)), strict=True)
    assert error.differing == sum(Fraction(x.item()) != Fraction(y) for x, y in pairs)
    assert error.dtype == str(real.dtype.newbyteorder("="))


def test_a_line_that_wraps_is_blamed_in_units():
    program, arguments, _ = EXACT["int32 seconds"]
    report = record(program, *arguments).audit()
    assert "wraps 1 of 3 elements (int32 multiply: 3000000 * 1000 = " in report.sentences[0]
    assert "output0: datetime64[ms], 1 of 3 differ" in str(report)


NAT = np.array(["2024-01-01", "NaT", "2023-05-05"], "M8[ms]")
WITH_NAT: dict[str, Callable[..., Any]] = {
    "subtract": lambda t: t - t[0],
    "maximum": lambda t: np.maximum(t, T),
    "equal": lambda t: t == t,
    "sort": lambda t: np.sort(t),
    "argmax": lambda t: np.array([t.argmax()]),
    "astype": lambda t: t.astype("M8[s]"),
    "float": lambda t: (t - T).astype(float),
    "negative": lambda t: -t.astype(np.int64).astype("m8[ms]"),
    "product": lambda t: t.astype(np.int64).astype("m8[ms]") * 3,
    "of NaN": lambda t: (T - T[0]) * np.where(np.isnat(t), np.nan, 1.5),
}


@every("name", [*WITH_NAT])
def test_ops_that_nat_changes_are_unknown(name):
    recording = record(WITH_NAT[name], NAT)
    assert np.array_equal(recording.result, WITH_NAT[name](NAT), equal_nan=True)
    assert recording.audit().outputs[0].differing is None


MOVED: dict[str, Callable[..., Any]] = {
    "indexed": lambda t: t[[1, 0]],
    "masked": lambda t: t[~np.isnat(t)],
    "filled": lambda t: np.where(np.isnat(t), t[0], t),
    "no date": lambda t: np.where(t > T, t, np.datetime64("NaT")),
    "counts": lambda t: t.astype(np.int64),
}


@every("name", [*MOVED])
def test_nat_moves_as_a_count(name):
    recording = record(MOVED[name], NAT)
    assert np.array_equal(recording.result, MOVED[name](NAT), equal_nan=True)
    run = execute(recording.graph, *recording.inputs)
    assert np.asarray(run).tobytes() == integers(recording.result).tobytes()


WRAPS = np.array([3_000_000, -2_999_999, 7], np.int32)


def in_ms(seconds: Any) -> Any:
    return (seconds * 1000).astype("m8[ms]")


SCALARS: dict[str, Callable[..., Any]] = {
    "a sum": lambda x: x[2:] + (abs(x).sum() - np.timedelta64(1, "ms")),
    "a condition": lambda x: x[2:] * 2 if abs(x).sum() > np.timedelta64(0) else x[2:],
    "a list": lambda x: np.array([value + np.timedelta64(1, "ms") for value in x]),
    "a number": lambda x: x[2:] * int(x[0].astype(np.int64) > 0),
}


@every("name", [*SCALARS])
def test_scalars_that_wrapped_leave_no_clean_bill(name):
    recording = record(lambda s: SCALARS[name](in_ms(s)), WRAPS)
    assert np.array_equal(recording.result, SCALARS[name](in_ms(WRAPS)))
    assert recording.audit().outputs[0].differing is None


MONTHS = {
    "months": lambda t, x: t.astype("M8[M]").astype(int) + x,
    "days of a year": lambda t, x: (t - t.astype("M8[Y]")).astype("m8[D]").astype(int),
    "years of months": lambda t, x: t.astype("M8[M]").astype("M8[Y]").astype(int),
    "nanoseconds": lambda t, x: t.astype("M8[M]").astype("M8[ns]"),
    "unique months": lambda t, x: [
        x[t.astype("M8[M]") == k].sum() for k in np.unique(t.astype("M8[M]"))
    ],
    "later": lambda t, x: (t.astype("M8[M]") + np.timedelta64(1, "M")).astype("M8[D]") - t,
    "weekdays": lambda t, x: np.is_busday(t.astype("M8[D]")) * x,
}


@every("name", MONTHS)
def test_months_and_years_are_counted(name):
    t, x = np.array(["2024-01-31", "2024-05-05", "1969-12-31"], "M8[s]"), np.arange(3)
    recording = record(MONTHS[name], t, x)
    assert repr(recording.result) == repr(MONTHS[name](t, x))
    assert all(output.differing == 0 for output in recording.audit().outputs)


def test_a_duration_that_wraps_is_another_month():
    def program(days):
        return (
            (np.datetime64("2018-01-01") + (days * np.uint8(100)).astype("m8[D]"))
            .astype("M8[M]")
            .astype(int)
        )

    days = np.arange(7, dtype=np.uint8)
    exact = (np.datetime64("2018-01-01") + 100 * np.arange(7)).astype("M8[M]").astype(int)
    (output,) = record(program, days).audit().outputs
    assert output.differing == np.count_nonzero(program(days) != exact) == 4


def test_a_duration_that_a_program_returns_is_no_clean_result():
    recording = record(lambda s: in_ms(s).max() - in_ms(s[2:]).min(), WRAPS)
    assert recording.result == in_ms(WRAPS).max() - in_ms(WRAPS[2:]).min()
    report = recording.audit()
    assert all(error.differing != 0 for error in report.outputs)
    assert "is a NumPy scalar" in report_details(report)


def test_printed_dates_are_outputs_of_their_unit(capsys):
    def program(s):
        y = in_ms(s[2:]) * 2
        x = in_ms(s)
        print(x[0])
        print(x[:2])
        return y

    report = record(program, WRAPS).audit()
    assert capsys.readouterr().out
    errors = [(error.dtype, error.elements, error.differing) for error in report.outputs]
    assert errors == [("timedelta64[ms]", *counted) for counted in ((1, 0), (1, 1), (2, 2))]

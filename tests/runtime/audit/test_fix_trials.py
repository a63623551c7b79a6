"""Fixes that an audit runs: what it measures, what it leaves out, and what it cannot run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir.passes import CastReport
from graphir.runtime import record

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def audited(function: Callable[..., Any], *arrays: Any) -> CastReport:
    return record(function, *arrays).audit()


def scaled(ids: Any, weight: Any) -> Any:
    return ids * np.int16(1000) * weight


def spread(x: Any) -> Any:
    return (x * x).mean() - x.mean() ** 2


def stored(rows: Any) -> Any:
    totals = np.zeros(3, np.int64)
    totals[1:] = rows[1:] * 0.5
    return totals


def two_wide(x: Any) -> tuple[Any, Any]:
    table = np.arange(4) * 0.5
    ramp = np.linspace(0, 1, 4)
    return x * table + ramp, x * np.float32(2)


def ranked(ids: Any) -> Any:
    keys = ids * np.int16(1000)
    return np.array([float(str(key)) for key in keys]) * 2


@pytest.mark.parametrize(
    ("function", "arrays", "texts"),
    [
        (
            scaled,
            (np.arange(50, dtype=np.int16), np.ones(50, np.float32)),
            ['ids.astype("int32") * np.int16(1000)'],
        ),
        # The edit of the difference alone does not mend it: that of its whole line does.
        (
            spread,
            (np.linspace(1e4, 1e4 + 1, 50, dtype=np.float32),),
            ['x.astype("float64") * x.astype("float64")', 'x.astype("float64").mean()'],
        ),
        (stored, (np.array([1, 2, 3]),), ["np.zeros(3, np.float64)"]),
    ],
)
def test_a_fix_of_wrong_values_was_run(
    function: Callable[..., Any], arrays: tuple[Any, ...], texts: list[str]
) -> None:
    (cause,) = audited(function, *arrays).loss_causes
    assert cause.fix is not None
    assert (cause.fix.grade, cause.fix.error) == ("measured", 0.0)
    assert [edit.text for edit in cause.fix.edits] == texts


def test_fixes_of_dtypes_are_run_together_and_others_keep_their_bits() -> None:
    report = audited(two_wide, np.arange(4, dtype=np.float32))
    fixes = [cause.fix for cause in report.dtype_causes if cause.fix is not None]
    assert fixes and {fix.grade for fix in fixes} == {"measured"}
    text = "; ".join(edit.text for fix in fixes for edit in fix.edits)
    assert "np.linspace(0, 1, 4, dtype=np.float32)" in text


def test_what_a_run_cannot_show_keeps_its_grade() -> None:
    report = audited(ranked, np.arange(50, dtype=np.int16))
    assert report.unseen
    for cause in (*report.loss_causes, *report.dtype_causes):
        assert cause.fix is None or cause.fix.grade != "measured"


def test_a_difference_of_equal_values_is_no_cause() -> None:
    def residual(x: Any) -> Any:
        return x * np.float32(3) / np.float32(7) - x * (np.float32(3) / np.float32(7))

    report = audited(residual, np.linspace(1, 2, 20, dtype=np.float32))
    assert report.outputs[0].differing and report.sentences == []


def test_a_counter_that_stops_is_a_cause() -> None:
    def counted(counts: Any, hits: Any) -> Any:
        return counts + hits

    counts = np.array([2**24, 5], np.float32)
    (sentence,) = audited(counted, counts, np.ones(2, np.float32)).sentences
    assert "absorbs the smaller operand in 1 of 2 elements" in sentence


def test_integers_of_a_list_that_floats_round_are_casts() -> None:
    def table(ids: Any, weights: Any) -> Any:
        rows = np.array([(i, w) for i, w in zip(ids.tolist(), weights.tolist(), strict=True)])
        return rows[:, 0].astype(np.int64)

    report = audited(table, np.array([3, 2**60 + 1]), np.array([0.5, 0.25]))
    (sentence,) = report.sentences
    line = table.__code__.co_firstlineno + 1
    assert f"because line {line} changes 1 of 4 elements by int64 -> float64" in sentence


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_a_mean_in_integers_has_numpys_values(dtype: str) -> None:
    def mean(x: Any) -> Any:
        return x.mean(axis=1, dtype=dtype)

    x = np.arange(-60, 60, dtype=np.int8).reshape(4, 30)
    report = audited(mean, x)
    assert np.array_equal(report.results[0], mean(x)) and report.results[0].dtype == dtype


def test_a_cast_that_makes_all_values_zero_is_named() -> None:
    def stored(image: Any) -> Any:
        return np.array([row for row in image], dtype=np.uint8)  # noqa: C416

    image = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
    (sentence,) = audited(stored, image).sentences
    assert f"line {stored.__code__.co_firstlineno + 1} changes 12 of 12 elements" in sentence
    assert audited(stored, image * 200).sentences == []


def test_a_time_that_float32_rounds_is_named_where_errors_are_unknown() -> None:
    def bins(times: Any) -> Any:
        kept = np.zeros(len(times), np.float32)
        for i, time in enumerate(times.tolist()):
            kept[i] = time + 7
        return np.unique(kept) - kept[0]

    sentence, *_ = audited(bins, 1.7e9 + 40.0 * np.arange(4)).sentences
    assert f"line {bins.__code__.co_firstlineno + 3} changes " in sentence


def test_an_edit_has_the_names_that_its_file_has_for_libraries(tmp_path: Path) -> None:
    file = tmp_path / "ramp.py"
    text = "import numpy\n\ndef ramped(x):\n    return x * numpy.arange(6)\n"
    file.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)
    (cause,) = record(names["ramped"], np.ones(6, np.float32)).report().dtype_causes
    assert cause.fix is not None
    assert [edit.text for edit in cause.fix.edits] == ["numpy.arange(6, dtype=numpy.float32)"]

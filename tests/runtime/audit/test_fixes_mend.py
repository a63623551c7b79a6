"""The edits that an audit of a public bug offers mend the program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import CastReport, cast_report
from graphir.passes.analysis.explanations.edits import Edit
from graphir.runtime import record
from tests.promotion_bugs.cases import QUICK_OR_ALL, PromotionBug

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def edits_of(report: CastReport) -> tuple[Edit, ...]:
    """The edits of the first sentence that has some; without any, that of the first row."""
    for sentence in report.answers:
        if sentence.cause is not None and sentence.cause.fix is not None:
            return sentence.cause.fix.edits
    edit = report.sites[0].row.edit
    return (edit,) if edit is not None and edit.is_code else ()


def applied(source: str, edits: Sequence[Edit]) -> str:
    lines = source.splitlines()
    for edit in sorted(edits, key=lambda x: x.place.place, reverse=True):
        _, start, column, end, end_column = edit.place.place
        whole = lines[start - 1][: column - 1] + edit.text + lines[end - 1][end_column - 1 :]
        lines[start - 1 : end] = [whole]
    return "\n".join(lines)


def is_mended(case: PromotionBug, folder: Path) -> bool:
    report = record(case.module.program, *case.module.inputs(folder)).audit()
    source = Path(case.module.__file__ or "").read_text(encoding="utf-8")
    module: Any = ModuleType(case.module.__name__)
    exec(compile(applied(source, edits_of(report)), "mended.py", "exec"), vars(module))
    return not module.shows_fault(module.program(*module.inputs(folder)))


@pytest.mark.parametrize("cases", QUICK_OR_ALL)
def test_the_fixes_of_public_bugs_mend_them(cases: Sequence[PromotionBug], tmp_path: Path) -> None:
    outcomes: dict[str, bool] = {}
    for case in cases:
        (tmp_path / case.name).mkdir()
        outcomes[case.name] = is_mended(case, tmp_path / case.name)
    assert sum(outcomes.values()) >= len(cases) - 1, outcomes


# -- the kinds of fixes, on other programs


def sentences(function: Any, *arguments: Any) -> list[str]:
    return record(function, *arguments).audit().sentences


def counted(events: Any) -> Any:
    counts = np.zeros(3, np.uint8)
    for event in events:
        counts[event % 3] += np.uint8(200)
    return counts


def scaled(rows: Any) -> Any:
    total = rows.copy()
    total[1:] *= np.int16(1000)
    return total


def mean(values: Any) -> Any:
    total = np.float16(0)
    for value in values:
        total += value
    return total


def packed(red: Any, green: Any, blue: Any) -> Any:
    return (red << 16) + (green << 8) + blue


def offsets(keys: Any) -> Any:
    return (keys + np.arange(len(keys))).astype(np.uint64)


def signed(keys: Any, steps: Any) -> Any:
    return (keys + steps).astype(np.uint64)


def distance(x: Any) -> Any:
    return np.log(1 - np.minimum(x, 1 - 1e-12))


def test_a_fix_of_elements_is_where_the_program_makes_the_array() -> None:
    (sentence,) = sentences(counted, np.arange(6))
    assert re.search(r"; write np.zeros\(3, np.uint8, dtype=.*|np.zeros\(3, np.int16\)", sentence)
    (sentence,) = sentences(scaled, np.array([100, 50], np.int16))
    assert sentence.endswith("`total[1:] *= np.int16(1000)`")  # the program does not make `rows`


def test_a_fix_of_a_running_number_casts_the_value() -> None:
    (sentence,) = sentences(mean, np.full(120, 31, np.float16))
    assert "; write total += np.float64(value) (measured" in sentence


def test_steps_of_one_line_are_fixed_together() -> None:
    red = np.array([200, 100], np.uint8)
    (sentence,) = sentences(packed, red, red, red.astype(np.int32))
    assert '; write red.astype("int32") << 16 and green.astype("int32") << 8 (measured' in sentence


def test_integers_of_unlike_signs_stay_integers() -> None:
    keys = np.array([2**60 + 1, 2**60 + 3], np.uint64)
    (sentence,) = sentences(offsets, keys)
    assert "differs in 2 of 2 elements because line " in sentence
    assert '; write keys + np.arange(len(keys)).astype("uint64") (measured' in sentence
    (sentence,) = sentences(signed, keys, np.array([1, -2]))
    assert '; write keys.astype("int64") + steps (measured' in sentence
    graph = Graph("keys", rules="numpy")
    x = graph.input("uint64", (2,)) + graph.input("int32", (2,))
    graph.output(x)
    assert {row.fix for row in cast_report(graph)} and 'astype("int64")' in cast_report(graph)[
        0
    ].fix


def test_a_number_that_its_dtype_rounds_is_kept_where_it_made_the_error() -> None:
    (sentence,) = sentences(distance, np.ones(2, np.float32))
    assert 'np.minimum(x.astype("float64"), 1 - 1e-12)' in sentence

"""The fix that an audit of a public bug names mends the program, typed where the report says."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import CastReport, cast_report
from graphir.runtime import record
from tests.promotion_bugs.cases import QUICK_OR_ALL, PromotionBug

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Span = tuple[int, int, int, int]


def spans(source: str, line: int) -> list[Span]:
    """The spans (line, column, end line, end column) of the expressions that start at a line."""
    nodes = [x for x in ast.walk(ast.parse(source)) if isinstance(x, (ast.expr, ast.stmt))]
    places = [(x.lineno, x.col_offset, x.end_lineno or 0, x.end_col_offset or 0) for x in nodes]
    return list(dict.fromkeys(place for place in places if place[0] == line))


def bare(text: str) -> str:
    """A text without what fixes add: casts, `dtype=`, `np.clip`, parentheses, spaces."""
    text = re.sub(r'\.astype\("\w+"\)|,? ?dtype=np\.\w+|np\.(float|int|uint)\d+', "", text)
    text = re.sub(r"np\.clip\((.*), -?\d+, \d+\)", r"\1", text)
    return re.sub(r"[\s()]|copy=\w+", "", text)


def mended(source: str, fix: str, line: int) -> Iterator[str]:
    """The program with each place of the fixed lines replaced that reads as the fix does."""
    choices: list[list[tuple[Span, str]]] = []
    for part in fix.split(" and "):
        text, _, at = part.partition(" in line ")
        places = spans(source, int(at or line))
        lines = source.splitlines()
        same = [x for x in places if bare(excerpt(lines, x)) == bare(text)]
        choices.append([(place, text) for place in same])
    for replacements in itertools.product(*choices):
        lines = source.splitlines()
        for (start, column, end, end_column), text in sorted(replacements, reverse=True):
            whole = lines[start - 1][:column] + text + lines[end - 1][end_column:]
            lines[start - 1 : end] = [whole]
        yield "\n".join(lines)


def excerpt(lines: list[str], span: Span) -> str:
    start, column, end, end_column = span
    if start == end:
        return lines[start - 1][column:end_column]
    between = lines[start : end - 1]
    return "\n".join([lines[start - 1][column:], *between, lines[end - 1][:end_column]])


def advice(report: CastReport) -> tuple[str, int]:
    """The fix and the line of the first sentence; without sentences, those of the first row."""
    for sentence in report.sentences:
        line = re.search(r"\bline (\d+) ", sentence)
        if "; write " in sentence and line:
            fix = sentence.rpartition("; write ")[2]
            return re.sub(r" \((inferred|measured): [^()]*\)$", "", fix), int(line[1])
    row = report.sites[0].row
    return row.fix, row.location.line


def is_mended(case: PromotionBug, folder: Path) -> bool:
    report = record(case.module.program, *case.module.inputs(folder)).audit()
    source = Path(case.module.__file__ or "").read_text(encoding="utf-8")
    for text in mended(source, *advice(report)):
        module: Any = ModuleType(case.module.__name__)
        exec(compile(text, "mended.py", "exec"), vars(module))
        if not module.shows_fault(module.program(*module.inputs(folder))):
            return True
    return False


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
    (sentence,) = sentences(mean, np.full(1200, 3, np.float16))
    assert sentence.endswith("; write total += np.float64(value)")


def test_steps_of_one_line_are_fixed_together() -> None:
    red = np.array([200, 100], np.uint8)
    (sentence,) = sentences(packed, red, red, red.astype(np.int32))
    assert sentence.endswith('; write red.astype("int32") << 16 and green.astype("int32") << 8')


def test_integers_of_unlike_signs_stay_integers() -> None:
    keys = np.array([2**60 + 1, 2**60 + 3], np.uint64)
    (sentence,) = sentences(offsets, keys)
    assert "differs in 2 of 2 elements because line " in sentence
    assert sentence.endswith('; write keys + np.arange(len(keys)).astype("uint64")')
    (sentence,) = sentences(signed, keys, np.array([1, -2]))
    assert sentence.endswith('; write keys.astype("int64") + steps')
    graph = Graph("keys", rules="numpy")
    x = graph.input("uint64", (2,)) + graph.input("int32", (2,))
    graph.output(x)
    assert {row.fix for row in cast_report(graph)} and 'astype("int64")' in cast_report(graph)[
        0
    ].fix


def test_a_number_that_its_dtype_rounds_is_kept_where_it_made_the_error() -> None:
    (sentence,) = sentences(distance, np.ones(2, np.float32))
    assert 'np.minimum(x.astype("float64"), 1 - 1e-12)' in sentence

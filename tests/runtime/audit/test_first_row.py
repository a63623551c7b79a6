"""The first row and the sentence of an audit name the guilty line of public bugs and faults.

The programs were written before the audit could find their faults: see tests/promotion_bugs and
tests/planted_faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from graphir.passes import CastReport
from graphir.runtime import record
from tests.planted_faults.cases import CLEAN, FAULTY
from tests.planted_faults.program import Program
from tests.promotion_bugs.cases import QUICK_OR_ALL, PromotionBug
from tests.support.guilty_lines import BORN, marked_lines
from tests.support.tables import quick

LONGEST = ("accumulation.dot_products", "accumulation.trajectory")
"""Faulty programs whose audits take as long as those of all others."""

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def audited(program: Program) -> CastReport:
    return record(program.function, *program.inputs(np.random.default_rng(0))).audit()


def first_line(report: CastReport) -> int:
    """The line of the first row; 0 without rows."""
    return report.sites[0].row.location.line if report.sites else 0


def names(sentences: list[str], lines: list[int]) -> bool:
    return any(f"line {line} " in sentence for sentence in sentences for line in lines)


@pytest.mark.parametrize("cases", QUICK_OR_ALL)
def test_the_first_row_of_a_public_bug_is_its_line(
    cases: Sequence[PromotionBug], tmp_path: Path
) -> None:
    rows: dict[str, bool] = {}
    sentences: dict[str, bool] = {}
    for case in cases:
        folder = tmp_path / case.name
        folder.mkdir()
        report = record(case.module.program, *case.module.inputs(folder)).audit()
        source = Path(case.module.__file__ or "").read_text(encoding="utf-8")
        lines = marked_lines(source) + marked_lines(source, BORN)
        rows[case.name] = first_line(report) in lines
        sentences[case.name] = names(report.sentences, lines)
    assert sum(rows.values()) >= len(cases) - 2, rows
    assert sum(sentences.values()) >= len(cases) - 2, sentences


@pytest.mark.parametrize(
    "programs",
    [
        [program for program in FAULTY[::2] if program.name not in LONGEST],
        pytest.param(FAULTY, marks=pytest.mark.exhaustive),
    ],
    ids=["quick", "all"],
)
def test_the_first_row_of_a_planted_fault_is_its_line(programs: Sequence[Program]) -> None:
    missing = []
    for program in programs:
        report, line = audited(program), program.guilty_line or -1
        if first_line(report) != line or not names(report.sentences, [line]):
            missing.append(program.name)
    assert len(missing) <= len(programs) // 20, missing


@pytest.mark.parametrize("program", quick(CLEAN, 2), ids=lambda program: program.name)
def test_no_sentence_accuses_a_clean_program(program: Program) -> None:
    assert audited(program).sentences == []

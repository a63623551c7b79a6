"""Faulty programs are wrong under plain NumPy, clean ones are right; six of each a class."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.planted_faults.cases import CLEAN, FAULTY, KINDS, PROGRAMS
from tests.planted_faults.program import Program

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
WRONG, RIGHT = 1e-2, 4e-3
"""Relative errors: a faulty program has more than the first, a clean one at most the second."""


@pytest.mark.parametrize("program", FAULTY, ids=lambda program: program.name)
def test_a_faulty_program_is_wrong(program: Program) -> None:
    assert program.error() > WRONG
    assert program.guilty_line is not None


@pytest.mark.parametrize("program", FAULTY, ids=lambda program: program.name)
def test_the_guilty_line_names_the_operand(program: Program) -> None:
    with open(program.function.__code__.co_filename, encoding="utf-8") as file:
        line = file.read().splitlines()[(program.guilty_line or 0) - 1]
    assert (program.operand or "") in line


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.name)
def test_a_clean_program_is_right(program: Program) -> None:
    assert program.error() <= RIGHT
    assert program.guilty_line is None


def test_each_class_has_six_of_both() -> None:
    expected = dict.fromkeys(KINDS, 6)
    assert Counter(program.kind for program in FAULTY) == expected
    assert Counter(program.kind for program in CLEAN) == expected
    assert len({program.name for program in PROGRAMS}) == 120

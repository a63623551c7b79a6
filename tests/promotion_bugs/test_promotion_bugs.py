"""Each program shows its fault under plain NumPy, and its fix mends it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.promotion_bugs.cases import CASES, PromotionBug
from tests.support.guilty_lines import BORN, marked_lines, repaired

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_program_shows_its_fault_and_its_fix_mends_it(case: PromotionBug, tmp_path: Path) -> None:
    module = case.module
    assert case.thread.startswith("https://")
    assert module.shows_fault(module.program(*module.inputs(tmp_path)))
    mended = repaired(module, case.fix, case.fix_at)
    assert not mended.shows_fault(mended.program(*mended.inputs(tmp_path)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_program_has_one_guilty_line_that_names_its_operand(case: PromotionBug) -> None:
    source = Path(case.module.__file__ or "").read_text(encoding="utf-8")
    (number,) = marked_lines(source)
    line = source.splitlines()[number - 1]
    named = case.operand in line or case.name == "observations"  # `phase` is an item of `parts`
    assert named and len(marked_lines(source, BORN)) <= 1
    assert 15 <= len(source.splitlines()) <= 70


def test_all_programs_are_listed() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")}
    assert modules - {"__init__", "cases", "test_promotion_bugs"} == {case.name for case in CASES}
    assert len(CASES) == 20 and len({case.thread for case in CASES}) == 20
    assert int(np.__version__.split(".")[0]) >= 2

"""Each program shows its fault under its library, and its fix mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.library_bugs.cases import CASES, LibraryBug, outcome
from tests.support.guilty_lines import BORN, marked_lines, repaired

FOLDER = Path(__file__).parent
MODELS = [case for case in CASES if case.library == "onnx"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.library}-{case.name}")
@pytest.mark.filterwarnings("ignore")
def test_a_program_shows_its_fault_and_its_fix_mends_it(case: LibraryBug) -> None:
    pytest.importorskip(case.library)
    module = case.module
    assert module.shows_fault(outcome(case.library, module))
    mended = repaired(module, case.fix, case.fix_at)
    result = outcome(case.library, mended)
    assert not isinstance(result, Exception), result
    assert not mended.shows_fault(result)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.library}-{case.name}")
def test_a_program_has_one_guilty_line_that_names_its_operand(case: LibraryBug) -> None:
    path = FOLDER / f"{case.library}_bugs" / f"{case.name}.py"
    source = path.read_text(encoding="utf-8")
    (number,) = marked_lines(source)
    line = source.splitlines()[number - 1]
    assert case.library == "onnx" or case.operand in line
    assert (case.node is not None) == (case.library == "onnx")
    assert len(marked_lines(source, BORN)) <= 1


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_the_guilty_node_takes_the_operand(case: LibraryBug) -> None:
    pytest.importorskip("onnx")
    (node,) = [node for node in case.module.model().graph.node if node.name == case.node]
    assert case.operand in node.input


def test_all_programs_are_listed() -> None:
    for library in ("jax", "torch", "onnx"):
        modules = {path.stem for path in (FOLDER / f"{library}_bugs").glob("*.py")} - {"__init__"}
        assert modules == {case.name for case in CASES if case.library == library}
        assert len(modules) == 10

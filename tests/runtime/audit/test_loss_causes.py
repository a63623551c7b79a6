"""The causes of output errors, found by trials: their lines, effects, other places and fixes."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest

from graphir import Graph
from graphir.passes import CastReport
from graphir.runtime import audit, record
from tests.runtime.audit import narrowed_programs as programs

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
GUILTY = (*programs.NARROWED, *programs.CONSTANTS, *programs.PAIRS)


@pytest.mark.parametrize("program", GUILTY, ids=lambda program: program.__name__)
def test_the_sentence_names_the_lines_that_lose(program: Callable[[], CastReport]) -> None:
    report, lines = program(), programs.guilty_lines(program)
    (sentence,) = [x for x in report.sentences if "because" in x]
    assert lines and all(f"line {line} " in sentence for line in lines), sentence
    (cause,) = report.loss_causes
    assert [step.location.line for step in cause.steps] == lines
    assert cause.is_measured and cause.after <= cause.before / 10


@pytest.mark.parametrize("program", programs.DELIBERATE, ids=lambda program: program.__name__)
def test_roundings_that_the_program_asks_for_are_not_explained(
    program: Callable[[], CastReport],
) -> None:
    report = program()
    assert report.outputs[0].differing and report.sentences == []


def test_a_pair_has_one_fix_of_both_lines() -> None:
    (sentence,) = programs.differences_of_rows().sentences
    assert sentence.endswith(
        'write levels[1:].astype("int16") - levels[:-1].astype("int16") '
        "and np.zeros_like(levels, dtype=np.int16) in line "
        f"{programs.guilty_lines(programs.differences_of_rows)[0] - 1} (measured: error 0)"
    )


def test_the_last_loss_that_removes_the_error_is_the_cause() -> None:
    graph = Graph("chain", rules="jax")
    x = graph.input("uint8", (3,))
    doubled = x + x
    tripled = doubled + x
    graph.output(tripled.cast("float32") * 0.5)
    values = np.array([100, 120, 200], np.uint8)
    (cause,) = audit(graph, values).loss_causes
    # Promotion gives the second sum the wide dtype of the first one; the first one is lost to it.
    assert [x.location.line for x in cause.steps] == [doubled.location.line]
    assert (cause.outputs, cause.others, cause.after) == ((0,), (), 0.0)


def test_earlier_steps_that_remove_the_error_too_are_other_places() -> None:
    def function(scores):
        weights = np.exp(scores)
        squares = weights * weights
        return squares / squares.sum()

    report = record(function, np.array([7, 8, 9], np.float16)).audit()
    (cause,) = report.loss_causes
    start = function.__code__.co_firstlineno
    assert [x.location.line for x in cause.steps] == [start + 2]
    assert all(x.location.line < start + 2 for x in cause.others)
    assert report.sites[0].row.symbol is cause.steps[0]


def test_the_gravest_cause_comes_first() -> None:
    graph = Graph("two", rules="jax")
    x = graph.input("uint8", (2,))
    graph.output(x + x, x * x)
    causes = audit(graph, np.full(2, 200, np.uint8)).loss_causes
    assert [cause.outputs for cause in causes] == [(1,), (0,)]
    assert causes[0].before > causes[1].before


def test_without_blame_there_are_no_causes() -> None:
    graph = Graph("sum", rules="jax")
    x = graph.input("uint8", (2,))
    graph.output(x + x)
    report = audit(graph, np.full(2, 200, np.uint8), blame=False)
    assert report.loss_causes == () and report.sentences == []


def test_a_cause_without_work_for_trials_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("graphir.runtime.audit.trials"), "TRIALS", 0)
    report = programs.differences_of_rows()
    (cause,) = report.loss_causes
    assert not cause.is_measured and cause.after == cause.before
    assert ", by estimate; write" in report.sentences[0]

"""NumPy programs recorded: results bit-equal to a plain run, graphs that give them again."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

from graphir import GraphError
from graphir.runtime import record
from graphir.runtime.recording.captured import Brought
from tests.runtime.recording.recorded_libraries import PATHS, call_of, installed
from tests.support.recorded_programs import PROGRAMS
from tests.support.replays import EXACT, gives_again, same_results
from tests.support.tables import every, sampled

NOT_FOLLOWED: dict[str, list[str]] = {}
"""What the recording of a program takes as given."""

# A product of strided arrays, which BLAS adds up in another order.
CLOSE = {"gram_schmidt": {"rtol": 1e-14, "atol": 1e-15}}


@sampled(2)
@every("program", PROGRAMS)
def test_programs_record_and_run_again(program):
    args = PROGRAMS[program]
    recording = record(program, *copy.deepcopy(args))
    assert same_results(program(*copy.deepcopy(args)), recording.result)
    assert gives_again(recording, **CLOSE.get(program.__name__, EXACT)) > 0


@every("program", PROGRAMS)
def test_programs_are_followed_whole(program):
    notes = record(program, *copy.deepcopy(PROGRAMS[program])).notes
    assert [note.what for note in notes] == NOT_FOLLOWED.get(program.__name__, [])


@sampled(2)
@every(("library", "path"), PATHS)
@pytest.mark.filterwarnings("ignore")
def test_functions_of_libraries_record_and_run_again(library, path):
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    function, args, keywords = call_of(library, path)
    recording = record(function, *copy.deepcopy(args), **copy.deepcopy(keywords))
    plain = function(*copy.deepcopy(args), **copy.deepcopy(keywords))
    assert same_results(plain, recording.result)
    assert gives_again(recording, rtol=1e-4, atol=1e-5) > 0


def test_there_are_enough_of_them():
    assert len(PROGRAMS) >= 20
    assert sum(library != "numpy" for library, _ in PATHS) >= 40


def test_nothing_of_ours_fails_unseen(monkeypatch):
    """What cannot be recorded is refused by UnrecordedError alone, not by a mistake here."""
    from graphir.runtime.recording.recorder import Recorder

    recorders = []
    made = Recorder.__init__

    def remember(self, *args):
        made(self, *args)
        recorders.append(self)

    monkeypatch.setattr(Recorder, "__init__", remember)
    calls = [(one, args, {}) for one, args in PROGRAMS.items()]
    calls += [call_of(library, path) for library, path in PATHS if library == "numpy"]
    for function, args, keywords in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record(function, *copy.deepcopy(args), **keywords)
    assert len(recorders) == len(calls)
    assert [fault for one in recorders for fault in one.faults] == []


LEFT_OUT = np.ma.masked


def test_a_program_may_reach_the_constant_masked_whose_attributes_refuse_writes():
    def doubled(x):
        return LEFT_OUT if x is None else x * 2

    recording = record(doubled, np.arange(3.0))
    assert recording.result.tolist() == [0, 2, 4]
    assert [x.op.name for x in recording.graph.outputs] == ["multiply"]


def test_masked_arrays_that_a_program_brings_hold_the_same_while_data_and_mask_do():
    for write in (lambda x: x.__setitem__(0, 5), lambda x: x.__setitem__(0, np.ma.masked)):
        array = np.ma.array([1, 2], mask=[False, True])
        brought = Brought([array])
        assert array in brought
        write(array)
        assert array not in brought


def test_a_recording_inside_a_recording_is_refused():
    with pytest.raises(GraphError, match="a recording within a recording"):
        record(lambda x: record(np.sin, x), np.arange(3.0))

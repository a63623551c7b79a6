"""NumPy programs recorded: results bit-equal to a plain run, graphs that give them again."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from runtime import interpret, record
from tests.recorded_programs import PROGRAMS


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


def identical(a, b):
    """The same type, dtype, shape and bytes."""
    same = type(a) is type(b) and np.shape(a) == np.shape(b)
    a, b = np.asarray(a), np.asarray(b)
    return same and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_results_are_those_of_a_plain_run(program):
    plain = leaves(program(*copy.deepcopy(PROGRAMS[program])))
    recorded = leaves(record(program, *copy.deepcopy(PROGRAMS[program])).result)
    assert len(plain) == len(recorded)
    for one, other in zip(plain, recorded, strict=True):
        assert identical(one, other)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_the_graph_gives_the_results_again(program):
    recording = record(program, *copy.deepcopy(PROGRAMS[program]))
    recording.graph.verify()
    again = interpret(recording.graph, *recording.inputs)
    again = again if isinstance(again, tuple) else (again,)
    assert len(again) == len(recording.outputs) > 0
    for one, other in zip(again, recording.outputs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, equal_nan=True)

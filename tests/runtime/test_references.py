"""Where reference counts do not tell who holds an object, nothing depends on them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from graphir import Graph
from graphir.runtime import Program, array_api, jit
from graphir.runtime.program.memory import Recycler
from graphir.runtime.results import counts_references


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)


def test_counts_tell_on_this_python() -> None:
    assert counts_references() == getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.usefixtures("uncounted")
def test_memory_of_results_is_not_used_again() -> None:
    recycler = Recycler()
    arrays = [recycler.empty((1 << 20,), np.dtype(np.float32)) for _ in range(3)]
    assert len({array.ctypes.data for array in arrays}) == 3
    g = Graph("g")
    x = g.input("float32", ("n",), name="x")
    g.output(x + 1.0)
    program = Program(g, native="off")
    results = [program(np.full(1 << 20, value, np.float32)) for value in (1, 2)]
    assert [result[0] for result in results] == [2, 3]


@pytest.mark.usefixtures("uncounted")
def test_lazy_values_count_as_held_and_arrays_are_copied_before_a_write() -> None:
    x = array_api.asarray([1.0, 2.0])
    y = (x + 1.0) * 2.0
    x[0] = 5.0
    assert np.asarray(y).tolist() == [4.0, 6.0]
    assert np.asarray(x).tolist() == [5.0, 2.0]


@pytest.mark.usefixtures("uncounted")
def test_constants_of_a_trace_count_as_held() -> None:
    """So a function is traced again for one that is written to, which the trace itself had made."""

    @jit
    def shifted(x: np.ndarray) -> np.ndarray:
        return x + np.arange(3.0)

    for start in (0.0, 1.0):
        assert shifted(np.full(3, start)).tolist() == [start, start + 1, start + 2]

"""Where what is recorded happened: lines, columns and layers of the user's program."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

from graphir.passes import cast_report
from graphir.runtime import record
from tests.support.packages import ROOT
from tests.support.tables import every


def scaled(x, w):
    return x * w  # here


def model(x, w):
    y = scaled(x, w) + np.float64(1)
    return [one.mean() for one in (y, np.cumsum(y))]


def place(function, text):
    """The line and column, from 1, of a text in a function."""
    lines, first = inspect.getsourcelines(function)
    at = next(i for i, line in enumerate(lines) if text in line)
    return first + at, lines[at].index(text) + 1


def test_promotions_have_their_line_column_and_layer():
    recording = record(model, np.arange(3, dtype=np.int16), np.ones(3, np.float32))
    found = [
        (str(one.source), (one.location.line, one.location.column), one.location.layer)
        for one in cast_report(recording.graph)
    ]
    assert found == [
        ("int16", place(scaled, "x * w"), "scaled"),
        ("float32", place(model, "scaled(x, w) + np"), ""),
    ]
    assert all(one.location.file.endswith("test_recording_locations.py") for one in recording.graph)


def test_what_numpy_does_inside_is_at_the_line_that_called_it():
    def program(x):
        return np.percentile(x, 30) + np.trapezoid(x)

    recording = record(program, np.arange(5, dtype=np.int8))
    inside = [one for one in recording.graph if one.args]
    first = inspect.getsourcelines(program)[1]
    assert len(inside) > 5
    assert {one.location.line for one in inside} == {first + 1}


def test_a_function_of_numpy_is_at_the_line_that_records_it():
    recording = record(np.var, np.arange(5, dtype=np.int8))
    here = inspect.currentframe().f_lineno - 1
    assert [one.location.line for one in recording.graph.outputs] == [here]


def test_loops_share_their_locations():
    def program(x):
        for _ in range(3):
            x = x * 2.0
        return x

    graph = record(program, np.ones(2)).graph
    made = [one.location for one in graph if len(one.args) == 2]
    assert len(made) == 3
    assert len({id(one) for one in made}) == 1


def test_inputs_are_named_by_the_parameters():
    assert record(model, np.ones(2), w=np.ones(2)).graph.input_names == ["x", "w"]
    assert record(lambda *args: args[0] + args[1], 1, np.ones(2)).graph.input_names == ["x0"]


@every(
    "call",
    [
        lambda x, n: np.average(x, weights=n),
        lambda x, n: np.einsum("i,j->ij", x, n),
        lambda x, n: np.linspace(x[0], n[1], 5),
    ],
)
def test_what_numpy_does_within_a_call_is_all_of_the_call(call):
    rows = record(call, np.ones(3, np.float32), np.arange(3)).report().only("implicit")
    assert rows
    for row in rows:
        assert row.location.compound
        assert row.text.startswith("np.")
        assert row.text.endswith(")")
        assert not row.fix, "its operands are not those of the op"
        again = pickle.loads(pickle.dumps(row.location))
        assert again.compound
        assert again.matches(row.location)


@every("call", [np.sum, np.max, np.clip, np.cumsum, lambda x, *_: x.sum()])
def test_a_function_that_is_one_op_has_its_operands(call):
    def f(x):
        return call(x + np.float64(1), 0, 1) if call is np.clip else call(x + np.float64(1))

    symbols = record(f, np.ones(3, np.float32)).graph.symbols
    assert not any(symbol.location.compound for symbol in symbols)


def test_the_literal_of_a_power_has_the_line_of_the_program() -> None:
    report = record(lambda x: 10.0 ** (x[0] * 2), np.arange(4, dtype=np.float32)).audit()
    assert {row.location.file.rsplit("/", 1)[-1] for row in report.rows} == {Path(__file__).name}


def test_the_first_step_of_a_process_on_a_numpy_scalar_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("""
import numpy as np
from graphir.runtime import record

def f(x):
    return np.float64(2) < x

symbols = record(f, np.ones(3, np.float32)).graph.symbols
print({symbol.location.line for symbol in symbols if symbol.op.name == "less"})
""")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "first.py")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "{6}\n"

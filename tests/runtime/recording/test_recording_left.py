"""What a recorded program is given and leaves: dicts, written arguments, objects, nothing."""

import numpy as np
import pytest

from graphir import ExecutionError
from graphir.passes.analysis.casts.conversion import SILENT
from graphir.runtime import interpret, record
from tests.support.tables import every


def same(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    return (found.dtype, found.shape, found.tobytes()) == (
        wanted.dtype,
        wanted.shape,
        wanted.tobytes(),
    )


def rerun(recording):
    """What the graph computes from the inputs."""
    found = interpret(recording.graph, *recording.inputs)
    return found if isinstance(found, tuple) else (found,)


def held(recording):
    assert all(map(same, rerun(recording), recording.outputs))
    return [row for row in recording.report() if row.kind in SILENT]


class Model:
    def __init__(self):
        self.weights = np.ones(3, np.float32)

    def fit(self, x):
        self.weights = self.weights - x * np.float64(0.1)


def layer(params, x):
    params["b"] += np.float64(0.1)
    params["new"] = x * 2
    return x @ params["layers"][0]["w"] + params["b"]


def test_arrays_in_dicts_are_inputs_and_what_is_left_there_is_plain():
    def given():
        return {"layers": [{"w": np.ones((3, 2), np.float16)}], "b": np.zeros(2, np.float32)}

    x, params, plainly = np.ones(3, np.float32), given(), given()
    recording = record(layer, params, x)
    wanted = layer(plainly, x)
    assert same(recording.result, wanted)
    assert params.keys() == plainly.keys()
    assert all(type(params[key]) is np.ndarray for key in ("b", "new"))
    assert same(params["b"], plainly["b"])
    assert same(params["new"], plainly["new"])
    assert recording.graph.input_names == ["w", "b", "x"]
    assert not recording.notes
    assert {str(row.source) for row in held(recording)} >= {"float16", "float64"}


def test_an_argument_that_is_written_to_is_an_output():
    def step(position, speed):
        position += speed * np.float64(0.1)

    position, speed = np.ones(3, np.float32), np.ones(3, np.float32)
    recording = record(step, position, speed)
    assert recording.result is None
    assert same(recording.outputs[0], position)
    assert len(recording.outputs) == 1
    assert [row.operand for row in held(recording) if not row.exact] == ["result"]
    assert recording.audit().outputs[0].differing == 3


def test_what_a_method_sets_is_an_output():
    model = Model()
    recording = record(model.fit, np.ones(3, np.float32))
    assert type(model.weights) is np.ndarray
    assert same(recording.outputs[0], model.weights)
    assert held(recording)


def test_an_audit_of_nothing_says_what_to_do():
    with pytest.raises(ExecutionError, match="return arrays of numbers that NumPy computes"):
        record(lambda x: "a text", np.ones(1, np.float32)).audit()
    recording = record(lambda x: print(len(x * np.float64(2))), np.ones(1, np.float32))
    assert "arrays that it never uses count" in recording.graph.notes[0]
    assert [x.dtype for x in recording.audit().outputs] == ["float64"]
    unknown = record(lambda x: x * 2, np.ones(1, np.longdouble))
    with pytest.raises(ExecutionError, match="'numpy' has no such dtype"):
        unknown.audit()


def test_what_is_computed_later_is_not_recorded_and_a_note_says_so():
    def later(x):
        for i in range(2):
            yield x * np.float64(i)

    recording = record(later, np.ones(2, np.float32))
    assert [note.what for note in recording.notes] == ["a later"]
    assert [type(one) for one in recording.result] == [np.ndarray] * 2


@every("b", [(3,), (4, 3)])
def test_cross_products_of_vectors(b):
    a = np.array([1.5, 2, 3], np.float32)
    b = np.arange(np.prod(b), dtype=np.float64).reshape(b)
    recording = record(np.cross, a, b)
    assert same(recording.result, np.cross(a, b))
    assert type(recording.result) is np.ndarray
    held(recording)

"""Floats beyond the range of an integer: the cast has its row, and its counts are right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphir.runtime import interpret, record
from tests.support.commands import cli
from tests.support.tables import every

X = np.array([1e6, 1.5, np.nan, 3, -np.inf, -40000.7, 7, 2])
NARROW = "i2"


def into(write, shape=8):
    """A program that writes its argument into an int16 array."""

    def program(x):
        out = np.zeros(shape, NARROW)
        write(out, x)
        return out

    return program


def assigned(key, value=lambda x: x):
    return into(lambda out, x: out.__setitem__(key, value(x)))


def by_mask(out, x):
    out[out == 0] = x


def one_by_mask(out, x):
    out[out == 0] = x[0]


def added(out, x):
    np.add(out, x, out=out, casting="unsafe")


def added_where(out, x):
    np.add(out, x, out=out, casting="unsafe", where=np.arange(8) < 3)


# Each program with the floats that it casts, and to what.
PROGRAMS = {
    "assignment": (assigned(slice(None)), X, NARROW),
    "astype": (lambda x: x.astype(NARROW), X, NARROW),
    "to unsigned": (lambda x: x.astype("u1"), X, "u1"),
    "to 64 bits": (lambda x: (x * 1e14).astype("i8"), X * 1e14, "i8"),
    "a scalar": (lambda x: x[0].astype(NARROW), X[:1], NARROW),
    "array": (lambda x: np.array(x, dtype=NARROW), X, NARROW),
    "asarray": (lambda x: np.asarray(x, NARROW), X, NARROW),
    "a list": (lambda x: np.array([x, x], NARROW), np.tile(X, 2), NARROW),
    "full": (lambda x: np.full(3, x[0], NARROW), X[:1], NARROW),
    "full_like": (lambda x: np.full_like(np.zeros(3, NARROW), x[0]), X[:1], NARROW),
    "rows": (into(lambda out, x: out.__setitem__(slice(None), x), (2, 8)), X, NARROW),
    "places": (assigned([0, 1, 1, 2], lambda x: x[[0, 3, 1, 2]]), X[[0, 3, 1, 2]], NARROW),
    "a mask": (into(by_mask), X, NARROW),
    "a number by a mask": (into(one_by_mask), X[:1], NARROW),
    "flat": (into(lambda out, x: setattr(out, "flat", x)), X, NARROW),
    "put": (into(lambda out, x: out.put([1, 2, 3], x)), X[:3], NARROW),
    "copyto": (into(lambda out, x: np.copyto(out, x, casting="unsafe")), X, NARROW),
    "out=": (into(lambda out, x: np.rint(x, out=out, casting="unsafe")), np.rint(X), NARROW),
    "in place": (into(added), X, NARROW),
    "where=": (into(added_where), X[:3], NARROW),
    "dtype=": (lambda x: np.multiply(x, 2, dtype=NARROW, casting="unsafe"), X, NARROW),
    "sum": (lambda x: x.sum(dtype="i4"), X, "i4"),
    "cumsum": (lambda x: np.cumsum(x, dtype="i4"), X, "i4"),
    "concatenate": (lambda x: np.concatenate([x], dtype=NARROW, casting="unsafe"), X, NARROW),
    "trace": (lambda x: np.trace(np.diag(x), dtype="i4"), X, "i4"),
}


def counts(values, dtype):
    """How many elements change, and how many finite ones are out of range, of any machine."""
    info, changed, overflowed = np.iinfo(dtype), 0, 0
    for value in values.tolist():
        inside = math.isfinite(value) and info.min <= math.trunc(value) <= info.max
        changed += not (inside and value == math.trunc(value))
        overflowed += math.isfinite(value) and not inside
    return changed, overflowed


@every("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_the_row_stays_and_its_counts_are_right(name: str) -> None:
    program, values, dtype = PROGRAMS[name]
    wanted = program(X.copy())
    recording = record(program, X.copy())
    assert np.array_equal(recording.result, wanted)
    assert np.array_equal(interpret(recording.graph, *recording.inputs), wanted)
    assert recording.notes == ()
    report = recording.audit()
    (row,) = [one for one in report if one.source.is_float and one.target.is_integer]
    assert "range" in row.loss.kinds
    found = row.measured
    assert found.elements == len(values)
    assert (found.changed, found.overflowed) == counts(values, dtype)
    assert report.outputs[0].is_known
    assert report.outputs[0].differing


def test_values_in_range_stay_a_function_of_the_inputs() -> None:
    recording = record(assigned(slice(None)), np.arange(8) + 0.5)
    assert len(recording.graph.inputs) == 1
    assert interpret(recording.graph, np.arange(8) * 2.0).tolist() == list(range(0, 16, 2))


def test_the_status_does_not_depend_on_how_far_values_are_out(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(
        "import numpy as np\n"
        "def f(x):\n    out = np.zeros(len(x), np.int16)\n    out[:] = x\n    return out\n"
    )
    for most, status in ((1e6, 1), (1.5, 1), (3.0, 0)):
        np.save("x.npy", np.array([most, 2.0]))
        argv = ("audit", "program.py:f", "--input", "x.npy", "--fail-on", "lossy")
        assert cli(*argv)[0] == status

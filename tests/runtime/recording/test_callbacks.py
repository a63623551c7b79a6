"""Functions of the user that NumPy calls: called as in a plain run, recorded or named."""

from __future__ import annotations

import ctypes
import warnings
from typing import Any

import numpy as np
import pytest

from graphir.runtime import audit, execute, record

X = np.arange(1, 7, dtype=np.float32) / 7
CALLS: list[tuple[Any, Any]] = []


def tripled(x: Any) -> Any:
    CALLS.append((x.__class__, np.shape(x)))
    return x * np.float32(3)


DECORATED = np.vectorize(tripled)
PAIRED = np.vectorize(lambda a, b: (tripled(a), b + 1), cache=True)
TYPED = np.vectorize(tripled, otypes=["f4"])


def half(x: Any) -> Any:
    return x.astype("f2").astype(x.dtype)


PROGRAMS: dict[str, Any] = {
    "vectorize": lambda x: np.vectorize(tripled)(x),
    "decorated": lambda x: DECORATED(x.reshape(2, 3)),
    "two results": lambda x: PAIRED(x.reshape(2, 3), x[:3])[0],
    "otypes": lambda x: TYPED(x),
    "a keyword": lambda x: np.vectorize(lambda a, k: tripled(a) + k)(x, k=x[0]),
    "a number": lambda x: np.vectorize(tripled)(x[0]),
    "signature": lambda x: np.vectorize(tripled, signature="(n)->(n)")(x.reshape(2, 3)),
    "a table": lambda x: np.vectorize(lambda i: tripled(x[i]))(np.arange(6).reshape(2, 3)),
    "in columns": lambda x: np.vectorize(lambda i: tripled(x[i]))(np.arange(6).reshape(2, 3).T),
    "frompyfunc": lambda x: np.frompyfunc(tripled, 1, 1)(x).astype("f4"),
    "apply_along_axis": lambda x: np.apply_along_axis(tripled, 1, x.reshape(2, 3)),
    "apply_over_axes": lambda x: np.apply_over_axes(
        lambda a, axis: tripled(a).sum(axis, keepdims=True), x.reshape(2, 3), [0, 1]
    ),
    "fromfunction": lambda x: np.fromfunction(lambda i, j: tripled(i) * x[0] + j, (2, 3)),
    "piecewise": lambda x: np.piecewise(x, [x < 0.5, x >= 0.5], [tripled, np.sqrt]),
    "fromiter": lambda x: np.fromiter((tripled(v) for v in x), np.float32),
}
NAMED = {"two results", "in columns"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_callback_is_called_as_in_a_plain_run(name: str) -> None:
    CALLS.clear()
    expected, calls = PROGRAMS[name](X), CALLS.copy()
    CALLS.clear()
    recording = record(PROGRAMS[name], X)
    assert calls == CALLS and calls
    (output,) = recording.outputs
    assert output.dtype == expected.dtype
    assert np.array_equal(output, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_callback_is_recorded_or_named(name: str) -> None:
    recording = record(PROGRAMS[name], X)
    report = recording.audit()
    assert report.outputs[0].is_known == (name not in NAMED)
    assert "asanyarray" not in str(report) and "dtype('O')" not in str(report)
    assert "text of" not in str(report)
    if name in NAMED:
        first = str(report).splitlines()[0]
        assert "tripled (vectorized) at" in first or "<lambda> (vectorized) at" in first
    else:
        assert not report.unseen
        assert np.array_equal(execute(recording.graph, *recording.inputs), PROGRAMS[name](X))


def kept(call: Any) -> Any:
    def program(x: Any) -> Any:
        y = np.zeros(6, x.dtype)

        def keep(i: Any, v: Any) -> int:
            y[i] = v
            return 0

        call(keep)(np.arange(6), half(x))
        return y

    return program


def masked(x: Any) -> Any:
    return np.piecewise(x, [half(x) > x], [lambda v: v * 2, lambda v: -v])


LOSSY = {
    "a kept number": kept(np.vectorize),
    "a kept object": kept(lambda f: np.frompyfunc(f, 2, 1)),
    "a number": lambda x: np.vectorize(lambda v: x[0] * np.float32(v))(half(x)),
    "a choice": lambda x: np.vectorize(lambda i: x[int(i * 700) % 6])(half(x)),
    "a mask": masked,
}


MEASURED = {"a kept number", "a kept object", "a number", "a choice"}


@pytest.mark.parametrize("name", LOSSY)
def test_no_loss_before_a_callback_is_called_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossy = LOSSY[name](X)
    output = audit(LOSSY[name], X).outputs[0]
    assert output.differing != 0 and output.is_known == (name in MEASURED)
    monkeypatch.setattr("tests.runtime.recording.test_callbacks.half", lambda x: x)
    assert not np.array_equal(LOSSY[name](X), lossy)


def test_no_loss_in_a_callback_is_called_none() -> None:
    vectorize, by_first = np.vectorize, lambda f: np.vectorize(lambda v: f(v) + X[0] * 0)
    for make in (vectorize, by_first, lambda f: np.frompyfunc(f, 1, 1)):
        call = make(lambda v: np.float32(np.float16(v)) * np.float32(3))
        (output,) = audit(lambda x, call=call: call(x).astype("f4"), X).outputs
        assert output.differing == 6


@pytest.mark.parametrize("make", [np.vectorize, lambda f: np.frompyfunc(f, 2, 1)])
def test_what_a_callback_writes_may_have_lost_something(make: Any) -> None:
    def program(x: Any) -> Any:
        y = np.zeros(6, np.float32)

        def keep(i: Any, v: Any) -> int:
            y[i] = np.float32(np.float16(v))
            return 0

        make(keep)(np.arange(6), x)
        return y

    assert not np.array_equal(program(X), X)
    assert audit(program, X).outputs[0].differing == 6


def test_results_of_a_callback_are_cast_to_the_first_type() -> None:
    def program(x: Any) -> Any:
        return np.vectorize(lambda i: x[i].astype("i4") if i == 0 else x[i])(np.arange(6))

    expected = program(X * 20)
    assert expected.dtype == np.int32
    assert np.array_equal(record(program, X * 20).outputs[0], expected)


def test_an_error_of_a_callback_is_the_programs() -> None:
    def raising(v: Any) -> Any:
        CALLS.append((v, 0))
        raise KeyError("mine")

    for make in (np.vectorize, lambda f: np.frompyfunc(f, 1, 1)):
        CALLS.clear()
        with pytest.raises(KeyError, match="mine"):
            record(lambda x, make=make: make(raising)(x), X)
        assert len(CALLS) == 1


def test_the_recording_of_a_callback_raises_no_flag() -> None:
    def program(x: Any) -> Any:
        def write(i: int) -> float:
            x[i] = 1.5
            return 0.0

        np.frompyfunc(write, 1, 1)(np.arange(3))
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record(program, X.copy())


def test_numpys_class_is_as_before_after_a_recording() -> None:
    before = vars(np.vectorize).copy()
    record(PROGRAMS["vectorize"], X)
    assert vars(np.vectorize) == before


WRITERS = {
    "compiled": lambda x: ctypes.memset(x.ctypes.data, 0, 8),
    "a buffer": lambda x: memoryview(x).__setitem__(0, 7.0),
    "other bits": lambda x: np.frombuffer(x, np.int32).__setitem__(0, 3),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_written_argument_is_said_to_be_written(name: str) -> None:
    def program(x: Any) -> Any:
        WRITERS[name](x)
        return x * np.float32(2)

    report = audit(program, X.copy())
    text = "the argument x at"
    assert text in str(report).splitlines()[0]
    assert "was written to in a way that is not recorded" in str(report)
    assert "made by" not in str(report) and "as an argument" not in str(report)
    names = [output.name for output in report.outputs if not output.is_known]
    assert names == ["output0", "output1"]  # the result, and the written argument


def test_a_library_may_read_the_numbers_of_a_function_that_it_calls() -> None:
    integrate = pytest.importorskip("scipy.integrate")

    def program(x: Any) -> Any:
        total = float(x.sum() / 3)
        return integrate.quad(lambda t: t * total, 0, 1)[0] * np.ones(3)

    x = (np.arange(40) * 0.37).astype(np.float32)
    output = record(program, x).audit().outputs[0]
    assert not output.is_known

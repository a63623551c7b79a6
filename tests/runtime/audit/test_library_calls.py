"""Calls of NumPy in audits: their errors are those of the program in float64."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir import trace
from graphir.runtime import audit, record
from graphir.runtime.audit.library_calls import GREATEST
from graphir.runtime.recording.recorder_state import RecordedCall

RANDOM = np.random.default_rng(39)
X = RANDOM.normal(size=60).astype(np.float32)
M = RANDOM.normal(size=(8, 8)).astype(np.float32)
K = RANDOM.integers(0, 5, 60)


def add_at(x: Any) -> Any:
    sums = np.zeros(5, x.dtype)
    np.add.at(sums, K, x)
    return sums


def placed(x: Any) -> Any:
    y = x + x
    np.place(y, y > 0, [1, 2])
    return y + x


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "pad": lambda x: np.pad(x, 2, mode="reflect"),
    "percentile": lambda x: np.percentile(x, [5, 95]),
    "unique": lambda x: np.unique(np.round(x)),
    "add.at": add_at,
    "place": placed,
    "bincount": lambda x: np.bincount(K, weights=x),
    "choose": lambda x: np.choose(K % 2, [x, x * x]),
    "argpartition": lambda x: x[np.argpartition(x, 5)[:5]].sum(),
    "convolve": lambda x: np.convolve(x, x[:7]),
    "interp": lambda x: np.interp(x, np.arange(5.0), np.arange(5.0) ** 2),
    "fft": lambda x: np.fft.fft(x),
    "irfft": lambda x: np.fft.irfft(np.fft.rfft(x) * x[:31]),
    "lstsq": lambda x: np.linalg.lstsq(matrix(x), x[:8], rcond=None)[0],
    "solve": lambda x: np.linalg.solve(matrix(x), x[:8]),
    "inv": lambda x: np.linalg.inv(matrix(x)),
    "det": lambda x: np.linalg.det(matrix(x)),
    "svd": lambda x: np.linalg.svd(matrix(x))[1],
    "vectors": lambda x: np.linalg.svd(matrix(x))[2],
    "eigh": lambda x: np.linalg.eigh(matrix(x) + matrix(x).T)[0],
    "qr": lambda x: np.linalg.qr(matrix(x))[1],
    "cholesky": lambda x: np.linalg.cholesky(matrix(x) @ matrix(x).T + np.eye(8, dtype=x.dtype)),
    "pinv": lambda x: np.linalg.pinv(matrix(x)),
    "slogdet": lambda x: np.linalg.slogdet(matrix(x))[1],
    "norm": lambda x: np.linalg.norm(matrix(x), 2),
    "polyfit": lambda x: np.polyfit(np.arange(60, dtype=x.dtype), x, 2),
    "permutation": lambda x: np.random.default_rng(3).permutation(x),
    "choice": lambda x: np.random.default_rng(3).choice(x, 5),
    "a normal draw": lambda x: np.random.default_rng(3).normal(x, 1.0),
    "frexp": lambda x: np.frexp(x)[0],
    "modf": lambda x: np.modf(x * 3)[0],
}


def matrix(x: Any) -> Any:
    return M.astype(x.dtype) * x[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_of_a_program_with_a_call_is_that_against_float64(name: str) -> None:
    program = PROGRAMS[name]
    report = audit(lambda x: program(x * np.float32(0.1)), X)
    (output,) = report.outputs
    actual = program(X * np.float32(0.1))
    exact = program(X.astype(np.float64) * np.float64(np.float32(0.1)))
    error = np.abs(actual - exact)
    assert output.is_known and not report.hidden
    assert output.differing == np.count_nonzero(actual != exact)
    # The two runs in float64 differ by roundings of float64, by its conditions.
    noise = 1e-12 * np.abs(exact).max()
    np.testing.assert_allclose(output.largest, error.max(), rtol=1e-5, atol=noise)


@pytest.mark.parametrize("name", ["svd", "inv", "fft", "solve"])
def test_the_error_of_a_call_in_a_traced_graph(name: str) -> None:
    traced = trace(lambda x: PROGRAMS[name](x * np.float32(0.1)), X)
    output = audit(traced.graph, X).outputs[0]
    exact = PROGRAMS[name](X.astype(np.float64) * np.float64(np.float32(0.1)))
    error = np.abs(PROGRAMS[name](X * np.float32(0.1)) - exact).max()
    assert output.is_known
    np.testing.assert_allclose(output.largest, error, rtol=1e-5)


def test_a_call_has_a_row_of_its_own_rounding() -> None:
    report = audit(lambda x: np.fft.fft(x) * np.float32(2), X)
    (row,) = report.losses
    actual, exact = np.fft.fft(X), np.fft.fft(X.astype(np.float64))
    errors = np.abs(actual - exact) / np.abs(exact)
    assert (row.symbol.op.name, row.kind) == ("numpy.fft.fft", "rounding")
    assert row.measured is not None and row.shares is not None
    np.testing.assert_allclose(row.measured.relative, errors.max(), rtol=1e-5)
    np.testing.assert_allclose(row.shares[0], 1)
    assert row.measured.received == 0


def test_the_row_of_a_call_says_what_it_received() -> None:
    report = audit(lambda x: np.fft.fft(x * np.float32(0.1)), X)
    (row,) = report.losses
    narrow = X * np.float32(0.1)
    local = np.fft.fft(narrow.astype(np.float64))
    exact = np.fft.fft(X.astype(np.float64) * np.float64(np.float32(0.1)))
    right = np.linalg.norm(local - exact) / np.linalg.norm(exact)
    assert row.measured is not None and row.measured.received is not None
    np.testing.assert_allclose(row.measured.received, right, rtol=1e-5)
    assert f"beside {right:.2g} received" in str(report)
    loss = json.loads(report.to_json())["losses"][0]
    assert loss["received"] == row.measured.received


def test_calls_in_float64_round_nothing_of_their_own() -> None:
    report = audit(lambda x: np.linalg.inv(matrix(x)).astype("f4"), X.astype(np.float64))
    assert not report.losses and not report.unseen and report.outputs[0].is_known


def test_integers_that_wrap_in_a_call_are_wrong() -> None:
    def counted(x: Any) -> Any:
        counts = np.zeros(3, np.uint8)
        np.add.at(counts, np.arange(900) % 2, (x[:1] > -9).repeat(900))
        return counts

    report = audit(counted, X)
    assert report.outputs[0].is_known and report.outputs[0].differing == 2
    assert [row.kind for row in report.losses] == ["wrap"]


def test_a_call_that_is_another_in_float64_is_unknown() -> None:
    report = audit(lambda x: np.spacing(x) * 2, X)
    (step,) = report.unseen
    assert not report.outputs[0].is_known and step.hides
    assert "differs from the run by" in step.reason and "rounding explains" in step.reason


def test_functions_of_the_user_are_not_called_again() -> None:
    calls: list[int] = []

    def summed(v: Any) -> Any:
        calls.append(1)
        return v.sum()

    for program in (
        lambda x: np.apply_along_axis(summed, 0, matrix(x)),
        lambda x: np.vectorize(summed, signature="(n)->()")(matrix(x)),
    ):
        calls.clear()
        program(X)
        count = len(calls)
        audit(program, X)
        assert len(calls) == 2 * count


def test_choices_of_a_call_are_those_of_the_run() -> None:
    def ranked(x: Any) -> Any:
        y = x.astype("f2")
        return x[np.argpartition(y, 1)[:1]]

    near = np.array([1.0001, 1.0, 3.0], np.float64)
    report = audit(ranked, near)
    assert report.outputs[0].differing == 0
    (step,) = report.unseen
    assert step.decides and not step.hides
    assert str(report).startswith("decided by values: numpy.argpartition")


def test_the_calls_of_a_recording_are_recorded_as_inputs_still() -> None:
    recording = record(lambda x: np.linalg.inv(matrix(x)), X)
    assert len(recording.inputs) > 1
    assert np.array_equal(recording.outputs[0], np.linalg.inv(matrix(X)))


def test_the_bound_of_a_call_is_stated() -> None:
    assert GREATEST == 2.0**-4  # the page on recordings states it


def test_a_call_that_rounds_integers_inside_is_unknown() -> None:
    ids = 2**53 + 1 + 2 * np.arange(6)
    report = record(lambda i, w: np.bincount(i, weights=w), np.arange(6) % 3, ids).audit()
    assert not report.outputs[0].is_known and "beyond 2**53" in report.unseen[0].reason
    others = np.arange(0, 2**62, 2**56).astype(np.uint64) + np.uint64(1)
    report = record(np.isin, others, np.append(ids, others.astype(np.int64) - 1)).audit()
    assert report.results[0].sum() == report.outputs[0].differing == 63
    report = record(lambda i, w: np.bincount(i, weights=w), np.arange(6) % 3, ids - 2**53).audit()
    assert report.outputs[0].differing == 0


def test_a_call_with_several_results_runs_once_on_each_operands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = 0
    widened = RecordedCall.widened

    def counted(call: RecordedCall, operands: Any) -> Any:
        nonlocal runs
        runs += 1
        return widened(call, operands)

    monkeypatch.setattr(RecordedCall, "widened", counted)
    report = record(lambda x: np.linalg.lstsq(matrix(x), x[:8], rcond=None)[:2], X).audit()
    assert all(error.is_known for error in report.outputs)
    assert runs == 2  # on the wide operands, and on those of the run

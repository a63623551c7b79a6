"""What a plain program does a recorded one does: it never fails by its recording."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

from graphir.runtime import record
from graphir.runtime.recording import recorder
from tests.runtime.recording.recorded_libraries import installed
from tests.support.replays import EXACT, gives_again, identical, same_results
from tests.support.tables import every, sampled


def ran(call, *args):
    """What a call returns or raises, and what it leaves in its arguments."""
    own = copy.deepcopy(args)
    try:
        return call(*own), None, own
    except Exception as error:
        return None, (type(error), str(error)), own


def runs_as_plain(program, *args):
    """The recording of a program, None where it raises; it does what a plain run does."""
    result, raised, left = ran(program, *args)
    recording, raised_too, left_too = ran(lambda *own: record(program, *own), *args)
    assert raised == raised_too
    for one, other in zip(left, left_too, strict=True):
        assert identical(one, other)
    if raised is None:
        assert same_results(result, recording.result)
        assert not recording.outputs or gives_again(recording, **EXACT)
    return recording


# -- sizes that change


def grown_and_cut(x):
    y, z = x * 2, np.zeros(4)
    y.resize(5)
    z.resize((3, 3))
    z += y[1]
    z.resize(2)
    return y, z * 2


def reshaped(x):
    y = x * 2
    y.resize((4, 3), refcheck=False)
    y[0] = 1
    return y + 1


def large(x):
    y = np.zeros(700)
    y.resize(900)
    y[800:] = x[0]
    return y + 1


def columns(x):
    y = np.asfortranarray(x.reshape(4, 3) * 2)
    y.resize(7)
    return y + 1


def argument(x):
    x.resize(3, refcheck=False)
    x += 1
    return x


RESIZED = [
    *(grown_and_cut, reshaped, large, columns, argument),
    *(lambda x: x.resize(3), lambda x: x[1:].resize(3), lambda x: x[::2].resize(4)),
    *(lambda x: x.resize(), lambda x: x.resize(-1), lambda x: (x + 1).resize("no")),
]


@every("program", RESIZED)
def test_arrays_change_their_size(program):
    runs_as_plain(program, np.arange(12.0))


def test_the_argument_is_the_array_that_is_returned():
    x = np.arange(5.0)
    assert record(argument, x).result is x
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_an_array_that_has_a_view_keeps_its_size():
    def program(x):
        y = x * 2
        view = y[1:]
        y.resize(20)
        return view

    runs_as_plain(program, np.arange(3.0))


# -- values that NumPy casts, or refuses


VALUES = [1j, np.inf, np.nan, 2**40, 2**70, 1, 2.5, True, np.float32(3), np.complex128(1j)]
VALUES += [[1, 2, 3], np.arange(3), np.ones(3) * 1j, np.array(2), np.array([2.5]), "3", None]
DTYPES = [np.float64, np.int32, np.float16, np.bool_, np.complex64]


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["real", "imag", "fill"])
@pytest.mark.parametrize("writeable", [True, False])
def test_parts_and_fill_take_what_numpy_takes(dtype, how, writeable):
    def program(x, value):
        x.setflags(write=writeable)
        if how == "fill":
            x.fill(value)
        else:
            setattr(x, how, value)
        return x + x

    for value in VALUES:
        runs_as_plain(lambda x, value=value: program(x, value), np.arange(3).astype(dtype))


FUNCTIONS = ["std", "var", "mean", "sum", "prod", "median", "max", "min"]


@sampled(2)
@every("name", FUNCTIONS)
@every("value", [24, 24.5, True, 2j, [1, 2, 3], ((1, 2), (3, 4)), ()])
@pytest.mark.filterwarnings("ignore")
def test_statistics_of_python_numbers(name, value):
    function = getattr(np, name)
    runs_as_plain(lambda x: (function(value), function(value) * x), np.arange(3.0))


# -- results given


def test_results_that_are_written_over_each_other():
    runs_as_plain(lambda a: (np.divmod(a, a, out=(a, a)), a + 1), X)
    runs_as_plain(lambda a: (np.modf(a, out=(a, a)), a + 1), X + 1.25)
    runs_as_plain(lambda a, b: (np.divmod(a, b, out=(b, a)), a, b), X, X * 2 + 3)


X = np.arange(1.0, 7.0)
WAVE = np.sin(np.arange(200.0) / 5)
SIGNALS = {
    "czt": (WAVE,),
    "envelope": (WAVE,),
    "find_peaks": (WAVE, 0.0, None, 3, 0.1, 1),
    "zoom_fft": (WAVE, [0.1, 0.2]),
    "cspline1d_eval": (WAVE, 3.5),
}


@every("name", SIGNALS)
def test_compiled_code_that_demands_plain_arrays(name):
    if not installed("scipy"):
        pytest.skip("scipy is not installed")
    from scipy import signal

    args = SIGNALS[name]
    plain = getattr(signal, name)(*copy.deepcopy(args))
    assert same_results(plain, record(getattr(signal, name), *copy.deepcopy(args)).result)


# -- any fault


def every_kind(x):
    x[1:] += 1
    x.sort()
    np.add.at(x, [0, 0], 1.0)
    np.cumsum(x, out=x)
    y = np.concatenate([x, np.ones(2)])
    y[y > 3] -= 1
    y.put([0], 7)
    total = x[0] * 2 + float(x[1])
    x.fill(total)
    return y.reshape(2, -1).T, total, np.linalg.qr(y[:4].reshape(2, 2))[1], x.std(), np.median(y)


FAULTY = ["symbol", "operands", "outcome", "result_symbol", "input", "wrapped"]


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_of_the_recording_is_not_the_programs(name, monkeypatch):
    """Wherever it happens: each call is made once, and its values are NumPy's."""
    working = getattr(recorder.Recorder, name)
    plain = ran(every_kind, X)
    calls = itertools.count()
    record(every_kind, X.copy())
    monkeypatch.setattr(recorder.Recorder, name, lambda *a, **k: (next(calls), working(*a, **k))[1])
    record(every_kind, X.copy())
    for at in range(2, next(calls) - 1, 3):
        failing = itertools.count()

        def once(*args, at=at, failing=failing, **kwargs):
            if next(failing) == at:
                raise ZeroDivisionError("of the recording")
            return working(*args, **kwargs)

        monkeypatch.setattr(recorder.Recorder, name, once)
        result, raised, left = ran(lambda x: record(every_kind, x).result, X)
        assert raised is None, (at, raised)
        assert same_results(plain[0], result), at
        assert identical(plain[2][0], left[0])


class OnceError(Exception):
    """Of a program."""


def test_errors_of_the_program_pass_once():
    error, calls = OnceError("mine"), []

    def fails(row):
        calls.append(row)
        raise error

    with pytest.raises(OnceError) as found:
        record(lambda x: np.apply_along_axis(fails, 0, x), np.ones((2, 2)))
    assert found.value is error
    assert len(calls) == 1

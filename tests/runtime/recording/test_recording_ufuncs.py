"""Every universal function that is an op, on every pair of dtypes, and what its methods take."""

from __future__ import annotations

import numpy as np
import pytest

from graphir.numpy_api.ufuncs import COMPOUNDS, OPS, REDUCTIONS
from graphir.runtime import record
from tests.support.replays import EXACT, gives_again, same_results
from tests.support.tables import every, sampled

DTYPES = [np.dtype(code) for code in "?bhilBHILefdFD"]
CLOSE = {"rtol": 1e-3, "atol": 1e-3}
UFUNCS = [one for one in (*OPS, *COMPOUNDS) if one.signature is None]


def values(dtype, of=(3,)):
    return (np.arange(1, 1 + np.prod(of)).reshape(of) % 5).astype(dtype)


def given(count):
    """Operands of every dtype, array and scalar, and beside them literals of every kind."""
    if count == 1:
        return [(values(one),) for one in DTYPES]
    pairs = [(values(a), values(b)[1:2]) for a in DTYPES for b in DTYPES]
    pairs += [(values(a), values(b)[1]) for a in DTYPES for b in DTYPES[::4]]
    beside = [(values(a), one) for a in DTYPES for one in (True, 1, 1.5, 1j)]
    if count == 3:  # clip, whose first operand is an array
        return [(*pair, 3) for pair in pairs + beside]
    return pairs + beside + [pair[::-1] for pair in beside]


def assert_dtypes_agree(recording):
    """No result was taken as given for its dtype; the rules are those of NumPy 2.1 on."""
    differing = [str(note) for note in recording.notes if "NumPy makes it" in str(note)]
    assert differing == [] or np.lib.NumpyVersion(np.__version__) < "2.1.0"


def allowed(function, args):
    try:
        function(*args)
    except (TypeError, OverflowError, ValueError):
        return False
    return True


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda one: one.__name__)
def test_every_ufunc_on_all_dtypes(ufunc):
    calls = [args for args in given(ufunc.nin) if allowed(ufunc, args)]

    def program(calls):
        return [ufunc(*args) for args in calls]

    recording = record(program, calls)
    assert same_results(program(calls), recording.result)
    assert gives_again(recording, **CLOSE) > 0
    assert_dtypes_agree(recording)


SETTINGS = [
    {},
    {"axis": None},
    {"axis": (0, 1)},
    {"axis": -1, "keepdims": True},
    {"axis": 0, "initial": 3},
    {"axis": 1, "where": np.array([True, False, True]), "initial": 1},
    {"axis": None, "dtype": np.float64},
]


@pytest.mark.filterwarnings("ignore")
@every("ufunc", REDUCTIONS)
def test_reductions_take_their_settings(ufunc):
    def reduce(x, settings):
        return ufunc.reduce(x, **settings)

    arrays = [values(dtype, (2, 3)) for dtype in DTYPES]
    calls = [(x, one) for x in arrays for one in SETTINGS if allowed(reduce, (x, one))]

    def program(arrays):
        return [reduce(x, settings) for x, (_, settings) in zip(arrays, calls, strict=True)]

    recording = record(program, [x for x, _ in calls])
    assert same_results(program([x for x, _ in calls]), recording.result)
    gives_again(recording, **CLOSE)


@pytest.mark.filterwarnings("ignore")
@sampled(2)
@every("dtype", DTYPES)
def test_methods_and_functions_of_every_dtype(dtype):
    def program(x, y):
        tried = []
        for call in CALLS:
            try:
                tried.append(call(x, y))
            except TypeError:  # of this dtype there is none
                continue
        return tried

    x, y = values(dtype, (2, 3)), values(dtype, (3, 2))
    recording = record(program, x, y)
    assert same_results(program(x, y), recording.result)
    assert gives_again(recording, **CLOSE) > 20
    assert_dtypes_agree(recording)


CALLS = [
    lambda x, y: x.mean(),
    lambda x, y: x.mean(axis=1, keepdims=True, dtype=np.float64),
    lambda x, y: x.var(0),
    lambda x, y: x.std(axis=-1, ddof=1),
    lambda x, y: x.argmax(),
    lambda x, y: x.argmin(axis=1),
    lambda x, y: x.argsort(),
    lambda x, y: np.sort(x, axis=0),
    lambda x, y: x.cumsum(),
    lambda x, y: x.cumprod(axis=0),
    lambda x, y: x.clip(1, 3),
    lambda x, y: np.clip(x, None, 2),
    lambda x, y: x.round(),
    lambda x, y: x.conj(),
    lambda x, y: x @ y,
    lambda x, y: x.dot(y),
    lambda x, y: np.inner(x, y.T),
    lambda x, y: np.vdot(x, y),
    lambda x, y: np.outer(x, y),
    lambda x, y: np.tensordot(x, y, 1),
    lambda x, y: np.matmul(x[None], y),
    lambda x, y: x.trace(),
    lambda x, y: x.diagonal(),
    lambda x, y: x.take([0, 2, 0]),
    lambda x, y: x.take(np.array([[1, 0]]), axis=1),
    lambda x, y: np.take_along_axis(x, np.array([[1], [0]]), axis=1),
    lambda x, y: x.repeat(2, axis=0),
    lambda x, y: np.tile(x, 2),
    lambda x, y: np.roll(x, 1, axis=1),
    lambda x, y: np.flip(x),
    lambda x, y: np.concatenate([x, y.T, x.astype(np.float32)], axis=1),
    lambda x, y: np.stack([x, y.T], axis=-1),
    lambda x, y: np.where(x > 1, x, 0),
    lambda x, y: np.where(x > 1, y.T, 1.5),
    lambda x, y: np.searchsorted(np.sort(x.ravel()), y),
    lambda x, y: np.zeros_like(x) + np.ones_like(y.T),
    lambda x, y: np.full_like(x, 1),
    lambda x, y: np.array([x[0, 0], x[1, 2]]),
    lambda x, y: np.array([[1, 2], [x[0, 1], 4]]),
    lambda x, y: np.full((2, 2), x[1, 1]),
    lambda x, y: x[0].real + x[1].imag,
    lambda x, y: x.T.reshape(3, 2).ravel(order="F"),
    lambda x, y: x.swapaxes(0, 1).flatten(),
    lambda x, y: np.partition(x, 1),
    lambda x, y: x.compress([True, False], axis=0),
    lambda x, y: np.arange(x.shape[0]) + x[:, 0],
    lambda x, y: np.divmod(x, y.T + 1),
    lambda x, y: x[0, 0] + y[1, 1],
    lambda x, y: (x[0, 1] * 2, -x[0, 1], x[0, 1] / 3),
]


def test_scalars_of_all_dtypes_meet_as_in_numpy():
    numbers = [values(dtype)[1] for dtype in DTYPES[1:]]

    def program(numbers):
        return [a * b + 1 for a in numbers for b in numbers] + [a + np.ones(2) for a in numbers]

    recording = record(program, numbers)
    assert same_results(program(numbers), recording.result)
    assert gives_again(recording, **EXACT) == len(recording.outputs)


def _masked(x, y, out, rest):
    return np.divmod(x, y, where=y > 0, out=(out, rest))


DIVISIONS = [
    _masked,
    lambda x, y, out, rest: np.divmod(x, y, dtype=np.float32),
    lambda x, y, out, rest: np.divmod(y, 2, signature="hh->hh", casting="unsafe"),
    lambda x, y, out, rest: np.divmod(x, y, out=(out, None)),
]


@every("divide", DIVISIONS)
def test_both_results_of_divmod_heed_where_dtype_and_out(divide):
    x, y = np.arange(6.0).reshape(2, 3) - 2.5, np.array([2, -1, 3])
    plain, recorded = ([np.full((2, 3), 7.0), np.full((2, 3), 8.0)] for _ in range(2))
    expected = divide(x, y, *plain)
    recording = record(divide, x, y, *recorded)
    assert same_results(expected, recording.result)
    assert same_results(plain, recorded)
    assert recording.notes == ()
    assert gives_again(recording, **EXACT) == 2


DOTS = [
    lambda x, out: np.dot(x, x, out=out),
    lambda x, out: x.dot(x, out=out),
    lambda x, out: np.linalg.multi_dot([x, x], out=out),
]


@every("dot", DOTS)
def test_dot_returns_a_scalar_beside_an_array_without_axes(dot):
    x, plain, recorded = np.arange(3.0), np.array(0.0), np.array(0.0)
    expected = dot(x, plain)
    recording = record(dot, x, recorded)
    assert same_results([expected, plain], [recording.result, recorded])
    assert gives_again(recording, **EXACT) == 2


PARTS = {
    "vector": (lambda x, at: np.add.reduceat(x, at), (40,), [0, 7, 3, 39]),
    "rows": (lambda x, at: np.maximum.reduceat(x, at, axis=0), (8, 5), [0, 3, 7]),
    "columns": (lambda x, at: np.multiply.reduceat(x, at, axis=1), (5, 8), [1, 0, 6]),
}


@every("name", PARTS)
@every("dtype", ["int16", "float32", "float64"])
def test_reduceat_is_made_of_reductions(name: str, dtype: str) -> None:
    program, shape, places = PARTS[name]
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype) / np.ones((), dtype)
    recording = record(program, x.astype(dtype), np.array(places))
    assert not recording.notes and not recording.audit().hidden
    gives_again(recording)


SUMS = {
    "rows": lambda x, at, u: np.add.at(x, at, u[:3]),
    "columns": lambda x, at, u: np.subtract.at(x, (slice(None), at), u[:, :1]),
    "points": lambda x, at, u: np.add.at(x, (at, [0, 2, 2]), u[0, 0]),
    "a mask": lambda x, at, u: np.add.at(x, x >= 0, 1),
    "a view": lambda x, at, u: np.add.at(x.T[1:], at - 1, 1),
    "itself": lambda x, at, u: np.add.at(x, at, x[1:4]),
}


@every("name", SUMS)
@every("dtype", ["int8", "float16", "float32", "complex64"])
def test_sums_at_places_that_repeat_are_recorded(name: str, dtype: str) -> None:
    def program(x: np.ndarray, at: np.ndarray, u: np.ndarray) -> np.ndarray:
        SUMS[name](x, at, u)
        return x + x

    x = (np.arange(20).reshape(5, 4) * 13.3).astype(dtype)
    recording = record(program, x, np.array([1, 2, 1]), x[:, ::-1].copy())
    assert "index_add" in {symbol.op.name for symbol in recording.graph.symbols}
    assert not recording.notes and not recording.audit().hidden
    gives_again(recording, **EXACT)


def test_numpy_adds_what_an_array_does_not_hold_in_a_wider_dtype() -> None:
    x, at = np.linspace(0, 9, 1000, dtype=np.float32), np.arange(1000)
    for value in (0.1, np.linspace(1, 2, 1000)):
        recording = record(np.add.at, x.copy(), at, value)
        assert "add.at" in str(recording.notes[0])


def test_a_ufuncs_method_without_an_op_is_named_with_operands_and_a_way_round() -> None:
    def counted(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        np.multiply.at(x, at, 1)
        return x + np.bitwise_or.reduceat(at, [0, 1])[0]

    notes = record(counted, np.zeros(3, np.float32), np.array([0, 1, 1])).notes
    texts = {note.what: str(note) for note in notes}
    assert "got ndarray of float32[3], ndarray of int64[3], a int" in texts["multiply.at"]
    assert "use x[places] = np.multiply(x[places], ...)" in texts["multiply.at"]
    assert all("ufunc_methods.py" not in text for text in texts.values())
    assert all("test_recording_ufuncs.py" in text for text in texts.values())


class Quotient:
    """An object whose operator calls np.divide in a function of its own."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, _):
        return self.call()

    def call(self):
        return np.divide(self.x, self.y)


@pytest.mark.filterwarnings("ignore")
def test_a_ufunc_of_a_masked_array_is_no_operator_where_an_operator_called_its_caller():
    def program(x):
        result = Quotient(x, np.ma.array([4.0, 0.0], mask=[0, 0])) + 1
        return result.data, np.ma.getmaskarray(result)

    x = np.array([1.0, 2.0])
    assert same_results(list(program(x)), list(record(program, x).result))

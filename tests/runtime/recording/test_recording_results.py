"""A recorded program returns NumPy's very results: dtype, shape, strides, flags, class, bytes."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError
from graphir.runtime import execute, record
from tests.support.replays import gives_again
from tests.support.tables import every


def grid():
    return np.random.default_rng(3).normal(size=(3, 4))


def read_only():
    array = grid()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "rows": grid,
    "transposed": lambda: grid().T,
    "columns": lambda: np.asfortranarray(grid()),
    "strided": lambda: np.repeat(grid(), 2, 0)[::2, ::3],
    "reversed": lambda: grid()[::-1],
    "read only": read_only,
    "permuted": lambda: np.random.default_rng(1).normal(size=(2, 3, 4)).transpose(2, 0, 1),
    "float32": lambda: grid().astype("f4").T,
    "int16": lambda: (grid() * 9).astype("i2").T,
    "bool": lambda: (grid() > 0).T,
    "complex": lambda: (grid() + 1j).T,
    "big endian": lambda: grid().astype(">f8"),
    "a number": lambda: np.array(2.5),
    "nothing": lambda: np.zeros((0, 3)),
    "a vector": lambda: grid()[0],
}


def description(value):
    if isinstance(value, np.ndarray):
        flags = value.flags
        orders = flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.owndata
        return type(value), value.dtype.str, value.shape, value.strides, *orders, value.tobytes()
    if isinstance(value, np.generic):
        return type(value), value.dtype.str, value.tobytes()
    if isinstance(value, (list, tuple)):
        return type(value), *map(description, value)
    return type(value), repr(value)


def outcome(function, *args):
    try:
        return description(function(*args))
    except Exception as error:
        return type(error)


METHODS = [
    name
    for name in dir(np.ndarray)
    if not name.startswith("_")
    and name not in ("tofile", "dump", "ctypes", "data", "flags", "device", "to_device", "resize")
]


SCALAR_METHODS = (
    *("all", "any", "argmax", "conj", "copy", "cumsum", "flatten", "max", "mean", "min", "prod"),
    *("ravel", "round", "squeeze", "std", "sum", "transpose", "var", "tolist"),
)


def called(name):
    """A method without arguments, or an attribute; and what the array is afterwards."""

    def function(x):
        found = getattr(x, name)
        return (found() if callable(found) else found), x.copy("K")

    return function


FUNCTIONS = {
    **{name: called(name) for name in METHODS},
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "deepcopy in a list": lambda x: copy.deepcopy([x, x[..., ::2]]),
    "pickle": lambda x: [pickle.loads(pickle.dumps(x, protocol)) for protocol in (2, 4, 5)],
    "copies": lambda x: [x.copy(), x.copy("F"), x.copy("K"), np.copy(x), np.array(x)],
    "ndenumerate": lambda x: list(np.ndenumerate(x)),
    "flat": lambda x: (list(x.flat), x.flat.index, x.flat.coords, x.flat.copy(), x.flat[:2]),
    "iteration": lambda x: list(x) if x.ndim else None,
    "byteswap in place": lambda x: (x.byteswap(True), x.byteswap()),
    "partition": lambda x: (x.argpartition(0), np.argpartition(x, 0, axis=None)),
    "in": lambda x: 0.5 in x,
    "scalar": lambda x: [getattr(x.sum(), name)() for name in SCALAR_METHODS],
    "scalar's numbers": lambda x: [
        *(divmod(x.sum(), 2), divmod(7, x.sum()), round(x.sum(), 2), round(x.sum())),
        *(math.floor(x.sum()), int(x.sum()), float(x.sum()), bool(x.sum()), x.sum().T),
        hash(x.sum()) == hash(x.sum().item()),
    ],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_results_are_numpys_in_every_layout(name: str) -> None:
    for layout, make in LAYOUTS.items():
        recording = outcome(lambda make=make: record(FUNCTIONS[name], make()).result)
        assert recording == outcome(FUNCTIONS[name], make()), layout


CODES = {
    "mean": lambda x: x.mean(dtype="f4"),
    "mean over an axis": lambda x: np.mean(x, 0, "f4"),
    "var": lambda x: x.var(dtype="f4"),
    "std": lambda x: x.std(0, "f4"),
    "trace": lambda x: x.trace(0, 0, 1, "f4"),
    "sum": lambda x: x.sum(0, "f4"),
    "cumsum": lambda x: np.cumsum(x, dtype=float),
    "concatenate": lambda x: np.concatenate([x, x], dtype="f4"),
    "stack": lambda x: np.stack([x, x], dtype="f4", casting="same_kind"),
    "einsum": lambda x: np.einsum("ij->ji", x),
    "reduce": lambda x: np.add.reduce(x, dtype="f8"),
    "accumulate": lambda x: np.multiply.accumulate(x, dtype="f8"),
    "astype": lambda x: x.astype("<f4"),
    "full_like": lambda x: np.full_like(x, 3, dtype="i8"),
}


@every("name", CODES)
def test_numpys_dtype_codes_are_recorded(name: str) -> None:
    recording = record(CODES[name], grid())
    assert description(recording.result) == description(CODES[name](grid()))
    assert recording.notes == ()
    gives_again(recording, rtol=1e-6, atol=1e-7)


def test_blas_gets_the_layout_that_it_gets_from_numpy() -> None:
    x = np.random.default_rng(0).normal(size=(40, 30)).astype("f4").T
    for program in (lambda x: copy.deepcopy(x) @ x.T, lambda x: copy.copy(x) @ copy.copy(x).T):
        assert record(program, x).result.tobytes() == program(x).tobytes()


def test_an_audit_without_outputs_says_what_the_result_is(tmp_path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.arange(3.0))
    report = record(lambda: np.load(file) * 2).audit()  # data of a file are recorded
    assert report.outputs[0].differing == 0
    np.save(file, np.zeros(2, [("a", "f8")]))
    with pytest.raises(ExecutionError) as caught:
        record(lambda: np.load(file)).audit()
    message = str(caught.value)
    assert message.startswith("audit: nothing that was recorded reached the result of '<lambda>'")
    assert "got ndarray of [('a', '<f8')][2]" in message
    assert "return arrays of numbers" in message
    text = record(lambda x: str(x.tolist()), np.ones(2))
    assert text.names[0].startswith("x in line ") and text.audit().outputs[0].is_known


@dataclass
class Summary:
    mean: object
    doubled: object = None


@dataclass(frozen=True, slots=True)
class FrozenSummary:
    mean: object


def halved(x):
    x *= np.float32(0.5)


KINDS = {
    "scalar": (np.nanmean, ["output0"]),
    "standard deviation": (lambda x: np.nanstd(x), ["output0"]),
    "count": (lambda x: np.count_nonzero(x), ["output0"]),
    "interpolated": (lambda x: np.interp(0.5, [0, 1, 2], np.nan_to_num(x)), ["output0"]),
    "float": (lambda x: float(np.nanvar(x)), ["output0"]),
    "tuple": (lambda x: (np.nanmean(x), x * 2), ["output0", "output1"]),
    "dict": (
        lambda x: {"a": np.nanmean(x), "b": {"c": float(np.nanstd(x))}},
        ["a", "b['c']"],
    ),
    "dataclass": (lambda x: Summary(np.nanmean(x), x * 2), ["output0", "output1"]),
    "slots": (lambda x: FrozenSummary(np.nanmean(x)), ["output0"]),
    "nested list": (lambda x: [[x * 2], [(x, [np.nanmean(x)])]], ["output0", "output1", "output2"]),
    "in place": (halved, ["output0"]),
}  # fmt: skip


@every("kind", KINDS)
def test_results_of_all_kinds_are_outputs(kind: str) -> None:
    program, names = KINDS[kind]
    x = np.float32([1.1, np.nan, 3.3])
    recording = record(program, x.copy())
    assert recording.names == tuple(names)
    result, expected = recording.result, program(x.copy())
    assert repr(result) == repr(expected) and "Recorded" not in repr(type(result))
    if kind == "slots":
        assert type(result.mean) is np.float32
    gives_again(recording)
    report = recording.audit()
    assert [error.name for error in report.outputs] == names
    assert all("taken as given" not in step.reason for step in report.unseen)


def test_arrays_have_the_classes_and_the_bases_of_numpy() -> None:
    def asked(a: Any, b: Any) -> Any:
        views = (a.T, a[0], a.reshape(-1), np.flip(a), np.diag(a), a.diagonal(), b.T)
        copies = (a, a + 1, np.triu(a), np.diag(a[0]), a.copy()[1:], a.T.copy())
        return (
            [x.base is a for x in views],
            [x.base is None for x in copies],
            [x.__class__.__name__ for x in (*views, a[0, 0], a.sum(), a[0, 0] + 1)],
            [x.__class__ is np.ndarray for x in (a, b)],
        )

    x = np.arange(12.0).reshape(3, 4)[:]
    arguments = x.copy(), x
    assert record(asked, *arguments).result == asked(*arguments)


def test_bools_of_numpy_are_taken_as_given() -> None:
    """NumPy has two such objects, which stand for no values of their own in later steps."""
    programs: list[Any] = [
        *(
            lambda x: (x > 1)[0] * x,
            lambda x: np.where(x.max() > 1, x, 0),
            lambda x: x + (x[0] > 1),
        ),
    ]
    for program in programs:
        (note,) = record(program, np.arange(3.0)).notes
        assert "a bool of NumPy" in str(note)
    for program in (lambda x: x if x[0] > 1 else -x, lambda x: np.where(x > 1, x, np.True_)):
        assert record(program, np.arange(3.0)).notes == ()


def test_keys_and_members_of_results_are_plain() -> None:
    def program(x: Any) -> Any:
        least = x.min()
        return {least: x, "a": {x.max()}, (x[1], 2): 0}, {least}, frozenset({x[1]}), {1: 2}

    result, plain = record(program, np.arange(3.0)).result, program(np.arange(3.0))
    assert str(result) == str(plain)
    members = [*result[0], *result[0]["a"], [*result[0]][2][0], *result[1], *result[2]]
    assert {type(member) for member in members} == {np.float64, str, tuple}


def test_a_write_that_values_decide_is_noted() -> None:
    """np.place writes nothing here, but does for other values."""

    def program(x: Any) -> Any:
        np.place(x, x > 9, [1.5])
        return x * 2

    (note,) = record(program, np.arange(3.0)).notes
    assert note.what == "numpy.place"


def test_views_as_ndarrays_are_views() -> None:
    def program(x: Any) -> Any:
        x.view(np.ndarray)[...] += 1
        return x.view(np.ndarray) * 2, x.view(type=np.ndarray, dtype="u8").view("f8", np.ndarray)

    for x in (np.array(3.0), np.arange(3.0)):
        recording = record(program, x.copy())
        assert recording.notes == () or x.ndim == 0
        results = execute(recording.graph, *recording.inputs)
        assert np.array_equal(results[0], (x + 1) * 2)
    graph = record(lambda x: x.view(np.ndarray) * 2, np.array(3.0)).graph
    assert float(execute(graph, np.array(4.0))) == 8


def test_functions_that_a_program_returns_hold_plain_arrays() -> None:
    def scaled(x: Any) -> Any:
        y = x * 2

        def inner() -> Any:
            return y

        return [lambda: inner()]

    (function,) = record(scaled, np.ones(2)).result
    assert type(function()) is np.ndarray and function().tolist() == [2, 2]

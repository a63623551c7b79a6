"""What is not recorded, and that it says so; errors, threads, and NumPy left as it was."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import warnings
from collections.abc import Iterable

import numpy as np
import pytest

from graphir import GraphError
from graphir.runtime import record
from tests.support.replays import EXACT, gives_again, identical, same_results
from tests.support.tables import every


def functions_of(*modules):
    return {(m, n): id(v) for m in modules for n, v in vars(sys.modules[m]).items() if callable(v)}


MODULES = ("numpy", "numpy.linalg", "numpy._core.numeric", "numpy.lib._function_base_impl")


def test_numpy_is_left_as_it_was():
    before = functions_of(*MODULES)
    during = record(lambda x: (functions_of(*MODULES), x)[0], np.ones(2)).result
    assert before != during
    assert functions_of(*MODULES) == before

    def fails(x):
        raise LookupError(np.zeros(2) + x)

    with pytest.raises(LookupError):
        record(fails, np.ones(2))
    assert functions_of(*MODULES) == before


def test_exceptions_of_the_program_pass_as_they_are():
    for program in (
        lambda x: x + np.ones(3),
        lambda x: x[5],
        lambda x: x @ x.reshape(1, 2) @ np.zeros(7),
        lambda x: np.concatenate([x, x[None]]),
        lambda x: x.view("i8").__iadd__(0.5),
        lambda x: np.linalg.inv(x),
        lambda x: np.reshape(x, 5),
        lambda x: np.float32(3) + "x",
        lambda x: x.nothing,
        lambda x: np.arange(2, dtype=np.int8) + 300,
        lambda x: np.percentile(x > 0, 50),
        lambda x: np.nanquantile([x > 1], 0.5, axis=1),
        lambda x: np.sum([x[0], x[1]], axis=5),
        lambda x: np.mean([x[0], x[1]], axis=(0, 0)),
    ):
        with pytest.raises(Exception) as plain:
            program(np.ones(2))
        with pytest.raises(plain.type) as recorded:
            record(program, np.ones(2))
        assert str(recorded.value).replace("RecordedArray", "numpy.ndarray") == str(plain.value)


def test_warnings_of_the_program_pass():
    def program(x):
        nothing = x[:0].mean()
        return x / 0, np.array([1e300])[0] * 1e300, nothing, (x * np.nan).astype(int)

    with warnings.catch_warnings(record=True) as plain:
        warnings.simplefilter("always")
        program(np.ones(1))
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        record(program, np.ones(1))
    assert len(plain) == 5
    told = [[(str(w.message), w.filename, w.lineno) for w in each] for each in (plain, recorded)]
    assert told[0] == told[1]


def test_compiled_functions_are_taken_as_given_and_said_once():
    def program(x):
        for _ in range(3):
            values = np.linalg.svd(x, compute_uv=False)
        return values * 2, np.linalg.inv(x)

    recording = record(program, np.eye(2))
    assert [one.what for one in recording.notes] == ["numpy.linalg.svd", "numpy.linalg.inv"]
    assert "test_recording_limits.py" in str(recording.notes[0])
    gives_again(recording, **EXACT)


def test_compiled_functions_in_the_table_of_numpys_functions_are_ops():
    def program(x, i):
        return (
            np.interp(x[0], [0, 1], [2, 3]),
            np.bincount(i, minlength=4),
            np.lexsort((i, x[1, :3])),
            np.maximum.accumulate(x, axis=1),
            np.concatenate(([1, 2], i, [i[0], 3])),
        )

    recording = record(program, np.arange(8.0).reshape(2, 4) % 3, np.array([2, 0, 2]))
    assert not recording.notes and not recording.beyond.steps
    gives_again(recording, **EXACT)


EINSUMS = [
    *("ij,jk->ik", "ij,jk", "bij,bjk->bik", "bqd,bkd->bqk", "ij->ji", "ij->", "ij->j", "ii->i"),
    *("ii", "i,i->", "i,j->ij", "ij,ij->i", "ijk,jil->kl", "ij,jk,kl->il", "i,ij,j", "abc,c"),
]


SUMS = {*EINSUMS} - {"ij->ji", "ii->i", "i,j->ij"}
"""Of these NumPy adds floats in loops of einsum, whose order no op has."""


@every("subscripts", EINSUMS)
def test_einsum_is_ops(subscripts):
    sizes = dict(zip("abcdijklq", (2, 3, 4, 2, 3, 3, 2, 4, 2), strict=True))
    terms = subscripts.partition("->")[0].split(",")
    shapes = [tuple(sizes[axis] for axis in term) for term in terms]
    random = np.random.default_rng(1)
    for dtype in (np.float64, np.int16):
        arrays = [random.integers(-9, 9, shape).astype(dtype) for shape in shapes]
        arrays[0] = arrays[0].astype(np.float32 if dtype is np.float64 else dtype)
        recording = record(lambda *given: np.einsum(subscripts, *given), *arrays)
        orders = [str(note) for note in recording.notes if "an order of its own" in str(note)]
        assert len(recording.notes) == len(orders) == (dtype is np.float64 and subscripts in SUMS)
        assert not recording.audit().unseen
        assert same_results(np.einsum(subscripts, *arrays), recording.result)
        assert gives_again(recording, **EXACT) == 1


def test_sums_of_halves_that_a_graph_rounds_once_are_noted():
    x = np.arange(12, dtype=np.float16).reshape(3, 4)
    noted = [
        *(lambda x: x.sum(0), lambda x: np.var(x, 0), np.cumsum, np.prod, lambda x: x @ x.T),
        lambda x: np.einsum("ij->j", x.astype(float)),
    ]
    for f in noted:
        assert [note.location.line for note in record(f, x).notes if note.location.line]
    for f in (lambda x: x.sum(1), lambda x: x.sum(), lambda x: x.mean(0), lambda x: x.max(0)):
        assert record(f, x).notes == ()


GLOBAL = np.array([1.0, 2.0])


def test_arrays_from_elsewhere_are_inputs_as_they_were_met():
    def program(x):
        y = x * GLOBAL
        GLOBAL[0] += 1
        return y + GLOBAL

    recording = record(program, np.ones(2))
    assert len(recording.inputs) == 2
    assert not recording.notes and type(GLOBAL) is np.ndarray
    gives_again(recording, **EXACT)


def test_values_that_steer_the_program_are_those_of_the_run():
    def program(x):
        if x.sum() > 2 and bool(x[0] > 0):
            x = x[x > 0.5]
        return x * len(x), float(x[0]), [int(one) for one in x]

    recording = record(program, np.array([1.0, 0.2, 3.0]))
    assert same_results(program(np.array([1.0, 0.2, 3.0])), recording.result)
    assert gives_again(recording, **EXACT) == 3  # the numbers returned are outputs too


def test_scalars_are_those_of_numpy():
    def program(x, n):
        mean, count = x.mean(), n[0]
        assert isinstance(mean, (np.float64, float))
        assert isinstance(count, np.int64)
        assert hash(mean) == hash(float(mean))
        assert {count: 1}[3] == 1
        assert f"{mean:.1f} {count}" == "2.0 3"
        assert repr(mean) == "np.float64(2.0)"
        assert [0, 1, 2, 4][count] == 4
        assert np.arange(count).shape == (3,)
        assert not np.iterable(mean)
        assert not isinstance(mean, Iterable)
        assert np.ndim(mean) == mean.ndim == 0
        assert copy.deepcopy(mean) == pickle.loads(pickle.dumps(mean)) == 2
        return mean - 1, 2 * count, count / mean, -mean, abs(count), mean**2, mean[()], round(mean)

    recording = record(program, np.array([1.0, 3.0]), np.array([3]))
    assert same_results(program(np.array([1.0, 3.0]), np.array([3])), recording.result)
    assert gives_again(recording, **EXACT) == 8


@every("dtype", ["O", "V4", "g"])
def test_dtypes_that_graphs_lack_run_all_the_same(dtype):
    values = np.zeros(3, dtype)

    def program(x, values):
        return values[x > 0], values.copy(), x + 1, values.reshape(3, 1)

    x = np.array([1.0, -1.0, 2.0])
    recording = record(program, x, values)
    assert same_results(program(x, values), recording.result)
    assert len(recording.notes) == 1
    assert gives_again(recording, **EXACT) == 1


def test_another_thread_is_not_recorded():
    made = []

    def program(x):
        thread = threading.Thread(target=lambda: made.append(np.zeros(3) + np.ones(3)))
        thread.start()
        thread.join()
        return x + 1

    recording = record(program, np.ones(2))
    assert [type(one) for one in made] == [np.ndarray]
    assert sum(bool(one.args) for one in recording.graph) == 1


def test_threads_record_side_by_side():
    start, found = threading.Barrier(4), {}

    def work(n):
        def program(x):
            for _ in range(50):
                x = np.asarray(x * n) - np.ones(2)
            return x

        start.wait()
        found[n] = record(program, np.ones(2))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    sizes = {len(one.graph) for one in found.values()}
    assert len(found) == 4
    assert len(sizes) == 1
    for one in found.values():
        gives_again(one, **EXACT)


KEPT = []


def test_what_outlives_its_recording_is_a_plain_array():
    def program(x):
        KEPT.append(x * 2)
        return x.sum()

    record(program, np.ones(2))
    later = KEPT.pop()
    assert type(later + 1) is np.ndarray
    assert type(np.concatenate([later, later])) is np.ndarray
    assert type(later[0]) is np.float64
    assert identical(np.sum(later), np.float64(4.0))
    assert repr(later) == "array([2., 2.])"


def test_a_recording_within_one_is_refused():
    with pytest.raises(GraphError, match="recording within a recording"):
        record(lambda x: record(np.sum, x), np.ones(2))


@every("name", ["max", "jax", "torch", "numpy_legacy", "tensorflow", "python"])
def test_rules_of_others_are_refused(name):
    with pytest.raises(GraphError, match=f"{name}.*record under rules='numpy'"):
        record(np.sum, np.ones(2), rules=name)


@every("name", ["numpy", "cupy", "dask"])
def test_rules_that_promote_as_numpy_are_taken(name):
    recording = record(lambda x: x * 2 + np.float64(1), np.ones(2, np.float16), rules=name)
    assert recording.graph.rules.name == name
    gives_again(recording, **EXACT)


def test_modules_imported_meanwhile_keep_plain_arrays(tmp_path, monkeypatch):
    (tmp_path / "made_meanwhile.py").write_text("import numpy as np\nTABLE = np.zeros(3)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def program(x):
        import made_meanwhile

        return x + made_meanwhile.TABLE

    record(program, np.ones(3))
    assert type(sys.modules.pop("made_meanwhile").TABLE) is np.ndarray

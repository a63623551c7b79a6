"""What is recorded is computed when it is asked for, each piece once; nothing is kept longer."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest

from graphir.runtime import array_api as xp
from graphir.runtime.array_api import forcing
from graphir.semantics.kernels import KERNELS


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each op was computed; as each test begins nothing was met before."""
    found: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        kernel = KERNELS[name]

        def call(*arrays: Any, **settings: Any) -> Any:
            found[name] += 1
            return kernel(*arrays, **settings)

        return call

    for name in KERNELS:
        monkeypatch.setitem(KERNELS, name, counting(name))
    monkeypatch.setattr(forcing, "_CALLS", {})
    monkeypatch.setattr(forcing, "PROGRAMS", forcing.Programs())
    yield found


# -- nothing is computed until it is asked for


def program(x: Any) -> Any:
    y = xp.sin(x) * 2 + xp.ones_like(x)
    z = xp.concat([xp.sort(y), xp.cumulative_sum(x)])
    table = xp.matmul(xp.reshape(z, (2, -1)), xp.triu(xp.eye(z.shape[0] // 2)))
    return xp.where(table > 0, xp.astype(table, xp.float32), 0.0)[:, 1::2, None]


def test_recording_computes_nothing(computed: Counter[str]):
    found = program(xp.asarray(np.arange(8.0)))
    assert (found.shape, found.ndim, found.size) == ((2, 4, 1), 3, 8)
    assert (found.dtype, found.device) == (xp.float32, "cpu")
    assert found.mT.shape == (2, 1, 4)
    assert not computed
    assert float(xp.sum(found)) == np.asarray(found).sum(dtype=np.float32)
    assert computed["sin"] == computed["matmul"] == 1


def test_changes_in_place_compute_nothing_either(computed: Counter[str]):
    x = xp.sin(xp.asarray([1.0, 2.0]))
    part = x[1:]
    x += 1
    assert (part.dtype, part.shape, part.ndim, part.size) == (xp.float64, (1,), 1, 1)
    assert xp.result_type(part, 1j) is xp.complex128
    assert set(computed) == set()


ASKING: dict[str, Callable[[Any], Any]] = {
    "bool": lambda x: bool(x[1]),
    "int": lambda x: int(x[1]),
    "float": lambda x: float(x[1]),
    "complex": lambda x: complex(x[1]),
    "numpy": np.asarray,
    "dlpack": np.from_dlpack,
    "repr": repr,
    "str": str,
    "format": lambda x: f"{x[1]:.2f}",
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "nonzero": xp.nonzero,
    "unique": xp.unique_values,
    "mask": lambda x: x[x > 1],
    "repeat": lambda x: xp.repeat(x, xp.asarray([1, 0, 2])),
    "assignment": lambda x: x.__setitem__(0, 5.0),
    "linalg": xp.linalg.vector_norm,
    "fft": xp.fft.rfft,
}


@pytest.mark.parametrize("way", ASKING)
def test_each_way_to_ask_for_values(way: str, computed: Counter[str]):
    x = xp.sqrt(xp.asarray([0.0, 4.0, 9.0]))
    assert not computed["sqrt"]
    ASKING[way](x)
    assert computed["sqrt"] == 1
    ASKING[way](x)
    assert computed["sqrt"] == 1


def test_index_asks_for_a_value(computed: Counter[str]):
    place = xp.argmax(xp.asarray([1, 5, 2]))
    assert not computed
    assert [10, 20, 30][place] == 20
    assert computed["argmax"] == 1


# -- each piece once


def test_what_is_needed_again_is_kept(computed: Counter[str]):
    x = xp.asarray([1.0, 2.0])
    y = xp.sin(x)
    assert float(xp.sum(y + 1)) + float(xp.sum(y * 2)) == pytest.approx(
        2 + 3 * np.sin([1, 2]).sum()
    )
    assert np.asarray(y).tolist() == np.sin([1.0, 2.0]).tolist()
    assert computed["sin"] == 1


def test_what_only_pending_symbols_need_is_kept_too(computed: Counter[str]):
    shared = xp.exp(xp.asarray([0.0, 1.0]))
    one, other = shared + 1, shared * 3
    del shared
    assert np.asarray(one).tolist() == [2.0, np.exp(1.0) + 1]
    assert np.asarray(other).tolist() == [3.0, np.exp(1.0) * 3]
    assert computed["exp"] == 1


def test_what_nothing_needs_is_not_computed(computed: Counter[str]):
    x = xp.asarray([1.0])
    xp.sin(x)
    y = xp.cos(x)
    xp.tan(y)
    assert float(y[0]) == np.cos(1.0)
    assert set(computed) == {"cos", "squeeze"}


def test_many_values_of_one_piece_are_all_right():
    """Also when the structure has been met so often that it is a Program."""
    for round_ in range(8):
        x = np.arange(4.0) + round_
        a = xp.asarray(x) * 2
        b, c = xp.sin(a), a + 1
        d = b * c
        np.testing.assert_array_equal(np.asarray(xp.sum(d)), np.sum(np.sin(x * 2) * (x * 2 + 1)))
        for ours, theirs in ((b, np.sin(x * 2)), (c, x * 2 + 1), (a, x * 2)):
            assert ours.symbol.value is not None
            np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_structures_that_are_met_again_become_programs_and_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
):
    programs = forcing.Programs()
    monkeypatch.setattr(forcing, "PROGRAMS", programs)
    monkeypatch.setattr("graphir.runtime.array_api.forcing._MOST_PROGRAMS", 5)
    made: list[Any] = []
    of = programs.of
    monkeypatch.setattr(programs, "of", lambda piece: made.append(of(piece)) or made[-1])
    for _ in range(4):
        float(xp.sum(xp.asarray([1.0, 2.0]) * 2))
    assert [one is not None for one in made] == [False, False, True, True]
    assert made[2] is made[3]
    for size in range(1, 20):
        float(xp.sum(xp.ones(size) * 2))
    assert len(programs._seen_keys) == 5


def test_programs_share_the_memory_they_work_with(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forcing, "PROGRAMS", forcing.Programs())
    for size in (1, 2):
        for _ in range(3):
            found = xp.sum(xp.sin(xp.ones(size << 17)) + 1)
            np.asarray(found)
    programs = [program for _, program in forcing.PROGRAMS._seen_keys.values() if program]
    assert len(programs) == 2
    assert programs[0].memory is programs[1].memory


def test_attributes_are_part_of_a_structure():
    x = xp.asarray([[1.0, 2.0], [3.0, 5.0]])
    for _ in range(5):
        for axis in (0, 1):
            for shift in (1.0, 2.0, -0.0):
                found = np.asarray(xp.sum(x + shift, axis=axis))
                assert found.tolist() == (np.asarray(x) + shift).sum(axis=axis).tolist()


def test_a_large_piece_is_a_program_at_once(monkeypatch: pytest.MonkeyPatch):
    programs = forcing.Programs()
    monkeypatch.setattr(forcing, "PROGRAMS", programs)
    x = np.ones(1 << 18)
    found = np.asarray(xp.sqrt(xp.asarray(x) * 2 + 1))
    assert [program is not None for _, program in programs._seen_keys.values()] == [True]
    np.testing.assert_array_equal(found, np.sqrt(x * 2 + 1))


# -- errors


def test_an_op_that_has_no_value_says_its_own_line_whenever_it_is_asked():
    x = xp.asarray([1, 2])
    for _ in range(5):  # the last as a Program, made on another line
        y = (x + 1) ** xp.asarray(-1)
        for _ in range(2):
            with pytest.raises(
                ValueError, match=r"test_array_api_laziness.py:\d+:\d+: pow"
            ) as error:
                np.asarray(y)
    first = str(error.value)
    z = (x + 1) ** xp.asarray(-1)
    with pytest.raises(ValueError, match="pow") as error:
        np.asarray(z)
    assert first.split(":")[1] != str(error.value).split(":")[1]
    assert np.asarray(x + 1).tolist() == [2, 3]


def test_a_refused_op_says_operands_dtypes_and_line():
    x = xp.asarray([1, 2])
    with pytest.raises(TypeError) as error:
        x + 1.5
    for part in ("test_array_api_laziness.py:", "add(lhs: int64[2]", "rhs: 1.5", "standard"):
        assert part in str(error.value)


# -- threads


def test_threads_share_what_is_pending():
    failed: list[Any] = []
    x = xp.asarray(np.arange(1000.0))
    shared = [xp.sum(xp.sin(x) * i + x) for i in range(50)]
    wanted = [np.sum(np.sin(np.arange(1000.0)) * i + np.arange(1000.0)) for i in range(50)]

    def work(offset: int) -> None:
        for i in [*range(offset, 50), *range(offset)]:
            own = xp.sum(xp.cos(x * i)) - xp.sum(xp.cos(x * i))
            if float(shared[i]) != wanted[i] or float(own) != 0:
                failed.append(i)

    threads = [Thread(target=work, args=(7 * n,)) for n in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed

"""Memory of the array API namespace: what is kept, what is shared, what is written in place."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphir.ir import op_builder as inference_cache
from graphir.runtime import array_api as xp
from graphir.runtime.array_api import forcing
from graphir.runtime.array_api.forcing import pending
from graphir.runtime.array_api.lazy import PENDING, TAPE, Lazy
from tests.support.tables import every


def lazies() -> int:
    gc.collect()
    return sum(type(one) is Lazy for one in gc.get_objects())


def test_a_value_forgets_what_it_was_computed_from():
    x = xp.asarray(np.ones(3))
    y = xp.sin(x + 1)
    assert len(pending(y.symbol)) == 2
    np.asarray(y)
    assert y.symbol.args == () and y.symbol.value is not None
    before = lazies()
    z = y + 1
    assert list(pending(z.symbol)) == [z.symbol] and lazies() == before + 2


def test_a_loop_that_is_never_asked_does_not_grow():
    x = xp.asarray(np.zeros(4))
    for _ in range(3 * forcing.LIMIT // PENDING):
        x = x + 1
    assert len(pending(x.symbol)) <= forcing.LIMIT // PENDING
    assert lazies() < 3 * forcing.LIMIT // PENDING
    assert np.asarray(x).tolist() == [3 * forcing.LIMIT // PENDING] * 4


def test_a_loop_that_is_asked_every_time_does_not_grow():
    x = xp.asarray(np.zeros(4))
    sizes: list[int] = []
    for i in range(600):
        x = xp.sin(x) + i
        assert float(x[0]) > -2
        if i % 200 == 199:
            sizes.append(lazies())
    assert len(set(sizes)) == 1


def test_new_shapes_beside_numbers_do_not_grow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inference_cache, "MOST", 8)
    for size in range(30):
        xp.asarray(np.zeros(size)) + 1
    assert len(TAPE.builder.cache.answers) <= 8


def test_a_view_of_many_views_is_written_through():
    x = xp.asarray([[1.0, 2.0, 3.0]])
    for _ in range(999):
        x = xp.flip(x)
    assert x.part
    whole = x.part.base
    x[0, 0] = 9.0
    assert np.asarray(whole).tolist() == [[1.0, 2.0, 9.0]]


def test_pending_ops_do_not_hold_more_than_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forcing, "LIMIT", 10 * (PENDING + 8 * 1000))
    total = xp.zeros(())
    for i in range(100):
        total = total + xp.sum(xp.asarray(np.full(1000, i, np.float64)))
        inputs = {arg for args in pending(total.symbol).values() for arg in args}
        assert sum(one.value.nbytes for one in inputs if one.value is not None) <= 11 * 8000
    assert float(total) == 1000 * sum(range(100))


def test_a_chain_that_is_computed_unasked_keeps_its_last_alone(monkeypatch: pytest.MonkeyPatch):
    kept: list[int] = []
    computed = forcing._compute

    def counting(todo: Any, results: Any) -> Any:
        kept.append(len(results))
        return computed(todo, results)

    monkeypatch.setattr(forcing, "_compute", counting)
    monkeypatch.setattr(forcing, "LIMIT", 100 * PENDING)
    x = xp.zeros(5)
    for _ in range(500):
        x = x + 1
    assert len(kept) == 5 and max(kept) <= 2
    assert float(x[0]) == 500.0


def test_what_is_shared_counts_once():
    x = xp.asarray(1.0)
    for _ in range(100):
        x = x + x
    assert len(pending(x.symbol)) == 100  # 2**100 paths
    assert float(x) == 2.0**100


def test_a_long_chain_is_no_deep_recursion(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forcing, "LIMIT", 1 << 60)
    x = xp.asarray(0)
    for _ in range(20_000):
        x = x + 1
    y = x
    del x
    assert len(pending(y.symbol)) == 20_000
    del y
    gc.collect()


# -- what was given does not change, nor what is given


def test_values_are_not_shared_with_those_who_gave_them():
    theirs = np.array([1.0, 2.0])
    x = xp.asarray(theirs)
    y = x + 1
    theirs[:] = 7
    assert np.asarray(x).tolist() == [1.0, 2.0] and np.asarray(y).tolist() == [2.0, 3.0]
    for given in (np.asarray(y), np.array(y), np.from_dlpack(y)):
        if given.flags.writeable:
            given[:] = 9
    assert np.asarray(y).tolist() == [2.0, 3.0]
    shared = y.__array__(copy=False)
    assert not shared.flags.writeable and shared.base is not None


def test_assignment_and_in_place_operators_change_one_name_alone():
    x = xp.asarray([1, 2, 3])
    y, z = x + 0, x
    kept = x[1:] + 0
    x += 1
    x[0] = 10
    assert np.asarray(z).tolist() == [10, 3, 4] and z is x
    assert np.asarray(y).tolist() == [1, 2, 3] and np.asarray(kept).tolist() == [2, 3]
    same = xp.asarray(x)
    copied = xp.asarray(x, copy=True)
    x *= 2
    assert same is x and np.asarray(copied).tolist() == [10, 3, 4]


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a pending op": lambda x: x + 0,
    "a copy": lambda x: xp.asarray(x, copy=True),
    "NumPy": lambda x: np.asarray(x, copy=False),
    "a view by NumPy": lambda x: np.asarray(x, copy=False)[1:],
    "a deep copy": copy.deepcopy,
    "the same dtype": lambda x: xp.astype(x, xp.float64),
    "tiled": lambda x: xp.tile(x, (1, 1)),
    "on a grid": lambda x: xp.meshgrid(x, x)[0][:1, :],
    "a copy of a broadcast view": lambda x: xp.asarray(xp.broadcast_to(x, (1, 3)), copy=True),
    "a part, flat": lambda x: [y := xp.concat([x]), np.asarray(y)][0],
}


@every("holder", HOLDERS)
def test_assignment_is_seen_by_none_that_had_the_values_before(holder: str):
    x = xp.asarray([1.0, 2.0, 3.0])
    x[0] = 4.0
    held = HOLDERS[holder](x)
    x[1] = 5.0
    before = [2.0, 3.0] if holder == "a view by NumPy" else [4.0, 2.0, 3.0]
    assert np.asarray(held).ravel().tolist() == before
    assert np.asarray(x).tolist() == [4.0, 5.0, 3.0]


def test_assignment_writes_in_place_where_nothing_else_has_the_values():
    x = xp.asarray(np.zeros(1000))
    part = x[5:]
    x[0] = 1.0  # what part was recorded as still needs the old ones
    memory = id(x.symbol.value)
    for i in range(10):
        x[i] = float(i)
        part[0] = -1.0
        assert id(x.symbol.value) == memory
    held = x + 0
    x[1] = 9.0
    assert id(x.symbol.value) != memory
    assert float(part[0]) == -1.0 and float(held[1]) == 1.0


def test_pickles_and_copies():
    x = xp.sqrt(xp.asarray([1.0, 4.0]))
    for same in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert np.asarray(same).tolist() == [1.0, 2.0] and same.dtype is x.dtype
        same[0] = 5.0
    assert np.asarray(x).tolist() == [1.0, 2.0]

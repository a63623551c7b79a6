"""Recording what is written: through views and copies, by compiled code, to what is read."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

from graphir.runtime import record
from tests.support.replays import EXACT, gives_again, identical, same_results
from tests.support.tables import every


def flat_copies(x, y):
    piece, some = x.flat[1:], x.flat[[0, 2]]
    piece += 1
    some[:] = 0
    return x, piece, some


def flat_repeats(x, y):
    x.flat[1:] = y[0, :2]
    x.flat[:3] = y
    x.flat[2:] = y[:0]
    return x


def flat_overlaps(x, y):
    x.flat[1:] = x
    turned = y.T
    turned.flat = y
    return x, turned


def put_anything(x, y):
    x.put([0, 5], y[:2, :2])
    np.put(x, [1], y)
    np.put(x, [9, -9], [1, 2], mode="wrap")
    np.put(x, [4], y[:0])
    np.put(np.sum(y), [0], 3)
    return x


def filled_where_masked(x, y):
    return np.ma.masked_less(x, 0).filled(0)


def rows_swapped_in_a_list(x, y):
    x[:2] = [x[1], x[0]]
    return x


def places_that_are_written(x, y):
    mask = x > 0
    mask[mask] = False
    return mask, x


def sums_in_place(x, y):
    x.cumsum(1, out=x)
    np.concatenate([y[:1], x[:1]], out=y[:2])
    return x, y


def views_of_einsum(x, y):
    np.einsum("ij->ji", x)[0] = 7
    np.einsum("ii->i", y[:, :3])[:] = 1
    return x, y


def triangle_of_a_factor(x, y):
    return np.linalg.qr(x)[1]


def written_by_a_buffer(x, y):
    made, view = x * 2, None
    view = made[1:]
    first = view + 1
    memoryview(made)[1, 1] = 5.0
    return first, view + 1, made


def written_by_an_iterator(x, y):
    with np.nditer(x, op_flags=["readwrite"]) as elements:
        for one in elements:
            one[...] = one * 2
    return x + y


def extreme_quantiles(x, y):
    return np.quantile(x, 1.0), np.percentile(x, [0, 100]), np.quantile(x[:1], 0.3, axis=0)


def complex_made_unsigned(x, y):
    return (x * -3e9 + 1j).astype(np.uint64)


WRITING = [
    *(flat_copies, flat_repeats, flat_overlaps, put_anything, filled_where_masked),
    *(rows_swapped_in_a_list, places_that_are_written, sums_in_place, views_of_einsum),
    *(triangle_of_a_factor, written_by_a_buffer, written_by_an_iterator, extreme_quantiles),
    complex_made_unsigned,
]


@every("program", WRITING)
@pytest.mark.filterwarnings("ignore")
def test_what_is_written_is_what_numpy_writes(program):
    x = np.arange(12.0).reshape(3, 4) - 5
    plain, recorded = copy.deepcopy((x, x[::-1] * 2)), copy.deepcopy((x, x[::-1] * 2))
    result, recording = program(*plain), record(program, *recorded)
    assert same_results(result, recording.result)
    assert all(identical(one, other) for one, other in zip(plain, recorded, strict=True))
    assert gives_again(recording, **EXACT) > 0


def test_what_is_empty_holds_what_the_graph_says():
    def program(x):
        for _ in range(9):
            np.full(100, 7.0) + 1  # whose memory is used again
        return np.empty(100) + x, np.empty_like(np.ones(100)) + x

    assert gives_again(record(program, np.ones(1)), **EXACT) == 2


def test_flags_are_those_of_the_plain_array():
    def program(x):
        x.setflags(write=False)
        made = np.zeros(3)
        made.setflags(write=False)
        return made.T, x

    x = np.ones(2)
    result = record(program, x).result
    assert [one.flags.writeable for one in (x, *result)] == [False] * 3


def test_a_tuple_that_is_returned_twice_is_plain_twice():
    def program(x):
        pair = (x, x + 1)
        return pair, [pair]

    first, (second,) = record(program, np.ones(2)).result
    assert [type(one) for one in (*first, *second)] == [np.ndarray] * 4


def test_casts_warn_at_the_line_of_the_program():
    def program(x):
        np.copyto(x, np.array(1e300))
        x.flat = np.array([1e300])
        return np.array(x * np.complex64(1j), dtype=np.float32)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        record(program, np.ones(2, np.float32))
    assert len(told) >= 3
    assert {one.filename for one in told} == {__file__}

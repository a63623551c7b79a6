"""Writes in place, through views and into arrays given: what memory holds, the graph holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir.passes import cast_report
from graphir.runtime import record
from tests.support.replays import EXACT, gives_again, identical, same_results
from tests.support.tables import every


def both(function, *arrays):
    """The recording of a function, checked against a plain run and against its graph."""
    given = [np.array(one) for one in arrays]
    plain = function(*given)
    own = [np.array(one) for one in arrays]
    recording = record(function, *own)
    assert same_results(plain, recording.result)
    for one, other in zip(given, own, strict=True):
        assert identical(one, other)  # it does to its arguments what a plain run does
    gives_again(recording, **EXACT)
    return recording


def through_a_slice(x):
    y = x[1:]
    y[0] = 5
    return x * 2, y


def through_views_of_views(x):
    x.reshape(2, 3).T[1][:] = 7
    return x


def siblings(x):
    head, tail, whole = x[:3], x[2:], x.reshape(3, 2)
    head += 1
    tail *= whole[0, 1]
    whole[1] = -head[:2]
    return head, tail, whole


def overlapping(x):
    x[1:] += x[:-1]
    x[::-1][:2] = x[:2]
    return x


def masked(x):
    x[x > 2] = 0
    x[x < 1] += 10
    x[[0, -1]] = x[[-1, 0]]
    return x


def at_places(x):
    x.flat[::2] = [1, 2, 3]
    x.put([1, 1], [8, 9])
    np.put(x, 0, -1)
    np.copyto(x, x[::-1].copy(), where=x > 0)
    return x


def sorted_and_filled(x):
    y = x.copy()
    y.sort()
    z = np.empty_like(y)
    z.fill(y[0])
    np.place(z, y > 2, y)
    return y, z


def parts(x):
    z = x + 1j * x[::-1]
    z.real[1:] = 0
    z.imag = 2
    return z, z.real


def reshaped_in_place(x):
    y = x[:4]
    y.shape = (2, 2)
    y[1] = 9
    y.T[0] += 1
    z = x + 1
    z.shape = -1, 2
    z[0] = y[0]
    return x, y, z


def outs(x):
    out = np.zeros(6)
    np.sqrt(x, out=out)
    np.add(x, 1, out=out, where=x > 2)
    np.cumsum(x, out=out[::-1])
    return out, np.divide(1, x, out=np.zeros(6), where=x != 0)


def elements(x):
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + x[i]
    return x


def swapped(x):
    m = x.reshape(3, 2)
    m[:, [0, 1]] = m[:, [1, 0]]
    m[[0, 2]] = m[[2, 0]]
    m.T[0] -= m.diagonal()[0]
    return m, x


def broadcast(x):
    m = np.zeros((3, 6), np.float32)
    m[:] = x
    m[1:, ::2] = x[:3]
    m[..., -1] = [[9], [8], [7]][0]
    return m


def windows(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 3)
    return w.sum(axis=1), w[::2] * x[:2, None]


PROGRAMS = [
    *(through_a_slice, through_views_of_views, siblings, overlapping, masked, at_places),
    *(sorted_and_filled, parts, outs, elements, swapped, broadcast, windows),
]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # NumPy 2.5
@every("program", PROGRAMS)
def test_memory_is_followed(program):
    recording = both(program, np.arange(6.0))
    # `place` is compiled, and says so.
    assert [one.what for one in recording.notes] == (
        ["numpy.place"] if program is sorted_and_filled else []
    )


def heads(x):
    y = x.reshape(2, 4, 3, 5).transpose(0, 2, 1, 3)
    y[1, :, ::2] += 1
    return y, y.mT * 2


def parts_of_rows(x):
    query, key = (x.reshape(2, 4, 3, 5)[:, :, k, ::-1].swapaxes(1, 2) for k in (0, 2))
    key[0, 1] = query[1, 0]
    return query, key[..., None] * np.ones(2)


def every_third(x):
    y = x.reshape(2, 4, 5, 3)[..., 1].transpose(1, 2, 0)
    y -= 3
    return y[::2]


@every("program", [heads, parts_of_rows, every_third])
def test_views_of_parts_of_axes_gather_nothing(program):
    recording = both(program, np.arange(120.0).reshape(2, 60))
    assert not {"gather", "index_update"} & {each.op.name for each in recording.graph.symbols}


@st.composite
def keys(draw):
    """A basic key of a (4, 3) array."""
    bounds = st.none() | st.integers(-5, 5)
    one = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -2]))
    axes = [one | st.integers(-4, 3), one | st.integers(-3, 2)]
    kept = draw(st.integers(0, 2))
    key = [draw(axis) for axis in axes[:kept]]
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@pytest.mark.exhaustive
@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(keys(), st.sampled_from(["view", "set", "add", "turn"])), max_size=5))
def test_any_chain_of_views_and_writes(steps):
    def step(at, one, key, what):
        if one.ndim != 2 or what == "turn":
            return one.T
        if what == "view":
            part = one[key]
            return part if isinstance(part, np.ndarray) else one
        if what == "set":
            one[key] = at + 0.5
        else:
            one[key] += one.ravel()[0]
        return one

    def program(x):
        views = [x]
        for at, (key, what) in enumerate(steps):
            try:
                views.append(step(at, views[at % len(views)], key, what))
            except IndexError:  # an axis may be empty by now
                views.append(views[-1])
        return tuple(view + 0 for view in views)

    both(program, np.arange(12, dtype=np.float32).reshape(4, 3))


def test_silent_casts_of_results_are_in_the_graph():
    def program(x32, y64, n):
        x32 += y64
        n[1:] = 2.7
        n[0] = y64[0]
        return x32, n, np.add(x32, 1, dtype=np.float64)

    recording = both(program, np.ones(2, np.float32), np.ones(2), np.zeros(3, np.int16))
    casts = [one for one in cast_report(recording.graph) if one.kind != "explicit"]
    found = [(one.operand, one.op, str(one.source), str(one.target)) for one in casts]
    assert sorted(found) == [
        ("lhs", "add", "float32", "float64"),
        ("lhs", "add", "float32", "float64"),
        ("result", "add", "float64", "float32"),
        ("rhs", "add", "weak_int", "float64"),
        ("value", "assign", "float64", "int16"),
        ("value", "assign", "weak_float", "int16"),
    ]


def test_casts_that_the_program_asks_for_are_explicit():
    recording = both(lambda x: (x.astype(np.float16), np.asarray(x, np.int8)), np.arange(3.0))
    assert [one.kind for one in cast_report(recording.graph)] == ["explicit", "explicit"]


def test_values_outside_of_an_integer_dtype_are_numpys_and_keep_their_casts():
    def program(x, n):
        n[:] = x
        return n, x.astype(np.int64)

    with np.errstate(invalid="ignore"):
        recording = both(program, np.array([1.5, np.nan, 1e30]), np.zeros(3, np.int32))
    assert recording.notes == ()
    assert [row.op for row in recording.report() if row.target.is_integer] == ["assign", "cast"]


def test_inputs_are_what_arguments_were():
    x = np.arange(3.0)

    def program(x):
        x += 1
        return x

    recording = record(program, x)
    assert recording.result is x
    assert identical(x, np.array([1.0, 2.0, 3.0]))
    assert identical(recording.inputs[0], np.array([0.0, 1.0, 2.0]))


def test_arguments_may_be_one_array_or_share_memory():
    def program(x, y, z):
        y += 1
        z *= 2
        return x + y, y - z, x is y

    def run(call):
        x = np.arange(6.0)
        return call(program, x[1:], x[1:], x[:5])

    def run_same(call):
        x = np.arange(6.0)
        return call(program, x, x, x[::-1])

    for each in (run, run_same):
        recording = each(record)
        assert same_results(each(lambda program, *args: program(*args)), recording.result)
        gives_again(recording, **EXACT)


def test_lists_of_arrays_are_recorded_and_handed_back():
    weights = [np.ones(2, np.float32), np.arange(2)]

    def program(weights, x):
        weights.append(x * 2)
        return sum(one * x for one in weights)

    recording = record(program, weights, np.ones(2))
    assert [type(one) for one in weights] == [np.ndarray] * 3
    assert recording.graph.input_names == ["x0", "x1", "x"]
    assert recording.notes == ()
    gives_again(recording, **EXACT)


def test_buffers_that_compiled_code_fills_are_seen():
    def program(x):
        out = np.zeros(4)
        memoryview(out)[1] = 3.0
        kept = out.copy()
        big = np.empty(4000)
        np.random.default_rng(0).random(out=np.frombuffer(big))
        return out + x, kept, big * 2

    recording = both(program, np.ones(4))
    assert recording.notes

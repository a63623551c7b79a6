"""Slices and their like share memory with what they are of, as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphir.runtime.array_api as xp
from graphir import ExecutionError, GraphError
from tests.support.tables import every

VIEWS = {
    "row": lambda x: x[1, :],
    "slice": lambda x: x[1:, ::2],
    "backwards": lambda x: x[::-1, :],
    "ellipsis": lambda x: x[..., 0],
    "new axis": lambda x: x[None, :, :],
    "transposed": lambda x: x.T,
    "flat": lambda x: _namespace(x).reshape(x, (-1,)),
    "flipped": lambda x: _namespace(x).flip(x, axis=1),
    "expanded": lambda x: _namespace(x).expand_dims(x, axis=1),
    "moved": lambda x: _namespace(x).moveaxis(x, 0, 1),
    "squeezed": lambda x: _namespace(x).squeeze(x[:1, :], axis=0),
    "view of a view": lambda x: x.T[1:, :][..., 1],
    "reshaped in strides": lambda x: _namespace(x).reshape(x[:, ::2], (3, 1, 2)),
    "copied": lambda x: _namespace(x).reshape(x.T, (-1,)),
    "gathered": lambda x: _namespace(x).take(x, _namespace(x).asarray([0, 1]), axis=0),
    "computed": lambda x: x + 0,
}
"""In NumPy the last three are copies."""

CHANGES = {
    "all": lambda x: x.__setitem__(..., -1.0),
    "doubled": lambda x: x.__imul__(2.0),
    "grown": lambda x: x.__iadd__(_namespace(x).ones(x.shape)),
}


def _namespace(x):
    return np if isinstance(x, np.ndarray | np.generic) else xp


def _arrays():
    values = np.arange(12.0).reshape(3, 4)
    return values.copy(), xp.asarray(values)


@every("change", CHANGES)
@every("view", VIEWS)
def test_a_change_of_either_is_of_both(view, change):
    of_numpy, of_ours = _arrays()
    for x in (of_numpy, of_ours):
        part = VIEWS[view](x)
        CHANGES[change](part)
    np.testing.assert_array_equal(np.asarray(of_ours), of_numpy)
    results = []
    for x in (of_numpy, of_ours):
        part = VIEWS[view](x)
        CHANGES[change](x)
        results.append(np.asarray(part))
    np.testing.assert_array_equal(*results)


@every("part", ["real", "imag"])
def test_parts_of_complex_numbers_are_views(part):
    x = xp.asarray([1 + 2j, 3 + 4j])
    view = getattr(xp, part)(x[::-1])
    view[0] = 9.0
    x += 1 + 1j
    expected = np.array([1 + 2j, 3 + 4j])
    plain = getattr(np, part)(expected[::-1])
    plain[0] = 9.0
    expected += 1 + 1j
    np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(np.asarray(view), plain)
    for _ in range(40):
        view = xp.flip(view)
    x *= 2
    np.testing.assert_array_equal(np.asarray(view), 2 * plain)


@every("view", ["broadcast_to", "diagonal"])
def test_read_only_views_follow_their_base_and_refuse_writes(view):
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    part = {
        "broadcast_to": lambda: xp.broadcast_to(x, (2, 2, 2)),
        "diagonal": lambda: xp.linalg.diagonal(x),
    }[view]()
    x[0, 0] = 7.0
    expected = {"broadcast_to": [[[7, 2], [3, 4]]] * 2, "diagonal": [7, 4]}[view]
    assert np.asarray(part).tolist() == expected
    for write in (lambda: part.__setitem__(..., 1.0), lambda: part.__iadd__(1.0)):
        with pytest.raises(GraphError, match=r"read-only view.*asarray\(x, copy=True\)"):
            write()
    assert np.asarray(part).tolist() == expected


@given(st.lists(st.tuples(st.sampled_from(sorted(VIEWS)), st.integers(0, 9)), max_size=6))
def test_any_order_of_views_and_changes(steps):
    for_numpy, for_ours = ([x] for x in _arrays())
    for name, place in steps:
        for known in (for_numpy, for_ours):
            x = known[place % len(known)]
            if name in CHANGES or place % 3 == 0:
                list(CHANGES.values())[place % 3](x)
            elif x.ndim == 2 and min(x.shape) > 2 and name != "gathered":
                known.append(VIEWS[name](x))
    for one, other in zip(for_numpy, for_ours, strict=True):
        np.testing.assert_array_equal(np.asarray(other), one)


def test_an_array_of_no_axes_is_changed_through_its_views():
    for view in (xp.flip, lambda x: x[...], lambda x: xp.expand_dims(x, axis=0), lambda x: x[None]):
        x = xp.asarray(1.0)
        part = view(x)
        part += 1.0
        assert (float(x), np.asarray(part).item()) == (2.0, 2.0)


def test_an_element_is_a_copy_so_that_two_can_be_swapped():
    x = xp.asarray([1.0, 2.0])
    first = x[0]
    x[0] = x[1]
    x[1] = first
    assert np.asarray(x).tolist() == [2.0, 1.0]


def test_what_was_recorded_before_a_change_has_the_old_values():
    x = xp.asarray([1.0, 2.0])
    doubled = x * 2
    x[0] = 5.0
    assert np.asarray(doubled).tolist() == [2.0, 4.0]


def test_a_view_of_what_is_refused_is_refused_every_time():
    x = xp.asarray([1, 2, 3])
    view = x[1:]
    x **= xp.asarray([1, -1, 2])
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"^\S+py:\d+:\d+: pow.*-1"):
            np.asarray(view)
        with pytest.raises(ExecutionError, match=r"^\S+py:\d+:\d+: pow.*-1"):
            x[0] = 5

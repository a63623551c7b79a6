"""Recorded results compared with a plain run, and with a replay of the recorded graph."""

from __future__ import annotations

import numpy as np

from graphir.runtime import interpret


def leaves(value):
    if isinstance(value, dict):
        return leaves(list(value.values()))
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


def identical(a, b):
    """The same type, dtype, shape and bytes."""
    same = type(a) is type(b) and np.shape(a) == np.shape(b)
    a, b = np.asarray(a), np.asarray(b)
    return same and a.dtype == b.dtype and (a.dtype == object or a.tobytes() == b.tobytes())


def same_results(plain, recorded):
    pairs = zip(leaves(plain), leaves(recorded), strict=True)
    return type(plain) is type(recorded) and all(identical(*pair) for pair in pairs)


def gives_again(recording, **tolerance):
    """Whether the graph computes the recorded results from the recorded inputs."""
    recording.graph.verify()
    again = interpret(recording.graph, *recording.inputs)
    again = again if isinstance(again, tuple) else (again,)
    for one, other in zip(again, recording.outputs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, equal_nan=True, **tolerance)
    return len(again)


EXACT = {"rtol": 0, "atol": 0}

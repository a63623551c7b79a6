"""Writes through what NumPy's functions return: views where NumPy has views, under jit and record.

Each program writes through the result, then to the array, and returns both.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from graphir import GraphirError
from graphir.runtime import interpret, jit, record

ARRAYS: dict[str, Any] = {
    "x": np.arange(1.0, 25.0).reshape(4, 6),
    "y": np.arange(1.0, 7.0),
    "s": np.arange(1.0, 26.0).reshape(5, 5),
    "t": np.arange(48.0).reshape(2, 6, 4),
    "z": np.arange(6.0) + 1j * np.arange(6.0),
    "q": np.arange(36.0).reshape(3, 4, 3),
    "c": np.arange(27.0).reshape(3, 3, 3),
    "n": np.array([1.0, np.nan, np.inf, -np.inf]),
    "i": np.arange(6),
}
COPIED_BEFORE = """
    np.einsum("ii->i", s)
    np.einsum("ii->i", s, optimize=True)
    np.einsum("ii->i", s[::-1])
    np.einsum("ij->ji", x)
    np.einsum("ji", x)
    np.einsum("ij", x, order="C")
    np.einsum("...i->i...", x)
    np.einsum("...", x)
    np.einsum("ijk->kij", t)
    np.einsum("iji->ij", q)
    np.einsum("...ii->...i", q.transpose(1, 0, 2))
    np.einsum("iii->i", c)
    np.einsum(x, [0, 1], [1, 0])
    np.einsum("ij->ji", x, dtype="f4", casting="same_kind")
    np.nan_to_num(n, copy=False)
    np.nan_to_num(n, nan=1.0, copy=False)
    np.nan_to_num(i, copy=False)
    np.diff(x, n=0)
    np.reshape(x, (2, 12), "F")
"""
FUNCTIONS = """
    np.nan_to_num(n)
    np.diagonal(s)
    np.diag(s, 1)
    s.diagonal()
    np.linalg.diagonal(s)
    np.broadcast_arrays(x, y)[0]
    np.broadcast_to(x, (2, 4, 6))
    np.atleast_1d(x)
    np.atleast_2d(y)
    np.atleast_3d(x)
    np.atleast_1d(y, 1)[0]
    np.squeeze(x[None])
    np.squeeze(x.reshape(4, 6, 1), -1)
    np.real(x)
    np.real(z)
    np.imag(z)
    z.imag
    np.split(x, 2)[1]
    np.hsplit(x, 2)[0]
    np.vsplit(x, 2)[1]
    np.dsplit(t, 2)[0]
    np.array_split(x, 3)[1]
    np.unstack(x)[1]
    np.unstack(x, axis=1)[2]
    np.rot90(x)
    np.rot90(x, 2)
    np.rot90(x, 4)
    np.flip(x)
    np.fliplr(x)
    np.flipud(x)
    np.moveaxis(t, [0, 1], [1, 0])
    np.rollaxis(t, 2)
    np.expand_dims(x, (0, 2))
    np.swapaxes(x, 0, 1)
    np.transpose(x)
    np.permute_dims(x, (1, 0))
    np.matrix_transpose(x)
    np.linalg.matrix_transpose(x)
    x.mT
    np.asarray(x)
    np.asarray(x, dtype="f4")
    np.asarray(x, order="F")
    np.asarray(x.T, order="F")
    np.ascontiguousarray(x)
    np.ascontiguousarray(x.T)
    np.asfortranarray(x)
    np.asfortranarray(x.T)
    np.array(x, copy=None, ndmin=3)
    np.array(x, ndmin=3)
    np.ravel(x)
    np.ravel(x.T)
    np.ravel(x.T, "F")
    np.ravel(x.T, "K")
    np.ravel(x[:, ::2])
    x.flatten()
    x.reshape(3, 8)
    np.reshape(x.T, (2, 12))
    np.reshape(x.T, (12, 2), order="F")
    np.reshape(x, -1, copy=False)
    np.reshape(x, -1, copy=True)
    x.view()
    x[1:, ::2]
    x[:, None, 2:3]
    x[[0, 1]]
    x.astype(float, copy=False)
    np.astype(x, float)
    np.copy(x)
    np.positive(x)
    np.conj(x)
    x.conj()
    np.real_if_close(x)
    np.take(x, [0], 0)
    np.concatenate([x])
    np.stack([x])
    np.block([x])
    np.tile(x, 1)
    np.roll(x, 0)
    np.resize(x, (4, 6))
    np.meshgrid(y, y[:2])[0]
    np.meshgrid(y, y[:2], copy=False, sparse=True)[1]
    np.lib.stride_tricks.as_strided(y, (3,), (16,))
    np.lib.stride_tricks.sliding_window_view(x, 6, 1)
    np.unwrap(y)
    np.around(x)
    np.clip(x, None, 99)
    np.tril(x)
    np.select([x > 0], [x])
    np.einsum("ij->j", x) + 0 * y
    [*x][1]
"""


def lines(texts: str) -> list[str]:
    return [text.strip() for text in texts.strip().split("\n")]


def outcome(text: str, write: str, kind: str) -> Any:
    """The array after the program, and its results; or the error."""
    name = next(name for name in ARRAYS if re.search(rf"\b{name}\b", text))
    space: dict[str, Any] = {"np": np}
    lines = f"    v = {text}\n    {write}\n    {name}[-1:] = 2\n    return {name} + 0, v + 0\n"
    exec(f"def program({name}):\n{lines}", space)
    program, array = space["program"], ARRAYS[name].copy()
    try:
        with np.errstate(all="ignore"):
            if kind == "NumPy":
                return array, *program(array)
            if kind == "jit":
                return array, *jit(program)(array)
            recording = record(program, array)
            again = interpret(recording.graph, *recording.inputs)
            assert bits(again) == bits(recording.outputs), "the replay differs"
            return array, *recording.result
    except Exception as error:
        return error


def bits(parts: Iterable[Any]) -> list[Any]:
    return [(part.dtype, part.shape, part.tobytes()) for part in map(np.asarray, parts)]


def differences(texts: Iterable[str]) -> list[Any]:
    wrong: list[Any] = []
    for text in texts:
        for write in ("v[..., 0] = -3", "v += 5", "pass"):
            expected = outcome(text, write, "NumPy")
            for kind in ("jit", "record"):
                found = outcome(text, write, kind)
                if isinstance(expected, Exception):
                    if not isinstance(found, (type(expected), GraphirError)):
                        wrong.append((kind, text, write, found))
                    continue
                if isinstance(found, GraphirError) and text.startswith("np.broadcast_arrays"):
                    continue
                if isinstance(found, Exception) or bits(found) != bits(expected):
                    wrong.append((kind, text, write, found))
    return wrong


def test_writes_through_results_are_numpys() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert not differences([*lines(COPIED_BEFORE), *lines(FUNCTIONS)[::9]])


@pytest.mark.exhaustive
def test_writes_through_all_results_are_numpys() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert not differences(lines(FUNCTIONS))

"""Calls of NumPy functions on symbols, and their comparison with NumPy on arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import Graph, Symbol
from graphir.numpy_api.ufuncs import COMPOUNDS, OPS, PARTS
from graphir.runtime import interpret

DTYPES = [np.dtype(code) for code in "?bhilBHILefdFD"]


UFUNCS = [one for one in (*OPS, *COMPOUNDS, *PARTS) if one.signature is None]


CLOSE = {"rtol": 2e-3, "atol": 2e-3}


def values(dtype: Any, shape: Any = (3,)) -> Any:
    return (np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 5).astype(dtype)


def symbols(*arrays: Any) -> list[Symbol]:
    g = Graph("numpy", rules="numpy")
    return [g.input(one.dtype, one.shape) for one in arrays]


def run(made: Any, arrays: Any) -> Any:
    several = made if isinstance(made, (tuple, list)) else (made,)
    several[0].graph.output(*several)
    found = interpret(several[0].graph, *arrays)
    return found if isinstance(found, tuple) else (found,)


def agrees(function: Callable[..., Any], *arrays: Any) -> None:
    """A function of symbols is what NumPy makes of the arrays: dtypes, shapes and values."""
    with np.errstate(all="ignore"):
        expected = function(*arrays)
    made = function(*symbols(*arrays))
    expected = expected if isinstance(expected, (tuple, list)) else (expected,)
    for one, want in zip(run(made, arrays), expected, strict=True):
        assert one.dtype == want.dtype and one.shape == want.shape
        np.testing.assert_allclose(
            *(x.astype(np.complex128) for x in (one, np.asarray(want))), **CLOSE
        )


def allowed(function: Callable[..., Any], *args: Any) -> bool:
    """Whether NumPy does it, and ops have its dtypes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            found: Any = function(*args)
        if function is np.nextafter:  # the op has no float16
            return found.dtype != np.float16
        if function is np.exp2:  # its complex values are not those of np.power(2, x)
            return found.dtype.kind != "c"
    except (np.exceptions.ComplexWarning, TypeError, ValueError, OverflowError):
        return False
    return True


def _fix(x: Any) -> Any:
    """`np.fix`, which NumPy 2.5 deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.fix(x)


FUNCTION_CALLS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: (np.sum(x), np.sum(x, axis=0), np.sum(x, 1, keepdims=True)),
    "sum of a dtype": lambda x: (np.sum(x, dtype=np.float64), np.prod(x, 0, np.float32)),
    "prod": lambda x: np.prod(x, axis=(0, 1)),
    "max min": lambda x: (np.max(x), np.min(x, axis=1), np.amax(x, 0), np.amin(x)),
    "ptp": lambda x: np.ptp(x, axis=0),
    "any all": lambda x: (np.any(x, axis=0), np.all(x)),
    "arg": lambda x: (np.argmax(x), np.argmin(x, axis=1), np.argmax(x, 0, keepdims=True)),
    "mean": lambda x: (np.mean(x, axis=0), np.mean(x, dtype=np.float64)),
    "var std": lambda x: (np.var(x), np.std(x, axis=1, ddof=1), np.var(x, correction=1)),
    "cumulative": lambda x: (np.cumsum(x), np.cumprod(x, axis=1), np.cumsum(x, 0, np.float64)),
    "count_nonzero": lambda x: (np.count_nonzero(x, axis=0), np.count_nonzero(x, axis=(0, 1))),
    "where": lambda x: np.where(x > 2, x, np.zeros((2, 3), np.int8)),
    "clip": lambda x: (np.clip(x, 1, 3), np.clip(x, None, 2), np.clip(x, 2, None)),
    "sort": lambda x: (np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None)),
    "argsort": lambda x: (np.argsort(x, kind="stable"), np.argsort(x, 0, kind="stable")),
    "searchsorted": lambda x: np.searchsorted(np.arange(4.0), x, side="right"),
    "diff": lambda x: (np.diff(x), np.diff(x, axis=0), np.diff(x, 2)),
    "round": lambda x: (np.round(x), np.around(x)),
    "parts": lambda x: (np.real(x), np.imag(x), np.conj(x)),
    "angle": lambda x: np.angle(x),
    "products": lambda x: (np.dot(x, x.T), np.inner(x, x), np.tensordot(x, x, 2), np.outer(x, x)),
    "vdot": lambda x: (np.vdot(x, x), np.dot(x, 2), np.linalg.matmul(x, x.T)),
    "likes": lambda x: (np.zeros_like(x), np.ones_like(x, np.int8), np.full_like(x, 1, shape=(4,))),
    "split": lambda x: (*np.split(x, 2), *np.split(x, [1, 2], axis=1)),
    "astype": lambda x: np.astype(x, np.float64),
    "concatenate": lambda x: (np.concatenate([x, x]), np.concatenate((x, x), axis=None)),
    "concatenate with arrays": lambda x: np.concatenate([np.ones((1, 3), np.int16), x], axis=0),
    "concatenate to a dtype": lambda x: np.concatenate([x, x], axis=1, dtype=np.complex128),
    "stacks": lambda x: (np.stack([x, x], axis=1), np.hstack([x, x]), np.vstack([x, x])),
    "stacked vectors": lambda x: (np.hstack([x[0]] * 2), np.vstack([x[0]] * 2)),
    "dstacked vectors": lambda x: np.dstack([x[0]] * 2),
    "dstack": lambda x: np.dstack([x, x]),
    "reshape": lambda x: (np.reshape(x, (3, 2)), np.reshape(x, -1), np.ravel(x)),
    "axes": lambda x: (np.transpose(x), np.transpose(x, (1, 0)), np.swapaxes(x, 0, 1)),
    "matrix_transpose": lambda x: (np.matrix_transpose(x), np.permute_dims(x, (1, 0))),
    "sliding_window_view": lambda x: (
        np.lib.stride_tricks.sliding_window_view(x, (1, 2)),
        np.lib.stride_tricks.sliding_window_view(x, 2, axis=1),
    ),
    "moveaxis": lambda x: (np.moveaxis(x[None], 0, -1), np.moveaxis(x[None], (0, 2), (2, 0))),
    "squeeze": lambda x: (np.squeeze(x[None]), np.squeeze(x[None, None], axis=(0, 1))),
    "expand_dims": lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1))),
    "broadcast_to": lambda x: np.broadcast_to(x, (4, 2, 3)),
    "flips": lambda x: (np.flip(x), np.flip(x, 1), np.flipud(x), np.fliplr(x)),
    "roll": lambda x: (np.roll(x, 1), np.roll(x, 1, axis=1), np.roll(x, (1, 2), axis=(0, 1))),
    "pad": lambda x: (np.pad(x, 1), np.pad(x, ((1, 0), (0, 2)), constant_values=1)),
    "tile": lambda x: (np.tile(x, 2), np.tile(x, (2, 1)), np.tile(x, (2, 1, 2))),
    "repeat": lambda x: (np.repeat(x, 2), np.repeat(x, 3, axis=0)),
    "take": lambda x: (np.take(x, np.array([0, 5])), np.take(x, np.array([1, 0]), axis=1)),
    "take of a list": lambda x: (np.take(x, [0, 5]), np.take(x, 1, axis=1)),
    "numbers joined": lambda x: np.hstack([x[0], 1.0]),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[0], [2]]), axis=1),
    "copy": lambda x: np.copy(x),
    "diagonals": lambda x: (np.diagonal(x), np.diagonal(x, -1), np.diag(x, 2), np.trace(x, 1)),
    "diagonals of stacks": lambda x: (np.linalg.diagonal(x[None]), np.linalg.trace(x[None])),
    "diagonals made": lambda x: (np.diag(x[0]), np.diag(x[0], -2), np.diagflat(x, 1)),
    "triangles": lambda x: (np.tril(x), np.triu(x), np.tril(x, 1), np.triu(x, -1)),
    "einsum": lambda x: (np.einsum("ij,kj->ik", x, x), np.einsum("ij->j", x), np.einsum("ij", x)),
    "einsum of diagonals": lambda x: (np.einsum("ii", x[:, :2]), np.einsum("ii->i", x[:, :2])),
    "einsum of ellipses": lambda x: (np.einsum("...j,j", x, x[0]), np.einsum("i...->...", x)),
    "einsum of three": lambda x: np.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "einsum that repeats": lambda x: np.einsum("ij,ij->ij", x[:, :1], x),
    "einsum with arrays": lambda x: np.einsum("ij,j", x, np.ones(3, np.int8)),
    "average": lambda x: (
        np.average(x),
        np.average(x, axis=1),
        np.average(x, 0, weights=np.array([1, 3])),
        np.average(x, weights=np.ones((2, 3), "f4")),
    ),
    "average ret": lambda x: np.average(x, 0, weights=np.array([1.0, 3.0]), returned=True),
    "average ret2": lambda x: np.average(x, 0, returned=True),
}  # fmt: skip


COMPOSITE_CALLS: dict[str, Callable[..., Any]] = {
    "nan sums": lambda x: (
        np.nansum(x),
        np.nansum(x, axis=0),
        np.nanprod(x, 1),
        np.nansum(x, dtype=np.float64),
    ),
    "nanmax": lambda x: (np.nanmax(x), np.nanmin(x, axis=1), np.nanmax(x, axis=0, keepdims=True)),
    "nanmean": lambda x: (np.nanmean(x), np.nanmean(x, axis=1), np.nanmean(x, 0, keepdims=True)),
    "nanvar": lambda x: (np.nanvar(x), np.nanstd(x, axis=1), np.nanvar(x, 0, ddof=1)),
    "median": lambda x: (
        np.median(x),
        np.median(x, axis=1),
        np.median(x, 0, keepdims=True),
        np.median(x[None], axis=(0, 2)),
    ),
    "cross": lambda x: (np.cross(x, x[::-1]), np.cross(x[0], x), np.linalg.cross(x, x[1:])),
    "cross axis": lambda x: np.cross(x.T, x[::-1].T, axis=0),
    "norm": lambda x: (
        np.linalg.norm(x),
        np.linalg.norm(x, axis=1),
        np.linalg.norm(x, "fro"),
        np.linalg.norm(x, keepdims=True),
    ),
    "norm vec": lambda x: tuple(
        np.linalg.norm(x[0], o) for o in (None, 0, 1, 2, 3, np.inf, -np.inf)
    ),
    "norms": lambda x: (
        np.linalg.vector_norm(x),
        np.linalg.vector_norm(x, axis=1, ord=1),
    ),
    "diff with ends": lambda x: (
        np.diff(x, prepend=0),
        np.diff(x, axis=0, append=x),
        np.diff(x, prepend=x[:, :1], append=1),
    ),
    "pieces": lambda x: (
        *np.split(x, np.array([1, 2]), 1),
        *np.split(x, (-1, 1, 9), axis=1),
    ),
    "pieces of stacks": lambda x: (
        *np.unstack(x),
        *np.unstack(x, axis=1),
    ),
    "left out": lambda x: (
        np.compress([True, False], x, axis=0),
        np.compress([0, 1], x),
    ),
    "joined": lambda x: (
        np.append(x, x),
        np.append(x, [[1, 2, 3]], axis=0),
    ),
    "broadcast_arrays": lambda x: (
        *np.broadcast_arrays(x, x[0]),
        *np.broadcast_arrays(x[:, :1], x),
    ),
    "atleast": lambda x: (
        np.atleast_1d(x[0, 0]),
        np.atleast_2d(x[0]),
        np.atleast_3d(x),
        np.atleast_3d(x[0]),
        np.atleast_3d(x[0, 0]),
        *np.atleast_2d(x, x[0]),
    ),
    "meshgrid": lambda x: (
        *np.meshgrid(x[0], x[:, 0]),
        *np.meshgrid(x[0], x[:, 0], indexing="ij"),
        *np.meshgrid(x[0], x[1], sparse=True),
    ),
    "shift": lambda x: (
        np.fft.fftshift(x),
        np.fft.ifftshift(x),
        np.fft.fftshift(x, axes=1),
        np.fft.fftshift(x, (0, 1)),
    ),
    "isclose": lambda x: (
        np.isclose(x, x),
        np.isclose(x, 2),
        np.isclose(x, x + x, equal_nan=True),
        np.isclose(2.0, x, atol=1),
    ),
    "nan_to_num": lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=1, posinf=2, neginf=-3)),
    "fix": lambda x: _fix(x),
}


FLOAT_CALLS: dict[str, Callable[..., Any]] = {
    "block": lambda x: np.block([[x, x], [x, x]]),
    "convolve": lambda x: (np.convolve(x[0], x[1]), np.correlate(x[0], x[1])),
    "cumulative": lambda x: (np.cumulative_prod(x[0]), np.cumulative_sum(x, axis=1)),
    "empty_like": lambda x: np.empty_like(x) * 0,
    "interp": lambda x: np.interp(x, x[0], x[1]),
    "isin": lambda x: np.isin(x, [1, 3]),
    "lexsort": lambda x: np.lexsort((x[0], x[1])),
    "linspace": lambda x: np.linspace(x[0], x[1], 4),
    "matrix_transpose": lambda x: (np.matrix_transpose(x), np.linalg.matrix_transpose(x)),
    "outer": lambda x: (np.outer(x, x), np.tensordot(x, x.T, 1), np.vecdot(x, x)),
    "linalg": lambda x: (
        np.linalg.outer(x[0], x[1]),
        np.linalg.tensordot(x, x.T, axes=1),
        np.linalg.vecdot(x, x),
    ),
}
"""Calls of functions whose other dtypes other tests compare."""

ANSWERS: dict[str, Callable[..., Any]] = {
    "isrealobj": lambda x: np.isrealobj(x),
    "size": lambda x: np.size(x),
}
"""Calls that types alone answer."""

COMPARED_BY_VALUE: dict[str, Callable[..., Any]] = {
    "allclose": lambda x: np.allclose(x, x),
    "array_equal": lambda x: np.array_equal(x, x),
}
"""Calls whose result is a Python bool in NumPy and a symbol here."""

REFUSED_CALLS: dict[str, Callable[..., Any]] = {
    "bincount": lambda x: np.bincount(x[0]),
}
"""Calls that symbols refuse with their reason."""

"""NumPy's functions under jit, on arrays long enough for each order of summation to show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from graphir import ExecutionError, GraphirError
from graphir.runtime import jit
from tests.support.replays import leaves
from tests.support.tables import every, sampled

RANDOM = np.random.default_rng(5)
DATA: dict[str, Any] = {
    "v": RANDOM.normal(size=317),
    "w": RANDOM.normal(size=40),
    "m": RANDOM.normal(size=(23, 31)),
    "f": RANDOM.normal(size=317).astype(np.float32),
    "g": RANDOM.normal(size=(23, 31)).astype(np.float32),
    "c": RANDOM.normal(size=317) + 1j * RANDOM.normal(size=317),
    "i": RANDOM.integers(0, 40, 317),
    "j": RANDOM.integers(-40, 40, 317),
    "s": np.sort(RANDOM.normal(size=40)),
    "b": RANDOM.normal(size=317) > 0,
    "h": np.where(RANDOM.random((23, 31)) < 0.1, np.nan, RANDOM.normal(size=(23, 31))),
}

RUNS = """
np.round(v, 2); np.round(v, -1); np.round(f, 3); np.round(c, 1); np.around(i * 37, -1); v.round(4)
np.linspace(v[0], v[1], 50); np.linspace(v.min(), v.max(), 50)
np.linspace(0, v[0], 7, endpoint=False); np.linspace(f[0], f[1], 9)
np.linspace(w, v[:40], 5, axis=1); np.linspace(0, f[0], 9); np.linspace(v[0], v[0], 3)
np.linspace(v[0], v[1], 1); np.logspace(v[0], v[1], 9); np.linspace(i[0], i[1], 9)
np.linspace(v[0], v[1], 9, dtype=int); np.linspace(v[0], 1, 9, retstep=True); np.interp(v, s, w)
np.interp(v, s, w, left=0.0, right=9.0); np.interp(v[3], s, w); np.interp(v, s, w, period=2.5)
np.interp(f, s, w + 1j); np.interp(v, np.arange(40.0), w); np.interp(s, s, w)
np.interp(np.where(b, v, np.nan), s, w); np.interp(v, s[:1], w[:1]); np.convolve(v, w)
np.convolve(v, w[:11], "same"); np.convolve(w[:5], v, "valid"); np.convolve(v, [1, 2, 1])
np.convolve(i, i[:30]); np.convolve(f, f[:7], "same"); np.convolve(c, c[:4])
np.correlate(v, w, "full"); np.correlate(c, v[:20], "same"); np.correlate(w, v)
np.convolve(b, b[:9]); np.histogram(v, bins=10, range=(-2, 2)); np.histogram(v, bins=10)
np.histogram(v, bins=s); np.histogram(v, bins=np.linspace(-2, 2, 9)); np.histogram(f, 12, (-1, 1))
np.histogram(v, 8, density=True); np.histogram(v, 8, (-2, 2), weights=v)
np.histogram(i, 5, (0, 40)); np.histogram(v, 9, (v.min(), v.max())); np.histogram(v, 4, (3, 3))
np.histogram(f, 12); np.histogram(i, 7, (0, 40), weights=i); np.histogram_bin_edges(v, 8)
np.histogram_bin_edges(v, 8, (-2, 2)); np.histogram(h, 6, (-1, 1)); np.bincount(i, minlength=40)
np.bincount(i, weights=v, minlength=50); np.bincount(b, minlength=2); np.digitize(v, s)
np.digitize(v, s[::-1]); np.digitize(v, s, right=True); np.digitize(s, s); np.gradient(v)
np.gradient(m); np.gradient(v, 0.3, edge_order=2); np.gradient(v, np.cumsum(v * v))
np.gradient(m, w[:23].cumsum(), axis=0); np.gradient(v, np.arange(317.0) * 2)
np.gradient(f, np.cumsum(f * f)); np.gradient(m, np.cumsum(w[:31] ** 2), axis=1, edge_order=2)
np.gradient(i); np.gradient(f, 0.5); np.quantile(v, 0.3); np.quantile(v, [0.1, 0.77])
np.quantile(m, 0.25, axis=0); np.quantile(f, 0.25)
np.quantile(m, [0.2, 0.9], axis=1, keepdims=True); np.quantile(g, [[0.1, 0.5]])
np.quantile(i, 0.31); np.quantile(v, 0.3, method="nearest"); np.quantile(v, 0.3, method="hazen")
np.quantile(h, 0.3, axis=0); np.quantile(v, 0.3, method="lower")
np.quantile(v, 0.3, method="median_unbiased"); np.percentile(v, 30)
np.percentile(m, [25, 50, 75], axis=1); np.percentile(f, 12.5); np.percentile(i, 50)
np.median(h, axis=0); np.nanmedian(h); np.nanmedian(h, axis=0)
np.nanmedian(h, axis=1, keepdims=True); np.median(g, axis=1); np.nanargmax(h)
np.nanargmin(h, axis=1); np.lexsort((v, i)); np.lexsort(m[:3]); np.isin(i, [1, 2, 33])
np.maximum.accumulate(v); np.minimum.accumulate(m, axis=1); np.subtract.accumulate(v)
np.bitwise_xor.accumulate(i); np.logical_or.accumulate(b); np.logaddexp.accumulate(w)
np.maximum.accumulate(h, axis=0); np.divide.accumulate(w); np.subtract.reduce(m)
np.hypot.reduce(w); np.bitwise_or.reduce(i); np.logical_xor.reduce(b)
np.bitwise_and.reduce(i, keepdims=True); np.add.reduceat(v, [0, 3, 70, 70, 9])
np.maximum.reduceat(m, [0, 9], axis=1); np.add.reduceat(m, [0, 9]); np.add.reduceat(b, [0, 9])
np.logical_or.reduceat(i, [0, 9]); np.multiply.reduceat(w, [0, 9, 12])
np.vecdot(m, m); np.vecdot(c, c); np.linalg.vecdot(m, m); np.matvec(m, w[:31])
np.vecmat(w[:23], m)
np.block([[m, m], [m, m]]); np.block([v, w]); np.block([[m, np.zeros((23, 2))]])
np.block([m[0], 1.0])
np.r_[v, w]; np.r_[0, v[1:-1], 0.5]; np.r_[f, 1.0]; np.r_[1:5, v]; np.c_[v, v * 2]; np.c_[m, w[:23]]
np.insert(v, 3, 1.5); np.insert(v, [1, 3], w[:2]); np.insert(m, 2, 9.0, axis=0); np.insert(i, 1, 2)
np.insert(m, 1, w[:31], axis=0); np.insert(m, 1, w[:23], axis=1); np.array(v, ndmin=2)
np.take(v, j, mode="wrap"); np.take(v, j * 9, mode="clip"); np.delete(m, [1, 2], axis=1)
m.T.sum(); m.T.sum(axis=0); m.T.mean(axis=-1); m.T.var(axis=0); m[:, 1:4].T.sum(0, keepdims=True)
np.add.reduce(m.T); m.T.std(); np.nansum(h.T, axis=0); g.T.mean(axis=0); np.exp(m.T).sum(axis=1)
np.partition(v, 4); np.argpartition(v, 4); np.histogram(v, s, weights=v); np.add.reduceat(v, i)
np.divide.accumulate(v); np.einsum('ij,ij->i', m, m); np.einsum('ij->i', m); v.argpartition(4)
np.vecdot(m.T, m.T); np.linalg.vecdot(m, m, axis=0); np.linalg.inv(m[:, :23])
np.linalg.slogdet(m @ m.T); np.linalg.cholesky(m @ m.T); np.linalg.solve(m[:, :23].T, w[:23])
np.linalg.eigh(m @ m.T); np.linalg.svd(m.T); np.linalg.qr(g); np.linalg.pinv(m.T)
np.linalg.det(i[:4].reshape(2, 2)); np.linalg.matrix_power(m[:, :23], -3); np.linalg.cond(m)
np.linalg.matrix_rank(m); np.linalg.norm(m, 2); np.fft.fft(v); np.fft.rfft2(m.T); np.fft.irfft(c)
np.fft.fftn(g); np.fft.fftshift(m, axes=1); np.fft.hfft(c[:9]); np.polyfit(v, v**2, 3)
np.modf(v); np.frexp(m.T); np.spacing(v); np.searchsorted(s, [0.5, 1.5]); np.unwrap(v * 9)
np.add(m, 1, order="F"); np.minimum(m.T, 0, subok=False); np.sin(g, dtype="f8", casting="safe")
np.percentile(m.T, [1, 2.5], axis=0, method="weibull"); np.cross(c[:3], c[3:6])
np.mean(i, dtype=int); np.select([v > 1, v < 0], [v, 2 * v], 5); np.choose(i % 2, [v, f])
np.subtract.reduce(v, initial=1)
np.histogram2d(v, v * v, 5); np.trapezoid(m.T, axis=0); np.kron(m[:2], m[:, :2]); np.i0(v)
np.apply_along_axis(np.sort, 0, m); np.apply_along_axis(lambda r: r.sum(), 1, m[:, :9])
v.view("i8"); m.view(np.uint32); (m.T + 1).T.view("i8"); np.packbits(b); np.array_equiv(v, v[0])
m[::-1].sum(axis=0); np.prod(m.T, axis=1); m.reshape(23, 31, 1).transpose(1, 0, 2).sum(axis=(0, 2))
"""

WRITES = """
np.add.at(w, i, v)
np.add.at(w, i, 1)
np.add.at(w, j, 1.5)
np.subtract.at(w, j, v)
np.multiply.at(w, i, v)
np.add.at(i, j, j)
np.maximum.at(i, j, j)
np.maximum.at(w, i, v)
np.minimum.at(w, [0, 0, 3], v[:3])
np.negative.at(w, j)
np.add.at(m, i % 23, v[:31])
np.add.at(m, (i % 23, i % 31), v)
np.add.at(m, (i % 23, 2), v)
np.put_along_axis(m, np.argmax(m, 1)[:, None], 0.0, 1)
np.put_along_axis(m, np.argsort(m, 0)[:2], m[:2] * 2, 0)
np.put(w, j, v)
np.put(w, j, v[:3])
np.put(w, i + 90, v, mode="wrap")
np.put(m, i + 900, 2, mode="clip")
np.putmask(v, v > 0, w)
np.putmask(m, m > 0, w[:7])
np.place(v, v > 0, w[:3])
np.place(v, b, [1, 2, 3])
v.partition(4)
m.partition((3, 5), axis=0)
"""

REFUSED = {
    "np.bincount(i)": "pass minlength=",
    "np.histogram(v, bins='auto')": "no op does this; call np.histogram on arrays, outside",
    "np.subtract.reduce(m, axis=(0, 1))": "at most one axis",
    "np.percentile(v, 30, overwrite_input=True)": "the order of the overwritten input",
    "np.unique(v)": "size of the result depends on values; call np.unique on arrays, outside",
    "np.unique(i, return_counts=True)": "outside of the traced function; the nearest: sort",
    "np.unique_values(v)": "call np.unique_values on arrays, outside",
    "np.argwhere(v > 0)": "call np.argwhere on arrays, outside .* the nearest: where",
    "np.nonzero(v)": "the size of the result depends on values",
}
RAISES = {
    "np.bincount(i, minlength=9)": "out of range",
    "np.bincount(j, minlength=90)": "out of range",
    "np.histogram(h, 3)": "range of .nan, nan. is not finite",
    "np.digitize(v, w)": "must be monotonically",
    "np.nanargmax(h * np.nan, axis=1)": "All-NaN slice",
    "np.histogram(v, bins=w)": "must increase monotonically",
}


def _function(line: str, result: str = "") -> tuple[Any, list[str]]:
    names = [name for name in DATA if re.search(rf"\b{name}\b(?!=)", line)]
    source = f"def f({', '.join(names)}):\n    {result} {line}\n"
    space: dict[str, Any] = {"np": np, "__name__": "user"}
    exec(source, space)
    return space["f"], names


def _arguments(names: list[str]) -> list[Any]:
    return [DATA[name].copy() for name in names]


def _bits(value: Any) -> list[Any]:
    """Dtype, shape and bytes of each array; any NaN counts as any other."""
    arrays = [np.asarray(leaf) for leaf in leaves(value)]
    one_nan = [
        np.where(x != x, x.dtype.type(np.nan), x) if x.dtype.kind == "f" else x for x in arrays
    ]
    return [(x.dtype, x.shape, x.tobytes()) for x in one_nan]


@sampled(4)
@every("line", re.split(r"; |\n", RUNS.strip()))
def test_functions_have_numpys_bits(line):
    function, names = _function(line, "return")
    with np.errstate(all="ignore"):
        expected = function(*_arguments(names))
        jitted = jit(function)
        for _ in range(2):
            assert _bits(expected) == _bits(jitted(*_arguments(names)))


@every("line", WRITES.strip().splitlines())
def test_writes_leave_the_arguments_as_numpy_does(line):
    function, names = _function(line)
    plain, args = _arguments(names), _arguments(names)
    function(*plain)
    jit(_returning(function))(*args)
    assert _bits(plain) == _bits(args)


def test_a_number_that_an_array_does_not_hold_is_added_in_a_wider_dtype():
    x, at = np.linspace(0, 9, 1000, dtype=np.float32), np.arange(1000)

    def program(x, at):
        np.add.at(x, at, 0.1)
        return x + 1

    expected, result = program(x.copy(), at), jit(program)(x, at)
    assert _bits(result) == _bits(expected)


def _returning(function):
    def call(*args):
        function(*args)
        return args[0] + 1

    return call


@every("line", [*REFUSED, *RAISES])
def test_what_depends_on_values_is_refused_or_raises_in_the_run(line):
    function, names = _function(line, "return")
    message = REFUSED.get(line) or RAISES[line]
    with pytest.raises(GraphirError if line in REFUSED else ExecutionError, match=message):
        jit(function)(*_arguments(names))

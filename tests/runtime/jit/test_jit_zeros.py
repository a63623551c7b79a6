"""Signs of zeros and roundings of float16, which NumPy's own loops and sorts decide."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from graphir import ops, trace
from graphir.runtime import execute, jit, record

_LINES = """
np.sort(x)
np.sort(x, kind="stable")
np.sort(x, kind="H")
np.sort(x, stable=True)
np.sort(x.reshape(-1, 2), axis=0)
np.sort(x[::-1])
sorted_in_place(x)
np.argsort(x)
np.argsort(x, kind="heapsort")
np.partition(x, 3)
np.quantile(x, 0.4)
np.nanmedian(x)
np.median(x)
np.clip(x, 0, 1)
np.clip(x, -1, 0.0)
np.clip(x, -0.0, 0.0)
np.clip(x[::-1], 0, 1)
np.clip(x[::2], y[0], y[1])
np.clip(x, np.zeros(x.shape), 1)
np.clip(x, np.float32(0), np.float64(2))
x.clip(0)
x.clip(max=-0.0)
np.clip(x, low, 2.0)
np.clip(x.astype(np.complex64), 0, 1)
np.maximum(x, x[::-1])
np.fmin(x[::2], x[1::2])
np.max(x.reshape(-1, 2).astype(np.float16), 0)
np.convolve(x, y)
np.correlate(x, y, "same")
np.cumsum(x)
x.cumprod()
np.add.accumulate(x)
np.nancumsum(x)
np.cumsum(x, dtype=np.float16)
np.reciprocal(x.astype(np.int64))
np.reciprocal(x[:3].astype(np.int8))
"""


def sorted_in_place(x: Any) -> Any:
    x = x + 0
    x.sort()
    return x


def _functions() -> dict[str, Callable[..., Any]]:
    space = {"np": np, "sorted_in_place": sorted_in_place, "__name__": "user"}
    lines = _LINES.strip().splitlines()
    assert all(ast.parse(line) for line in lines)
    return {line: eval(f"lambda x, y, low: {line}", space) for line in lines}


def _drawn(draw: np.random.Generator, size: int, dtype: Any) -> Any:
    """Return numbers of which most are zeros of both signs."""
    values = draw.normal(size=size) * (draw.random(size) < 0.3) * draw.choice([-1, 1], size)
    return values.astype(dtype)


def _bits(value: Any) -> Any:
    array = np.asarray(value)
    return type(value), array.dtype, array.shape, (array + 0).tobytes(), _signs(array)


def _signs(array: Any) -> Any:
    return [np.signbit(part).tobytes() for part in (array.real, array.imag)]


def test_jit_has_numpys_signs_of_zeros_and_float16() -> None:
    draw, functions = np.random.default_rng(4), _functions()
    jitted = {line: jit(function) for line, function in functions.items()}
    for dtype, size in (("f8", 34), ("f4", 66), ("f2", 34), ("f8", 600)):
        with np.errstate(all="ignore"):
            x, y = _drawn(draw, size, dtype), _drawn(draw, 5, dtype)
            for line, function in functions.items():
                for low in (-0.0, -1.0):
                    expected = _bits(function(x.copy(), y.copy(), low))
                    assert _bits(jitted[line](x.copy(), y.copy(), low)) == expected, (line, dtype)


def test_replays_and_graphs_sort_zeros_as_numpy_does() -> None:
    draw = np.random.default_rng(5)
    x, other = (_drawn(draw, 40, np.float64) for _ in range(2))
    for kind in (None, "stable"):
        function = lambda x, kind=kind: np.sort(x, kind=kind)  # noqa: E731
        recording = record(function, x)
        assert _bits(recording.result) == _bits(function(x))
        assert _bits(execute(recording.graph, other)) == _bits(function(other))
        traced = trace(function, x, rules="numpy")
        [result] = traced.graph.outputs
        assert result.op is ops.sort and result.attrs["stable"] == (kind == "stable")
        assert _bits(execute(traced.graph, other)) == _bits(function(other))


def test_random_clips_keep_the_signs_of_zeros() -> None:
    draw = random.Random(6)
    values = (0.0, -0.0, 0.5, -0.5, float("nan"), float("inf"))
    x = np.array([draw.choice(values) for _ in range(40)])
    clip = jit(lambda x, low, high: np.clip(x, low, high))
    for low in (0.0, -0.0, -1.0, float("nan")):
        for high in (0.0, -0.0, 1.0, -0.5):
            assert _bits(clip(x, low, high)) == _bits(np.clip(x, low, high)), (low, high)


_OF_HALVES = """
np.exp(x); np.sin(x[:, ::-1]); np.power(x, y); x ** 1.5; np.arctan2(x, y)
x @ y; x.T @ x; np.dot(x.T, y); x[0] @ y; np.tensordot(x, y, 1); np.matvec(x, y[0])
np.linalg.matrix_power(x, 2); np.add.reduceat(x, [0, 5, 9]); np.sort(x, 0); np.cumprod(x, 1)
np.log(abs(x)[::-1, ::-1], dtype=np.float64); np.float_power(abs(x), 2, dtype=float)
np.max(x, 0); np.spacing(x); np.nextafter(x, y); x.sum(1); np.mean(x, 0)
"""


def test_jit_has_numpys_float16() -> None:
    draw = np.random.default_rng(7)
    x, y = (draw.normal(size=(60, 60)).astype(np.float16) for _ in range(2))
    for line in _OF_HALVES.replace("\n", ";").split(";"):
        if line.strip():
            function = eval(f"lambda x, y: {line}", {"np": np, "__name__": "user"})
            with np.errstate(all="ignore"):
                assert _bits(jit(function)(x, y)) == _bits(function(x, y)), line

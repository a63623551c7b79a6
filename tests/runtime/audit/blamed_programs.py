"""Ten programs of different kinds that mix dtypes, with data to run them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from graphir import DType, Graph, ops
from tests.support.loading import example

Data = dict[str, np.ndarray[Any, Any]]


class Blamed(NamedTuple):
    """A graph and the inputs to run it on."""

    graph: Graph
    inputs: Data


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def digits() -> Blamed:
    module = example("digits")
    images, labels, test = module.load()
    return Blamed(
        module.deployed(*module.train(images[~test], labels[~test])), {"images": images[test]}
    )


def image_pipeline() -> Blamed:
    module = example("image_pipeline")
    image, gains = module.photograph()
    return Blamed(module.pipeline(DType.tensor_float32), {"image": image, "gains": gains})


def attention() -> Blamed:
    """Softmax attention: bfloat16 queries, float16 keys, int8 values with a float32 scale."""
    g = Graph("attention", rules="max")
    q = g.input("bfloat16", (64, 32), name="q")
    k = g.input("float16", (64, 32), name="k")
    v = g.input("int8", (64, 32), name="v")
    scale = g.input("float32", (32,), name="scale")
    bias = g.input("float32", (64, 64), name="bias")
    scores = q @ k.transpose()
    weights = ops.softmax(scores * (1 / 8) + bias, axis=-1)
    g.output(weights @ (v * scale) + q)
    r = _rng()
    return Blamed(
        g,
        {
            "q": r.normal(0, 1, (64, 32)).astype(ml_dtypes.bfloat16),
            "k": r.normal(0, 1, (64, 32)).astype(np.float16),
            "v": r.integers(-127, 127, (64, 32)).astype(np.int8),
            "scale": r.uniform(0.001, 0.01, 32).astype(np.float32),
            "bias": r.normal(0, 1, (64, 64)).astype(np.float32),
        },
    )


def black_scholes() -> Blamed:
    """Call prices: int32 cents, float16 volatility, bfloat16 rates, float32 times, under max."""
    g = Graph("black_scholes", rules="max")
    spot = g.input("int32", ("n",), name="spot")
    strike = g.input("int32", ("n",), name="strike")
    sigma = g.input("float16", ("n",), name="sigma")
    rate = g.input("bfloat16", ("n",), name="rate")
    time = g.input("float32", ("n",), name="time")
    s, k = spot / 100, strike.cast("float32") * 0.01
    root = sigma * ops.sqrt(time)
    d1 = (ops.log(s / k) + (rate + sigma * sigma / 2) * time) / root
    d2 = d1 - root
    cdf = [0.5 * (1 + ops.erf(d * 0.7071067811865476)) for d in (d1, d2)]
    g.output(s * cdf[0] - k * ops.exp(-(rate * time)) * cdf[1])
    r = _rng()
    n = 2000
    return Blamed(
        g,
        {
            "spot": r.integers(5_000, 20_000, n).astype(np.int32),
            "strike": r.integers(5_000, 20_000, n).astype(np.int32),
            "sigma": r.uniform(0.1, 0.5, n).astype(np.float16),
            "rate": r.uniform(0.01, 0.08, n).astype(ml_dtypes.bfloat16),
            "time": r.uniform(0.2, 2, n).astype(np.float32),
        },
    )


def audio_filter() -> Blamed:
    """int16 samples, bfloat16 and float16 taps, a float32 gain, an int32 offset."""
    g = Graph("audio_filter", rules="jax")
    x = g.input("int16", (4096,), name="x")
    coarse = g.input("bfloat16", (3,), name="coarse")
    fine = g.input("float16", (3,), name="fine")
    gain = g.input("float32", (), name="gain")
    offset = g.input("int32", (4094,), name="offset")
    low = x[:-2] * coarse[0] + x[1:-1] * coarse[1] + x[2:] * coarse[2]
    high = x[:-2] * fine[0] + x[1:-1] * fine[1] + x[2:] * fine[2]
    g.output((low * 0.5 + high) * gain + offset)
    r = _rng()
    t = np.arange(4096)
    samples = 900 * np.sin(t / 30) + 400 * np.sin(t / 3.3) + r.normal(0, 50, 4096)
    return Blamed(
        g,
        {
            "x": samples.astype(np.int16),
            "coarse": np.array([0.26, 0.52, 0.21], ml_dtypes.bfloat16),
            "fine": np.array([-0.3, 0.7, -0.2], np.float16),
            "gain": np.array(0.73, np.float32),
            "offset": r.integers(-40, 40, 4094).astype(np.int32),
        },
    )


def horner() -> Blamed:
    """A polynomial: int64, int32, float16, bfloat16 and float32 coefficients, one after another."""
    g = Graph("horner", rules="torch")
    x = g.input("float16", ("n",), name="x")
    dtypes = ("int32", "float16", "bfloat16", "int64", "float32", "float64")
    a = [g.input(dtype, ("n",), name=f"a{i}") for i, dtype in enumerate(dtypes)]
    y = a[0] * x + a[1]
    y = y * x + a[2]
    y = y * x + a[3]
    y = y * x + a[4]
    y = y.cast("bfloat16") * x + a[5].cast("float32")
    g.output(y)
    r = _rng()
    found: Data = {"x": r.uniform(0.2, 1.5, 500).astype(np.float16)}
    for name, symbol in zip(g.input_names[1:], g.inputs[1:], strict=True):
        whole = r.integers(1, 90, 500) if symbol.dtype.is_integer else r.normal(0, 30, 500)
        found[name] = whole.astype(symbol.dtype.storage)
    return Blamed(g, found)


def layer_norm() -> Blamed:
    """A transformer's feed-forward block, its weights in three narrow dtypes."""
    g = Graph("layer_norm", rules="max")
    x = g.input("float32", (32, 48), name="x")
    gamma, beta = g.input("bfloat16", (48,), name="gamma"), g.input("float16", (48,), name="beta")
    up, down = g.input("int8", (48, 64), name="up"), g.input("float8_e4m3fn", (64, 48), name="down")
    scale = g.input("float16", (64,), name="scale")
    with g.layer("norm"):
        centred = x - x.mean(axis=-1, keepdims=True)
        y = centred / ops.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
        y = y.cast("bfloat16") * gamma + beta
    with g.layer("up"):
        h = ops.gelu((y @ up) * scale)
    with g.layer("down"):
        g.output(h.cast("float16") @ down.cast("float32") + x)
    r = _rng()
    return Blamed(
        g,
        {
            "x": r.normal(0, 2, (32, 48)).astype(np.float32),
            "gamma": r.uniform(0.5, 1.5, 48).astype(ml_dtypes.bfloat16),
            "beta": r.normal(0, 0.2, 48).astype(np.float16),
            "up": r.integers(-100, 100, (48, 64)).astype(np.int8),
            "scale": r.uniform(0.001, 0.004, 64).astype(np.float16),
            "down": r.normal(0, 0.2, (64, 48)).astype(ml_dtypes.float8_e4m3fn),
        },
    )


def ledger() -> Blamed:
    """Money: int64 cents, int32 quantities, float32 rates, float16 discounts, under TensorFlow."""
    g = Graph("ledger", rules="jax")
    cents = g.input("int64", ("n",), name="cents")
    quantity = g.input("int32", ("n",), name="quantity")
    rate = g.input("float32", ("n",), name="rate")
    discount = g.input("float16", ("n",), name="discount")
    tax = g.input("bfloat16", (), name="tax")
    with g.layer("gross"):
        gross = cents * quantity
        net = gross * (1 - discount)
    with g.layer("taxed"):
        taxed = net * rate + gross * tax
        g.output(taxed.sum() / cents.sum(), taxed)
    r = _rng()
    n = 800
    return Blamed(
        g,
        {
            "cents": r.integers(1, 40, n).astype(np.int64),
            "quantity": r.integers(1, 12, n).astype(np.int32),
            "rate": r.uniform(0.9, 1.1, n).astype(np.float32),
            "discount": r.uniform(0, 0.3, n).astype(np.float16),
            "tax": np.array(0.19, ml_dtypes.bfloat16),
        },
    )


def heat() -> Blamed:
    """Two steps of the heat equation in float32, bfloat16, int16 and float16."""
    g = Graph("heat", rules="jax")
    u = g.input("float32", (200,), name="u")
    c = g.input("bfloat16", (198,), name="c")
    source = g.input("int16", (198,), name="source")
    dt = g.input("float16", (), name="dt")
    with g.layer("first"):
        flow = c * dt
        inner = u[1:-1] + flow * (u[2:] - 2 * u[1:-1] + u[:-2]) + source * dt
    with g.layer("second"):
        v = inner.cast("bfloat16")
        g.output(v[1:-1] + flow[1:-1].cast("float16") * (v[2:] - 2 * v[1:-1] + v[:-2]), inner)
    r = _rng()
    return Blamed(
        g,
        {
            "u": (20 + 5 * np.sin(np.arange(200) / 9)).astype(np.float32),
            "c": r.uniform(0.5, 1, 198).astype(ml_dtypes.bfloat16),
            "source": r.integers(-3000, 3000, 198).astype(np.int16),
            "dt": np.array(0.01, np.float16),
        },
    )


def statistics() -> Blamed:
    """Moments and a z-score of counts, beside measurements in other dtypes."""
    g = Graph("statistics", rules="torch")
    count = g.input("int32", (1000,), name="count")
    level = g.input("float16", (1000,), name="level")
    weight = g.input("bfloat16", (1000,), name="weight")
    base = g.input("float64", (1000,), name="base")
    mean = (count * level).sum() / count.sum()
    spread = ops.sqrt(((level - mean) * (level - mean) * weight).mean())
    z = (level - mean) / spread + base.cast("float32")
    g.output(z, (z * weight).mean(), (count * weight).sum())
    r = _rng()
    return Blamed(
        g,
        {
            "count": r.integers(1, 30, 1000).astype(np.int32),
            "level": r.uniform(1, 3, 1000).astype(np.float16),
            "weight": r.uniform(0.1, 1, 1000).astype(ml_dtypes.bfloat16),
            "base": r.normal(0, 1, 1000),
        },
    )


PROGRAMS: dict[str, Callable[[], Blamed]] = {
    made.__name__: made
    for made in (
        *(digits, image_pipeline, attention, black_scholes, audio_filter),
        *(horner, layer_norm, ledger, heat, statistics),
    )
}

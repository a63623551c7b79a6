"""Programs as they are written with JAX: optimisers, attention, recurrences, estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype("float32")


W, V, G = floats(4, 3), floats(4, 3), floats(4, 3)
P = {"w": W, "b": floats(3)}
X, T = floats(5, 4), floats(5, 3)
S = floats(6, 4)
KEY = np.array([0, 3], "uint32")


def mse(p: Any, x: Any, t: Any) -> Any:
    return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) - t) ** 2)


def momentum(w: Any, m: Any, g: Any) -> Any:
    m = 0.9 * m + g
    return w - 0.01 * m, m


def adam(w: Any, g: Any, step: Any) -> Any:
    m, v = 0.1 * g, 0.001 * g**2
    scale = jnp.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    return w - 1e-3 * scale * m / (jnp.sqrt(v) + 1e-8)


def rmsprop(w: Any, g: Any, v: Any) -> Any:
    v = 0.9 * v**2 + 0.1 * jnp.square(g)
    return w - 0.01 * g * lax.rsqrt(v + 1e-6)


def adagrad(w: Any, g: Any, total: Any) -> Any:
    total = total**2 + g * g
    return w - 0.1 * jnp.where(total > 0, g / jnp.sqrt(total), 0.0)


def lamb(w: Any, g: Any) -> Any:
    update = g / (jnp.abs(g) + 1e-6) + 0.01 * w
    norms = jnp.linalg.norm(w), jnp.linalg.norm(update)
    return w - 0.1 * jnp.where(norms[1] > 0, norms[0] / norms[1], 1.0) * update


def training(p: Any, x: Any, t: Any) -> Any:
    def step(p: Any, _: Any) -> Any:
        loss, g = jax.value_and_grad(mse)(p, x, t)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), loss

    return lax.scan(step, p, None, length=4)


def clipping(g: Any) -> Any:
    norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(g)))
    return jax.tree.map(lambda x: x * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), g)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v


def heads(x: Any, w: Any) -> Any:
    q, k, v = (jnp.reshape(x @ w, (6, 2, 2)) * i for i in (1, 2, 3))
    scores = jnp.einsum("qhd,khd->hqk", q, k) / 2**0.5
    return jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores, axis=-1), v).reshape(6, 4)


def dropout(x: Any, key: Any) -> Any:
    keep = random.bernoulli(key, 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0)


def rnn(x: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        h = jnp.tanh(r + h @ w)
        return h, h

    return lax.scan(step, jnp.zeros(4), x)


def gru(x: Any, w: Any) -> Any:
    def step(h: Any, r: Any) -> Any:
        z, n = jax.nn.sigmoid(r + h @ w), jnp.tanh(r - h)
        return (1 - z) * n + z * h, None

    return lax.scan(step, jnp.zeros(4), x)[0]


def lstm(x: Any, w: Any) -> Any:
    def step(state: Any, r: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([r, h]) @ w, 4)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (jnp.zeros(4), jnp.zeros(4)), x)


def runge_kutta(y: Any) -> Any:
    def slope(y: Any) -> Any:
        return jnp.stack([y[1], -y[0] - 0.1 * y[1]])

    def step(y: Any, _: Any) -> Any:
        h = 0.1
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y

    return lax.scan(step, y, None, length=8)


def adaptive(y: Any) -> Any:
    def step(state: Any) -> Any:
        t, y, h = state
        low = y - h * y
        high = y - h * (y + low) / 2
        error = jnp.max(jnp.abs(high - low))
        good = error < 1e-2
        return jnp.where(good, t + h, t), jnp.where(good, high, y), jnp.where(good, h * 1.2, h / 2)

    return lax.while_loop(lambda s: s[0] < 1.0, step, (0.0, y, 0.5))


def convolution(x: Any, w: Any) -> Any:
    windows = jnp.stack([x[i : i + 4, j : j + 2] for i in range(3) for j in range(3)])
    return jnp.max(jax.nn.relu(jnp.einsum("kij,kl->ijl", windows, w)), axis=(0, 1))


def autoencoder(x: Any, w: Any, key: Any) -> Any:
    mean, spread = jnp.split(x @ w, 2, axis=-1)
    z = mean + jnp.exp(0.5 * spread) * random.normal(key, mean.shape)
    divergence = -0.5 * jnp.sum(1 + spread - mean**2 - jnp.exp(spread))
    return jnp.sum(jax.nn.softplus(z @ w[:, :2].T)) + divergence


def k_means(x: Any, centres: Any) -> Any:
    def step(_: Any, centres: Any) -> Any:
        nearest = jnp.argmin(jnp.sum((x[:, None] - centres) ** 2, -1), axis=1)
        members = jax.nn.one_hot(nearest, 2)
        return members.T @ x / jnp.maximum(members.sum(0)[:, None], 1)

    return lax.fori_loop(0, 3, step, centres)


def kalman(x: Any) -> Any:
    def step(state: Any, z: Any) -> Any:
        mean, cov = state
        cov = cov + 0.1 * jnp.eye(4)
        gain = cov / (jnp.trace(cov) + 1.0)
        mean = mean + gain @ (z - mean)
        return (mean, (jnp.eye(4) - gain) @ cov), mean

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), x)


def particles(x: Any, key: Any) -> Any:
    moved = x + 0.1 * random.normal(key, x.shape)
    weights = jax.nn.softmax(-jnp.sum(moved**2, axis=1))
    places = jnp.searchsorted(jnp.cumsum(weights), (jnp.arange(6) + 0.5) / 6)
    return moved[places], weights


def beam(scores: Any, totals: Any) -> Any:
    totals, at = lax.top_k((totals[:, None] + jax.nn.log_softmax(scores)).ravel(), 3)
    return totals, at // scores.shape[1], at % scores.shape[1]


def layer_norm(x: Any, p: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) @ p["w"] + p["b"]


def batch_norm(x: Any, running: Any) -> Any:
    mean, var = jnp.mean(x, 0), jnp.var(x, 0)
    return (x - mean) / jnp.sqrt(var + 1e-5), 0.9 * running + 0.1 * mean


def quantisation(x: Any) -> Any:
    scale = jnp.max(jnp.abs(x)) / 127
    q = jnp.clip(jnp.round(x / scale), -128, 127).astype(jnp.int8)
    return q, q.astype(jnp.float32) * scale


def straight_through(x: Any) -> Any:
    return jnp.sum(x + lax.stop_gradient(jnp.round(x) - x))


def half_precision(x: Any, w: Any) -> Any:
    y = jax.nn.gelu(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16))
    return jnp.sum(y.astype(jnp.float32))


def cross_entropy(x: Any, labels: Any) -> Any:
    logs = jax.nn.log_softmax(x)
    return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))


def embedding(table: Any, words: Any) -> Any:
    return jnp.sum(table[words] ** 2)


def newton(x: Any) -> Any:
    def residual(x: Any) -> Any:
        return x**3 - x - 1

    return lax.fori_loop(0, 5, lambda i, x: x - residual(x) / jax.vmap(jax.grad(residual))(x), x)


def power_iteration(x: Any) -> Any:
    a = x.T @ x
    v = lax.fori_loop(0, 6, lambda i, v: a @ v / jnp.linalg.norm(a @ v), jnp.ones(4))
    return v @ a @ v


def rotary(x: Any) -> Any:
    angles = jnp.arange(6)[:, None] / 100 ** (jnp.arange(0, 4, 2) / 4)
    a, b = x[:, ::2], x[:, 1::2]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


WORDS = np.array([0, 3, 3, 1], "int32")
LABELS = np.array([0, 2, 1, 3, 0, 1], "int32")
PROGRAMS: dict[Callable[..., Any], tuple[Any, ...]] = {
    momentum: (W, V, G),
    adam: (W, G, np.int32(3)),
    rmsprop: (W, G, V),
    adagrad: (W, G, V),
    lamb: (W, G),
    training: (P, X, T),
    clipping: (P,),
    attention: (S, floats(6, 4), floats(6, 4)),
    heads: (S, floats(4, 4)),
    dropout: (X, KEY),
    rnn: (S, floats(4, 4)),
    gru: (S, floats(4, 4)),
    lstm: (S, floats(8, 16)),
    runge_kutta: (floats(2),),
    adaptive: (floats(3),),
    convolution: (S, floats(9, 3)),
    autoencoder: (S, floats(4, 4), KEY),
    k_means: (S, S[:2]),
    kalman: (S,),
    particles: (S, KEY),
    beam: (floats(3, 5), floats(3)),
    layer_norm: (S, P),
    batch_norm: (S, S[0]),
    quantisation: (S,),
    straight_through: (S,),
    half_precision: (X, W),
    cross_entropy: (S, LABELS),
    embedding: (W, WORDS),
    newton: (floats(3) + 2,),
    power_iteration: (X,),
    rotary: (S,),
}


def total(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program whose only result is the sum of all results."""

    def summed(*args: Any) -> Any:
        leaves = jax.tree.leaves(program(*args))
        return sum(jnp.sum(x) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating))

    return summed


def mapped(program: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the vmap of a program over its first argument, with three of it."""
    first = jax.tree.map(lambda x: jnp.stack([x, x + x, -x]), args[0])
    return jax.vmap(program, (0, *(None for _ in args[1:]))), (first, *args[1:])


NOT_DIFFERENTIABLE = {adaptive}
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f.__name__: (f, args) for f, args in PROGRAMS.items()},
    **{
        f"grad of {f.__name__}": (jax.grad(total(f)), args)
        for f, args in PROGRAMS.items()
        if f not in NOT_DIFFERENTIABLE
    },
    **{f"vmap of {f.__name__}": mapped(f, args) for f, args in PROGRAMS.items()},
}

"""Programs of JAX that raise."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CASES = {}


def case(*inputs):
    def mark(function):
        CASES[function.__name__] = function, inputs
        return function

    return mark


X = np.linspace(0, 1, 6, dtype=np.float32)


TABLE = np.array([0.5, 0.25], np.float32)


@case(X)
def settle(x):
    taps = jnp.asarray(TABLE)  # named

    def body(state):
        i, y = state
        return i + 1, y * taps[0] + taps[1]  # named

    return lax.while_loop(lambda s: s[0] < 5, body, (0, x.astype(jnp.bfloat16)))


@case(X, np.True_)
def branch(x, flag):
    def hot(v):
        return v * 2

    def cold(v):
        return jnp.zeros(v.shape, int)  # named

    return lax.cond(flag, hot, cold, x)


class Cache:
    def __init__(self, n):
        self.keys = jnp.zeros((n, 2), jnp.bfloat16)  # named

    def put(self, key, at):
        return lax.dynamic_update_slice(self.keys, key, (at, 0))  # named


@case(X.reshape(3, 2), np.int32(1))
def attend(x, at):
    cache = Cache(8)
    keys = x * 0.5
    return cache.put(keys[:1], at)


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, 0, 1)


@case(X)
def slopes(x):
    return jax.grad(lambda v: clipped(v).sum())(x)


class Momentum:
    def __init__(self, decay):
        self.decay = np.float32(decay)  # named

    def update(self, moment, gradient):
        return moment * self.decay + gradient  # named


@case(X)
def train(x):
    optimizer = Momentum(0.9)

    def step(carry, v):
        moment, n = carry
        moment = optimizer.update(moment, v.astype(jnp.bfloat16))
        return (moment, n + 1), n

    return lax.scan(step, (jnp.zeros((), jnp.bfloat16), 0), x)


@case(X)
def chosen(x):
    floor = jnp.zeros(x.shape, jnp.bfloat16)  # named
    return lax.select(x > 0.5, x, floor)  # named


@case(X)
def shrink(x):
    def going(state):
        return jnp.sum(state) - 0.1  # named

    return lax.while_loop(going, lambda s: s / 2, x)  # named


@case(X)
def placed(x):
    out = jnp.zeros((4, 6))
    starts = jnp.linspace(0, 3, 4)  # named
    return lax.dynamic_update_slice(out, x[None], (starts[1], 0))  # named

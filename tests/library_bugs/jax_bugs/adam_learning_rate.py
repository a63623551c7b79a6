"""Adam's update of bfloat16 parameters is float32: the decay is a NumPy bfloat16 scalar.

https://github.com/google-deepmind/optax/issues/1405
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

X64 = False


class AdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any


def init(params):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return AdamState(jnp.zeros([], jnp.int32), zeros, zeros)


def update_moment(gradients, moments, decay, order):
    return jax.tree.map(lambda g, m: (1 - decay) * g**order + decay * m, gradients, moments)


def scale_by_adam(gradients, state, b1=0.9, b2=0.999, eps=1e-4):
    mu = update_moment(gradients, state.mu, b1, 1)
    nu = update_moment(gradients, state.nu, b2, 2)
    updates = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + eps), mu, nu)
    return updates, AdamState(state.count + 1, mu, nu)


def scale_by_learning_rate(updates, learning_rate):
    step = learning_rate**0.5 * learning_rate**0.5  # born
    return jax.tree.map(lambda u: -step * u, updates)  # guilty


def program(params, gradients):
    rate = np.array(1e-3, jnp.bfloat16)
    updates, _ = scale_by_adam(gradients, init(params))
    return scale_by_learning_rate(updates, rate)


def inputs():
    params = {"w": jnp.ones((4, 4), jnp.bfloat16), "b": jnp.zeros(4, jnp.bfloat16)}
    return params, jax.tree.map(lambda p: p + jnp.bfloat16(0.5), params)


def shows_fault(result):
    return result["w"].dtype == jnp.float32

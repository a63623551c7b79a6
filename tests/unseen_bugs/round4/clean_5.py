"""Trains a two-layer network: bfloat16 weights and activations, with float32 master copies and
Adam moments in the optimiser state."""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"sizes": (6, 16, 1), "lr": 0.02, "b1": 0.9, "b2": 0.99, "eps": 1e-8, "steps": 5}


class AdamState(NamedTuple):
    count: jax.Array
    master: Any
    mu: Any
    nu: Any


def init(key):
    params, sizes = [], CONFIG["sizes"]
    for k, m, n in zip(jax.random.split(key, len(sizes) - 1), sizes, sizes[1:]):
        params.append({"w": jax.random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)})
    zeros = jax.tree.map(jnp.zeros_like, params)
    return AdamState(jnp.zeros((), jnp.int32), params, zeros, zeros)


def half(params):
    return jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)


def predict(params, x):
    x = x.astype(jnp.bfloat16)
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"]).astype(jnp.float32)


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x)[:, 0] - y) ** 2)


def update(state, grads):
    c = CONFIG
    grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
    count = state.count + 1
    mu = jax.tree.map(lambda m, g: c["b1"] * m + (1 - c["b1"]) * g, state.mu, grads)
    nu = jax.tree.map(lambda v, g: c["b2"] * v + (1 - c["b2"]) * g * g, state.nu, grads)
    t = count.astype(jnp.float32)
    scale = jnp.sqrt(1 - c["b2"] ** t) / (1 - c["b1"] ** t)
    master = jax.tree.map(lambda p, m, v: p - c["lr"] * scale * m / (jnp.sqrt(v) + c["eps"]),
                          state.master, mu, nu)
    return AdamState(count, master, mu, nu)


def main(key, x, y):
    def step(state, _):
        loss, grads = jax.value_and_grad(loss_fn)(half(state.master), x, y)
        return update(state, grads), loss

    state, losses = jax.lax.scan(step, init(key), None, length=CONFIG["steps"])
    return losses, predict(half(state.master), x), half(state.master)[0]["w"], state.nu[0]["w"]


def inputs():
    x = jax.random.normal(jax.random.PRNGKey(1), (20, 6))
    return jax.random.PRNGKey(0), x, jnp.sin(x[:, 0]) + x[:, 1]

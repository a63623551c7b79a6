"""Trains a small network whose weights are bfloat16; the master copy and Adam's moments are float32,
and gradients are widened before they are used."""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"lr": 0.02, "b1": 0.9, "b2": 0.99, "eps": 1e-6, "width": 8}


class State(NamedTuple):
    step: jax.Array
    master: Any
    mu: Any
    nu: Any


def to_compute(tree):
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree)


def init(params):
    master = jax.tree.map(lambda x: x.astype(jnp.float32), params)
    zeros = jax.tree.map(jnp.zeros_like, master)
    return State(jnp.zeros((), jnp.int32), master, zeros, zeros)


def loss_fn(params, x, y):
    h = jnp.maximum(x.astype(jnp.bfloat16) @ params["w1"] + params["b1"], 0)
    logits = (h @ params["w2"]).astype(jnp.float32)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    return -picked.mean()


def adam(config, state, grads):
    step = state.step + 1
    grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
    mu = jax.tree.map(lambda m, g: config["b1"] * m + (1 - config["b1"]) * g, state.mu, grads)
    nu = jax.tree.map(lambda v, g: config["b2"] * v + (1 - config["b2"]) * g * g, state.nu, grads)
    t = step.astype(jnp.float32)
    c1, c2 = 1 - config["b1"] ** t, 1 - config["b2"] ** t

    def move(p, m, v):
        return p - config["lr"] * (m / c1) / (jnp.sqrt(v / c2) + config["eps"])

    return State(step, jax.tree.map(move, state.master, mu, nu), mu, nu)


def main(w1, w2, x, y):
    params = {"w1": w1, "b1": jnp.zeros((CONFIG["width"],), jnp.float32), "w2": w2}

    def train_step(state, batch):
        loss, grads = jax.value_and_grad(loss_fn)(to_compute(state.master), *batch)
        return adam(CONFIG, state, grads), loss

    state, losses = jax.lax.scan(train_step, init(params), (x, y))
    return losses, to_compute(state.master)["w1"], state.nu["w1"], state.step


def inputs():
    keys = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(keys[0], (6, 16, 5))
    y = (x.sum(axis=-1) > 0).astype(jnp.int32)
    return (jax.random.normal(keys[1], (5, 8)) * 0.4, jax.random.normal(keys[2], (8, 2)) * 0.4, x, y)

"""Fine-tunes a small bfloat16 model whose optimiser keeps its moments in bfloat16 and takes its
hyperparameters from the state, so that schedules can change them.

https://github.com/google/tunix/pull/1880
"""
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"learning_rate": 2e-2, "b1": 0.9, "b2": 0.98, "eps": 1e-5, "weight_decay": 1e-3,
          "accumulate": 2}


class GradientTransformation(NamedTuple):
    init: Callable
    update: Callable


class AdamState(NamedTuple):
    count: jax.Array
    mu: Any
    nu: Any


class InjectState(NamedTuple):
    hyperparams: dict
    inner: AdamState


def adamw(learning_rate, b1, b2, eps, weight_decay):
    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return AdamState(jnp.zeros((), jnp.int32), zeros, zeros)

    def update(grads, state, params):
        count = state.count + 1
        mu = jax.tree.map(lambda g, m: b1 * m + (1 - b1) * g, grads, state.mu)
        nu = jax.tree.map(lambda g, v: b2 * v + (1 - b2) * g * g, grads, state.nu)
        c1, c2 = 1 - b1 ** count, 1 - b2 ** count

        def direction(m, v, p):
            step = (m / c1) / (jnp.sqrt(v / c2) + eps) + weight_decay * p
            return (-learning_rate * step).astype(p.dtype)

        return jax.tree.map(direction, mu, nu, params), AdamState(count, mu, nu)

    return GradientTransformation(init, update)


def inject_hyperparams(factory, **values):
    def init(params):
        hyperparams = {k: jnp.asarray(v, jnp.float32) for k, v in values.items()}
        return InjectState(hyperparams, factory(**values).init(params))

    def update(grads, state, params):
        updates, inner = factory(**state.hyperparams).update(grads, state.inner, params)
        return updates, InjectState(state.hyperparams, inner)

    return GradientTransformation(init, update)


def loss_fn(params, batch):
    x, y = batch
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean(((h @ params["w2"]).astype(jnp.float32) - y) ** 2)


class PeftTrainer:
    def __init__(self, params, optimizer, config):
        self.params, self.optimizer, self.config = params, optimizer, config
        self.opt_state = optimizer.init(params)

    def train_step(self, batches):
        grads = jax.tree.map(jnp.zeros_like, self.params)
        total = 0.0
        for batch in batches:
            loss, g = jax.value_and_grad(loss_fn)(self.params, batch)
            grads = jax.tree.map(lambda a, b: a + b / len(batches), grads, g)
            total = total + loss / len(batches)
        updates, self.opt_state = self.optimizer.update(grads, self.opt_state, self.params)
        self.params = jax.tree.map(lambda p, u: p + u, self.params, updates)
        return total


def main(w1, w2, x, y):
    values = {k: v for k, v in CONFIG.items() if k != "accumulate"}
    params = {"w1": w1, "b1": jnp.zeros((w1.shape[1],), w1.dtype), "w2": w2}
    trainer = PeftTrainer(params, inject_hyperparams(adamw, **values), CONFIG)
    losses = []
    for xs, ys in zip(x, y):
        parts = zip(jnp.split(xs, CONFIG["accumulate"]), jnp.split(ys, CONFIG["accumulate"]))
        losses.append(trainer.train_step(list(parts)))
    inner = trainer.opt_state.inner
    return jnp.stack(losses), trainer.params["w1"], inner.mu["w1"], inner.nu["w1"]


def inputs():
    keys = jax.random.split(jax.random.key(6), 4)
    w1 = (jax.random.normal(keys[0], (6, 8)) * 0.4).astype(jnp.bfloat16)
    w2 = (jax.random.normal(keys[1], (8, 1)) * 0.4).astype(jnp.bfloat16)
    x = jax.random.normal(keys[2], (4, 16, 6)).astype(jnp.bfloat16)
    return w1, w2, x, jnp.sum(x.astype(jnp.float32)[..., :2], axis=-1, keepdims=True)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

"""Training steps of a JAX model with weights in bfloat16: gradients are averaged over micro
batches in float32, and the optimizer keeps float32 moments and a float32 copy of the weights."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"lr": 3e-2, "b1": 0.9, "b2": 0.99, "eps": 1e-8, "micro": 4, "clip": 1.0}


class AdamState(NamedTuple):
    count: jax.Array
    master: dict
    mu: dict
    nu: dict


def init(params):
    master = jax.tree.map(lambda p: p.astype(jnp.float32), params)
    return AdamState(jnp.zeros([], jnp.int32), master,
                     jax.tree.map(jnp.zeros_like, master), jax.tree.map(jnp.zeros_like, master))


def forward(params, x):
    h = jax.nn.gelu(x.astype(params["w1"].dtype) @ params["w1"] + params["b1"])
    return h @ params["w2"]


def loss_fn(params, x, labels):
    logits = forward(params, x).astype(jnp.float32)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -picked.mean()


def accumulate(params, x, labels, micro):
    xs, ys = x.reshape(micro, -1, x.shape[1]), labels.reshape(micro, -1)

    def body(total, batch):
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        total_loss, total_grads = total
        grads = jax.tree.map(lambda t, g: t + g.astype(jnp.float32), total_grads, grads)
        return (total_loss + loss, grads), None

    zeros = jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)
    (loss, grads), _ = jax.lax.scan(body, (jnp.zeros([], jnp.float32), zeros), (xs, ys))
    return loss / micro, jax.tree.map(lambda g: g / micro, grads)


def clip(grads, limit):
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, limit / (norm + 1e-6)), grads)


def update(grads, state, c):
    count = state.count + 1
    mu = jax.tree.map(lambda m, g: c["b1"] * m + (1 - c["b1"]) * g, state.mu, grads)
    nu = jax.tree.map(lambda v, g: c["b2"] * v + (1 - c["b2"]) * g * g, state.nu, grads)
    step = count.astype(jnp.float32)
    scale = c["lr"] * jnp.sqrt(1 - c["b2"] ** step) / (1 - c["b1"] ** step)
    master = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + c["eps"]), state.master, mu, nu)
    return AdamState(count, master, mu, nu)


def main(key, x, labels):
    k1, k2 = jax.random.split(key)
    params = {"w1": jax.random.normal(k1, (6, 16), jnp.bfloat16) * 0.4,
              "b1": jnp.zeros(16, jnp.bfloat16),
              "w2": jax.random.normal(k2, (16, 3), jnp.bfloat16) * 0.4}
    state, losses = init(params), []
    for _ in range(5):
        loss, grads = accumulate(params, x, labels, CONFIG["micro"])
        state = update(clip(grads, CONFIG["clip"]), state, CONFIG)
        params = jax.tree.map(lambda p, m: m.astype(p.dtype), params, state.master)
        losses.append(loss)
    return jnp.stack(losses), params["w1"], state.mu["w1"], state.count


def inputs():
    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (32, 6))
    return key, x, jnp.argmax(x[:, :3] + x[:, 3:], axis=1)

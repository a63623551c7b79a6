"""Adam with float32 moments beside bfloat16 weights; the weights keep their dtype."""
import jax
import jax.numpy as jnp
import numpy as np

B1, B2, RATE = 0.9, 0.99, 0.05


def init(params):
    zeros = jax.tree_util.tree_map(lambda p: jnp.zeros(p.shape, jnp.float32), params)
    return {"mu": zeros, "nu": zeros, "master": jax.tree_util.tree_map(lambda p: p.astype(jnp.float32), params)}


def loss_fn(params, x, y):
    prediction = (x.astype(jnp.bfloat16) @ params["w"] + params["b"]).astype(jnp.float32)
    return jnp.mean((prediction - y) ** 2)


def update(grads, state, step):
    g = jax.tree_util.tree_map(lambda v: v.astype(jnp.float32), grads)
    mu = jax.tree_util.tree_map(lambda m, v: B1 * m + (1 - B1) * v, state["mu"], g)
    nu = jax.tree_util.tree_map(lambda n, v: B2 * n + (1 - B2) * v * v, state["nu"], g)
    t = step.astype(jnp.float32) + 1
    new = jax.tree_util.tree_map(lambda p, m, n: p - RATE * (m / (1 - B1 ** t)) / (jnp.sqrt(n / (1 - B2 ** t)) + 1e-8),
                                 state["master"], mu, nu)
    return {"mu": mu, "nu": nu, "master": new}


def main(x, y):
    params = {"w": jnp.zeros((4,), jnp.bfloat16), "b": jnp.zeros((), jnp.bfloat16)}

    def body(carry, step):
        params, state = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        state = update(grads, state, step)
        return (jax.tree_util.tree_map(lambda m: m.astype(jnp.bfloat16), state["master"]), state), loss

    (params, _), losses = jax.lax.scan(body, (params, init(params)), jnp.arange(50))
    return params["w"], losses


def inputs():
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    return x, x @ np.array([1, -2, 0.5, 0], np.float32) + np.float32(0.3)

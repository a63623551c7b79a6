"""A Gaussian kernel of float32 points is float64: its width is a NumPy scalar.

https://github.com/jax-ml/jax/issues/1830
"""

import jax
import jax.numpy as jnp
import numpy as np

X64 = True
CONFIG = {"sigma": np.sqrt(2.0), "jitter": 1e-6}  # born


def pair_distances(x, y):
    return jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)


def kernel(x, y, config):
    return jnp.exp(-pair_distances(x, y) / config["sigma"] ** 2)  # guilty


@jax.jit
def posterior_mean(train, targets, queries):
    gram = kernel(train, train, CONFIG)
    gram = gram + CONFIG["jitter"] * jnp.eye(len(train), dtype=gram.dtype)
    weights = jnp.linalg.solve(gram, targets.astype(gram.dtype))
    return kernel(queries, train, CONFIG) @ weights


def program(train, targets, queries):
    return posterior_mean(train, targets, queries)


def inputs():
    grid = jnp.linspace(0, 1, 6, dtype=jnp.float32)[:, None] * 4
    return grid, jnp.sin(grid[:, 0]), grid[:3] + jnp.float32(0.1)


def shows_fault(result):
    return result.dtype == jnp.float64

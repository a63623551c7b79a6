"""A Gaussian process on float32 data; the factorisation of the covariance is in float64 on
purpose, and the prediction is returned in the dtype of the data."""
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular

jax.config.update("jax_enable_x64", True)

CONFIG = {"scale": 0.7, "amplitude": 1.3, "noise": 1e-3}


def kernel(a, b):
    d2 = jnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
    return CONFIG["amplitude"] ** 2 * jnp.exp(-0.5 * d2 / CONFIG["scale"] ** 2)


def posterior(x, y, query):
    x, y, query = (v.astype(jnp.float64) for v in (x, y, query))
    K = kernel(x, x) + CONFIG["noise"] * jnp.eye(len(x))
    L = jnp.linalg.cholesky(K)
    alpha = cho_solve((L, True), y)
    Ks = kernel(x, query)
    v = solve_triangular(L, Ks, lower=True)
    mean = Ks.T @ alpha
    variance = CONFIG["amplitude"] ** 2 - jnp.sum(v ** 2, axis=0)
    evidence = -0.5 * y @ alpha - jnp.sum(jnp.log(jnp.diag(L)))
    return mean, variance, evidence - 0.5 * len(x) * jnp.log(2 * jnp.pi)


def main(x, y, query):
    mean, variance, evidence = posterior(x, y, query)
    deviation = jnp.sqrt(jnp.maximum(variance, 0))
    return mean.astype(x.dtype), deviation.astype(x.dtype), evidence.astype(x.dtype)


def inputs():
    k1, k2 = jax.random.split(jax.random.key(0))
    x = jax.random.uniform(k1, (20, 2), jnp.float32) * 3
    y = jnp.sin(x.sum(axis=1)) + 0.01 * jax.random.normal(k2, (20,), jnp.float32)
    return x, y, jnp.array([[0.5, 0.5], [1.5, 2.0], [9.0, 9.0]], jnp.float32)

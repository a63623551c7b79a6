"""Predicts with a Gaussian process: mean function, kernel, and the posterior by Cholesky factors.

https://github.com/thomaspinder/GPJax/issues/523
"""
from dataclasses import dataclass

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


@dataclass
class Zero:
    def __call__(self, x):
        return jnp.zeros((x.shape[0], 1), dtype=x.dtype)


@dataclass
class Constant:
    constant: jax.Array

    def __call__(self, x):
        return jnp.ones((x.shape[0], 1)) * self.constant


@dataclass
class Sum:
    parts: tuple

    def __call__(self, x):
        total = self.parts[0](x)
        for part in self.parts[1:]:
            total = total + part(x)
        return total


@dataclass
class RBF:
    lengthscale: jax.Array
    variance: jax.Array

    def cross_covariance(self, x, y):
        scaled_x, scaled_y = x / self.lengthscale, y / self.lengthscale
        squared = jnp.sum((scaled_x[:, None, :] - scaled_y[None, :, :]) ** 2, axis=-1)
        return self.variance * jnp.exp(-0.5 * squared)


@dataclass
class Prior:
    mean_function: object
    kernel: RBF
    jitter: float = 1e-5


@dataclass
class ConjugatePosterior:
    prior: Prior
    obs_stddev: jax.Array

    def predict(self, test_inputs, x, y):
        kernel, mean = self.prior.kernel, self.prior.mean_function
        kxx = kernel.cross_covariance(x, x)
        kxx = kxx + jnp.eye(x.shape[0], dtype=kxx.dtype) * (self.obs_stddev ** 2 + self.prior.jitter)
        factor = jnp.linalg.cholesky(kxx)
        kxt = kernel.cross_covariance(x, test_inputs)
        whitened = jax.scipy.linalg.solve_triangular(factor, kxt, lower=True)
        residual = jax.scipy.linalg.solve_triangular(factor, y - mean(x), lower=True)
        mu = mean(test_inputs) + whitened.T @ residual
        covariance = kernel.cross_covariance(test_inputs, test_inputs) - whitened.T @ whitened
        return mu[:, 0], jnp.diag(covariance)


def main(x, y, test_inputs, constant, lengthscale):
    mean = Sum((Zero(), Constant(constant)))
    kernel = RBF(lengthscale, jnp.ones((), x.dtype))
    posterior = ConjugatePosterior(Prior(mean, kernel), jnp.asarray(0.1, x.dtype))
    mu, variance = posterior.predict(test_inputs, x, y)
    return mu, variance


def inputs():
    x = jnp.linspace(-2, 2, 12, dtype=jnp.float32)[:, None]
    y = 3 + jnp.sin(3 * x)
    test = jnp.linspace(-1.5, 1.5, 7, dtype=jnp.float32)[:, None]
    return x, y, test, jnp.asarray(3.0, jnp.float32), jnp.asarray(0.6, jnp.float32)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

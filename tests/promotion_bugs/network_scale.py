"""A float32 network gives float64: np.sqrt of an integer is a float64 scalar.

https://github.com/netket/netket/pull/1218
"""

import numpy as np


class Dense:
    def __init__(self, rng, features_in, features_out):
        self.kernel = rng.standard_normal((features_in, features_out), dtype=np.float32)
        self.bias = np.zeros(features_out, np.float32)

    def __call__(self, x):
        return x @ self.kernel + self.bias


def log_cosh(x):
    return np.logaddexp(x, -x) - np.float32(np.log(2))


class Ansatz:
    def __init__(self, rng, sites, alpha=2):
        self.layer = Dense(rng, sites, alpha * sites)
        self.norm = np.sqrt(sites)  # born

    def __call__(self, samples):
        hidden = log_cosh(self.layer(samples))
        return hidden.sum(axis=-1) / self.norm  # guilty


def program(samples):
    ansatz = Ansatz(np.random.default_rng(1), sites=samples.shape[-1])
    return ansatz(samples)


def inputs(folder):
    spins = np.random.default_rng(0).choice([-1, 1], (16, 10))
    return (spins.astype(np.float32),)


def shows_fault(result):
    return result.dtype == np.float64

"""Velocity autocorrelation of float32 trajectories, with float64 accumulators by intent."""
import numpy as np


def remove_drift(velocities, masses):
    weights = masses / masses.sum(dtype=np.float64)
    drift = np.einsum("fad,a->fd", velocities.astype(np.float64), weights)
    return velocities - drift[:, None, :].astype(np.float32)


def autocorrelation(velocities, lags):
    result = np.zeros(lags, dtype=np.float64)
    frames = len(velocities)
    for lag in range(lags):
        products = velocities[:frames - lag] * velocities[lag:]
        result[lag] = products.sum(axis=-1).mean(dtype=np.float64)
    return result


def main(velocities, masses):
    v = remove_drift(velocities, masses)
    c = autocorrelation(v, 10)
    return v, c / c[0]


def inputs():
    rng = np.random.default_rng(0)
    return (np.cumsum(rng.normal(size=(60, 5, 3)), axis=0).astype(np.float32),
            rng.uniform(1, 16, 5).astype(np.float32))

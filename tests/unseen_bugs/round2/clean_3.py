"""Least squares with standard errors and a percentile bootstrap, in double precision as is usual
in statistics."""
import numpy as np

CONFIG = {"resamples": 40, "level": 0.9, "seed": 7}


def design(x):
    return np.column_stack([np.ones(len(x)), x, x[:, :1] * x[:, 1:2]])


def ols(A, y):
    Q, R = np.linalg.qr(A)
    beta = np.linalg.solve(R, Q.T @ y)
    residual = y - A @ beta
    dof = A.shape[0] - A.shape[1]
    variance = residual @ residual / dof
    inverse = np.linalg.inv(R)
    return beta, np.sqrt(variance * (inverse ** 2).sum(axis=1))


def bootstrap(A, y, config):
    rng = np.random.default_rng(config["seed"])
    draws = np.empty((config["resamples"], A.shape[1]))
    for k in range(config["resamples"]):
        rows = rng.integers(0, len(y), size=len(y))
        draws[k] = ols(A[rows], y[rows])[0]
    tail = 50 * (1 - config["level"])
    return np.percentile(draws, [tail, 100 - tail], axis=0)


def main(x, y):
    A = design(x)
    beta, error = ols(A, y)
    return beta, beta / error, bootstrap(A, y, CONFIG)


def inputs():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(80, 3))
    return x, x @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.normal(size=80)

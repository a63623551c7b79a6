"""Small addends that vanish beside large ones."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


@faulty(
    "ticks",
    lambda r: (np.arange(100, dtype=np.float32) * np.float32(0.25),),
    lambda ticks: wide(ticks)[0],
)
def sample_times(ticks, start=np.float32(1.6e9)):
    times = start + ticks  # guilty
    return times - times[0]


@faulty(
    "rate",
    lambda r: (np.array([1e-9, 2e-9, 3e-9], np.float32),),
    lambda rate: np.exp(wide(rate)[0] * 1e9),
)
def compound_interest(rate, periods=np.float32(1e9)):
    factor = np.float32(1) + rate  # guilty
    return np.exp(np.log(factor) * periods)


@faulty(
    "gradient * rate",
    lambda r: (np.full(8, 2, np.float16), np.full(8, 1, np.float16)),
    lambda w, g: -wide(g)[0] * 2e-4 * 500,
)
def descent(weights, gradient, rate=np.float16(2e-4)):
    start = weights
    for _ in range(500):
        weights = weights - gradient * rate  # guilty
    return weights - start


@faulty(
    "x",
    lambda r: (r.uniform(1e-9, 2e-8, 30).astype(np.float32),),
    lambda x: np.log1p(wide(x)[0]) * 1e8,
)
def log_of_one_plus(x):
    shifted = np.float32(1) + x  # guilty
    return np.log(shifted) * np.float32(1e8)


@faulty(
    "row",
    lambda r: (np.full(5, 2**24, np.float32), np.ones((40, 5), np.float32)),
    lambda counters, hits: hits.sum(0),
)
def visit_counters(counters, hits):
    before = counters.copy()
    for row in hits:
        counters += row  # guilty
    return counters - before


@faulty(
    "step",
    lambda r: (np.full(6, 900, np.float16), np.full(6, 1000, np.float16)),
    lambda level, target: 100 * (1 - 0.999**400) + 0 * target,
)
def smoothed_level(level, target, alpha=np.float16(0.001)):
    start = level
    for _ in range(400):
        step = alpha * (target - level)
        level = level + step  # guilty
    return level - start


@clean(
    lambda r: (np.arange(100, dtype=np.float32) * np.float32(0.25),),
    lambda ticks: wide(ticks)[0] + 3,
)
def relative_times(ticks, start=np.float32(3)):
    return start + ticks


@clean(
    lambda r: (r.uniform(1e-9, 2e-8, 30).astype(np.float32),),
    lambda x: np.log1p(wide(x)[0]) * 1e8,
)
def log1p_of_small(x):
    return np.log1p(x) * np.float32(1e8)


@clean(
    lambda r: (r.normal(size=(5, 16)).astype(np.float32),),
    lambda x: x / np.sqrt((wide(x)[0] ** 2).sum(1, keepdims=True)),
)
def normalized_rows(x, eps=np.float32(1e-12)):
    norms = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return x / (norms + eps)


@clean(
    lambda r: (np.full((300, 4), 0.1, np.float32),),
    lambda x: wide(x)[0].sum(0) + 1e6,
)
def compensated_sum(x):
    total = np.full(4, 1e6, np.float32)
    lost = np.zeros(4, np.float32)
    for row in x:
        term = row - lost
        grown = total + term
        lost = (grown - total) - term
        total = grown
    return total


@clean(
    lambda r: (np.array([1e-9, 2e-9, 3e-9]),),
    lambda rate: np.exp(np.log1p(rate) * 1e9),
)
def compound_interest_in_float64(rate, periods=1e9):
    return np.exp(np.log(1 + rate) * periods)


@clean(
    lambda r: (np.linspace(-60, 60, 25, dtype=np.float32),),
    lambda x: np.logaddexp(wide(x)[0], 0),
)
def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

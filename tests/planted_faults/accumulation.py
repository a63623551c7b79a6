"""Sums whose terms fall below the last bit of the total."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


@faulty(
    "x", lambda r: (r.uniform(0, 0.2, (10_000, 4)).astype(np.float16),), lambda x: wide(x)[0].sum(0)
)
def column_sums(x):
    shifted = np.maximum(x, 0)
    return shifted.sum(axis=0)  # guilty


@faulty(
    "charges",
    lambda r: (r.uniform(0, 0.02, 10_000).astype(np.float16),),
    lambda c: np.cumsum(wide(c)[0])[::100],
)
def running_charge(charges):
    totals = np.cumsum(charges)  # guilty
    return totals[::100]


@faulty(
    "readings",
    lambda r: ((1000.1 + r.uniform(-0.01, 0.01, (200_000, 2))).astype(np.float32),),
    lambda x: wide(x)[0].mean(0) - 1000,
)
def mean_deviation(readings):
    means = readings.mean(axis=0)  # guilty
    return means - np.float32(1000)


@faulty(
    "position",
    lambda r: (np.full(6, 0.3, np.float16), np.zeros(6, np.float16)),
    lambda v, x: wide(v)[0] * 0.01 * 3000 + x,
)
def trajectory(velocity, position, dt=np.float16(0.01)):
    for _ in range(3000):
        position = position + velocity * dt  # guilty
    return position


@faulty(
    "total",
    lambda r: (
        r.uniform(0, 0.1, (5, 4096)).astype(np.float16),
        r.uniform(0, 1, 4096).astype(np.float16),
    ),
    lambda a, b: wide(a)[0] @ wide(b)[0],
)
def dot_products(a, b):
    total = np.zeros(len(a), np.float16)
    for k in range(a.shape[1]):
        total = total + a[:, k] * b[k]  # guilty
    return total


@faulty(
    "increments",
    lambda r: (np.full(400_000, 2 * np.pi * 440.3 / 8000, np.float32),),
    lambda i: np.sin(np.cumsum(wide(i)[0]))[-1000:],
)
def oscillator(increments):
    phase = np.cumsum(increments)  # guilty
    return np.sin(phase)[-1000:]


@clean(lambda r: (r.uniform(0, 0.2, (10_000, 4)).astype(np.float16),), lambda x: wide(x)[0].sum(0))
def column_sums_in_float32(x):
    return np.maximum(x, 0).sum(axis=0, dtype=np.float32)


@clean(lambda r: (r.uniform(0, 0.2, 100_000).astype(np.float32),), lambda x: wide(x)[0].sum())
def pairwise_sum(x):
    return np.sqrt(x * x).sum()


@clean(
    lambda r: (r.uniform(0, 0.02, 10_000).astype(np.float16),),
    lambda c: np.cumsum(wide(c)[0])[::100],
)
def running_charge_in_float64(charges):
    return np.cumsum(charges, dtype=np.float64)[::100]


@clean(lambda r: (r.uniform(0, 0.2, (8, 40)).astype(np.float16),), lambda x: wide(x)[0].sum(0))
def short_column_sums(x):
    return x.sum(axis=0)


@clean(lambda r: (r.uniform(0, 0.1, (40_000, 3)).astype(np.float32),), lambda x: wide(x)[0].sum(0))
def block_sums(x):
    blocks = x.reshape(200, 200, 3).sum(axis=1)
    return blocks.sum(axis=0)


@clean(
    lambda r: (np.full(40_000, 440.3 / 8000),),
    lambda s: np.sin(2 * np.pi * np.mod(np.cumsum(s), 1))[-1000:],
)
def wrapped_oscillator(steps):
    phase = np.cumsum(steps) % 1.0
    return np.sin(2 * np.pi * phase)[-1000:]

"""Floats that overflow to infinity."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


def normal(rng, *shape, dtype=np.float32, scale=1.0):
    return (rng.normal(size=shape) * scale).astype(dtype)


@faulty(
    "v",
    lambda r: (normal(r, 20, dtype=np.float16, scale=200) + np.float16(200),),
    lambda v: v / np.sqrt((wide(v)[0] ** 2).sum()),
)
def unit_vector(v):
    squares = v * v  # guilty
    norm = np.sqrt(squares.astype(np.float32).sum())
    return v.astype(np.float32) / norm


@faulty(
    "logits",
    lambda r: (np.array([95.0, 80.0, 3.0], np.float32),),
    lambda x: np.exp(wide(x)[0] - 95) / np.exp(wide(x)[0] - 95).sum(),
)
def class_probabilities(logits, temperature=np.float32(1.5)):
    logits = logits * temperature / temperature
    weights = np.exp(logits)  # guilty
    return weights / weights.sum()


@faulty(
    "growth",
    lambda r: (r.uniform(5, 20, 60).astype(np.float32),),
    lambda g: np.exp(np.log(wide(g)[0]).mean()),
)
def geometric_mean(growth):
    product = np.prod(growth)  # guilty
    return product ** np.float32(1 / len(growth))


@faulty(
    "y",
    lambda r: (normal(r, 30), normal(r, 30, scale=1e25)),
    lambda x, y: np.hypot(*wide(x, y)) / 1e25,
)
def radius(x, y):
    squares = x * x + y * y  # guilty
    return np.sqrt(squares) / np.float32(1e25)


@faulty(
    "keys",
    lambda r: (np.full((4, 256), 30, np.float16), np.full((5, 256), 20, np.float16)),
    lambda q, k: (wide(q)[0] @ wide(k)[0].T) / 16,
)
def attention_scores(queries, keys):
    scores = queries @ keys.T  # guilty
    return scores / np.float16(16)


@faulty(
    "x",
    lambda r: (r.uniform(1e5, 1e6, 20).astype(np.float32),),
    lambda x: 1 / (1 + wide(x)[0] ** -7),
)
def saturation(x):
    power = x**7  # guilty
    return power / (power + np.float32(1))


@clean(
    lambda r: (normal(r, 20, dtype=np.float16, scale=200) + np.float16(200),),
    lambda v: v / np.sqrt((wide(v)[0] ** 2).sum()),
)
def unit_vector_in_float32(v):
    v = v.astype(np.float32)
    return v / np.sqrt((v * v).sum())


@clean(
    lambda r: (np.array([95.0, 80.0, 3.0], np.float32),),
    lambda x: 95 + np.log(np.exp(wide(x)[0] - 95).sum()),
)
def log_sum_exp(logits):
    peak = logits.max()
    return peak + np.log(np.exp(logits - peak).sum())


@clean(
    lambda r: (r.uniform(5, 20, 60).astype(np.float32),),
    lambda g: np.exp(np.log(wide(g)[0]).mean()),
)
def geometric_mean_by_logs(growth):
    return np.exp(np.log(growth).mean())


@clean(
    lambda r: (normal(r, 30), normal(r, 30, scale=1e25)),
    lambda x, y: np.hypot(*wide(x, y)) / 1e25,
)
def scaled_radius(x, y):
    scale = np.maximum(np.abs(x), np.abs(y))
    x, y = x / scale, y / scale
    return scale / np.float32(1e25) * np.sqrt(x * x + y * y)


@clean(lambda r: (r.uniform(1, 100, 20).astype(np.float32),), lambda x: wide(x)[0] ** 8)
def eighth_power(x):
    return x**8


@clean(
    lambda r: (np.array([0, 1, 0, 4, 8], np.float32),),
    lambda x: np.array([0, 1, 0, 0.25, 0.125]),
)
def guarded_reciprocal(x):
    with np.errstate(divide="ignore"):
        inverse = np.float32(1) / x
    return np.where(x == 0, np.float32(0), inverse)

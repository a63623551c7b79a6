"""Integers that wrap."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


def bytes_(rng, *shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


@faulty("a", lambda r: (bytes_(r, 8, 8), bytes_(r, 8, 8)), lambda a, b: (wide(a)[0] + b) // 2)
def blend(a, b):
    total = a + b  # guilty
    return total // 2


@faulty("image", lambda r: (bytes_(r, 8, 8),), lambda i: np.clip(wide(i)[0] * 3 - 64, 0, 255))
def contrast(image):
    stretched = image * np.uint8(3)  # guilty
    shifted = stretched.astype(np.int16) - 64
    return np.clip(shifted, 0, 255)


@faulty(
    "samples",
    lambda r: (r.integers(-20000, 20000, 500, dtype=np.int16),),
    lambda s: np.sqrt(np.mean(wide(s)[0] ** 2)),
)
def root_mean_square(samples):
    squares = samples * samples  # guilty
    return np.sqrt(np.abs(squares.mean()))


@faulty(
    "rows",
    lambda r: (np.arange(40_000, 40_100, dtype=np.int32), np.arange(100, dtype=np.int32)),
    lambda rows, columns: (wide(rows)[0] * 70_000 + columns) // 70_000,
)
def flat_index(rows, columns, width=70_000):
    offsets = rows * np.int32(width)  # guilty
    flat = offsets + columns
    return flat // np.int32(width)


@faulty(
    "terms",
    lambda r: (np.arange(1, 16, dtype=np.int32),),
    lambda t: np.cumprod(wide(t)[0]) / wide(t)[0],
)
def factorials(terms):
    products = np.cumprod(terms, dtype=np.int32)  # guilty
    return products / terms


@faulty(
    "weights",
    lambda r: (r.integers(-90, 90, (6, 40), dtype=np.int8), np.full(40, 100, np.int8)),
    lambda w, x: np.maximum(wide(w)[0] @ wide(x)[0], 0),
)
def quantized_layer(weights, x):
    accumulated = weights @ x  # guilty
    return np.maximum(accumulated, 0)


@clean(lambda r: (bytes_(r, 8, 8), bytes_(r, 8, 8)), lambda a, b: (wide(a)[0] + b) // 2)
def blend_by_bits(a, b):
    common = a & b
    return common + ((a ^ b) >> 1)


@clean(
    lambda r: (r.integers(0, 2**32, 50, dtype=np.uint64),),
    lambda s: [(int(x) * 6364136223846793005 + 1442695040888963407) % 2**32 for x in s],
)
def congruential_step(state):
    mixed = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return mixed & np.uint64(0xFFFFFFFF)


@clean(lambda r: (r.integers(-100, 100, 500, dtype=np.int16),), lambda s: wide(s)[0] ** 2)
def quiet_power(samples):
    return samples * samples


@clean(
    lambda r: (np.arange(400, 500, dtype=np.int32), np.arange(100, dtype=np.int32)),
    lambda rows, columns: wide(rows)[0] * 7000 + columns,
)
def small_flat_index(rows, columns, width=7000):
    return rows * np.int32(width) + columns


@clean(lambda r: (bytes_(r, 64),), lambda c: np.cumsum(wide(c)[0]))
def byte_totals(counts):
    return np.cumsum(counts, dtype=np.int64)


@clean(
    lambda r: (r.integers(-90, 90, (6, 40), dtype=np.int8), np.full(40, 100, np.int8)),
    lambda w, x: np.maximum(wide(w)[0] @ wide(x)[0], 0),
)
def widened_layer(weights, x):
    accumulated = weights.astype(np.int32) @ x.astype(np.int32)
    return np.maximum(accumulated, 0)

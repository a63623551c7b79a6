"""Subtractions of nearly equal numbers."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


def small(rng):
    return (rng.uniform(1e-4, 3e-4, 20).astype(np.float32),)


@faulty("np.cos(x)", small, lambda x: 2 * np.sin(wide(x)[0] / 2) ** 2 / wide(x)[0] ** 2)
def versine_ratio(x):
    numerator = np.float32(1) - np.cos(x)  # guilty
    return numerator / (x * x)


@faulty(
    "root",
    lambda r: (r.uniform(2e3, 4e3, 20).astype(np.float32),),
    lambda b: -2 / (wide(b)[0] + np.sqrt(wide(b)[0] ** 2 - 4)),
)
def small_root(b):
    root = np.sqrt(b * b - np.float32(4))
    numerator = root - b  # guilty
    return numerator / np.float32(2)


@faulty("np.exp(rate)", lambda r: (small(r)[0] / 100,), lambda x: np.expm1(wide(x)[0]) * 1e4)
def basis_points(rate):
    growth = np.exp(rate) - np.float32(1)  # guilty
    return growth * np.float32(1e4)


@faulty(
    "ahead", lambda r: (r.uniform(1, 1.5, 20).astype(np.float32),), lambda x: np.cos(wide(x)[0])
)
def forward_difference(x, h=np.float32(2**-20)):
    here, ahead = np.sin(x), np.sin(x + h)
    return (ahead - here) / h  # guilty


@faulty(
    "squares",
    lambda r: (
        (1000 + r.uniform(size=(6, 3))).astype(np.float32),
        (1000 + r.uniform(size=(7, 3))).astype(np.float32),
    ),
    lambda a, b: ((wide(a)[0][:, None] - wide(b)[0][None]) ** 2).sum(-1),
)
def pairwise_distances(a, b):
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None]
    products = np.float32(2) * (a @ b.T)
    return np.maximum(squares - products, 0)  # guilty


@faulty(
    "energy",
    lambda r: (r.uniform(1, 5, 20).astype(np.float32),),
    lambda p: np.sqrt(wide(p)[0] ** 2 + 1e8) - 1e4,
)
def kinetic_energy(momentum, mass=np.float32(1e4)):
    energy = np.sqrt(momentum * momentum + mass * mass)
    return energy - mass  # guilty


@clean(
    lambda r: (1_700_000_000 + np.cumsum(r.integers(1, 9, 50)).astype(np.float64),),
    lambda t: np.diff(t),
)
def intervals(timestamps):
    return timestamps[1:] - timestamps[:-1]


@clean(small, lambda x: 2 * np.sin(wide(x)[0] / 2) ** 2 / wide(x)[0] ** 2)
def versine_ratio_by_half_angle(x):
    half = np.sin(x / np.float32(2))
    return np.float32(2) * half * half / (x * x)


@clean(lambda r: (small(r)[0] / 100,), lambda x: np.expm1(wide(x)[0]) * 1e4)
def basis_points_by_expm1(rate):
    return np.expm1(rate) * np.float32(1e4)


@clean(
    lambda r: (r.uniform(2e3, 4e3, 20).astype(np.float32),),
    lambda b: -2 / (wide(b)[0] + np.sqrt(wide(b)[0] ** 2 - 4)),
)
def small_root_by_product(b):
    root = np.sqrt(b * b - np.float32(4))
    return np.float32(-2) / (b + root)


@clean(
    lambda r: (r.uniform(0, 100, 50).astype(np.float32),),
    lambda x: wide(x)[0] - np.rint(wide(x)[0]),
)
def fractional_part(x):
    return x - np.rint(x)


@clean(lambda r: (r.uniform(1, 1.5, 20),), lambda x: np.cos(x))
def central_difference(x, h=1e-4):
    return (np.sin(x + h) - np.sin(x - h)) / (2 * h)

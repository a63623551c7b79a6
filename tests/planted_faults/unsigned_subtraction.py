"""Differences of unsigned integers that would be negative."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


def frames(rng, dtype=np.uint8, high=200):
    return rng.integers(0, high, (6, 6), dtype=dtype), rng.integers(0, high, (6, 6), dtype=dtype)


@faulty("a", frames, lambda a, b: np.abs(wide(a)[0] - b).mean())
def mean_absolute_difference(a, b):
    difference = np.abs(a - b)  # guilty
    return difference.mean()


@faulty(
    "levels",
    lambda r: (r.integers(0, 60_000, 40, dtype=np.uint16),),
    lambda x: np.abs(np.diff(wide(x)[0])).sum(),
)
def total_variation(levels):
    steps = np.diff(levels)  # guilty
    return np.abs(steps.astype(np.int64)).sum()


@faulty(
    "centres",
    lambda r: (np.array([0, 2, 50, 99], np.uint32),),
    lambda c: np.clip(wide(c)[0] - 3, 0, 99),
)
def window_starts(centres, radius=np.uint32(3)):
    starts = centres - radius  # guilty
    return np.clip(starts, 0, 99)


@faulty(
    "dark",
    lambda r: frames(r, np.uint16, 4000),
    lambda f, d: np.maximum(wide(f)[0] - d, 0) * 0.5,
)
def dark_corrected(frame, dark):
    signal = frame - dark  # guilty
    return np.maximum(signal, 0) * np.float32(0.5)


@faulty(
    "lengths",
    lambda r: (np.array([3, 0, 7, 1], np.uint64),),
    lambda n: np.maximum(wide(n)[0] - 1, 0),
)
def last_indices(lengths):
    last = lengths - np.uint64(1)  # guilty
    return np.maximum(last, 0).astype(np.float64)


@faulty(
    "image[:, 2:]",
    lambda r: (frames(r)[0],),
    lambda i: (wide(i)[0][:, 2:] - wide(i)[0][:, :-2]) / 2,
)
def horizontal_gradient(image):
    gradient = image[:, 2:] - image[:, :-2]  # guilty
    return gradient / 2


@clean(frames, lambda a, b: np.abs(wide(a)[0] - b).mean())
def mean_absolute_difference_in_int16(a, b):
    return np.abs(a.astype(np.int16) - b.astype(np.int16)).mean()


@clean(frames, lambda a, b: np.abs(wide(a)[0] - b))
def absolute_difference_by_extremes(a, b):
    return np.maximum(a, b) - np.minimum(a, b)


@clean(frames, lambda a, b: np.abs(wide(a)[0] - b))
def absolute_difference_by_choice(a, b):
    return np.where(a > b, a - b, b - a)


@clean(lambda r: frames(r, high=100), lambda a, b: wide(a)[0] - b)
def signed_reinterpretation(a, b):
    return (a - b).view(np.int8)


@clean(lambda r: (np.sort(r.integers(0, 60_000, 40, dtype=np.uint16)),), lambda x: np.diff(x))
def sorted_gaps(ticks):
    return ticks[1:] - ticks[:-1]


@clean(
    lambda r: (np.array([0, 2, 50, 99], np.uint32),),
    lambda c: np.clip(wide(c)[0] - 3, 0, 99),
)
def clamped_window_starts(centres, radius=np.uint32(3)):
    return np.maximum(centres, radius) - radius

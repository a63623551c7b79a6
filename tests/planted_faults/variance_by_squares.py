"""Variances as the mean of squares less the square of the mean."""

import numpy as np

from tests.planted_faults.program import clean, faulty, wide


def offset(rng, *shape, centre=1000.0):
    return (centre + rng.normal(size=shape)).astype(np.float32)


@faulty("x", lambda r: (offset(r, 400),), lambda x: wide(x)[0].var())
def variance(x):
    squares = (x * x).mean()
    return squares - x.mean() ** 2  # guilty


@faulty(
    "squares",
    lambda r: (offset(r, 6, 64),),
    lambda x: (wide(x)[0] - wide(x)[0].mean(1, keepdims=True)) / wide(x)[0].std(1, keepdims=True),
)
def normalized_rows(x):
    mean = x.mean(axis=1, keepdims=True)
    squares = np.square(x).mean(axis=1, keepdims=True)
    spread = np.maximum(squares - mean * mean, np.float32(1e-3))  # guilty
    return (x - mean) / np.sqrt(spread)


@faulty(
    "products",
    lambda r: (offset(r, 300), offset(r, 300)),
    lambda x, y: np.mean((wide(x)[0] - wide(x)[0].mean()) * (wide(y)[0] - wide(y)[0].mean())),
)
def covariance(x, y):
    products = (x * y).mean()
    return products - x.mean() * y.mean()  # guilty


@faulty(
    "second",
    lambda r: (offset(r, 200, centre=500.0),),
    lambda x: np.lib.stride_tricks.sliding_window_view(wide(x)[0], 10).var(axis=1),
)
def rolling_variance(x, width=10):
    windows = np.lib.stride_tricks.sliding_window_view(x, width)
    first = windows.sum(axis=1) / np.float32(width)
    second = (windows * windows).sum(axis=1) / np.float32(width)
    return second - first * first  # guilty


@faulty(
    "total_squares",
    lambda r: (offset(r, 50, 4),),
    lambda x: wide(x)[0].var(axis=0),
)
def streamed_variance(x):
    total, total_squares = np.zeros(4, np.float32), np.zeros(4, np.float32)
    for row in x:
        total = total + row
        total_squares = total_squares + row * row
    mean = total / np.float32(len(x))
    return total_squares / np.float32(len(x)) - mean * mean  # guilty


@faulty(
    "power",
    lambda r: (offset(r, 12, 12, centre=2000.0),),
    lambda i: np.lib.stride_tricks.sliding_window_view(wide(i)[0], (3, 3)).var(axis=(2, 3)),
)
def local_contrast(image):
    patches = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    level = patches.mean(axis=(2, 3))
    power = np.square(patches).mean(axis=(2, 3))
    return power - np.square(level)  # guilty


@clean(lambda r: (offset(r, 400),), lambda x: wide(x)[0].var())
def variance_in_two_passes(x):
    centred = x - x.mean()
    return (centred * centred).mean()


@clean(lambda r: (offset(r, 400, centre=0.0),), lambda x: wide(x)[0].var())
def variance_of_centred_data(x):
    squares = (x * x).mean()
    return squares - x.mean() ** 2


@clean(lambda r: (offset(r, 400),), lambda x: wide(x)[0].var())
def variance_of_shifted_data(x):
    shifted = x - x[0]
    return (shifted * shifted).mean() - shifted.mean() ** 2


@clean(lambda r: (offset(r, 400),), lambda x: wide(x)[0].var())
def variance_in_float64(x):
    x = x.astype(np.float64)
    return (x * x).mean() - x.mean() ** 2


@clean(lambda r: (offset(r, 50, 4),), lambda x: wide(x)[0].var(axis=0))
def variance_by_updates(x):
    mean, moment = np.zeros(4, np.float32), np.zeros(4, np.float32)
    for count, row in enumerate(x, 1):
        before = row - mean
        mean = mean + before / np.float32(count)
        moment = moment + before * (row - mean)
    return moment / np.float32(len(x))


@clean(
    lambda r: (offset(r, 6, 64),),
    lambda x: (wide(x)[0] - wide(x)[0].mean(1, keepdims=True)) / wide(x)[0].std(1, keepdims=True),
)
def normalized_rows_by_var(x):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(x.var(axis=1, keepdims=True))

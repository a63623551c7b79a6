"""Histograms and what is made of them."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (rng.random(50), 8), scalars=True)
def histogram_loop(x, bins):
    low, high = x.min(), x.max()
    where = ((x - low) / (high - low) * bins).astype(np.int64)
    where[where == bins] -= 1
    counts = np.zeros(bins, dtype=np.int64)
    for i in range(x.size):
        counts[where[i]] += 1
    return counts, np.linspace(low, high, bins + 1)


@kernel(lambda rng: ((rng.beta(2, 5, (14, 17)) * 255).astype(np.uint8),))
def equalize(image):
    counts = np.bincount(image.ravel(), minlength=256)
    cdf = counts.cumsum()
    table = np.round(255.0 * (cdf - cdf[0]) / (image.size - cdf[0]))
    return table.astype(np.uint8)[image]


@kernel(lambda rng: (rng.random(80), rng.random(80), 6), depends="shapes")
def azimuthal_mean(data, radius, rings):
    outer = radius.max()
    result = np.zeros(rings, dtype=data.dtype)
    for i in range(rings):
        inside = outer * i / rings
        outside = outer * (i + 1) / rings
        ring = np.logical_and(inside <= radius, radius < outside)
        result[i] = data[ring].mean()
    return result

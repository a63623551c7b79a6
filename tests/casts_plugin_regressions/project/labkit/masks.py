"""Counts of a detector, with bad pixels replaced."""

import numpy as np


def without_bad_pixels(counts, good, fill=0):
    if counts.shape != good.shape:
        raise ValueError(f"the mask has shape {good.shape}; got counts of shape {counts.shape}")
    return np.where(good, counts, fill)


def coincidences(first, second, good, threshold):
    """Pixels of two frames that are both above the threshold."""
    first = without_bad_pixels(first, good)
    second = without_bad_pixels(second, good)
    return (first > threshold) & (second > threshold)

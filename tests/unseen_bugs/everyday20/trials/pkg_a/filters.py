"""Small filters that work along the last axis."""
import numpy as np


def moving_mean(x, width):
    kernel = np.full(width, 1 / width, dtype=x.dtype)
    return np.stack([np.convolve(row, kernel, mode="same") for row in x])


def running_mean(x):
    """Mean of everything seen so far, for every sample."""
    total = np.cumsum(x, axis=-1)
    return total / np.arange(1, x.shape[-1] + 1)


def high_pass(x, width=101):
    return x - moving_mean(x, width)


def baseline(x, warmup):
    """The running mean, held constant while it settles."""
    mean = running_mean(x)
    mean[..., :warmup] = mean[..., warmup:warmup + 1]
    return mean


def clip_outliers(x, sigmas=6.0):
    spread = x.std(axis=-1, keepdims=True)
    return np.clip(x, -sigmas * spread, sigmas * spread)


def clean(x, warmup):
    x = clip_outliers(x)
    x = x - baseline(x, warmup)
    return high_pass(x)

"""Fits and losses in the dtype of the data."""

import numpy as np


def slope(series):
    time = np.arange(series.shape[-1], dtype=series.dtype)
    time = time - time.mean()
    return (series * time).sum(axis=-1) / (time * time).sum()


def log_loss(truth, probabilities):
    eps = np.finfo(probabilities.dtype).eps
    p = (probabilities + eps) / (1 + 2 * eps)
    return -(truth * np.log(p) + (1 - truth) * np.log(1 - p)).mean()


def soft_threshold(x, level):
    shrunk = np.zeros(x.shape, x.dtype)
    large = np.abs(x) > level
    shrunk[large] = x[large] - np.sign(x[large]) * level
    return shrunk


def coherent_amplitudes(alpha, count):
    k = np.arange(count)
    factorials = np.cumprod(np.maximum(k, 1).astype(np.float64))
    return float(alpha) ** k / np.sqrt(factorials)

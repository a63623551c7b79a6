"""Mixtures of speech and noise in float32."""

import numpy as np


def energy(signal):
    return float((signal * signal).mean())


def with_noise(speech, level, seed):
    """Speech and white noise whose standard deviation is `level`."""
    rng = np.random.default_rng(seed)
    return speech + level * rng.standard_normal(speech.shape, speech.dtype)


def mixture(first, second, level=0.0, seed=0):
    count = min(first.shape[-1], second.shape[-1])
    return with_noise(first[..., :count] + second[..., :count], level, seed)

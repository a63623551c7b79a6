"""Audio files: int16 samples, and float32 signals of at most 1."""

import numpy as np


def to_float(samples):
    return samples.astype(np.float32) / 32768


def to_pcm(signal):
    return np.clip(np.rint(signal * 32768), -32768, 32767).astype(np.int16)


def mono(samples):
    """The mean of the channels, which are the last axis."""
    signal = to_float(samples)
    return signal.sum(axis=-1) / signal.shape[-1]

"""Spectra of float32 signals."""

import math

import numpy as np


def frequencies(count, rate, dtype=np.float32):
    return (np.arange(count // 2 + 1) * (rate / count)).astype(dtype)


def power(signal):
    window = np.hanning(signal.shape[-1]).astype(signal.dtype)
    return np.abs(np.fft.rfft(signal * window)) ** 2


def centroid(signal, rate):
    spectrum = power(signal)
    grid = frequencies(signal.shape[-1], rate, spectrum.dtype)
    return (grid * spectrum).sum(axis=-1) / spectrum.sum(axis=-1)


def normalized(signal):
    scale = 1 / math.sqrt(signal.shape[-1])
    return scale * signal


def resampled(signal, count):
    old = np.linspace(0, 1, signal.shape[-1])
    new = np.linspace(0, 1, count)
    return np.interp(new, old, signal).astype(signal.dtype)

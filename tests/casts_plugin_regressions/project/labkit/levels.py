"""Samples in offset binary, as a converter writes them."""

import numpy as np

OFFSET = np.int64(1 << 16)


def from_offset_binary(samples):
    signal = samples.astype(np.int32)
    signal[signal < 0] = signal[signal < 0] + OFFSET
    return signal


def peak_to_peak(samples):
    signal = from_offset_binary(samples)
    return signal.max() - signal.min()

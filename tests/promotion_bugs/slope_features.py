"""Slopes of float32 series are float64: the time axis is an int64 arange.

https://github.com/aeon-toolkit/aeon/pull/3752
"""

import numpy as np


class SlopeTransformer:
    def __init__(self, intervals):
        self.intervals = intervals

    def slope(self, window):
        time = np.arange(window.shape[-1])  # born
        centred = window - window.mean(axis=-1, keepdims=True)
        time = time - time.shape[0] // 2
        return (centred * time).sum(axis=-1) / np.float32((time**2).sum())  # guilty

    def transform(self, series):
        windows = np.split(series, self.intervals, axis=-1)
        return np.stack([self.slope(window) for window in windows], axis=-1)


def read_series(path):
    return np.genfromtxt(path, delimiter=",", dtype=np.float32)


def program(path):
    return SlopeTransformer(intervals=4).transform(read_series(path))


def inputs(folder):
    path = folder / "series.csv"
    series = np.random.default_rng(0).normal(size=(3, 40)).cumsum(axis=1)
    np.savetxt(path, series, delimiter=",")
    return (path,)


def shows_fault(result):
    return result.dtype == np.float64

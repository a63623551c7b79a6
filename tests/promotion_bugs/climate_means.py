"""Means over time of a float16 grid are infinite: nanmean adds in float16.

https://github.com/numpy/numpy/issues/23075
"""

import numpy as np


class Climatology:
    def __init__(self, temperatures, mask):
        self.temperatures = np.where(mask, temperatures, np.float16(np.nan))

    def mean(self):
        return np.nanmean(self.temperatures, axis=0)  # guilty

    def anomaly(self, day):
        return self.temperatures[day] - self.mean()


def load_grid(path, shape):
    return np.load(path).reshape(shape)


def program(path, mask):
    grid = load_grid(path, (-1, 6, 8))
    return Climatology(grid, mask).anomaly(day=-1)


def inputs(folder):
    path = folder / "temperatures.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.uniform(232.9, 312.2, 400 * 48).astype(np.float16))
    return path, rng.random((400, 6, 8)) < 0.95


def shows_fault(result):
    return bool(np.isinf(result).any())

"""Standardised columns are off by a quarter of their spread: float32 sums over axis 0.

https://github.com/scikit-learn/scikit-learn/issues/12333
"""

import numpy as np


class StandardScaler:
    def fit(self, table):
        count = table.shape[0]
        self.mean = table.sum(axis=0) / count  # guilty
        self.scale = np.sqrt(np.square(table - self.mean).mean(axis=0, dtype=np.float64))
        return self

    def transform(self, table):
        return (table - self.mean) / self.scale.astype(table.dtype)


def open_table(path, columns):
    return np.memmap(path, dtype=np.float32, mode="r").reshape(-1, columns)


def program(path):
    table = open_table(path, columns=2)
    scaled = StandardScaler().fit(table).transform(table)
    return scaled.mean(axis=0, dtype=np.float64)


def inputs(folder):
    path = folder / "table.f32"
    rng = np.random.default_rng(0)
    (1000.1 + rng.normal(0, 0.25, (200_000, 2))).astype(np.float32).tofile(path)
    return (path,)


def shows_fault(result):
    return bool(np.abs(result).max() > 0.05)

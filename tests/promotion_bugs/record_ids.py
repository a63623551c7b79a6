"""Identifiers of 64 bits are rounded: uint64 plus int64 is float64.

https://github.com/numpy/numpy/issues/5745
"""

import numpy as np

SHARD_BITS = 40


def shard_base(shard):
    return np.uint64(shard) << np.uint64(SHARD_BITS)


class Index:
    def __init__(self, path):
        self.keys = np.load(path)

    def record_ids(self, shard):
        rows = np.arange(len(self.keys))  # born
        base = shard_base(shard)
        ids = self.keys + base + rows  # guilty
        return ids.astype(np.uint64)


def program(path):
    return Index(path).record_ids(shard=70_000)


def inputs(folder):
    path = folder / "keys.npy"
    np.save(path, np.array([3, 5, 7, 11, 13], np.uint64))
    return (path,)


def shows_fault(result):
    return result.tolist() != [(70_000 << 40) + n for n in (3, 6, 9, 14, 17)]

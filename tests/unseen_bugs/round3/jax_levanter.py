"""Reads a dataset of tokenised sequences in a pseudo-random order that needs no table, and gives
the sequences of a batch as shard and offset.

https://github.com/marin-community/levanter/issues/869
"""
import dataclasses
import math

import jax
import numpy as np

CONFIG = {"seed": 17, "num_tokens": 3_600_000_000_128, "seq_len": 1024, "rows_per_shard": 1 << 20,
          "block_size": 8}


class LinearCongruentialPermutation:
    """x -> (a x + b) mod length, where a and length are coprime."""

    def __init__(self, length, prng_key):
        self.length = length
        a_key, b_key = jax.random.split(prng_key)
        self._a, self._b = self._generate_permutation_params(a_key, b_key)

    def _generate_permutation_params(self, a_key, b_key):
        a = self._draw(a_key, 1)
        while math.gcd(a, self.length) != 1:
            a = a + 1 if a + 1 < self.length else 1
        return a, self._draw(b_key, 0)

    def _draw(self, key, low):
        return int(jax.random.randint(key, (), low, self.length))

    def __call__(self, indices):
        if np.any(indices < 0) or np.any(indices >= self.length):
            raise IndexError("index out of bounds for length %d" % self.length)
        return np.array([(self._a * int(i) + self._b) % self.length for i in indices], np.int64)


@dataclasses.dataclass
class TokenSeqDataset:
    num_tokens: int
    seq_len: int

    def __len__(self):
        return self.num_tokens // self.seq_len

    def locate(self, rows, rows_per_shard):
        return rows // rows_per_shard, rows % rows_per_shard


class PermutationDataset:
    def __init__(self, dataset, key):
        self.dataset = dataset
        self.permutation = LinearCongruentialPermutation(len(dataset), key)

    def get_batch(self, indices, rows_per_shard):
        return self.dataset.locate(self.permutation(indices), rows_per_shard)


class DataLoader:
    def __init__(self, dataset, batch_size, rows_per_shard):
        self.dataset, self.batch_size = dataset, batch_size
        self.rows_per_shard = rows_per_shard

    def batch(self, step):
        start = int(step) * self.batch_size
        indices = np.arange(start, start + self.batch_size, dtype=np.int64)
        return self.dataset.get_batch(indices, self.rows_per_shard)


def main(steps):
    key = jax.random.key(CONFIG["seed"])
    dataset = TokenSeqDataset(CONFIG["num_tokens"], CONFIG["seq_len"])
    loader = DataLoader(PermutationDataset(dataset, key), CONFIG["block_size"],
                        CONFIG["rows_per_shard"])
    batches = [loader.batch(step) for step in steps]
    return np.stack([s for s, _ in batches]), np.stack([o for _, o in batches])


def inputs():
    return (np.array([0, 1, 2, 150_000_000, 400_000_000], np.int64),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

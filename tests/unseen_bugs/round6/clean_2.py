"""Allele counts of genotypes: int8 calls with -1 for missing ones, counts in int64, frequencies
and heterozygosity as ratios of counts, and a window average along the chromosome."""
import numpy as np

MISSING = -1


class GenotypeArray:
    """Calls of shape (variants, samples, ploidy)."""

    def __init__(self, values):
        assert values.dtype == np.int8 and values.ndim == 3
        self.values = values

    def is_called(self):
        return np.all(self.values != MISSING, axis=-1)

    def is_het(self):
        first, second = self.values[..., 0], self.values[..., 1]
        return self.is_called() & (first != second)

    def count_alleles(self, max_allele):
        called = self.is_called()[..., None]
        counts = [np.sum((self.values == allele) & called, axis=(1, 2), dtype=np.int64)
                  for allele in range(max_allele + 1)]
        return np.stack(counts, axis=1)

    def subset(self, samples):
        return GenotypeArray(self.values[:, samples])


def frequencies(counts):
    total = counts.sum(axis=1, keepdims=True)
    return counts / np.maximum(total, 1)


def expected_heterozygosity(freq):
    return 1.0 - np.sum(freq ** 2, axis=1)


def observed_heterozygosity(g):
    return g.is_het().sum(axis=1) / np.maximum(g.is_called().sum(axis=1), 1)


def windowed(positions, values, size):
    index = (positions - positions[0]) // size
    count = np.bincount(index)
    return np.bincount(index, weights=values) / np.maximum(count, 1), count


def fst(freq_a, freq_b, n_a, n_b):
    mean = (n_a * freq_a + n_b * freq_b) / (n_a + n_b)
    total = expected_heterozygosity(mean)
    within = (n_a * expected_heterozygosity(freq_a) + n_b * expected_heterozygosity(freq_b)) / (n_a + n_b)
    return np.where(total > 0, 1 - within / np.where(total > 0, total, 1.0), 0.0)


def main(calls, positions, population):
    g = GenotypeArray(calls)
    counts = g.count_alleles(max_allele=2)
    groups = [np.flatnonzero(population == p) for p in np.unique(population)]
    parts = [frequencies(g.subset(s).count_alleles(2)) for s in groups]
    difference = fst(parts[0], parts[1], len(groups[0]), len(groups[1]))
    mean_fst, variants = windowed(positions, difference, 5000)
    inbreeding = observed_heterozygosity(g) - expected_heterozygosity(frequencies(counts))
    return counts, inbreeding, mean_fst, variants


def inputs():
    rng = np.random.default_rng(1)
    calls = rng.choice([0, 1, 2], p=[0.7, 0.25, 0.05], size=(40, 150, 2)).astype(np.int8)
    calls[rng.random((40, 150)) < 0.03] = MISSING
    return calls, np.sort(rng.integers(1_000_000, 1_020_000, size=40)), rng.integers(0, 2, size=150)

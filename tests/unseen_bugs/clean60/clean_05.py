"""Group-by statistics of a table: count, mean and standard deviation per group."""
import numpy as np


def group_stats(values, groups):
    labels, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, weights=values, minlength=labels.size)
    means = sums / counts
    resid = values - means[inverse]
    ss = np.bincount(inverse, weights=resid ** 2, minlength=labels.size)
    std = np.sqrt(ss / np.maximum(counts - 1, 1))
    return labels, counts, means, std


def main(store_id, revenue, items):
    labels, counts, mean_rev, std_rev = group_stats(revenue, store_id)
    # items sold per store: an exact integer total
    totals = np.zeros(labels.size, dtype=np.int64)
    np.add.at(totals, np.searchsorted(labels, store_id), items)
    share = totals / totals.sum()
    r = np.corrcoef(revenue, items)[0, 1]
    return labels, counts, mean_rev, std_rev, totals, share, r


def inputs():
    rng = np.random.default_rng(4)
    n = 60
    store = rng.integers(100, 105, size=n)
    items = rng.integers(1, 12, size=n)
    revenue = 4.5 * items + rng.normal(0.0, 1.5, size=n)
    return store, revenue, items

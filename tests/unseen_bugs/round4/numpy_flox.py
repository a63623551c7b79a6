"""Grouped reductions: counts, sums and largest values for each label, for the labels that are
expected, whether they occur or not.

https://github.com/xarray-contrib/flox/pull/58
"""
import numpy as np


class Aggregation:
    def __init__(self, name, ufunc, identity, fill_value):
        self.name, self.ufunc, self.identity, self.fill_value = name, ufunc, identity, fill_value


AGGREGATIONS = {
    "count": Aggregation("count", np.add, 0, 0),
    "sum": Aggregation("sum", np.add, 0, 0),
    "max": Aggregation("max", np.maximum, None, np.nan),
}


def factorize(by):
    groups, codes = np.unique(by, return_inverse=True)
    return groups, codes.reshape(by.shape)


def chunk_reduce(array, by, agg):
    groups, codes = factorize(by)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(groups)))
    ordered = array[..., order]
    if agg.name == "count":
        ordered = (~np.isnan(ordered)).astype(np.intp)
    return agg.ufunc.reduceat(ordered, starts, axis=-1), groups


def reindex_(array, from_, to, fill_value):
    idx = np.searchsorted(from_, to)
    idx = np.minimum(idx, len(from_) - 1)
    missing = from_[idx] != to
    reindexed = array[..., idx]
    if missing.any():
        if fill_value is None:
            raise ValueError("Filling is required. fill_value cannot be None.")
        reindexed[..., missing] = fill_value
    return reindexed


def groupby_reduce(array, by, func, expected_groups=None, fill_value=None):
    agg = AGGREGATIONS[func]
    fill_value = agg.fill_value if fill_value is None else fill_value
    result, groups = chunk_reduce(array, by, agg)
    if expected_groups is not None:
        result = reindex_(result, groups, expected_groups, fill_value)
        groups = expected_groups
    return result, groups


def main(rainfall, gauges, regions, expected):
    wet_days, groups = groupby_reduce(gauges, regions, "sum", expected)
    observed, _ = groupby_reduce(rainfall, regions, "count", expected)
    heaviest, _ = groupby_reduce(rainfall, regions, "max", expected)
    longest, _ = groupby_reduce(gauges, regions, "max", expected)
    return groups, wet_days, observed, heaviest, longest


def inputs():
    rng = np.random.default_rng(8)
    rainfall = rng.gamma(1.2, 6.0, (2, 20)).astype(np.float32)
    gauges = rng.integers(1, 14, (2, 20))
    regions = rng.choice([1, 2, 4, 7], size=20)
    return rainfall, gauges, regions, np.array([1, 2, 3, 4, 5, 7])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

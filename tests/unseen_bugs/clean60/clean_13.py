"""Masked sensor readings: drop sentinels, standardise in double, store in single."""
import numpy as np
import numpy.ma as ma

MISSING = -9999.0


def main(readings):
    bad = (readings == MISSING) | ~np.isfinite(readings)
    data = ma.masked_array(readings, mask=bad)
    valid = data.count(axis=0)
    # the statistics are taken in double precision on purpose
    data64 = data.astype(np.float64)
    mean = data64.mean(axis=0)
    std = data64.std(axis=0)
    z = (data64 - mean) / std
    outlier = ma.filled(np.abs(z) > 2.5, False)
    clean = z.filled(0.0).astype(np.float32)
    return clean, mean.filled(np.nan), std.filled(np.nan), valid, outlier.sum()


def inputs():
    rng = np.random.default_rng(9)
    x = rng.normal(20.0, 3.0, size=(30, 4)).astype(np.float32)
    x[3, 1] = MISSING
    x[10, 2] = MISSING
    x[7, 0] = np.nan
    x[20, 3] = 60.0
    return (x,)

"""Resamples a raster of projected coordinates to a coarser and a finer grid, then takes the
spacing of the cells along a row.

https://github.com/xarray-contrib/xarray-spatial/issues/1467
"""
import numpy as np

CONFIG = {"coarse": {"scale_factor": 0.25, "method": "average", "nodata": -9999.0},
          "fine": {"scale_factor": 2.0, "method": "bilinear", "nodata": -9999.0}}


class Raster:
    def __init__(self, values, res, nodata=None):
        self.values, self.res, self.nodata = values, res, nodata

    @property
    def shape(self):
        return self.values.shape


def _output_shape(shape, scale_factor):
    return tuple(max(1, int(round(n * scale_factor))) for n in shape)


def _block_mean(work, out_shape):
    fy, fx = (n // m for n, m in zip(work.shape, out_shape))
    blocks = work[:fy * out_shape[0], :fx * out_shape[1]]
    blocks = blocks.reshape(out_shape[0], fy, out_shape[1], fx)
    valid = ~np.isnan(blocks)
    total = np.where(valid, blocks, 0).sum(axis=(1, 3))
    count = valid.sum(axis=(1, 3))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _axis_weights(n, m):
    centre = (np.arange(m) + 0.5) * n / m - 0.5
    centre = np.clip(centre, 0, n - 1)
    low = np.minimum(np.floor(centre).astype(np.intp), max(n - 2, 0))
    return low, np.minimum(low + 1, n - 1), centre - low


def _prepare(data, nodata):
    work = data.astype(np.float64)
    if nodata is not None:
        work[work == nodata] = np.nan
    return work


def _run_numpy_aggregate(data, out_shape, nodata):
    out = _block_mean(_prepare(data, nodata), out_shape)
    return out.astype(np.float32)


def _run_numpy_interp(data, out_shape, nodata):
    work = _prepare(data, nodata)
    y0, y1, wy = _axis_weights(work.shape[0], out_shape[0])
    x0, x1, wx = _axis_weights(work.shape[1], out_shape[1])
    rows = work[y0] * (1 - wy)[:, None] + work[y1] * wy[:, None]
    out = rows[:, x0] * (1 - wx) + rows[:, x1] * wx
    return out.astype(np.float32)


RUNNERS = {"average": _run_numpy_aggregate, "bilinear": _run_numpy_interp}


def resample(agg, scale_factor, method, nodata):
    out_shape = _output_shape(agg.shape, scale_factor)
    values = RUNNERS[method](agg.values, out_shape, nodata)
    res = tuple(r * n / m for r, n, m in zip(agg.res, agg.shape, out_shape))
    return Raster(values, res, nodata)


def spacing(agg):
    return np.diff(agg.values, axis=1)


def main(northing):
    agg = Raster(northing, (0.05, 0.05), -9999.0)
    coarse = resample(agg, **CONFIG["coarse"])
    fine = resample(agg, **CONFIG["fine"])
    return coarse.values, fine.values, spacing(coarse)


def inputs():
    rows, columns = np.mgrid[0:16, 0:16]
    northing = 5412345.0 + 0.05 * columns + 0.013 * rows
    northing[3, 5] = -9999.0
    return (northing,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

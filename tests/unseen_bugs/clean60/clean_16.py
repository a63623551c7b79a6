"""Resample an irregular time series on a regular grid and integrate it."""
import numpy as np


def bilinear(grid, y, x):
    """Sample grid at fractional (y, x) positions."""
    h, w = grid.shape
    y0 = np.clip(np.floor(y).astype(np.int64), 0, h - 2)
    x0 = np.clip(np.floor(x).astype(np.int64), 0, w - 2)
    fy, fx = y - y0, x - x0
    top = (1 - fx) * grid[y0, x0] + fx * grid[y0, x0 + 1]
    bottom = (1 - fx) * grid[y0 + 1, x0] + fx * grid[y0 + 1, x0 + 1]
    return (1 - fy) * top + fy * bottom


def main(times, values, field):
    order = np.argsort(times)
    t, v = times[order], values[order]
    grid_t = np.linspace(t[0], t[-1], 33)
    grid_v = np.interp(grid_t, t, v)
    area = np.trapezoid(grid_v, grid_t)
    slope = np.gradient(grid_v, grid_t)
    path_y = np.linspace(0.0, field.shape[0] - 1.0, 33)
    path_x = np.linspace(0.0, field.shape[1] - 1.0, 33)
    along = bilinear(field, path_y, path_x)
    return grid_v, slope, area, along


def inputs():
    rng = np.random.default_rng(11)
    t = rng.uniform(0.0, 10.0, size=40)
    return t, np.sin(t) + 0.1 * t, rng.normal(size=(6, 7))

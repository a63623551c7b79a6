"""Normalises projections, back-projects them without a filter and converts the slices for output.

https://github.com/tomopy/tomopy/pull/131
"""
import numpy as np

OUTPUT = {"preview": "uint8", "stack": "uint16"}


def as_dtype(arr, dtype, copy=False):
    if not arr.dtype == dtype:
        arr = np.array(arr, dtype=dtype, copy=True if copy else None)
    return arr


def as_float32(arr):
    return as_dtype(arr, np.float32)


def rescale(arr, top, dmin=None, dmax=None):
    dmin = arr.min() if dmin is None else dmin
    dmax = arr.max() if dmax is None else dmax
    arr = np.clip(arr, dmin, dmax)
    if dmax > dmin:
        arr = (arr - dmin) / (dmax - dmin)
    return np.rint(arr * top)


def as_uint8(arr, dmin=None, dmax=None):
    arr = rescale(as_float32(arr), 255, dmin, dmax)
    return as_dtype(arr, np.uint8)


def as_uint16(arr, dmin=None, dmax=None):
    arr = rescale(as_float32(arr), 65535, dmin, dmax)
    return as_dtype(arr, np.int32)


CONVERTERS = {"uint8": as_uint8, "uint16": as_uint16, "float32": lambda arr, *range_: as_float32(arr)}


def normalize(arr, flat, dark):
    flat, dark = as_float32(flat).mean(axis=0), as_float32(dark).mean(axis=0)
    return -np.log(np.clip((as_float32(arr) - dark) / (flat - dark), 1e-6, None))


def backproject(sinogram, theta, size):
    grid = np.arange(size, dtype=np.float32) - (size - 1) / 2
    slices = np.zeros((sinogram.shape[1], size, size), dtype=np.float32)
    for angle, projection in zip(theta, sinogram):
        r = grid[None, :] * np.cos(angle) + grid[:, None] * np.sin(angle)
        column = np.clip(np.rint(r + (projection.shape[1] - 1) / 2), 0, projection.shape[1] - 1)
        slices += projection[:, column.astype(np.intp)]
    return slices / len(theta)


def write_stack(rec, kind, dmin=None, dmax=None):
    return CONVERTERS[OUTPUT[kind]](rec, dmin, dmax)


def main(projections, flat, dark, theta):
    absorption = normalize(projections, flat, dark)
    rec = backproject(absorption, theta, projections.shape[2])
    return write_stack(rec[0], "preview"), write_stack(rec, "stack", 0.1, 0.8)


def inputs():
    rng = np.random.default_rng(7)
    theta = np.linspace(0, np.pi, 12, endpoint=False).astype(np.float32)
    dark = rng.integers(90, 110, (3, 4, 16)).astype(np.uint16)
    flat = rng.integers(40000, 42000, (3, 4, 16)).astype(np.uint16)
    absorbed = np.exp(-rng.random((12, 4, 16)))
    return (absorbed * 40000 + 100).astype(np.uint16), flat, dark, theta


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

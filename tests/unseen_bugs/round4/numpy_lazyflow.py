"""Exports a volume as 8 bit slices in tiles, reads the slices again and reports how far they are
from the volume that was to be exported.

https://github.com/ilastik/lazyflow/pull/166
"""
import numpy as np

SETTINGS = {"input_range": (0.0, 1.0), "export_range": (0, 255), "export_dtype": np.uint8,
            "tile": 8, "tolerance": 1}


class SliceStore:
    """A directory of images, one for each slice."""

    def __init__(self):
        self.files = {}

    def write(self, z, offset, tile):
        page = self.files.setdefault(z, {})
        page[offset] = tile.copy()

    def read(self, z, shape):
        page = np.zeros(shape, dtype=next(iter(self.files[z].values())).dtype)
        for (y, x), tile in self.files[z].items():
            page[y:y + tile.shape[0], x:x + tile.shape[1]] = tile
        return page


def renormalize(data, input_range, export_range):
    lo, hi = input_range
    low, high = export_range
    return (data - lo) * ((high - low) / (hi - lo)) + low


class OpFormattedDataExport:
    def __init__(self, settings, store):
        self.settings, self.store = settings, store

    def image_to_export(self, volume):
        scaled = renormalize(volume, self.settings["input_range"], self.settings["export_range"])
        return np.rint(scaled).astype(self.settings["export_dtype"])

    def run_export(self, volume):
        step = self.settings["tile"]
        for z, plane in enumerate(volume):
            for y in range(0, plane.shape[0], step):
                for x in range(0, plane.shape[1], step):
                    block = plane[y:y + step, x:x + step]
                    scaled = renormalize(block, self.settings["input_range"],
                                         self.settings["export_range"])
                    block = scaled.astype(self.settings["export_dtype"])
                    self.store.write(z, (y, x), block)


def compare(read, expected, tolerance):
    difference = np.abs(read - expected)
    worst = difference.max(axis=(1, 2))
    mismatches = np.count_nonzero(difference > tolerance, axis=(1, 2))
    return worst, mismatches


def main(volume):
    op = OpFormattedDataExport(SETTINGS, SliceStore())
    op.run_export(volume)
    expected = op.image_to_export(volume)
    read = np.stack([op.store.read(z, plane.shape) for z, plane in enumerate(volume)])
    worst, mismatches = compare(read, expected, SETTINGS["tolerance"])
    return worst, mismatches


def inputs():
    rng = np.random.default_rng(3)
    volume = rng.random((4, 16, 24)).astype(np.float32)
    volume[2] = rng.integers(0, 256, (16, 24)) / np.float32(255)
    return (volume,)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

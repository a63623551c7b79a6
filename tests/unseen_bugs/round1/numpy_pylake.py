"""Rebuilds, from a stream of samples and the codes that mark pixels in it, the image of
the start time of every pixel of a scan.

https://github.com/lumicks/pylake/pull/209
"""
import enum
import math

import numpy as np


class InfowaveCode(enum.IntEnum):
    discard = 0
    use = 1
    pixel_boundary = 2


def discard_zeros(infowave):
    valid_idx = infowave != InfowaveCode.discard
    return infowave[valid_idx], valid_idx


def round_up(size, n):
    return int(math.ceil(size / n)) * n


def reshape_reconstructed_image(pixels, shape):
    resized_pixels = np.zeros(round_up(pixels.size, np.prod(shape)))
    resized_pixels[: pixels.size] = pixels
    return resized_pixels.reshape(-1, *shape)


def reconstruct_image(data, infowave, shape, reduce=np.sum):
    assert data.size == infowave.size
    subset, valid_idx = discard_zeros(infowave)
    pixel_size = np.argmax(subset) + 1
    resized_data = np.zeros(round_up(subset.size, pixel_size))
    resized_data[: subset.size] = data[valid_idx]
    pixels = reduce(resized_data.reshape(-1, pixel_size), axis=1)
    return reshape_reconstructed_image(pixels, shape)


class Kymo:
    def __init__(self, timestamps, infowave, photon_count, pixels_per_line):
        self._stamps = timestamps
        self._infowave = infowave
        self._counts = photon_count
        self.pixels_per_line = pixels_per_line

    def _image(self):
        image = reconstruct_image(self._counts, self._infowave, (self.pixels_per_line,))
        return image.T

    def _timestamps(self, reduce=np.min):
        stamps = reconstruct_image(self._stamps, self._infowave, (self.pixels_per_line,), reduce)
        return stamps.T

    @property
    def line_time_seconds(self):
        ts = self._timestamps()
        return (ts[0, 1] - ts[0, 0]) / 1e9


def main(timestamps, infowave, photon_count):
    kymo = Kymo(timestamps, infowave, photon_count, pixels_per_line=4)
    image = kymo._image()
    return kymo._timestamps(), image, np.asarray(kymo.line_time_seconds)


def inputs():
    rng = np.random.default_rng(4)
    infowave = np.tile(np.array([1, 1, 0, 1, 2], np.uint8), 12)
    timestamps = np.int64(1623965975045144007) + np.arange(infowave.size, dtype=np.int64) * 12801
    return timestamps, infowave, rng.poisson(5, infowave.size)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

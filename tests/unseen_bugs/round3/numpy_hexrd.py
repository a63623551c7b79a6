"""Builds maps of diffracted intensity over azimuth and rotation angle for each ring of a powder
pattern, from a stack of detector frames.

https://github.com/HEXRD/hexrd/issues/964
"""
import numpy as np

CONFIG = {"distance": 900.0, "pixel": 0.4, "tth": (0.006, 0.010), "width": 0.0016, "eta_step": 45.0,
          "threshold": 120}


class PlanarDetector:
    def __init__(self, rows, cols, pixel, distance):
        self.rows, self.cols = rows, cols
        self.pixel, self.distance = pixel, distance

    def pixel_angles(self):
        y = ((self.rows - 1) / 2 - np.arange(self.rows)) * self.pixel
        x = (np.arange(self.cols) - (self.cols - 1) / 2) * self.pixel
        xx, yy = np.meshgrid(x, y)
        tth = np.arctan2(np.hypot(xx, yy), self.distance)
        return tth, np.arctan2(yy, xx)


class PowderRings:
    def __init__(self, tths, width):
        self.tths, self.width = tths, width

    def ranges(self):
        return [(t - self.width / 2, t + self.width / 2) for t in self.tths]


class ImageSeries:
    def __init__(self, frames, omegas):
        self.frames, self.omegas = frames, omegas

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i]


def _ring_params(panel, rings, eta_edges):
    tth, eta = panel.pixel_angles()
    params = []
    for low, high in rings.ranges():
        pixel_ids = np.nonzero((tth >= low) & (tth < high))
        pixel_etas = np.degrees(eta[pixel_ids])
        params.append((pixel_ids, pixel_etas, eta_edges))
    return params


def _run_histograms(image, params, threshold):
    image = np.asarray(image)
    image = np.where(image > threshold, image, image.dtype.type(0))
    rows = []
    for pixel_ids, pixel_etas, eta_edges in params:
        result = np.histogram(
            pixel_etas,
            bins=eta_edges,
            weights=image[pixel_ids],
        )[0]
        rows.append(result)
    return rows


def extract_eta_omega_maps(panel, rings, imgser, config):
    eta_edges = np.arange(-180.0, 180.0 + config["eta_step"], config["eta_step"])
    params = _ring_params(panel, rings, eta_edges)
    maps = np.zeros((len(rings.tths), len(imgser), len(eta_edges) - 1))
    for i in range(len(imgser)):
        for j, row in enumerate(_run_histograms(imgser[i], params, config["threshold"])):
            maps[j, i] = row
    return eta_edges, maps


def strongest(maps, eta_edges):
    centres = (eta_edges[1:] + eta_edges[:-1]) / 2
    flat = maps.reshape(len(maps), -1).argmax(axis=1)
    return flat // len(centres), centres[flat % len(centres)]


def main(frames, omegas):
    panel = PlanarDetector(frames.shape[1], frames.shape[2], CONFIG["pixel"], CONFIG["distance"])
    rings = PowderRings(CONFIG["tth"], CONFIG["width"])
    eta_edges, maps = extract_eta_omega_maps(panel, rings, ImageSeries(frames, omegas), CONFIG)
    frame, eta = strongest(maps, eta_edges)
    return maps, omegas[frame], eta


def inputs():
    rng = np.random.default_rng(2)
    frames = rng.integers(60, 900, size=(4, 64, 64)).astype(np.uint16)
    frames[2, 6:22, 36:60] = rng.integers(9000, 30000, size=(16, 24))
    return frames, np.array([0.0, 0.25, 0.5, 0.75])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

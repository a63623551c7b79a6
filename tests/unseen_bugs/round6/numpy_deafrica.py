"""A vegetation map of a scene: bands as they are read, a mask of cloudy pixels, the index, and
the area of water and of dense vegetation.

https://github.com/digitalearthafrica/deafrica-sandbox-notebooks/issues/322
"""
import numpy as np

PRODUCT = {"measurements": ("red", "green", "nir", "SCL"), "nodata": 0, "resolution": 20}
CLOUDY = (3, 8, 9, 10)
CLASSES = {"water": (-1.0, 0.0), "bare": (0.0, 0.2), "vegetation": (0.5, 1.0)}


class Dataset:
    def __init__(self, bands, nodata):
        self.bands, self.nodata = bands, nodata

    def __getattr__(self, name):
        if name in ("bands", "nodata") or name not in self.bands:
            raise AttributeError(name)
        return self.bands[name]

    def __getitem__(self, name):
        return self.bands[name]

    def __setitem__(self, name, values):
        self.bands[name] = values

    def map(self, function, names):
        return Dataset({k: function(v) if k in names else v for k, v in self.bands.items()}, self.nodata)


def load(tiles, measurements, window):
    rows, cols = window
    stack = {name: tiles[name][:, rows, cols] for name in measurements}
    return Dataset(stack, PRODUCT["nodata"])


def cloud_mask(dataset):
    return ~np.isin(dataset.SCL, CLOUDY)


def least_cloudy(dataset):
    clear = cloud_mask(dataset)
    best = int(clear.mean(axis=(1, 2)).argmax())
    return dataset.map(lambda band: band[best], dataset.bands), clear[best]


def calculate_ndvi(dataset):
    band_diff = dataset.nir - dataset.red
    band_sum = dataset.nir + dataset.red
    dataset["NDVI"] = band_diff / band_sum
    return dataset


def classify(ndvi, valid, resolution):
    pixel = (resolution / 1000) ** 2
    masks = {name: (ndvi >= lo) & (ndvi < hi) & valid for name, (lo, hi) in CLASSES.items()}
    return masks, np.array([masks[name].sum() * pixel for name in CLASSES])


def main(red, green, nir, scl):
    tiles = dict(zip(PRODUCT["measurements"], (red, green, nir, scl)))
    dataset = load(tiles, PRODUCT["measurements"], (slice(2, None), slice(None, -2)))
    scene, clear = least_cloudy(dataset)
    scene = calculate_ndvi(scene)
    valid = clear & (scene.red != scene.nodata) & (scene.nir != scene.nodata)
    _, area = classify(scene.NDVI, valid, PRODUCT["resolution"])
    return np.where(valid, scene.NDVI, np.nan), area


def inputs():
    rng = np.random.default_rng(7)
    shape = (3, 14, 16)
    red = rng.integers(300, 2200, size=shape)
    nir = red + rng.integers(-250, 3500, size=shape)
    green = rng.integers(300, 2000, size=shape)
    scl = rng.choice([4, 5, 6, 8, 9], p=[0.4, 0.3, 0.15, 0.1, 0.05], size=shape)
    return red.astype(np.uint16), green.astype(np.uint16), nir.astype(np.uint16), scl.astype(np.uint8)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

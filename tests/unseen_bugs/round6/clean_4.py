"""Elevation and slope from packed tiles: int16 with a scale, an offset and a fill value are
unpacked to float32, differences give the slope, and classes are counted by zone."""
import numpy as np

ATTRS = {"scale_factor": 0.1, "add_offset": 1500.0, "_FillValue": -32768}
CELL = 30.0
CLASSES = np.array([0.0, 2.0, 8.0, 20.0, 90.0], dtype=np.float32)


class Packed:
    def __init__(self, values, attrs):
        self.values, self.attrs = values, attrs

    def valid(self):
        return self.values != self.attrs["_FillValue"]

    def decode(self):
        data = self.values.astype(np.float32)
        data *= np.float32(self.attrs["scale_factor"])
        data += np.float32(self.attrs["add_offset"])
        data[~self.valid()] = np.nan
        return data


def mosaic(tiles, layout):
    rows = [np.concatenate([tiles[i] for i in row], axis=1) for row in layout]
    return np.concatenate(rows, axis=0)


def gradient(elevation, cell):
    dy = (elevation[2:, 1:-1] - elevation[:-2, 1:-1]) / (2 * cell)
    dx = (elevation[1:-1, 2:] - elevation[1:-1, :-2]) / (2 * cell)
    return dy, dx


def slope(elevation, cell):
    dy, dx = gradient(elevation, cell)
    return np.rad2deg(np.arctan(np.hypot(dy, dx)))


def classify(degrees):
    known = np.isfinite(degrees)
    index = np.digitize(np.where(known, degrees, np.float32(0)), CLASSES[1:-1])
    return np.where(known, index, -1).astype(np.int8)


def zonal(classes, zones):
    table = np.zeros((zones.max() + 1, len(CLASSES) - 1), dtype=np.int64)
    known = classes >= 0
    np.add.at(table, (zones[known], classes[known]), 1)
    return table


def main(packed, zones):
    elevation = mosaic([Packed(tile, ATTRS).decode() for tile in packed], [[0, 1], [2, 3]])
    degrees = slope(elevation, CELL)
    classes = classify(degrees)
    table = zonal(classes, zones[1:-1, 1:-1])
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return np.nan_to_num(degrees), classes, table, share


def inputs():
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:24, :20]
    height = 1500 + 60 * np.sin(x / 5) + 8 * y + rng.normal(0, 2, (24, 20))
    packed = np.rint((height - ATTRS["add_offset"]) / ATTRS["scale_factor"]).astype(np.int16)
    packed[5:8, 3:5] = ATTRS["_FillValue"]
    tiles = np.stack([packed[:12, :10], packed[:12, 10:], packed[12:, :10], packed[12:, 10:]])
    return tiles, (x // 7 + 3 * (y // 12)).astype(np.uint8)

"""Programs of NumPy that raise."""

import numpy as np

CASES = {}


def case(*inputs):
    def mark(function):
        CASES[function.__name__] = function, inputs
        return function

    return mark


R = np.random.default_rng(0)


def blank(frame):
    canvas = np.zeros_like(frame)  # named
    canvas[1:] = frame[1:]
    return canvas


def grain(shape, strength):
    noise = R.normal(0, 1, shape)  # named
    return noise * strength


@case(R.integers(0, 255, (6, 6)).astype(np.uint8))
def film(frame):
    canvas = blank(frame)
    canvas += grain(frame.shape, 3)  # named
    return canvas


@case(np.array([70000, 40000], np.int32))
def voxels(extents):
    size = np.int32(1)
    for extent in extents:
        size = size * extent  # named
    return np.zeros(size, np.uint8)  # named


class Grid:
    def __init__(self, columns):
        self.columns = np.int8(columns)
        self.cells = np.arange(200)

    def flat(self, row, column):
        return row * self.columns + column  # named

    def take(self, row, column):
        offset = self.flat(row, column)
        return self.cells[offset]


class Wide(Grid):
    def take(self, row, column):
        offset = self.flat(row, column)
        if offset < 0:
            raise IndexError(f"no cell {offset}")  # named
        return self.cells[offset]


@case(np.arange(4, dtype=np.int8), np.arange(4, dtype=np.int8))
def cells(rows, columns):
    grid = Wide(60)
    return [grid.take(r, c) for r, c in zip(rows, columns, strict=True)]


@case(np.array([[1.0, 120.0, 4.0]], np.float32))
def probabilities(logits):
    weights = np.exp(logits)  # named
    total = weights.sum(axis=-1, keepdims=True)
    chances = weights / total
    assert np.isfinite(chances).all(), "not finite"  # named
    return chances


def ridge(features, scale):
    gram = features.T @ features
    return gram * scale + np.eye(len(gram), dtype=np.float32)  # named


@case(np.array([[1, 2], [2, 4]], np.float32), np.float32(1e10))
def solve(features, scale):
    gram = ridge(features, scale)
    return np.linalg.inv(gram)  # named


@case(np.array([1, 2, 2, 5], np.int16))
def histogram(codes):
    codebook = {name: np.array([k, k + 0.5]) for k, name in enumerate("abc")}  # named
    labels = codes + codebook["a"][0]
    return np.bincount(labels)  # named


class Mixer:
    def __init__(self, n):
        self.buffer = np.zeros(n, np.int32)  # named
        self.gains = [0.5, 1.5, 2.0]

    def __call__(self, samples):
        for gain in self.gains:
            np.multiply(samples, gain, out=self.buffer)  # named
        return self.buffer


@case(np.arange(5, dtype=np.int32))
def mix(samples):
    return Mixer(len(samples))(samples)


@case(np.array([0, 3, 2], np.uint8), np.zeros(10))
def tally(labels, votes):
    for label in labels:
        votes[label - 1] += 1  # named
    return votes


class Raster:
    def __init__(self, cell):
        self.cell = cell

    def shape(self, low, high):
        extent = (high - low) / self.cell
        rows = extent.astype(np.int16)  # named
        return rows[0], rows[1]

    def blank(self, low, high):
        height, width = self.shape(low, high)
        return np.zeros((height, width))  # named


@case(np.array([0.0, 0.0]), np.array([5000.0, 10.0]))
def rasterize(low, high):
    return Raster(0.1).blank(low, high)


@case(np.array([200, 100], np.uint8))
def mean_level(levels):
    total = np.uint8(0)
    for level in levels:
        total += level  # named
    mean = total / len(levels)
    if not levels.min() <= mean <= levels.max():
        raise ValueError("mean out of range")  # named
    return mean

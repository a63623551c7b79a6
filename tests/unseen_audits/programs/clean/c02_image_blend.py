"""Average and brightened versions of two grey images."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(302)
    yy, xx = np.mgrid[0:40, 0:40]
    first = np.clip(120 + 3 * xx + rng.normal(0, 12, (40, 40)), 0, 255).astype(np.uint8)
    second = np.clip(60 + 5 * yy + rng.normal(0, 12, (40, 40)), 0, 255).astype(np.uint8)
    return first, second


def blend(first, second):
    total = first.astype(np.uint16) + second
    return ((total + 1) // 2).astype(np.uint8)


def brighten(image, gain, lift):
    wide = image.astype(np.int32) * gain // 10 + lift
    return np.clip(wide, 0, 255).astype(np.uint8)


def run(first, second):
    mixed = blend(first, second)
    bright = brighten(mixed, 14, 20)
    contrast = int(mixed.max()) - int(mixed.min())
    difference = np.abs(first.astype(np.int16) - second.astype(np.int16))
    mixed.tofile("mixed.raw")
    return {
        "mixed": mixed,
        "bright": bright,
        "contrast": contrast,
        "difference": difference,
        "row_sums": mixed.sum(axis=1),
    }


ANSWER = {
    "line": None,
    "fix_line": None,
    "outputs": {
        "mixed": {"differ": 0},
        "bright": {"differ": 0},
        "contrast": {"differ": 0},
        "difference": {"differ": 0},
        "row_sums": {"differ": 0},
    },
    "why": "sums, gains and differences are taken in wider ints and clipped before the cast",
}

"""Finds the moving part of two 8 bit frames, and describes it by its box and its mean."""
import numpy as np


class MotionDetector:
    def __init__(self, threshold=25, min_pixels=4):
        self.threshold = threshold
        self.min_pixels = min_pixels

    def difference(self, before, after):
        delta = after.astype(np.int16) - before.astype(np.int16)
        return np.abs(delta).astype(np.uint8)

    def mask(self, before, after):
        diff = self.difference(before, after)
        return diff > self.threshold

    def box(self, mask):
        rows = np.flatnonzero(mask.any(axis=1))
        cols = np.flatnonzero(mask.any(axis=0))
        if mask.sum() < self.min_pixels:
            return np.zeros(4, np.int64)
        return np.array([rows[0], cols[0], rows[-1] + 1, cols[-1] + 1])


def main(before, after):
    detector = MotionDetector()
    mask = detector.mask(before, after)
    box = detector.box(mask)
    mean = after[mask].mean() if mask.any() else np.float64(0)
    return mask, box, np.asarray(mean)


def inputs():
    rng = np.random.default_rng(13)
    before = rng.integers(0, 40, (20, 30)).astype(np.uint8)
    after = before.copy()
    after[5:12, 8:19] = rng.integers(180, 256, (7, 11))
    return before, after

"""Histogram equalisation of an 8-bit grey image through a look-up table."""
import numpy as np


def equalisation_lut(img):
    hist = np.bincount(img.ravel(), minlength=256)
    cdf = np.cumsum(hist)
    cdf_min = cdf[np.nonzero(hist)[0][0]]
    span = img.size - cdf_min
    if span == 0:                     # a flat image stays as it is
        return np.arange(256, dtype=np.uint8)
    lut = (cdf - cdf_min) * 255.0 / span
    return np.clip(np.rint(lut), 0, 255).astype(np.uint8)


def entropy(img):
    p = np.bincount(img.ravel(), minlength=256) / img.size
    p = p[p > 0]
    return -np.sum(p * np.log2(p))


def main(img):
    lut = equalisation_lut(img)
    out = lut[img]
    return out, lut, entropy(img), entropy(out)


def inputs():
    rng = np.random.default_rng(7)
    img = np.clip(np.rint(rng.normal(110.0, 12.0, size=(24, 24))), 0, 255).astype(np.uint8)
    return (img,)

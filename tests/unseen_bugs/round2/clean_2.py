"""Equalises the histogram of 8 bit images tile by tile with a limit on the contrast, through
lookup tables."""
import numpy as np

CONFIG = {"tiles": 2, "bins": 256, "clip": 3.0}


def limited_histogram(tile, bins, clip):
    counts = np.bincount(tile.ravel(), minlength=bins)
    limit = max(int(clip * tile.size / bins), 1)
    excess = int(np.maximum(counts - limit, 0).sum())
    counts = np.minimum(counts, limit)
    counts += excess // bins
    counts[:excess % bins] += 1
    return counts


def lookup_table(tile, bins, clip):
    cdf = np.cumsum(limited_histogram(tile, bins, clip))
    scaled = (cdf - cdf[0]) * (bins - 1) / max(cdf[-1] - cdf[0], 1)
    return np.clip(np.rint(scaled), 0, bins - 1).astype(np.uint8)


def equalize(image, config):
    out = np.empty_like(image)
    h, w = (s // config["tiles"] for s in image.shape)
    for i in range(config["tiles"]):
        for j in range(config["tiles"]):
            rows = slice(i * h, (i + 1) * h)
            columns = slice(j * w, (j + 1) * w)
            tile = image[rows, columns]
            out[rows, columns] = lookup_table(tile, config["bins"], config["clip"])[tile]
    return out


def main(images):
    out = np.stack([equalize(image, CONFIG) for image in images])
    contrast = out.reshape(len(out), -1).astype(np.float32).std(axis=1)
    return out, contrast


def inputs():
    rng = np.random.default_rng(1)
    images = rng.normal(90, 12, size=(2, 16, 16)).clip(0, 255)
    return (images.astype(np.uint8),)

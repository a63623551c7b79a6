"""Welch's estimate of the spectrum of a float32 record, deliberately in double precision, and
its centroid and bandwidth."""
import numpy as np

CONFIG = {"rate": 100.0, "segment": 64, "overlap": 32, "detrend": True}


def segments(x, length, step):
    count = 1 + (len(x) - length) // step
    index = np.arange(length)[None, :] + step * np.arange(count)[:, None]
    return x[index]


def detrend(block):
    t = np.arange(block.shape[1], dtype=np.float64)
    t -= t.mean()
    slope = (block * t).sum(axis=1, keepdims=True) / (t ** 2).sum()
    return block - block.mean(axis=1, keepdims=True) - slope * t


def welch(record, config):
    """Powers are summed over many orders of magnitude: everything is float64 from here."""
    x = np.asarray(record, dtype=np.float64)
    length = config["segment"]
    window = np.hanning(length)
    block = segments(x, length, length - config["overlap"])
    if config["detrend"]:
        block = detrend(block)
    power = np.abs(np.fft.rfft(block * window, axis=1)) ** 2
    power /= config["rate"] * (window ** 2).sum()
    power[:, 1:-1] *= 2
    return np.fft.rfftfreq(length, 1 / config["rate"]), power.mean(axis=0)


def main(record):
    frequency, power = welch(record, CONFIG)
    total = power.sum()
    centroid = (frequency * power).sum() / total
    bandwidth = np.sqrt(((frequency - centroid) ** 2 * power).sum() / total)
    return power, np.array([centroid, bandwidth])


def inputs():
    rng = np.random.default_rng(0)
    t = np.arange(512) / CONFIG["rate"]
    return ((np.sin(2 * np.pi * 12 * t) + 0.3 * rng.normal(size=512)).astype(np.float32),)

"""Aligns the readings of a logger: counters of nanoseconds are subtracted as integers, converted to
seconds from the start, and the raw readings calibrated and put into regular bins."""
import numpy as np

CONFIG = {"bin_seconds": 0.5, "offset": 2048, "volts_per_count": 0.00125}
RECORD = np.dtype([("stamp", np.int64), ("raw", np.uint16), ("flags", np.uint8)])
SATURATED = 1


def seconds_since(stamps, origin):
    """The difference is an exact int64; below 2**53 ns it is exact in float64 too."""
    return (stamps - origin) / 1e9


class Calibration:
    def __init__(self, offset, volts_per_count):
        self.offset, self.volts_per_count = offset, volts_per_count

    def __call__(self, raw):
        counts = raw.astype(np.int32) - self.offset
        return counts * self.volts_per_count


class Log:
    def __init__(self, stamps, raw, flags):
        self.records = np.empty(len(stamps), dtype=RECORD)
        self.records["stamp"] = stamps
        self.records["raw"] = raw
        self.records["flags"] = flags

    def good(self):
        return self.records[(self.records["flags"] & SATURATED) == 0]


def bin_means(seconds, values, width):
    index = np.floor(seconds / width).astype(np.int64)
    counts = np.bincount(index)
    sums = np.bincount(index, weights=values)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts


def gaps(stamps):
    return np.diff(stamps).max()


def main(stamps, raw, flags):
    log = Log(stamps, raw, flags).good()
    seconds = seconds_since(log["stamp"], stamps[0])
    volts = Calibration(CONFIG["offset"], CONFIG["volts_per_count"])(log["raw"])
    means, counts = bin_means(seconds, volts, CONFIG["bin_seconds"])
    return seconds, np.nan_to_num(means), counts, np.array(gaps(log["stamp"]))


def inputs():
    rng = np.random.default_rng(3)
    stamps = 1700000000123456789 + np.cumsum(rng.integers(10_000_000, 90_000_000, size=80))
    raw = rng.integers(0, 4096, size=80).astype(np.uint16)
    return stamps, raw, (rng.random(80) < 0.1).astype(np.uint8)

"""Straight line through int16 converter counts and float32 volts, for a small device.

fit(counts, volts) -> array([slope, intercept], float32); nothing in it may be float64.
"""
import numpy as np

FULL_SCALE = 32768.0


def example():
    counts = np.arange(-30000, 30001, 100, dtype=np.int16)
    volts = counts * np.float32(0.0001) + np.float32(1.25)
    return counts, volts


def fit(counts, volts):
    x = counts / FULL_SCALE
    mx = x.mean()
    my = volts.mean()
    sxx = ((x - mx) * (x - mx)).sum()
    sxy = ((x - mx) * (volts - my)).sum()
    slope = sxy / sxx
    intercept = my - slope * mx
    return np.stack([slope / FULL_SCALE, intercept])


if __name__ == "__main__":
    c, v = example()
    line = fit(c, v)
    print(line, line.dtype)

"""Programs whose arithmetic loses values, each with the step at fault on a line of its own."""

import numpy as np


def brightened(image):
    out = image.copy()
    out += np.uint8(100)
    return out


def scaled_peaks(counts):
    return counts.max(axis=1) * 300


def packed(red):
    return red << 16


def energies(x):
    return np.exp(x) / 2


def tiny(x):
    return x * np.float16(1e-7) + 1


def versine(x):
    return 1 - np.cos(x)


def moved(positions):
    return positions + np.float32(1)


def totals(x):
    return x.sum(axis=0)


def walked(step, count=500):
    position = np.float32(0)
    for _ in range(count):
        position = position + step
    return position


def hypotenuse(x):
    return np.sqrt(x * x - np.float32(4))

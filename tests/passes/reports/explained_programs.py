"""Programs whose results are wide or wrong, each with the line that tests name."""

import numpy as np


def config():
    return np.float64(3)


def scaled(x):
    scale = np.full(6, config())
    return x * scale


def indexed(x):
    return x * np.arange(6)


def asked(x):
    return x.astype(np.float64) * 2


def summed(x):
    return x.astype(np.int8).sum()


def halved(x):
    return x / 2


def two_wraps(x):
    bright = x + np.uint8(100)
    square = x * x
    return bright, square


def rounded(x):
    return np.exp(x) * np.float32(0.1)


def truncated(rewards):
    returns = np.zeros(3, dtype=rewards.dtype)
    returns[1:] = rewards[1:] * 0.5
    return returns


def bytes_of(x):
    return (x * 255).astype(np.uint8)


def hashed(state):
    return (state * np.uint64(6364136223846793005)) & np.uint64(0xFFFFFFFF)


def stored_narrow(x):
    out = np.zeros(6, np.float32)
    out += x * np.arange(6)
    return out


def loaded(text):
    data = np.loadtxt(text).astype(np.float32)
    return data * np.array([0.2, 0.8])


def looked_up(image):
    bright = image + np.uint8(60)
    table = (np.arange(256) / 1.7).astype(np.uint8)
    return table[bright.tolist()]


def hashed_keys(keys):
    h = np.full(len(keys), 2166136261, np.uint32)
    for shift in (0, 8, 16, 24):
        h = (h ^ (keys >> np.uint32(shift))) * np.uint32(16777619)
    return h % np.uint32(97)


def squared_number():
    side = np.int32(70000)
    return np.ones(3) / (side * side)

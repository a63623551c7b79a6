"""A handful of numpy-100 style exercises on one random matrix."""
import numpy as np


def checkerboard(n):
    board = np.zeros((n, n), dtype=np.int64)
    board[1::2, ::2] = 1
    board[::2, 1::2] = 1
    return board


def closest(values, target):
    return values[np.abs(values - target).argmin()]


def main(Z):
    # normalise to [0, 1]
    Zmin, Zmax = Z.min(), Z.max()
    Zn = (Z - Zmin) / (Zmax - Zmin)
    # subtract the mean of each row
    centred = Zn - Zn.mean(axis=1, keepdims=True)
    # sort by the second column
    ordered = centred[centred[:, 1].argsort()]
    # value closest to one half
    half = closest(Zn.ravel(), 0.5)
    # keep only the white squares
    white = Zn * checkerboard(Z.shape[0])
    # number of entries above the mean, per column
    above = (Zn > Zn.mean()).sum(axis=0)
    return ordered, half, white, above


def inputs():
    rng = np.random.default_rng(0)
    return (rng.uniform(-5.0, 20.0, size=(8, 8)),)

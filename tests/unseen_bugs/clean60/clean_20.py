"""Rolling mean, standard deviation and z-score alarms of a series."""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

WINDOW = 10
THRESHOLD = 2.0


def ewma(x, span):
    alpha = 2.0 / (span + 1.0)
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = alpha * x[i] + (1.0 - alpha) * out[i - 1]
    return out


def main(x):
    win = sliding_window_view(x, WINDOW)
    mean = win.mean(axis=1)
    std = win.std(axis=1, ddof=1)
    med = np.median(win, axis=1)
    latest = win[:, -1]
    z = np.divide(latest - mean, std, out=np.zeros_like(mean), where=std > 0)
    alarm = np.flatnonzero(np.abs(z) > THRESHOLD) + WINDOW - 1
    return mean, std, med, ewma(x, WINDOW), alarm


def inputs():
    rng = np.random.default_rng(14)
    x = 50.0 + np.cumsum(rng.normal(0.0, 0.5, size=80))
    x[45] += 8.0
    return (x,)

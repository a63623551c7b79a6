"""Frequency response of a bank of comb filters y[n] = x[n] + g x[n-d]."""
import numpy as np


def make_inputs():
    delays = np.array([0, 1, 2, 5, 8, 13])
    gains = np.array([0.5, 0.9, -0.7, 0.8, 0.3, -0.95])
    return delays, gains, 64


def run(delays, gains, n_freq):
    omega = np.linspace(0.0, np.pi, n_freq)
    bank = np.zeros((len(delays), n_freq))
    for k, (d, g) in enumerate(zip(delays, gains)):
        bank[k] = 1.0 + g * np.exp(-1j * omega * d)

    magnitude = np.abs(bank)
    peak = magnitude.max(axis=1)
    notch = omega[magnitude.argmin(axis=1)]
    table = np.column_stack([delays, gains, peak])
    np.savetxt("bank.csv", table, delimiter=",", fmt="%.10g")
    return magnitude, notch


def exact(delays, gains, n_freq):
    import math
    w = np.linspace(0.0, np.pi, n_freq).tolist()
    mags = []
    for d, g in zip(delays.tolist(), gains.tolist()):
        mags.append([math.hypot(1 + g * math.cos(v * d), g * math.sin(v * d)) for v in w])
    # first index of the minimum; ties (flat response) within rounding go to the first
    notch = [w[next(i for i, v in enumerate(m) if v <= min(m) + 1e-12)] for m in mags]
    return mags, notch, [list(r) for r in zip(delays.tolist(), gains.tolist(), map(max, mags))]


ANSWER = {
    "line": 15,
    "kind": "imaginary part",
    "operation": "complex128 row stored in a float64 array: the imaginary part is discarded (ComplexWarning)",
    "outputs": {
        "magnitude (returned, first)": {"size": 384, "differ": 310},
        "notch (returned, second)": {"size": 6, "differ": 0},
        "bank.csv": {"size": 18, "differ": 1},
    },
    "fix_line": 13,
    "fix": "bank = np.zeros((len(delays), n_freq), dtype=complex)",
}

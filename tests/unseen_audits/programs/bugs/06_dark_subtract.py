"""CCD reduction: dark subtraction and flat fielding of one 16-bit exposure."""
import numpy as np


def make_inputs():
    gen = np.random.default_rng(1969)
    shape = (32, 40)
    dark = gen.normal(1010, 6, shape).round().astype(np.uint16)
    sky = gen.poisson(14, shape)
    yy, xx = np.mgrid[0:32, 0:40]
    star = 9000 * np.exp(-((yy - 12) ** 2 + (xx - 25) ** 2) / 6.0)
    raw = (gen.normal(1010, 6, shape) + sky + star).round().astype(np.uint16)
    flat = 1.0 + 0.05 * np.cos(xx / 9.0)
    return raw, dark, flat


def run(raw, dark, flat):
    assert raw.dtype == dark.dtype == np.uint16
    signal = raw - dark
    flat = flat / np.median(flat)
    reduced = signal / flat
    # background: median of the border, which no star touches
    border = np.ones(raw.shape, dtype=bool)
    border[3:-3, 3:-3] = False
    background = np.median(reduced[border])
    np.save("reduced.npy", reduced)
    peak = np.unravel_index(np.argmax(reduced * ~border), raw.shape)
    print(f"background {background:.6f} ADU")
    return peak


def exact(raw, dark, flat):
    signal = raw.astype(np.float64) - dark.astype(np.float64)
    red = signal / (flat / np.median(flat))
    edge = [red[i, j] for i in range(32) for j in range(40)
            if i < 3 or i >= 29 or j < 3 or j >= 37]
    inner = [(red[i, j], -i, -j) for i in range(3, 29) for j in range(3, 37)]
    best = max(inner)
    return [-best[1], -best[2]], red, [round(float(np.median(edge)), 6)]


ANSWER = {
    "line": 19,
    "kind": "wrap",
    "operation": "uint16 - uint16 below zero wraps to values near 65535",
    "outputs": {
        "peak (returned pair)": {"size": 2, "differ": 2},
        "reduced.npy": {"size": 1280, "differ": 70},
        "background (printed)": {"size": 1, "differ": 1},
    },
    "fix": "signal = raw.astype(np.int32) - dark",
}

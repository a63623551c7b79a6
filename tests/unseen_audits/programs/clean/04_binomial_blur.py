# Unsharp masking of a float32 image with a 5 x 5 binomial kernel
import numpy as np


def make_inputs():
    rng = np.random.default_rng(255)
    y, x = np.mgrid[0:30, 0:36]
    img = 0.5 + 0.3 * np.sin(x / 3.0) * np.cos(y / 4.0) + 0.01 * rng.standard_normal((30, 36))
    return (img.astype(np.float32), np.float32(0.5))


def smooth(img, axis):
    kernel = np.array([1, 4, 6, 4, 1], dtype=np.float32) / 16
    pad = [(0, 0), (0, 0)]
    pad[axis] = (2, 2)
    wide = np.pad(img, pad, mode="reflect")
    n = img.shape[axis]
    out = np.zeros_like(img)
    for k in range(5):
        out += kernel[k] * np.take(wide, np.arange(k, k + n), axis=axis)
    return out


def run(img, amount):
    low = smooth(smooth(img, 0), 1)
    sharp = img + amount * (img - low)
    np.save("sharp.npy", sharp)
    return low


def exact(img, amount):
    big = img.astype(np.float64)

    def pass_(a):
        w = np.pad(a, ((2, 2), (0, 0)), mode="reflect")
        return sum(c * w[k:k + len(a)] for k, c in enumerate([1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16]))

    low = pass_(pass_(big).T).T
    return low, big + float(amount) * (big - low)


ANSWER = {
    "outputs": {
        "low (returned)": {"size": 1080, "differ": 0},
        "sharp.npy": {"size": 1080, "differ": 0},
    },
    "note": "float32 throughout, but only ten short additions of numbers of one size: the error is some 1e-7 relative",
}

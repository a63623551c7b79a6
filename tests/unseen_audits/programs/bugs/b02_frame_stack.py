"""Co-add of short exposures of a star field, with per-frame background levels."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Exposure:
    pixels: np.ndarray
    seconds: float


def make_inputs():
    rng = np.random.default_rng(202)
    yy, xx = np.mgrid[0:32, 0:32]
    frames = []
    for _ in range(12):
        sky = rng.poisson(180.0, size=(32, 32))
        star = 16000.0 * np.exp(-((yy - 14) ** 2 + (xx - 19) ** 2) / 8.0)
        faint = 2500.0 * np.exp(-((yy - 25) ** 2 + (xx - 6) ** 2) / 5.0)
        frames.append(np.clip(sky + star + faint, 0, 65535).astype(np.uint16))
    return np.stack(frames), 2.5


class Stacker:
    def __init__(self, shape, dtype):
        self.total = np.zeros(shape, dtype=dtype)
        self.seconds = 0.0

    def push(self, exposure):
        self.total += exposure.pixels
        self.seconds += exposure.seconds


def run(frames, seconds):
    stacker = Stacker(frames.shape[1:], frames.dtype)
    for pixels in frames:
        stacker.push(Exposure(pixels, seconds))
    background = np.median(frames, axis=(1, 2))
    rate = stacker.total / stacker.seconds
    print("exposure %.1f s, background %.1f" % (stacker.seconds, background.mean()))
    return {
        "total": stacker.total,
        "rate": rate,
        "background": background,
        "seconds": stacker.seconds,
    }


ANSWER = {
    "line": 31,
    "fix_line": 27,
    "outputs": {
        "total": {"differ": 25},
        "rate": {"differ": 25},
        "background": {"differ": 0},
        "seconds": {"differ": 0},
    },
    "why": "the sum of 12 uint16 frames passes 65535 near the stars and wraps",
}

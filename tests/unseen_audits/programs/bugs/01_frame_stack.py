"""Night-mode burst: average a handful of 8-bit frames and locate bright spots."""
import numpy as np


def make_inputs():
    rng = np.random.default_rng(11)
    scene = rng.integers(5, 62, size=(18, 24))
    scene[4:9, 10:15] += 60
    noise = rng.normal(0.0, 3.0, size=(6, 18, 24))
    frames = np.clip(scene + noise, 0, 255).astype(np.uint8)
    return (frames, 75.0)


def run(frames, threshold):
    n, rows, cols = frames.shape
    if n < 2:
        raise ValueError("need at least two frames")

    acc = frames[0].copy()
    for frame in frames[1:]:
        acc += frame

    average = acc / n
    bright = average > threshold
    per_row = bright.sum(axis=1)
    return average, per_row


def exact(frames, threshold):
    n, rows, cols = frames.shape
    avg = [[sum(int(frames[k, i, j]) for k in range(n)) / n for j in range(cols)]
           for i in range(rows)]
    return avg, [sum(1 for v in row if v > threshold) for row in avg]


ANSWER = {
    "line": 21,
    "kind": "wrap",
    "operation": "in-place addition of uint8 frames into a uint8 accumulator wraps modulo 256 (uint8 + uint8 -> uint8)",
    "outputs": {
        "average (returned, first)": {"size": 432, "differ": 155},
        "per_row (returned, second)": {"size": 18, "differ": 5},
    },
    "fix_line": 19,
    "fix": "acc = frames[0].astype(np.uint32)",
}

"""Convert the logger's (seconds, milliseconds) header words to one 64-bit stamp per record."""
from pathlib import Path

import numpy as np


def make_inputs():
    rng = np.random.default_rng(5)
    # first records were written before the clock was set (seconds since boot)
    boot = np.arange(12, 52)
    real = 1_700_000_000 + np.cumsum(rng.integers(1, 9, size=260))
    seconds = np.concatenate([boot, real]).astype(np.int32)
    millis = rng.integers(0, 1000, size=seconds.size).astype(np.int16)
    return seconds, millis


def run(seconds, millis):
    if seconds.shape != millis.shape:
        raise ValueError("header words out of step")
    order = np.argsort(seconds, kind="stable")
    seconds = seconds[order]
    millis = millis[order]

    stamp = seconds * 1000 + millis
    target = Path("stamps.bin")
    stamp.astype("<i8").tofile(target)

    unset = int(np.count_nonzero(seconds < 1_000_000))
    print("records with unset clock:", unset)
    return target.name


def exact(seconds, millis):
    pairs = sorted(zip(seconds.tolist(), millis.tolist()), key=lambda p: p[0])
    stamps = [1000 * s + m for s, m in pairs]
    return stamps, sum(1 for s, _ in pairs if s < 1_000_000)


ANSWER = {
    "line": 24,
    "kind": "wrap",
    "operation": "int32 seconds times a Python int stays int32 and wraps modulo 2**32 before the int64 cast",
    "outputs": {
        "stamps.bin (tofile, int64)": {"size": 300, "differ": 260},
        "records with unset clock (printed)": {"size": 1, "differ": 0},
    },
    "fix": "stamp = seconds.astype(np.int64) * 1000 + millis",
}

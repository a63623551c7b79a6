"""Peak and RMS metering of a 16-bit recording in short blocks."""
import logging

import numpy as np

log = logging.getLogger("meter")
BLOCK = 256


def make_inputs():
    rng = np.random.default_rng(1111)
    t = np.arange(20 * BLOCK) / 8000.0
    loud = 14000.0 + 24000.0 * np.abs(np.sin(2 * np.pi * 1.3 * t))
    wave = loud * np.sin(2 * np.pi * 311.0 * t) + rng.normal(0, 200.0, t.size)
    return (np.clip(np.rint(wave), -32768, 32767).astype(np.int16),)


def run(samples):
    blocks = samples.reshape(-1, BLOCK)
    peak = np.abs(blocks).max(axis=1)
    rms = np.sqrt(np.mean(blocks.astype(np.float64) ** 2, axis=1))
    crossings = np.count_nonzero(np.diff(np.signbit(blocks), axis=1), axis=1)
    log.info("loudest block %d", int(rms.argmax()))
    return {
        "peak": peak,
        "rms": rms,
        "crossings": crossings,
        "lowest": int(blocks.min()),
    }


ANSWER = {
    "line": 20,
    "fix_line": 20,
    "outputs": {
        "peak": {"differ": 11},
        "rms": {"differ": 0},
        "crossings": {"differ": 0},
        "lowest": {"differ": 0},
    },
    "why": "the absolute value of -32768 is -32768 in int16",
}

# loudness of consecutive blocks of a 16 bit PCM recording
import numpy as np

BLOCK = 100


def make_inputs():
    rng = np.random.default_rng(2024)
    t = np.arange(1900)
    envelope = np.interp(t, [0, 600, 1000, 1400, 1899], [60, 90, 9000, 400, 70])
    tone = np.sin(2 * np.pi * t / 37.0) * envelope
    pcm = np.round(tone + rng.normal(0, 4, t.size)).astype(np.int16)
    return (pcm,)


def block_view(pcm):
    usable = len(pcm) // BLOCK * BLOCK
    return pcm[:usable].reshape(-1, BLOCK)


def run(pcm):
    blocks = block_view(pcm)
    peak = np.abs(blocks).max(axis=1)
    energy = blocks * blocks
    mean_square = energy.mean(axis=1)
    rms = np.sqrt(np.maximum(mean_square, 0.0))
    # python lists: the report template cannot take arrays
    return {"rms": rms.tolist(), "peak": peak.tolist()}


def exact(pcm):
    samples = [int(s) for s in pcm]
    rms, peak = [], []
    for k in range(0, len(samples) // BLOCK * BLOCK, BLOCK):
        part = samples[k:k + BLOCK]
        rms.append((sum(s * s for s in part) / BLOCK) ** 0.5)
        peak.append(max(abs(s) for s in part))
    return rms, peak


ANSWER = {
    "line": 24,
    "kind": "wrap",
    "operation": "squares of int16 samples stay int16 and wrap modulo 65536",
    "outputs": {
        "rms (dict entry, list of float)": {"size": 19, "differ": 12},
        "peak (dict entry, list of int)": {"size": 19, "differ": 0},
    },
    "fix": "energy = blocks.astype(np.int64) * blocks",
}

"""Mix three voices and export them as 16-bit PCM with clipping."""
import struct

import numpy as np


def make_inputs():
    t = np.arange(1200) / 8000.0
    voices = np.stack([np.sin(2 * np.pi * f * t) for f in (220.0, 277.18, 329.63)])
    return voices, np.array([0.6, 0.45, 0.4]), 8000


def run(voices, gains, rate):
    mix = gains @ voices
    level = np.rint(mix * 32767.0)
    pcm = np.clip(level, -32768, 32767).astype(np.int16)
    clipped = int(np.count_nonzero(np.abs(level) > 32767))

    data = pcm.astype("<i2").tobytes()
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16,
                         1, 1, rate, 2 * rate, 2, 16, b"data", len(data))
    with open("mix.wav", "wb") as f:
        f.write(header + data)
    return clipped, pcm.astype(np.int32).max() - pcm.min()


def exact(voices, gains, rate):
    g, v = gains.tolist(), voices.T.tolist()
    lev = [round(sum(a * b for a, b in zip(g, col)) * 32767.0) for col in v]
    pcm = [max(-32768, min(32767, x)) for x in lev]
    return sum(abs(x) > 32767 for x in lev), max(pcm) - min(pcm), pcm


ANSWER = {
    "outputs": {
        "clipped (returned, first)": {"size": 1, "differ": 0},
        "span (returned, second)": {"size": 1, "differ": 0},
        "mix.wav samples": {"size": 1200, "differ": 0},
    },
    "note": "rounded and clipped in float64 before the cast, so float64 -> int16 is exact; the span is taken after widening",
}

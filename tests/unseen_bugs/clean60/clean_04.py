"""Power spectrogram in decibels of a signal, with a Hann window."""
import numpy as np

FS = 1000.0
NPERSEG = 64
HOP = 32


def frame(x, size, hop):
    n = 1 + (len(x) - size) // hop
    idx = np.arange(size)[None, :] + hop * np.arange(n)[:, None]
    return x[idx]


def main(x):
    win = np.hanning(NPERSEG)
    frames = frame(x, NPERSEG, HOP)
    frames = frames - frames.mean(axis=1, keepdims=True)
    spec = np.fft.rfft(frames * win, axis=1)
    psd = np.abs(spec) ** 2 / (FS * np.sum(win ** 2))
    psd[:, 1:-1] *= 2.0               # one-sided: fold negative frequencies
    freqs = np.fft.rfftfreq(NPERSEG, d=1.0 / FS)
    db = 10.0 * np.log10(np.maximum(psd, 1e-20))
    dominant = freqs[psd.argmax(axis=1)]
    return freqs, db, dominant


def inputs():
    t = np.arange(400) / FS
    rng = np.random.default_rng(3)
    x = np.sin(2 * np.pi * 125 * t) + 0.1 * rng.standard_normal(t.size)
    return (x,)

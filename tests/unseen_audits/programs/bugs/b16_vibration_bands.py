"""Spectra of a machine's vibration in successive windows, with window energies."""
import numpy as np

WINDOW = 64


def make_inputs():
    rng = np.random.default_rng(16)
    t = np.arange(10 * WINDOW) / 1024.0
    signal = 0.8 * np.sin(2 * np.pi * 96.0 * t + 0.7) + rng.normal(0.0, 0.2, t.size)
    return (signal,)


class Spectrogram:
    def __init__(self, signal):
        self.frames = signal.reshape(-1, WINDOW)
        self.lines = np.zeros((len(self.frames), WINDOW // 2 + 1))

    def compute(self):
        for k, frame in enumerate(self.frames):
            self.lines[k] = np.fft.rfft(frame)
        return np.abs(self.lines) ** 2 / WINDOW


def run(signal):
    gram = Spectrogram(signal)
    power = gram.compute()
    energy = (gram.frames ** 2).sum(axis=1)
    crest = np.abs(gram.frames).max(axis=1) / np.sqrt(energy / WINDOW)
    np.save("power.npy", power)
    return {
        "power": power,
        "energy": energy,
        "crest": crest,
    }


ANSWER = {
    "line": 21,
    "fix_line": 17,
    "outputs": {
        "power": {"differ": 310},
        "energy": {"differ": 0},
        "crest": {"differ": 0},
    },
    "why": "complex lines are stored into a float array, the imaginary parts are dropped",
}

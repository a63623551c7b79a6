"""The centroid of a float32 spectrogram is float64.

https://github.com/librosa/librosa/issues/2099
"""

import numpy as np


class Analysis:
    def __init__(self, rate, n_fft):
        self.rate = rate
        self.n_fft = n_fft
        self.frequencies = np.fft.rfftfreq(n_fft, 1 / rate)  # born

    def normalized(self, spectrum):
        total = spectrum.sum(axis=0, keepdims=True)
        return spectrum / np.maximum(total, np.finfo(spectrum.dtype).tiny)

    def centroid(self, spectrum):
        frequencies = self.frequencies
        return np.sum(frequencies[:, np.newaxis] * self.normalized(spectrum), axis=0)  # guilty


def read_spectrum(path, bins):
    return np.fromfile(path, dtype=np.float32).reshape(bins, -1)


def program(path):
    analysis = Analysis(rate=22050, n_fft=128)
    return analysis.centroid(read_spectrum(path, bins=65))


def inputs(folder):
    path = folder / "spectrum.f32"
    np.random.default_rng(0).random((65, 20), dtype=np.float32).tofile(path)
    return (path,)


def shows_fault(result):
    return result.dtype == np.float64

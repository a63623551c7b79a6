"""A mel spectrogram of float32 audio is float64: https://github.com/librosa/librosa/issues/825."""

import numpy as np


def hz_to_mel(hz):
    return 2595.0 * np.log10(1.0 + hz / 700.0)


def mel_to_hz(mel):
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


def mel_filters(rate, n_fft, n_mels=8):
    bins = np.arange(1 + n_fft // 2) * rate / n_fft
    edges = mel_to_hz(np.linspace(hz_to_mel(0.0), hz_to_mel(rate / 2), n_mels + 2))
    weights = np.zeros((n_mels, len(bins)))  # born
    for i in range(n_mels):
        rising = (bins - edges[i]) / (edges[i + 1] - edges[i])
        falling = (edges[i + 2] - bins) / (edges[i + 2] - edges[i + 1])
        weights[i] = np.maximum(0, np.minimum(rising, falling))
    return weights


def power_spectrogram(audio, n_fft, hop):
    window = np.hanning(n_fft).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(audio, n_fft)[::hop]
    return np.abs(np.fft.rfft(frames * window, axis=-1).T) ** 2


def program(audio, rate=8000, n_fft=64):
    spectrum = power_spectrogram(audio, n_fft, hop=32)
    basis = mel_filters(rate, n_fft)
    return np.dot(basis, spectrum)  # guilty


def inputs(folder):
    return (np.sin(np.arange(512, dtype=np.float32) / 5),)


def shows_fault(result):
    return result.dtype == np.float64

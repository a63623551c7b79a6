"""Log-mel spectrogram of a waveform, from an array or a tensor, with cached filters.

https://github.com/openai/whisper/pull/2831
"""
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F

SAMPLE_RATE, N_FFT, HOP_LENGTH, N_MELS = 16000, 400, 160, 20


def hz_to_mel(f):
    return 2595 * np.log10(1 + f / 700)


def triangles(n_mels):
    edges = 700 * (10 ** (np.linspace(0, hz_to_mel(SAMPLE_RATE / 2), n_mels + 2) / 2595) - 1)
    freqs = np.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1)
    up = (freqs - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - freqs) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)) * (2 / (edges[2:] - edges[:-2]))[:, None]


@lru_cache(maxsize=None)
def mel_filters(device, n_mels):
    return torch.from_numpy(triangles(n_mels).astype(np.float32)).to(device)


def pad_or_trim(audio, length):
    if audio.shape[-1] > length:
        return audio[..., :length]
    return F.pad(audio, (0, length - audio.shape[-1]))


def log_mel_spectrogram(audio, n_mels=N_MELS, padding=0, device=None):
    if not torch.is_tensor(audio):
        audio = torch.from_numpy(np.asarray(audio))
    if device is not None:
        audio = audio.to(device)
    if padding > 0:
        audio = F.pad(audio, (0, padding))
    window = torch.hann_window(N_FFT).to(audio.device)
    stft = torch.stft(audio, N_FFT, HOP_LENGTH, window=window, return_complex=True)
    magnitudes = stft[..., :-1].abs() ** 2
    filters = mel_filters(str(audio.device), n_mels)
    mel_spec = filters @ magnitudes
    log_spec = torch.clamp(mel_spec, min=1e-10).log10()
    log_spec = torch.maximum(log_spec, log_spec.max() - 8.0)
    return (log_spec + 4.0) / 4.0


def main(audio):
    clip = pad_or_trim(audio, 8000)
    return log_mel_spectrogram(clip, padding=400)


def inputs():
    t = np.arange(6000) / SAMPLE_RATE
    return (torch.from_numpy(np.sin(2 * np.pi * 440 * t) * np.exp(-5 * t)),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)

"""Spectral flux of a stereo recording, downmixed to mono before the frames are cut.

https://github.com/CPJKU/SuperFlux/issues/1
"""
import numpy as np


class Wav:
    """Samples of an audio file, with the operations that are done in place on them."""

    def __init__(self, audio, sample_rate=44100):
        self.audio = np.array(audio)
        self.sample_rate = sample_rate

    @property
    def num_channels(self):
        return 1 if self.audio.ndim == 1 else self.audio.shape[1]

    def attenuate(self, attenuation):
        att = np.power(np.sqrt(10.), attenuation / 10.)
        self.audio = np.asarray(self.audio / att, dtype=self.audio.dtype)

    def downmix(self):
        if self.num_channels > 1:
            self.audio = np.mean(self.audio, axis=-1, dtype=self.audio.dtype)

    def normalize(self):
        limit = np.iinfo(self.audio.dtype).max if self.audio.dtype.kind == "i" else 1.0
        return self.audio / limit


class Spectrogram:
    def __init__(self, samples, frame_size, hop_size):
        count = 1 + (len(samples) - frame_size) // hop_size
        index = np.arange(frame_size) + hop_size * np.arange(count)[:, None]
        window = np.hanning(frame_size)
        self.spec = np.abs(np.fft.rfft(samples[index] * window, axis=1))

    def flux(self, diff_frames=1):
        diff = np.zeros_like(self.spec)
        diff[diff_frames:] = self.spec[diff_frames:] - self.spec[:-diff_frames]
        return np.maximum(diff, 0).sum(axis=1)


def prepare(samples, attenuation=0.0):
    w = Wav(samples)
    if attenuation:
        w.attenuate(attenuation)
    w.downmix()
    return w


def main(samples):
    w = prepare(samples)
    mono = w.audio
    spectrogram = Spectrogram(mono / 32768.0, 128, 64)
    return mono, spectrogram.flux()


def inputs():
    t = np.arange(1024) / 44100
    left = 32000 * np.sin(2 * np.pi * 800 * t)
    right = 31000 * np.sin(2 * np.pi * 800 * t + 0.1)
    return (np.stack([left, right], axis=1).astype(np.int16),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)

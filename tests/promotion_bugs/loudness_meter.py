"""The loudness of loud audio is NaN or nonsense: int16 samples are squared.

https://www.tutorialguruji.com/python/why-is-numpy-sometimes-returning-nan-values-when-calculating-the-current-loudness/
"""

import io

import numpy as np

CHUNK = 1024


class Microphone:
    def __init__(self, samples):
        self.stream = io.BytesIO(samples)

    def chunks(self):
        while block := self.stream.read(2 * CHUNK):
            yield np.frombuffer(block, dtype=np.short)


def decibels(samples):
    power = np.mean(np.absolute(samples) ** 2)  # guilty
    return 20 * np.log10(np.sqrt(np.abs(power)) + 1e-12)


def program(samples):
    return np.array([decibels(chunk) for chunk in Microphone(samples).chunks()])


def inputs(folder):
    tone = 25000 * np.sin(np.arange(4 * CHUNK) / 7)
    return (tone.astype(np.int16).tobytes(),)


def shows_fault(result):
    return abs(result.mean() - 20 * np.log10(25000 / np.sqrt(2))) > 1

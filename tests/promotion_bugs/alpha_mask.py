"""A mask has holes: values beyond 255 are converted to uint8.

https://github.com/danielgatis/rembg/pull/753
"""

import numpy as np


def normalized(image, mean=0.5, deviation=0.25):
    return (image.astype(np.float32) / 255 - np.float32(mean)) / np.float32(deviation)


class Session:
    def __init__(self, gain):
        self.gain = np.float32(gain)

    def predict(self, image):
        low, high = np.float32(0.05), np.float32(0.9)
        saliency = np.tanh(normalized(image).mean(axis=-1)) * self.gain
        return (saliency - low) / (high - low)

    def mask(self, image):
        prediction = self.predict(image)
        return (np.maximum(prediction, 0) * 255).astype(np.uint8)  # guilty


def program(image):
    return Session(gain=1.0).mask(image)


def inputs(folder):
    return (np.arange(0, 256, 5, dtype=np.uint8)[:, None, None].repeat(3, axis=2),)


def shows_fault(result):
    return bool((np.diff(result[:, 0].astype(int)) < 0).any())

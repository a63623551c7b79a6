"""Batches of features about the mean of a set of uint8 images."""

import numpy as np


class Centring:
    def __init__(self, images):
        self.images = images

    def __call__(self, batch):
        return batch - float(self.images.mean())

    def contrast(self, batch):
        centred = self(batch)
        return np.sqrt((centred * centred).mean(axis=(-2, -1)))

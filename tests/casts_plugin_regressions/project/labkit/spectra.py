"""Spectra with a common scale."""

import numpy as np


def normalize(spectrum, floor=1e-30):
    """Divide each frame by its largest magnitude; silent frames stay as they are."""
    magnitude = np.abs(spectrum)
    length = magnitude.max(axis=0, keepdims=True)
    length[length < floor] = 1
    return spectrum / length


def decibels(spectrum):
    return 20 * np.log10(np.maximum(np.abs(normalize(spectrum)), 1e-5))

"""Volts to g, with a correction for the temperature of the amplifier."""
import numpy as np

from .config import DTYPE, Settings

REFERENCE_C = 21.5
DRIFT_PER_C = 4e-4


def to_g(frames, settings: Settings):
    offset = settings.column("offset")
    sensitivity = settings.column("sensitivity")
    return (frames - offset) / sensitivity


def drift(temperature):
    return 1 + DRIFT_PER_C * (temperature - REFERENCE_C)


def calibrate(frames, temperature, settings: Settings):
    if frames.dtype != DTYPE:
        raise TypeError(f"frames must be {DTYPE.__name__}, not {frames.dtype}")
    g = to_g(frames, settings)
    g = g / drift(temperature)[None, :]
    return g - np.median(g, axis=1, keepdims=True)


def shocks(g, settings: Settings):
    """How many samples of every machine exceed its limit."""
    return (np.abs(g) > settings.column("limit")).sum(axis=1)

"""Where the frames come from. Here they are made up, in the real plant they are read."""
import numpy as np

from .config import DTYPE, Settings


def time_axis(settings: Settings):
    return np.arange(settings.samples, dtype=DTYPE) / DTYPE(settings.rate)


def shaking(t, hz, level):
    phase = 2 * np.pi * hz * t
    return level * np.sin(phase)


def raw_frames(settings: Settings, seed=0):
    """Volts of every machine, shape (machines, samples), float32."""
    rng = np.random.default_rng(seed)
    t = time_axis(settings)
    frames = np.empty((len(settings.machines), settings.samples), dtype=DTYPE)
    for row, machine in enumerate(settings.machines):
        g = shaking(t, 17.0 + 9 * row, 0.8) + shaking(t, 120.0, 0.1 + 0.3 * row)
        g += rng.standard_normal(len(t), dtype=DTYPE) * DTYPE(0.05)
        frames[row] = g * machine.sensitivity + machine.offset
    return frames


def temperatures(settings: Settings, seed=1):
    """Slow temperature curve for the drift correction, one value per sample."""
    rng = np.random.default_rng(seed)
    knots = rng.uniform(20, 24, 5).astype(DTYPE)
    at = np.linspace(0, settings.samples - 1, 5, dtype=DTYPE)
    where = np.arange(settings.samples, dtype=DTYPE)
    return np.interp(where, at, knots).astype(DTYPE)

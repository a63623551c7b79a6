"""Energy in frequency bands."""
import numpy as np

from .config import Settings


def taper(n, dtype):
    """Hann window in the dtype of the signal."""
    return np.hanning(n).astype(dtype)


def power(x):
    window = taper(x.shape[-1], x.dtype)
    spectrum = np.fft.rfft(x * window, axis=-1)
    return np.abs(spectrum) ** 2 / x.shape[-1]


def band_slices(n_bins, settings: Settings):
    per_hz = (n_bins - 1) / (settings.rate / 2)
    for low, high in settings.bands:
        yield slice(int(low * per_hz), int(high * per_hz))


def band_energy(x, settings: Settings):
    """Shape (machines, bands)."""
    p = power(x)
    parts = [p[:, s].sum(axis=1) for s in band_slices(p.shape[-1], settings)]
    return np.stack(parts, axis=1)


def relative(energy):
    return energy / energy.sum(axis=1, keepdims=True)

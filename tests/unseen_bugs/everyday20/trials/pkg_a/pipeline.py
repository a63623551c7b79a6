"""python -m pkg_a.pipeline    (from the folder above)"""
import numpy as np

from . import calibrate, filters, source, spectrum
from .config import DTYPE, Settings

BAND_WEIGHTS = np.array([0.2, 0.3, 0.5], dtype=DTYPE)


def health(energy_share, rms):
    """1 is a quiet machine, 0 one to be stopped."""
    rough = energy_share @ BAND_WEIGHTS
    return 1 / (1 + rough * rms)


def score(frames, temperature, settings):
    g = calibrate.calibrate(frames, temperature, settings)
    shocks = calibrate.shocks(g, settings)
    g = filters.clean(g, settings.warmup)
    share = spectrum.relative(spectrum.band_energy(g, settings))
    rms = np.sqrt(np.mean(g ** 2, axis=1))
    return health(share, rms), shocks


def main():
    settings = Settings()
    frames = source.raw_frames(settings)
    temperature = source.temperatures(settings)
    result, shocks = score(frames, temperature, settings)
    print(f"inputs {frames.dtype} {temperature.dtype}, result {result.dtype}")
    for machine, value, n in zip(settings.machines, result, shocks):
        print(f"{machine.name:5s} health {value:.4f}, {n} shocks")
    return result


if __name__ == "__main__":
    main()

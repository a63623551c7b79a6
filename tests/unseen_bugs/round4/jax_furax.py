"""Reads an observation for map-making in single precision and filters its detectors with the
noise model that is derived from the sampling of the timestamps.

https://github.com/CMBSciPol/furax/pull/145
"""
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

CONFIG = {"start": 1717171717.0, "sample_rate": 200.0, "n_samples": 512, "hwp_frequency": 2.0,
          "fknee": 1.5, "alpha": -2.0, "sigma": 0.5, "double_precision": False}


class ObservationStore:
    """The geometry of an observation, as it lies on the disk."""

    def __init__(self, config):
        self.config = config

    def load(self):
        n = self.config["n_samples"]
        elapsed = np.arange(n) / self.config["sample_rate"]
        return {
            "timestamps": self.config["start"] + elapsed,
            "hwp_angles": 2 * np.pi * self.config["hwp_frequency"] * elapsed,
            "elevation": np.full(n, 0.9),
        }


class ObservationReader:
    def __init__(self, store, double_precision):
        self.store = store
        self.dtype = jnp.float64 if double_precision else jnp.float32

    def read(self):
        fields = self.store.load()
        return {k: jnp.asarray(v, dtype=self.dtype) for k, v in fields.items()}


@dataclass
class NoiseModel:
    timestamps: object
    hwp_angles: object

    def sample_rate(self):
        return (self.timestamps.size - 1) / jnp.ptp(self.timestamps)

    def hwp_frequency(self):
        return jnp.ptp(self.hwp_angles) / (2 * jnp.pi) / jnp.ptp(self.timestamps)

    def inverse_spectrum(self, config):
        n = self.timestamps.size
        frequency = jnp.arange(n // 2 + 1, dtype=self.timestamps.dtype) * self.sample_rate() / n
        ratio = frequency[1:] / config["fknee"]
        white = config["sigma"] ** 2
        return jnp.concatenate([jnp.zeros(1, frequency.dtype), 1 / (white * (1 + ratio ** config["alpha"]))])


def demodulate(tod, hwp_angles):
    return tod * jnp.cos(4 * hwp_angles)


def main(tod):
    reader = ObservationReader(ObservationStore(CONFIG), CONFIG["double_precision"])
    geometry = reader.read()
    noise = NoiseModel(geometry["timestamps"], geometry["hwp_angles"])
    signal = demodulate(tod, geometry["hwp_angles"])
    weights = noise.inverse_spectrum(CONFIG)
    filtered = jnp.fft.irfft(jnp.fft.rfft(signal, axis=-1) * weights, n=tod.shape[-1], axis=-1)
    return filtered, noise.sample_rate(), noise.hwp_frequency()


def inputs():
    rng = np.random.default_rng(9)
    return (jnp.asarray(rng.normal(size=(3, CONFIG["n_samples"])), jnp.float32),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

"""A plane source in a one-dimensional finite-difference time-domain simulation.

https://github.com/ymahlau/fdtdx/pull/307
"""
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

C0 = 299792458.0


@dataclass(frozen=True)
class SimulationConfig:
    resolution: float = 2e-8
    courant: float = 0.5
    start_step: int = 400000
    steps: int = 60
    dtype: type = jnp.float64

    @property
    def time_step(self):
        return self.courant * self.resolution / C0


@dataclass(frozen=True)
class WaveCharacter:
    wavelength: float
    phase_shift: float = 0.0

    def frequency(self):
        return C0 / self.wavelength


@dataclass(frozen=True)
class SingleFrequencyProfile:
    num_startup_periods: int = 4

    def amplitude(self, time, period, phase_shift):
        time = jnp.asarray(time, dtype=jnp.float32)
        raw = jnp.cos(2 * jnp.pi * time / period + phase_shift)
        factor = jnp.clip(time / (self.num_startup_periods * period), 0, 1)
        return factor * raw


@dataclass(frozen=True)
class PlaneSource:
    wave: WaveCharacter
    profile: SingleFrequencyProfile
    position: int

    def inject(self, e, time):
        value = self.profile.amplitude(time, 1 / self.wave.frequency(), self.wave.phase_shift)
        return e.at[self.position].add(value)


def step(config, source, e, h, n):
    h = h + config.courant * jnp.diff(e)
    e = e.at[1:-1].add(config.courant * jnp.diff(h))
    return source.inject(e, n * config.time_step), h


def main(e, h):
    config = SimulationConfig()
    source = PlaneSource(WaveCharacter(1.55e-6), SingleFrequencyProfile(), 20)

    def body(carry, n):
        carry = step(config, source, *carry, n)
        return carry, carry[0][30]

    steps = config.start_step + jnp.arange(config.steps, dtype=config.dtype)
    (e, h), trace = jax.lax.scan(body, (e.astype(config.dtype), h.astype(config.dtype)), steps)
    return e, trace


def inputs():
    return np.zeros(64), np.zeros(63)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)

"""One call of the humidity and large-scale condensation schemes of an atmosphere column model,
on float32 fields.

https://github.com/climate-analytics-lab/jax-gcm/pull/175
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

SIGMA_BOUNDARIES = (0.0, 0.05, 0.14, 0.26, 0.42, 0.60, 0.77, 0.90, 1.0)
P0, RGAS, CP, ALHC = 1.0e5, 287.0, 1004.0, 2501.0


class Parameters(NamedTuple):
    trlsc: float = 4.0      # relaxation time, hours
    rhlsc: float = 0.9      # relative humidity threshold at sigma = 1
    drhlsc: float = 0.1     # its range
    rhblsc: float = 0.95    # the threshold in the boundary layer


class Geometry(NamedTuple):
    fsg: jax.Array
    dhs: jax.Array

    @classmethod
    def from_sigma(cls, boundaries):
        hsg = jnp.asarray(boundaries, dtype=jnp.float_)
        return cls(fsg=0.5 * (hsg[1:] + hsg[:-1]), dhs=hsg[1:] - hsg[:-1])


class PhysicsState(NamedTuple):
    temperature: jax.Array
    specific_humidity: jax.Array
    surface_pressure: jax.Array


class Tendency(NamedTuple):
    temperature: jax.Array
    specific_humidity: jax.Array


def get_qsat(ta, ps, sig):
    """Saturation specific humidity in g/kg."""
    e0, c1, c2, t0, t1, t2 = 6.108e-3, 17.269, 21.875, 273.16, 35.86, 7.66
    es = jnp.where(ta >= t0, e0 * jnp.exp(c1 * (ta - t0) / (ta - t1)),
                   e0 * jnp.exp(c2 * (ta - t0) / (ta - t2)))
    return 622.0 * es / (ps * sig - 0.378 * es)


def get_large_scale_condensation_tendencies(state, geometry, parameters, qsat):
    levels = state.temperature.shape[0]
    rhref = parameters.rhlsc + parameters.drhlsc * (geometry.fsg ** 2 - 1.0)
    rhref = rhref.at[-1].set(jnp.maximum(rhref[-1], parameters.rhblsc))
    rtlsc = 1.0 / (parameters.trlsc * 3600.0)
    tfact = ALHC / CP
    dqmax = (10.0 * geometry.fsg ** 2 * rtlsc)[:, None]
    dqa = rhref[:, None] * qsat - state.specific_humidity
    rising = (dqa < 0.0) & (jnp.arange(levels)[:, None] > 0)
    dqlsc = jnp.where(rising, jnp.maximum(dqa * rtlsc, -dqmax), 0.0)
    dtlsc = jnp.where(rising, tfact * jnp.minimum(-dqlsc, dqmax), 0.0)
    pfact = geometry.dhs[:, None] * state.surface_pressure * P0 / 9.81
    precip = -jnp.sum(pfact * dqlsc, axis=0)
    return Tendency(dtlsc, dqlsc), precip


def main(temperature, humidity, pressure):
    geometry = Geometry.from_sigma(SIGMA_BOUNDARIES)
    state = PhysicsState(temperature, humidity, pressure)
    qsat = get_qsat(state.temperature, state.surface_pressure, geometry.fsg[:, None])
    tendency, precip = get_large_scale_condensation_tendencies(state, geometry, Parameters(), qsat)
    dt = 1800.0
    return (state.temperature + dt * tendency.temperature,
            state.specific_humidity + dt * tendency.specific_humidity, precip)


def inputs():
    k1, k2 = jax.random.split(jax.random.key(1))
    t = 250 + 45 * jnp.linspace(0, 1, 8, dtype=jnp.float32)[:, None]
    t = t + jax.random.normal(k1, (8, 6), jnp.float32)
    return t, jax.random.uniform(k2, (8, 6), jnp.float32) * 14, jnp.ones(6, jnp.float32)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

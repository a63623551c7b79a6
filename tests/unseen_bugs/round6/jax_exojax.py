"""The cross section of a molecule, line by line: the profile of every line on a grid of
wavenumbers, summed with the strengths at the temperature of the layer.

https://github.com/HajimeKawahara/exojax/issues/106
"""
import jax
import jax.numpy as jnp
import numpy as np

HCPERK = 1.4387773
TREF = 296.0
CONFIG = {"start": 4300.0, "end": 4300.6, "points": 301, "unit": "cm-1"}


def wavenumber_grid(start, end, points):
    nu_grid = np.logspace(np.log10(start), np.log10(end), points)
    resolution = (points - 1) / np.log(end / start)
    return nu_grid, resolution


class LineList:
    """Centres, reference strengths, energies and widths as they come from the database."""

    def __init__(self, nu_lines, line_strength, elower, gamma_ref, n_texp):
        self.nu_lines = np.asarray(nu_lines)
        self.line_strength = np.asarray(line_strength)
        self.elower, self.gamma_ref, self.n_texp = elower, gamma_ref, n_texp

    def strength(self, temperature):
        boltzmann = -HCPERK * self.elower * (1.0 / temperature - 1.0 / TREF)
        return jnp.asarray(self.line_strength) * jnp.exp(boltzmann) * (TREF / temperature) ** 1.5

    def gamma(self, temperature, pressure):
        return self.gamma_ref * pressure * (TREF / temperature) ** self.n_texp


def make_numatrix(nu_grid, nu_lines):
    nus, centres = jnp.asarray(nu_grid), jnp.asarray(nu_lines)
    return nus[None, :] - centres[:, None]


def lorentz(numatrix, gamma):
    return gamma[:, None] / (jnp.pi * (numatrix ** 2 + gamma[:, None] ** 2))


class OpaDirect:
    def __init__(self, lines, nu_grid):
        self.lines, self.nu_grid = lines, nu_grid
        self.numatrix = make_numatrix(nu_grid, lines.nu_lines)

    def xsvector(self, temperature, pressure):
        strength = self.lines.strength(temperature)
        gamma = self.lines.gamma(temperature, pressure)
        return strength @ lorentz(self.numatrix, gamma)

    def xsmatrix(self, temperatures, pressures):
        return jax.vmap(self.xsvector)(temperatures, pressures)


def database():
    rng = np.random.default_rng(3)
    n = 12
    nu_lines = np.sort(rng.uniform(CONFIG["start"] + 0.05, CONFIG["end"] - 0.05, size=n))
    elower = jnp.asarray(rng.uniform(50, 2500, size=n), jnp.float32)
    gamma_ref = jnp.asarray(rng.uniform(0.04, 0.08, size=n), jnp.float32)
    return LineList(nu_lines, rng.uniform(0.2, 1.0, size=n), elower, gamma_ref, 0.5)


def main(temperatures, pressures):
    nu_grid, _ = wavenumber_grid(CONFIG["start"], CONFIG["end"], CONFIG["points"])
    opa = OpaDirect(database(), nu_grid)
    xsm = opa.xsmatrix(temperatures, pressures)
    column = jnp.array([0.5, 1.0, 0.8, 0.3])
    return xsm, jnp.exp(-column @ xsm * 1e-4)


def inputs():
    return jnp.array([900.0, 1100.0, 1300.0, 1500.0]), jnp.array([0.02, 0.05, 0.1, 0.3])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

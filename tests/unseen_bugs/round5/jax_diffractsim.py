"""Propagation of a monochromatic field by the angular spectrum, with a choice of backend.

https://github.com/rafael-fuente/diffractsim/issues/60
"""
import jax
import jax.numpy as jnp
import numpy as np

MM, NM = 1e-3, 1e-9
BACKENDS = {"CPU": np, "JAX": jnp}


class CircularAperture:
    def __init__(self, radius):
        self.radius = radius

    def transmittance(self, xx, yy, bd):
        return bd.where(xx ** 2 + yy ** 2 < self.radius ** 2, 1.0, 0.0)


def transfer_function(shape, extent, wavelength, z, bd):
    fx = bd.fft.fftfreq(shape[1], extent / shape[1])
    fy = bd.fft.fftfreq(shape[0], extent / shape[0])
    fxx, fyy = bd.meshgrid(fx, fy)
    argument = (1 / wavelength) ** 2 - fxx ** 2 - fyy ** 2
    kz = 2 * bd.pi * bd.sqrt(bd.maximum(argument, 0.0))
    return bd.exp(1j * kz * z)


class MonochromaticField:
    def __init__(self, wavelength, extent, intensity):
        self.wavelength, self.extent = wavelength, extent
        self.e = jnp.sqrt(intensity).astype(jnp.complex64)

    def coordinates(self):
        n = self.e.shape[0]
        x = self.extent * (jnp.arange(n) - n // 2) / n
        return jnp.meshgrid(x, x)

    def add(self, element):
        self.e = self.e * element.transmittance(*self.coordinates(), BACKENDS["JAX"])

    def propagate(self, z):
        spectrum = jnp.fft.fft2(self.e)
        h = transfer_function(self.e.shape, self.extent, self.wavelength, z, BACKENDS["JAX"])
        self.e = jnp.fft.ifft2(spectrum * h)

    def intensity(self):
        return jnp.abs(self.e) ** 2


def main(intensity):
    field = MonochromaticField(632.8 * NM, 4 * MM, intensity)
    field.add(CircularAperture(0.7 * MM))
    field.propagate(800 * MM)
    return field.intensity()


def inputs():
    return (np.ones((64, 64), np.float32),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)

"""A two-dimensional incompressible flow, in single precision while x64 is enabled: steps of
advection and diffusion, each made divergence-free with a pressure solve by diagonalisation.

https://github.com/google/jax-cfd/pull/44
"""
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


@dataclasses.dataclass(frozen=True)
class Grid:
    shape: tuple
    step: tuple


def laplacian_matrix(size, step):
    column = np.zeros(size)
    column[0] = -2 / step ** 2
    column[1] = column[-1] = 1 / step ** 2
    return np.stack([np.roll(column, i) for i in range(size)], axis=1)


def _circulant_rfft_transform(func, operators, dtype):
    """Fast diagonalization by the real-valued Fourier transform."""
    if operators[-1].shape[0] % 2:
        raise ValueError("an even size is required for the last axis")
    eigenvalues = ([np.fft.fft(op[:, 0]) for op in operators[:-1]]
                   + [np.fft.rfft(operators[-1][:, 0])])
    summed_eigenvalues = functools.reduce(np.add.outer, eigenvalues)
    diagonals = jnp.asarray(func(summed_eigenvalues))
    if diagonals.shape != summed_eigenvalues.shape:
        raise ValueError("output shape from func() does not match input shape")

    def apply(rhs):
        if rhs.dtype != dtype:
            raise ValueError(f"rhs.dtype={rhs.dtype} does not match dtype={dtype}")
        return jnp.fft.irfftn(diagonals * jnp.fft.rfftn(rhs))

    return apply


def pseudoinverse(operators, dtype, cutoff=None):
    if cutoff is None:
        cutoff = 10 * jnp.finfo(dtype).eps

    def func(v):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(abs(v) > cutoff, 1 / v, 0)

    return _circulant_rfft_transform(func, operators, dtype)


def shift(u, offset, axis):
    return jnp.roll(u, -offset, axis)


def divergence(v, grid):
    return sum((u - shift(u, -1, a)) / grid.step[a] for a, u in enumerate(v))


def solve_fast_diag(v, grid):
    laplacians = [laplacian_matrix(n, s) for n, s in zip(grid.shape, grid.step)]
    rhs = divergence(v, grid)
    return pseudoinverse(laplacians, rhs.dtype)(rhs - jnp.mean(rhs))


def pressure_projection(v, grid):
    q = solve_fast_diag(v, grid)
    return tuple(u - (shift(q, 1, a) - q) / grid.step[a] for a, u in enumerate(v))


def semi_implicit_navier_stokes(viscosity, dt, grid):
    def tendency(u, v):
        total = 0
        for a, w in enumerate(v):
            total = total - w * (shift(u, 1, a) - shift(u, -1, a)) / (2 * grid.step[a])
            total = total + viscosity * (shift(u, 1, a) - 2 * u + shift(u, -1, a)) / grid.step[a] ** 2
        return total

    def step(v):
        v = tuple(u + dt * tendency(u, v) for u in v)
        return pressure_projection(v, grid)

    return step


def repeated(step, steps):
    def run(v):
        v, _ = jax.lax.scan(lambda v, _: (step(v), None), v, None, length=steps)
        return v
    return run


def main(ux, uy):
    grid = Grid(ux.shape, tuple(2 * math.pi / n for n in ux.shape))
    step = semi_implicit_navier_stokes(viscosity=1e-2, dt=0.01, grid=grid)
    return repeated(step, 5)((ux, uy))


def inputs():
    kx, ky = jax.random.split(jax.random.key(0))
    return tuple(jax.random.normal(k, (8, 8), jnp.float32) for k in (kx, ky))


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

"""Explicit finite differences for the 2-D heat equation with fixed edges."""
import numpy as np

ALPHA = 0.1
DX = 0.05
STEPS = 25


def laplacian(u, dx):
    return (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            - 4.0 * u[1:-1, 1:-1]) / dx ** 2


def main(u0):
    dt = 0.2 * DX ** 2 / ALPHA        # below the stability bound dx^2 / (4 alpha)
    u = u0.copy()
    energy = np.empty(STEPS)
    for k in range(STEPS):
        u[1:-1, 1:-1] += dt * ALPHA * laplacian(u, DX)
        energy[k] = np.sum(u[1:-1, 1:-1]) * DX ** 2
    flux_y, flux_x = np.gradient(u, DX)
    return u, energy, -ALPHA * flux_x, -ALPHA * flux_y


def inputs():
    u = np.zeros((20, 20))
    u[8:12, 8:12] = 100.0
    u[0, :] = 20.0
    return (u,)

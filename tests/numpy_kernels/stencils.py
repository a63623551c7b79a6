"""Stencils in one to three dimensions, updated in place."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (10, rng.random(60), rng.random(60)), writes=True)
def jacobi_1d(steps, A, B):
    for _ in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


@kernel(
    lambda rng: (
        rng.random((12, 15)),
        rng.random((12, 15)),
        rng.random((12, 15)),
        np.sin(np.linspace(0, 3, 6)),
    ),
    writes=True,
)
def fdtd_2d(ex, ey, hz, source):
    """Maxwell's equations on a staggered grid, driven from the first row."""
    for t in range(source.shape[0]):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@kernel(lambda rng: (rng.random((8, 7, 9)).astype(np.float32), 5, 0.1), writes=True)
def heat_3d(u, steps, alpha):
    """Explicit diffusion with fixed faces; the change of the last step is returned."""
    lap = np.empty_like(u[1:-1, 1:-1, 1:-1])
    for _ in range(steps):
        inner = u[1:-1, 1:-1, 1:-1]
        lap[:] = -6 * inner
        lap += u[2:, 1:-1, 1:-1]
        lap += u[:-2, 1:-1, 1:-1]
        lap += u[1:-1, 2:, 1:-1]
        lap += u[1:-1, :-2, 1:-1]
        lap += u[1:-1, 1:-1, 2:]
        lap += u[1:-1, 1:-1, :-2]
        inner += alpha * lap
    return np.abs(alpha * lap).max()


@kernel(lambda rng: (3, rng.random((9, 8))), writes=True, scalars=True)
def seidel_2d(sweeps, A):
    rows, columns = A.shape
    for _ in range(sweeps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                A[i, j] = (A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j]) / 5.0

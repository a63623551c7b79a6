"""Escape times of points under an iterated map."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (-2.0, 0.5, -1.2, 1.2, 14, 12, 15), depends="shapes")
def mandelbrot(xmin, xmax, ymin, ymax, xn, yn, rounds, horizon=2.0):
    X = np.linspace(xmin, xmax, xn, dtype=np.float64)
    Y = np.linspace(ymin, ymax, yn, dtype=np.float64)
    C = X + Y[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for n in range(rounds):
        inside = np.less(abs(Z), horizon)
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[rounds - 1 == N] = 0
    return Z, N


@kernel(lambda rng: (rng.uniform(-1.5, 1.5, (10, 12)) + 1j * rng.uniform(-1, 1, (10, 12)), 20))
def julia(z, rounds, c=-0.4 + 0.6j):
    count = np.zeros(z.shape, dtype=np.uint8)
    for _ in range(rounds):
        alive = z.real**2 + z.imag**2 <= 4.0
        z = np.where(alive, z * z + c, z)
        count += alive
    return count


@kernel(
    lambda rng: (np.linspace(-1.8, -1.7, 7), np.linspace(-0.1, 0.02, 6)),
    scalars=True,
    depends="control",
)
def burning_ship(xs, ys, rounds=25):
    count = np.zeros((len(ys), len(xs)), dtype=np.int32)
    for i, y in enumerate(ys):
        for j, x in enumerate(xs):
            a = b = 0.0
            n = 0
            while a * a + b * b < 4.0 and n < rounds:
                a, b = a * a - b * b + x, 2 * abs(a * b) + y
                n += 1
            count[i, j] = n
    return count

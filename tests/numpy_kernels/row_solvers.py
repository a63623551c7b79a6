"""Solvers of linear systems by loops over rows."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


def _dominant(rng, n):
    return rng.standard_normal((n, n)) + n * np.eye(n)


def _positive(rng, n):
    m = rng.standard_normal((n, n))
    return m @ m.T + n * np.eye(n)


@kernel(lambda rng: (_dominant(rng, 12), rng.random(12), np.zeros(12)), writes=True)
def gauss_seidel(A, b, x, sweeps=6):
    n = len(b)
    for _ in range(sweeps):
        for i in range(n):
            x[i] = (b[i] - A[i, :i] @ x[:i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return np.linalg.norm(A @ x - b)


@kernel(lambda rng: (_positive(rng, 10),), writes=True, scalars=True)
def cholesky(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])
    return np.tril(A)


@kernel(lambda rng: (rng.standard_normal((7, 7)), rng.random(7)), depends="control")
def gauss_pivot(A, b):
    A = A.copy()
    x = b.astype(A.dtype)
    n = A.shape[0]
    for k in range(n):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            A[[k, p]] = A[[p, k]]
            x[[k, p]] = x[[p, k]]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            x[i] -= factor * x[k]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x

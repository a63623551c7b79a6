"""Tridiagonal and triangular systems."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(
    lambda rng: (rng.random(19), rng.random(20) + 4, rng.random(19), rng.random(20)),
    writes=True,
    scalars=True,
)
def thomas(a, b, c, d):
    """The diagonals a, b, c; the right-hand side d, which the solution replaces."""
    n = len(d)
    for i in range(1, n):
        w = a[i - 1] / b[i - 1]
        b[i] = b[i] - w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    d[-1] /= b[-1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]


@kernel(
    lambda rng: (np.triu(rng.standard_normal((9, 9)), 1) + 3 * np.eye(9), rng.random(9)),
    scalars=True,
)
def back_substitution(U, b):
    n = U.shape[0]
    x = np.zeros(n, dtype=U.dtype)
    for i in reversed(range(n)):
        s = b[i]
        for j in range(i + 1, n):
            s -= U[i, j] * x[j]
        x[i] = s / U[i, i]
    return x


@kernel(
    lambda rng: (rng.random(31), rng.random(31) + 4, rng.random(31), rng.random(31)), writes=True
)
def cyclic_reduction(a, b, c, d):
    """All equations of one stride at once; n is one less than a power of two."""
    n = len(d)
    x = np.zeros(n + 2, dtype=d.dtype)
    stride = 1
    while 2 * stride <= n:
        own = slice(2 * stride - 1, n, 2 * stride)
        left = slice(stride - 1, n - stride, 2 * stride)
        right = slice(3 * stride - 1, n, 2 * stride)
        alpha = a[own] / b[left]
        gamma = c[own] / b[right]
        b[own] -= alpha * c[left] + gamma * a[right]
        d[own] -= alpha * d[left] + gamma * d[right]
        a[own] = -alpha * a[left]
        c[own] = -gamma * c[right]
        stride *= 2
    while stride >= 1:
        own = np.arange(stride - 1, n, 2 * stride)
        before = np.where(own >= stride, own - stride + 1, 0)
        after = np.where(own + stride < n, own + stride + 1, n + 1)
        x[own + 1] = (d[own] - a[own] * x[before] - c[own] * x[after]) / b[own]
        stride //= 2
    return x[1:-1]

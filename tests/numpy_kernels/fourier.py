"""Fast Fourier transforms by hand."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (rng.standard_normal(32),))
def fft_recursive(x):
    n = x.shape[0]
    if n % 2 > 0:
        return x
    even = fft_recursive(x[::2])
    odd = fft_recursive(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(n) / n)
    return np.concatenate([even + factor[: n // 2] * odd, even + factor[n // 2 :] * odd])


@kernel(
    lambda rng: (rng.standard_normal(16) + 1j * rng.standard_normal(16),),
    writes=True,
    scalars=True,
)
def fft_in_place(x):
    n = len(x)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            x[i], x[j] = x[j], x[i]
    size = 2
    while size <= n:
        step = np.exp(-2j * np.pi / size)
        for start in range(0, n, size):
            w = 1.0 + 0j
            for k in range(start, start + size // 2):
                t = w * x[k + size // 2]
                x[k + size // 2] = x[k] - t
                x[k] = x[k] + t
                w *= step
        size *= 2


@kernel(lambda rng: (rng.standard_normal(64).astype(np.float32),))
def fft_blocked(x):
    """A matrix product over blocks of eight, then whole stages of butterflies."""
    N = x.shape[0]
    N_min = min(N, 8)
    n = np.arange(N_min)
    k = n[:, None]
    M = np.exp(-2j * np.pi * n * k / N_min)
    X = np.dot(M, x.reshape((N_min, -1)))
    while X.shape[0] < N:
        X_even = X[:, : X.shape[1] // 2]
        X_odd = X[:, X.shape[1] // 2 :]
        factor = np.exp(-1j * np.pi * np.arange(X.shape[0]) / X.shape[0])[:, None]
        X = np.vstack([X_even + factor * X_odd, X_even - factor * X_odd])
    return X.ravel()

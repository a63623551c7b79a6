"""Sorting by networks: the comparisons do not depend on the values."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


@kernel(lambda rng: (rng.integers(0, 100, 15).astype(np.int16),), writes=True)
def odd_even_transposition(a):
    n = len(a)
    for phase in range(n):
        first = phase % 2
        lower = a[first : n - 1 : 2]
        upper = a[first + 1 :: 2]
        smaller = np.minimum(lower, upper)
        upper[...] = np.maximum(lower, upper)
        lower[...] = smaller


@kernel(lambda rng: (rng.standard_normal((3, 16)).astype(np.float32),))
def bitonic(keys):
    n = keys.shape[-1]
    i = np.arange(n)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            partner = i ^ j
            other = keys[..., partner]
            keep_small = (i < partner) == ((i & k) == 0)
            keys = np.where(keep_small, np.minimum(keys, other), np.maximum(keys, other))
            j //= 2
        k *= 2
    return keys


@kernel(lambda rng: (rng.standard_normal(16),), writes=True, scalars=True)
def batcher_merge(a):
    n = len(a)
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(min(k, n - j - k)):
                    if (i + j) // (p * 2) == (i + j + k) // (p * 2):
                        x, y = a[i + j], a[i + j + k]
                        a[i + j] = np.minimum(x, y)
                        a[i + j + k] = np.maximum(x, y)
            k //= 2
        p *= 2
    return a

"""The exponential of a badly scaled matrix: balances it, sums the series, undoes the balancing.

https://github.com/scipy/scipy/pull/26126
"""
import numpy as np

RADIX = 2.0
CONFIG = {"permute": True, "scale": True, "terms": 14, "squarings": 4}


def gebal(A, scale=1):
    """As LAPACK's: -> B, lo, hi, ps, info with the factors in the dtype of A."""
    B = A.copy()
    n = B.shape[0]
    ps = np.ones(n, dtype=B.dtype)
    converged = not scale
    while not converged:
        converged = True
        for i in range(n):
            c = np.abs(np.delete(B[:, i], i)).sum()
            r = np.abs(np.delete(B[i], i)).sum()
            if c == 0 or r == 0:
                continue
            f, s = 1.0, c + r
            while c < r / RADIX:
                c, r, f = c * RADIX, r / RADIX, f * RADIX
            while c >= r * RADIX:
                c, r, f = c / RADIX, r * RADIX, f / RADIX
            if (c + r) < 0.95 * s and f != 1.0:
                ps[i] *= f
                B[i] /= f
                B[:, i] *= f
                converged = False
    return B, 0, n - 1, ps, 0


def matrix_balance(A, permute=True, scale=True, separate=False):
    A = np.atleast_2d(np.asarray_chkfinite(A))
    if A.shape[0] != A.shape[1]:
        raise ValueError("The data matrix for balancing should be square.")
    B, lo, hi, ps, info = gebal(A, scale=scale)
    if info < 0:
        raise ValueError("illegal value in %d-th argument of gebal" % -info)
    scaling = np.ones_like(ps, dtype=float)
    scaling[lo:hi + 1] = ps[lo:hi + 1]
    ps = ps.astype(int, copy=False)[::-1]
    n = A.shape[0]
    perm = np.arange(n)
    if hi < n - 1 and permute:
        for ind, x in enumerate(ps[hi + 1:][::-1], 1):
            if n - ind == x:
                continue
            perm[[x, n - ind]] = perm[[n - ind, x]]
    if separate:
        return B, (scaling, perm)
    iperm = np.empty_like(perm)
    iperm[perm] = np.arange(n)
    return B, np.diag(scaling)[iperm, :]


def series(B, terms, squarings):
    step = B / B.dtype.type(2 ** squarings)
    total = np.eye(B.shape[0], dtype=B.dtype)
    term = total
    for k in range(1, terms):
        term = term @ step / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total


def main(A):
    B, T = matrix_balance(A, CONFIG["permute"], CONFIG["scale"])
    E = series(B, CONFIG["terms"], CONFIG["squarings"])
    return T @ E @ np.diag(1 / np.diag(T))


def inputs():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5)) * 0.2
    A[0] *= 64
    A[:, 0] /= 64
    return (A.astype(np.float32),)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

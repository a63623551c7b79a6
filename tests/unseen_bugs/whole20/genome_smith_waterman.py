"""Smith-Waterman local alignment score with affine gaps (Gotoh), one anti-diagonal at a time.

Application: protein database search / read verification.  Cells of an anti-diagonal do not depend on each other, so
the three recurrences H, E, F are vector operations over slices of it; the best score and its end cell come out.
Public code with such a loop: anti-diagonal NumPy aligners, scikit-bio / parasail reference code
(https://github.com/jeffdaily/parasail, https://github.com/scikit-bio/scikit-bio).
"""
import numpy as np

TOLERANCE = 0.0

NEG = -(1 << 20)


def main(a, b, score, gap_open=11, gap_extend=1):
    m, n = len(a), len(b)
    b_rev = b[::-1]
    h1 = np.zeros(m + 1, dtype=np.int32)  # H on the previous diagonal, indexed by the row
    h2 = np.zeros(m + 1, dtype=np.int32)  # H on the one before
    e = np.full(m + 1, NEG, dtype=np.int32)
    f = np.full(m + 1, NEG, dtype=np.int32)
    best, end_i, end_j = 0, 0, 0
    for d in range(2, m + n + 1):
        lo, hi = max(1, d - n), min(m, d - 1)  # rows lo..hi, columns d - row
        sub = score[a[lo - 1:hi], b_rev[n - d + lo:n - d + hi + 1]]
        e_new = np.maximum(h1[lo:hi + 1] - gap_open, e[lo:hi + 1] - gap_extend)
        f_new = np.maximum(h1[lo - 1:hi] - gap_open, f[lo - 1:hi] - gap_extend)
        h_new = np.maximum(h2[lo - 1:hi] + sub, np.maximum(e_new, f_new))
        h_new = np.maximum(h_new, 0)
        e = np.full(m + 1, NEG, dtype=np.int32)
        f = np.full(m + 1, NEG, dtype=np.int32)
        h = np.zeros(m + 1, dtype=np.int32)
        e[lo:hi + 1], f[lo:hi + 1], h[lo:hi + 1] = e_new, f_new, h_new
        h2, h1 = h1, h
        k = h_new.argmax()
        if h_new[k] > best:
            best, end_i, end_j = int(h_new[k]), int(lo + k), int(d - lo - k)
    return np.array([best, end_i, end_j], dtype=np.int32)


def inputs(rng):
    m, n, letters = 180, 260, 20
    score = rng.integers(-4, 2, (letters, letters))
    score = np.minimum(score, score.T)
    np.fill_diagonal(score, rng.integers(4, 10, letters))
    a = rng.integers(0, letters, m).astype(np.uint8)
    b = rng.integers(0, letters, n).astype(np.uint8)
    core = a[30:150].copy()
    core[rng.integers(0, 120, 30)] = rng.integers(0, letters, 30)
    b[90:140], b[144:204] = core[:50], core[60:]
    return a, b, score.astype(np.int32)


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pass


def jax_main(a, b, score, gap_open=11, gap_extend=1):
    m, n = a.shape[0], b.shape[0]
    rows = jnp.arange(1, m + 1, dtype=jnp.int32)
    neg = jnp.full(m + 1, NEG, jnp.int32)
    padded = jnp.pad(b[::-1].astype(jnp.int32), (m, m))
    a = a.astype(jnp.int32)

    def step(state, d):
        h1, h2, e, f, best = state
        cols = d - rows
        valid = (cols >= 1) & (cols <= n)
        sub = score[a, lax.dynamic_slice(padded, (m + n - d + 1,), (m,))]
        e_new = jnp.maximum(h1[1:] - gap_open, e[1:] - gap_extend)
        f_new = jnp.maximum(h1[:-1] - gap_open, f[:-1] - gap_extend)
        h_new = jnp.maximum(jnp.maximum(h2[:-1] + sub, jnp.maximum(e_new, f_new)), 0)
        h_new = jnp.where(valid, h_new, 0)
        k = h_new.argmax().astype(jnp.int32)
        found = jnp.stack([h_new[k], k + 1, d - k - 1])
        best = jnp.where(found[0] > best[0], found, best)
        h = jnp.concatenate([h1[:1] * 0, h_new])
        e = neg.at[1:].set(jnp.where(valid, e_new, NEG))
        f = neg.at[1:].set(jnp.where(valid, f_new, NEG))
        return (h, h1, e, f, best), None

    zero = jnp.zeros(m + 1, jnp.int32)
    start = (zero, zero, neg, neg, jnp.zeros(3, jnp.int32))
    (*_, best), _ = lax.scan(step, start, jnp.arange(2, m + n + 1, dtype=jnp.int32))
    return best


try:
    import torch
    import torch.nn.functional as F
except ImportError:
    pass


def _torch_sw_step(d, diag_sub, rows, n, h1, h2, e, f, best, gap_open, gap_extend):
    cols = d - rows
    valid = (cols >= 1) & (cols <= n)
    e_new = torch.maximum(h1[1:] - gap_open, e[1:] - gap_extend)
    f_new = torch.maximum(h1[:-1] - gap_open, f[:-1] - gap_extend)
    h_new = torch.maximum(h2[:-1] + diag_sub, torch.maximum(e_new, f_new)).clamp(min=0)
    h_new = torch.where(valid, h_new, 0)
    top, k = h_new.max(0)
    found = torch.stack([top, (k + 1).to(torch.int32), (d - k - 1).to(torch.int32)])
    best = torch.where(top > best[0], found, best)
    e = F.pad(torch.where(valid, e_new, NEG), (1, 0), value=NEG)
    f = F.pad(torch.where(valid, f_new, NEG), (1, 0), value=NEG)
    return F.pad(h_new, (1, 0)), e, f, best


def torch_main(a, b, score, gap_open=11, gap_extend=1):
    m, n = a.shape[0], b.shape[0]
    rows = torch.arange(1, m + 1)
    diagonals = torch.arange(2, m + n + 1)
    cols = (diagonals[:, None] - rows).clamp(1, n)
    sub = score[a.long()[None], b.long()[cols - 1]]
    h1 = torch.zeros(m + 1, dtype=torch.int32)
    h2 = h1
    e = torch.full((m + 1,), NEG, dtype=torch.int32)
    f = e
    best = torch.zeros(3, dtype=torch.int32)
    for d, diag_sub in zip(diagonals.unbind(), sub.unbind()):
        torch._dynamo.graph_break()  # compile the step, keep the loop in Python
        h, e, f, best = _torch_sw_step(d, diag_sub, rows, n, h1, h2, e, f, best, gap_open, gap_extend)
        h1, h2 = h, h1
    return best


def numba_main(a, b, score, gap_open=11, gap_extend=1):
    m, n = len(a), len(b)
    h = np.zeros(n + 1, np.int32)
    e = np.full(n + 1, NEG, np.int32)
    best = np.zeros(3, np.int32)
    for i in range(1, m + 1):
        diag = 0
        f = NEG
        row = score[a[i - 1]]
        for j in range(1, n + 1):
            # h[j] is still the row above: e is the gap from above, f the gap from the left
            e[j] = max(h[j] - gap_open, e[j] - gap_extend)
            f = max(h[j - 1] - gap_open, f - gap_extend)
            v = max(max(diag + row[b[j - 1]], 0), max(e[j], f))
            diag = h[j]
            h[j] = v
            # the same cell as the diagonal order gives: first the smaller i + j, then the smaller i
            if v > best[0] or (v == best[0] and v > 0 and i + j < best[1] + best[2]):
                best[0], best[1], best[2] = v, i, j
    return best

"""Lloyd's k-means with squared distances by the expansion and means by boolean masks.

Application: vector quantisation / codebook training / customer segments.
Public code with such a loop: scikit-learn KMeans (https://github.com/scikit-learn/scikit-learn), faiss codebooks, and
the k-means of countless notebooks (`x[labels == k].mean(axis=0)`).
"""
import numpy as np

TOLERANCE = 1e-4


def squared_distances(x, centres):
    d = (x ** 2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres ** 2).sum(axis=1)
    return np.maximum(d, 0)


def main(x, centres, n_iter=6):
    centres = centres.copy()
    for _ in range(n_iter):
        d = squared_distances(x, centres)
        labels = d.argmin(axis=1)
        for k in range(len(centres)):
            members = x[labels == k]
            if len(members) > 0:
                centres[k] = members.mean(axis=0)
    d = squared_distances(x, centres)
    return centres, d.argmin(axis=1), d.min(axis=1).sum()


def inputs(rng):
    n, dim, k = 6000, 16, 24
    true = 4 * rng.standard_normal((k, dim))
    x = true[rng.integers(0, k, n)] + rng.standard_normal((n, dim))
    start = true + 1.5 * rng.standard_normal((k, dim))
    start[-1] = 60  # a start that no point chooses
    return x.astype(np.float32), start.astype(np.float32)


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pass


def jax_main(x, centres, n_iter=6):
    k = centres.shape[0]

    def distances(c):
        return jnp.maximum((x ** 2).sum(1)[:, None] - 2 * x @ c.T + (c ** 2).sum(1), 0)

    def step(_, c):
        one_hot = jax.nn.one_hot(distances(c).argmin(1), k, dtype=x.dtype)
        count = one_hot.sum(0)[:, None]
        return jnp.where(count > 0, one_hot.T @ x / jnp.maximum(count, 1), c)

    centres = lax.fori_loop(0, n_iter, step, centres)
    d = distances(centres)
    return centres, d.argmin(1), d.min(1).sum()


try:
    import torch
except ImportError:
    pass


def torch_main(x, centres, n_iter=6):
    sq = (x ** 2).sum(1, keepdim=True)

    def distances(c):
        return (sq - 2 * x @ c.T + (c ** 2).sum(1)).clamp(min=0)

    k = centres.shape[0]
    for _ in range(n_iter):
        labels = distances(centres).argmin(1)
        sums = torch.zeros_like(centres).index_add(0, labels, x)
        count = torch.zeros(k, dtype=x.dtype).index_add(0, labels, torch.ones_like(x[:, 0]))[:, None]
        centres = torch.where(count > 0, sums / count.clamp(min=1), centres)
    d = distances(centres)
    return centres, d.argmin(1), d.amin(1).sum()


def numba_main(x, centres, n_iter=6):
    n, dim = x.shape
    k = len(centres)
    centres = centres.copy()
    labels = np.zeros(n, np.int64)
    inertia = 0.0
    for it in range(n_iter + 1):
        sums = np.zeros((k, dim))
        count = np.zeros(k, np.int64)
        inertia = 0.0
        for i in range(n):
            best = np.float32(np.inf)
            for c in range(k):
                s = np.float32(0)
                for j in range(dim):
                    diff = x[i, j] - centres[c, j]
                    s += diff * diff
                if s < best:
                    best = s
                    labels[i] = c
            inertia += best
            count[labels[i]] += 1
            for j in range(dim):
                sums[labels[i], j] += x[i, j]
        if it < n_iter:
            for c in range(k):
                if count[c] > 0:
                    for j in range(dim):
                        centres[c, j] = sums[c, j] / count[c]
    return centres, labels, inertia

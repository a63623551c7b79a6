"""Quantile binning of a feature table and gradient histograms with split gains.

Application: the preprocessing and first split of histogram gradient boosting.  Every column gets quantile cut points,
is binned to uint8, and gives per-bin sums of gradients and Hessians; the best split of each column is found by
cumulative sums.
Public code with such a loop: scikit-learn `_BinMapper` + HistGradientBoosting
(https://github.com/scikit-learn/scikit-learn/tree/main/sklearn/ensemble/_hist_gradient_boosting), pygbm, LightGBM.
"""
import numpy as np

TOLERANCE = 1e-5


def bin_column(col, n_bins):
    q = np.arange(1, n_bins) / n_bins
    edges = np.quantile(col, q)
    return np.searchsorted(edges, col, side="right")


def split_gain(g, h, lam):
    gl, hl = np.cumsum(g)[:-1], np.cumsum(h)[:-1]
    gr, hr = g.sum() - gl, h.sum() - hl
    return gl ** 2 / (hl + lam) + gr ** 2 / (hr + lam) - g.sum() ** 2 / (h.sum() + lam)


def main(table, grad, hess, n_bins=32, lam=1.0):
    rows, cols = table.shape
    binned = np.empty((rows, cols), dtype=np.uint8)
    hist = np.empty((cols, 2, n_bins))
    best_bin = np.empty(cols, dtype=np.int32)
    best_gain = np.empty(cols)
    for c in range(cols):
        b = bin_column(table[:, c], n_bins)
        binned[:, c] = b
        hist[c, 0] = np.bincount(b, weights=grad, minlength=n_bins)
        hist[c, 1] = np.bincount(b, weights=hess, minlength=n_bins)
        gain = split_gain(hist[c, 0], hist[c, 1], lam)
        best_bin[c] = gain.argmax()
        best_gain[c] = gain[best_bin[c]]
    return binned, hist, best_bin, best_gain


def inputs(rng):
    rows, cols = 8000, 12
    table = rng.standard_normal((rows, cols)) * np.exp(rng.standard_normal(cols))
    table[:, ::3] = np.exp(table[:, ::3])
    prob = 1 / (1 + np.exp(-(np.log(table[:, 0]) - table[:, 1])))
    y = rng.random(rows) < prob
    return table, prob.mean() - y.astype(np.float64), rng.uniform(0.1, 0.25, rows)


try:
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
except ImportError:
    pass


def jax_main(table, grad, hess, n_bins=32, lam=1.0):
    q = jnp.arange(1, n_bins) / n_bins

    def column(col):
        b = jnp.searchsorted(jnp.quantile(col, q), col, side="right")
        g = jax.ops.segment_sum(grad, b, n_bins)
        h = jax.ops.segment_sum(hess, b, n_bins)
        gl, hl = jnp.cumsum(g)[:-1], jnp.cumsum(h)[:-1]
        gr, hr = g.sum() - gl, h.sum() - hl
        gain = gl ** 2 / (hl + lam) + gr ** 2 / (hr + lam) - g.sum() ** 2 / (h.sum() + lam)
        return b.astype(jnp.uint8), jnp.stack([g, h]), gain.argmax().astype(jnp.int32), gain.max()

    return jax.vmap(column, in_axes=1, out_axes=(1, 0, 0, 0))(table)


try:
    import torch
except ImportError:
    pass


def torch_main(table, grad, hess, n_bins=32, lam=1.0):
    rows, cols = table.shape
    q = torch.arange(1, n_bins, dtype=table.dtype) / n_bins
    t = table.T.contiguous()
    edges = torch.quantile(t, q, dim=1).T.contiguous()
    b = torch.searchsorted(edges, t, right=True)
    hist = torch.zeros((cols, 2, n_bins), dtype=table.dtype)
    hist[:, 0].scatter_add_(1, b, grad.expand(cols, rows))
    hist[:, 1].scatter_add_(1, b, hess.expand(cols, rows))
    g, h = hist[:, 0], hist[:, 1]
    gs, hs = g.sum(1, keepdim=True), h.sum(1, keepdim=True)
    gl, hl = torch.cumsum(g, 1)[:, :-1], torch.cumsum(h, 1)[:, :-1]
    gain = gl ** 2 / (hl + lam) + (gs - gl) ** 2 / (hs - hl + lam) - gs ** 2 / (hs + lam)
    best_gain, best_bin = gain.max(dim=1)
    return b.T.to(torch.uint8), hist, best_bin.to(torch.int32), best_gain


def numba_main(table, grad, hess, n_bins=32, lam=1.0):
    rows, cols = table.shape
    binned = np.empty((rows, cols), np.uint8)
    hist = np.zeros((cols, 2, n_bins))
    best_bin = np.zeros(cols, np.int32)
    best_gain = np.full(cols, -np.inf)
    edges = np.empty(n_bins - 1)
    for c in range(cols):
        col = table[:, c].copy()
        ordered = np.sort(col)
        for k in range(n_bins - 1):
            pos = (k + 1) / n_bins * (rows - 1)
            i = int(pos)
            edges[k] = ordered[i] + (ordered[i + 1] - ordered[i]) * (pos - i)
        gs = hs = 0.0
        for i in range(rows):
            b = np.searchsorted(edges, col[i], side="right")
            binned[i, c] = b
            hist[c, 0, b] += grad[i]
            hist[c, 1, b] += hess[i]
            gs += grad[i]
            hs += hess[i]
        gl = hl = 0.0
        for k in range(n_bins - 1):
            gl += hist[c, 0, k]
            hl += hist[c, 1, k]
            gain = gl ** 2 / (hl + lam) + (gs - gl) ** 2 / (hs - hl + lam) - gs ** 2 / (hs + lam)
            if gain > best_gain[c]:
                best_gain[c] = gain
                best_bin[c] = k
    return binned, hist, best_bin, best_gain

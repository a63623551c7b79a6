"""Sparse COO matrix: matrix-vector product and PageRank power iteration in float32."""
import numpy as np

DAMPING = 0.85
ITERS = 20


def coo_matvec(rows, cols, vals, x, n_rows):
    y = np.zeros(n_rows, dtype=vals.dtype)
    np.add.at(y, rows, vals * x[cols])
    return y


def main(src, dst, weight):
    n = 8
    # column-stochastic: every source distributes a total of one
    out_weight = np.zeros(n, dtype=weight.dtype)
    np.add.at(out_weight, src, weight)
    vals = weight / out_weight[src]
    dangling = out_weight == 0
    rank = np.full(n, 1.0 / n, dtype=weight.dtype)
    for _ in range(ITERS):
        spread = coo_matvec(dst, src, vals, rank, n)
        leaked = rank[dangling].sum() / n
        rank = DAMPING * (spread + leaked) + (1.0 - DAMPING) / n
    return rank, np.argsort(-rank, kind="stable")


def inputs():
    src = np.array([0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6], dtype=np.int64)
    dst = np.array([1, 2, 3, 3, 4, 0, 5, 6, 7, 7, 0], dtype=np.int64)
    w = np.array([1, 2, 1, 1, 1, 3, 1, 1, 2, 1, 1], dtype=np.float32)
    return src, dst, w

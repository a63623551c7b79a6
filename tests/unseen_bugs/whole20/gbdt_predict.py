"""Prediction of a gradient-boosted tree ensemble from flat node arrays.

Application: scoring a batch with an exported XGBoost / LightGBM model without its library.  All rows walk down a tree
together, level by level; leaves point to themselves; the margins go through a sigmoid.
Public code with such a loop: hummingbird's tree traversal (https://github.com/microsoft/hummingbird), scikit-learn's
`Tree.apply`, the ONNX reference TreeEnsemble (https://github.com/onnx/onnx).
"""
import numpy as np

TOLERANCE = 1e-5


def apply_tree(x, rows, feature, threshold, left, right, depth):
    node = np.zeros(len(x), dtype=np.int32)
    for _ in range(depth):
        go_left = x[rows, feature[node]] <= threshold[node]
        node = np.where(go_left, left[node], right[node])
    return node


def main(x, feature, threshold, left, right, value, base, depth=6):
    rows = np.arange(len(x))
    margin = np.full(len(x), base, dtype=np.float32)
    for t in range(len(feature)):
        leaf = apply_tree(x, rows, feature[t], threshold[t], left[t], right[t], depth)
        margin += value[t][leaf]
    prob = 1 / (1 + np.exp(-margin))
    return prob, prob > 0.5


def inputs(rng):
    n, cols, trees, depth = 1000, 20, 60, 6
    nodes = 2 ** (depth + 1) - 1
    x = rng.standard_normal((n, cols)).astype(np.float32)
    feature = rng.integers(0, cols, (trees, nodes)).astype(np.int32)
    threshold = rng.normal(0, 0.7, (trees, nodes)).astype(np.float32)
    own = np.arange(nodes)
    leaf = (rng.random((trees, nodes)) < 0.15) | (own >= nodes // 2)  # irregular trees
    leaf[:, 0] = False
    left = np.where(leaf, own, np.minimum(2 * own + 1, nodes - 1)).astype(np.int32)
    right = np.where(leaf, own, np.minimum(2 * own + 2, nodes - 1)).astype(np.int32)
    value = np.where(leaf, rng.normal(0, 0.1, (trees, nodes)), 0).astype(np.float32)
    return x, feature, threshold, left, right, value, 0.1


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pass


def jax_main(x, feature, threshold, left, right, value, base, depth=6):
    rows = jnp.arange(x.shape[0])

    def add_tree(margin, tree):
        f, thr, lo, hi, val = tree
        node = jnp.zeros(x.shape[0], jnp.int32)
        for _ in range(depth):
            node = jnp.where(x[rows, f[node]] <= thr[node], lo[node], hi[node])
        return margin + val[node], None

    start = jnp.full(x.shape[0], base, dtype=jnp.float32)
    margin, _ = lax.scan(add_tree, start, (feature, threshold, left, right, value))
    prob = jax.nn.sigmoid(margin)
    return prob, prob > 0.5


try:
    import torch
except ImportError:
    pass


def torch_main(x, feature, threshold, left, right, value, base, depth=6):
    trees, n = feature.shape[0], x.shape[0]
    feature, left, right = feature.long(), left.long(), right.long()
    xt = x.T
    node = torch.zeros((trees, n), dtype=torch.int64)
    rows = torch.arange(n)
    for _ in range(depth):  # all trees at once, as hummingbird does
        go_left = xt[feature.gather(1, node), rows] <= threshold.gather(1, node)
        node = torch.where(go_left, left.gather(1, node), right.gather(1, node))
    prob = torch.sigmoid(value.gather(1, node).sum(0) + base)
    return prob, prob > 0.5


def numba_main(x, feature, threshold, left, right, value, base, depth=6):
    n, trees = len(x), len(feature)
    prob = np.empty(n, np.float32)
    for i in range(n):
        margin = np.float32(base)
        for t in range(trees):
            node = 0
            for _ in range(depth):
                nxt = left[t, node] if x[i, feature[t, node]] <= threshold[t, node] else right[t, node]
                if nxt == node:
                    break
                node = nxt
            margin += value[t, node]
        prob[i] = 1 / (1 + np.exp(-margin))
    return prob, prob > 0.5

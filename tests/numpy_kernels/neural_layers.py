"""Layers of neural networks, forward and backward."""

import numpy as np

from tests.numpy_kernels.kernel import kernel


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@kernel(
    lambda rng: (
        rng.standard_normal((16, 6)).astype(np.float32),
        rng.integers(0, 3, 16),
        rng.standard_normal((6, 10)).astype(np.float32),
        np.zeros(10, np.float32),
        rng.standard_normal((10, 3)).astype(np.float32),
        np.zeros(3, np.float32),
    ),
    writes=True,
)
def mlp_step(x, labels, w1, b1, w2, b2, rate=0.1):
    """One step of gradient descent, weights updated in place; the loss before it is returned."""
    n = x.shape[0]
    hidden = np.maximum(x @ w1 + b1, 0)
    p = softmax(hidden @ w2 + b2)
    loss = -np.log(p[np.arange(n), labels]).mean()
    d = p
    d[np.arange(n), labels] -= 1
    d /= n
    dw2 = hidden.T @ d
    dh = d @ w2.T
    dh[hidden <= 0] = 0
    w2 -= rate * dw2
    b2 -= rate * d.sum(axis=0)
    w1 -= rate * (x.T @ dh)
    b1 -= rate * dh.sum(axis=0)
    return loss


@kernel(
    lambda rng: (
        rng.standard_normal((2, 7, 8)).astype(np.float32),
        rng.standard_normal((8, 24)).astype(np.float32),
        rng.standard_normal((8, 8)).astype(np.float32),
        2,
    )
)
def causal_attention(x, w_qkv, w_out, heads):
    batch, time, width = x.shape
    q, k, v = np.split(x @ w_qkv, 3, axis=-1)
    q = q.reshape(batch, time, heads, -1).transpose(0, 2, 1, 3)
    k = k.reshape(batch, time, heads, -1).transpose(0, 2, 1, 3)
    v = v.reshape(batch, time, heads, -1).transpose(0, 2, 1, 3)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // heads)
    mask = np.triu(np.ones((time, time), dtype=bool), k=1)
    scores[:, :, mask] = -np.inf
    mixed = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, time, width)
    return mixed @ w_out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@kernel(
    lambda rng: (
        rng.standard_normal((6, 4, 5)),
        rng.standard_normal((5, 12)),
        rng.standard_normal((3, 12)),
        rng.standard_normal(12),
    )
)
def lstm(x, W, U, b):
    steps, batch, _ = x.shape
    units = U.shape[0]
    h = np.zeros((batch, units))
    c = np.zeros((batch, units))
    out = np.empty((steps, batch, units))
    for t in range(steps):
        gates = x[t] @ W + h @ U + b
        i = sigmoid(gates[:, :units])
        f = sigmoid(gates[:, units : 2 * units])
        o = sigmoid(gates[:, 2 * units : 3 * units])
        g = np.tanh(gates[:, 3 * units :])
        c = f * c + i * g
        h = o * np.tanh(c)
        out[t] = h
    return out, (h, c)

"""A GRU over time with attention pooling and a softmax head (inference).

Application: keyword spotting / ECG beat classification on the CPU without a framework.  Gates are one fused product
per step; the hidden states are pooled with a learned query; logits go through a softmax.
Public code with such a loop: Silero VAD and CREPE NumPy ports, the "minGRU"/"numpy-ml" GRU cells
(https://github.com/ddbourgin/numpy-ml).
"""
import numpy as np

TOLERANCE = 1e-4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gru_step(gx, h, w_h, b_h):
    n = h.shape[-1]
    gh = h @ w_h + b_h
    r = sigmoid(gx[:, :n] + gh[:, :n])
    z = sigmoid(gx[:, n:2 * n] + gh[:, n:2 * n])
    c = np.tanh(gx[:, 2 * n:] + r * gh[:, 2 * n:])
    return (1 - z) * c + z * h


def main(x, w_x, b_x, w_h, b_h, query, w_out, b_out):
    batch, steps, _ = x.shape
    hidden = w_h.shape[0]
    gates_x = x @ w_x + b_x
    h = np.zeros((batch, hidden), dtype=np.float32)
    states = np.empty((batch, steps, hidden), dtype=np.float32)
    for t in range(steps):
        h = gru_step(gates_x[:, t], h, w_h, b_h)
        states[:, t] = h
    score = softmax(states @ query, axis=1)
    pooled = np.sum(states * score[:, :, None], axis=1)
    return softmax(pooled @ w_out + b_out, axis=-1), h


def inputs(rng):
    batch, steps, features, hidden, classes = 16, 98, 40, 64, 12

    def mat(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return (rng.standard_normal((batch, steps, features)).astype(np.float32), mat(features, 3 * hidden),
            0.1 * mat(3 * hidden), mat(hidden, 3 * hidden), 0.1 * mat(3 * hidden), mat(hidden),
            mat(hidden, classes), mat(classes))


try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    pass


def jax_main(x, w_x, b_x, w_h, b_h, query, w_out, b_out):
    gates_x = x @ w_x + b_x

    def step(h, gx):
        xr, xz, xc = jnp.split(gx, 3, axis=-1)
        hr, hz, hc = jnp.split(h @ w_h + b_h, 3, axis=-1)
        z = jax.nn.sigmoid(xz + hz)
        h = (1 - z) * jnp.tanh(xc + jax.nn.sigmoid(xr + hr) * hc) + z * h
        return h, h

    h0 = jnp.zeros((x.shape[0], w_h.shape[0]), jnp.float32)
    h, states = lax.scan(step, h0, gates_x.swapaxes(0, 1))
    score = jax.nn.softmax(states @ query, axis=0)
    pooled = jnp.sum(states * score[:, :, None], axis=0)
    return jax.nn.softmax(pooled @ w_out + b_out), h


try:
    import torch
except ImportError:
    pass


def _torch_gru_step(gx, h, w_h, b_h):
    xr, xz, xc = gx.chunk(3, -1)
    hr, hz, hc = torch.addmm(b_h, h, w_h).chunk(3, -1)
    z = torch.sigmoid(xz + hz)
    return (1 - z) * torch.tanh(xc + torch.sigmoid(xr + hr) * hc) + z * h


def torch_main(x, w_x, b_x, w_h, b_h, query, w_out, b_out):
    gates_x = x @ w_x + b_x
    h = torch.zeros((x.shape[0], w_h.shape[0]), dtype=x.dtype)
    states = []
    for gx in gates_x.unbind(1):
        torch._dynamo.graph_break()  # compile the cell, keep the loop in Python
        h = _torch_gru_step(gx, h, w_h, b_h)
        states.append(h)
    states = torch.stack(states, 1)
    score = torch.softmax(states @ query, 1)
    pooled = (states * score[:, :, None]).sum(1)
    return torch.softmax(pooled @ w_out + b_out, -1), h


def numba_main(x, w_x, b_x, w_h, b_h, query, w_out, b_out):
    batch, steps, feats = x.shape
    n = w_h.shape[0]
    one = np.float32(1)
    gates_x = (np.dot(x.reshape(batch * steps, feats), w_x) + b_x).reshape(batch, steps, 3 * n)
    h = np.zeros((batch, n), np.float32)
    states = np.empty((batch, steps, n), np.float32)
    for t in range(steps):
        gh = np.dot(h, w_h)
        for b in range(batch):
            for i in range(n):
                r = one / (one + np.exp(-(gates_x[b, t, i] + gh[b, i] + b_h[i])))
                z = one / (one + np.exp(-(gates_x[b, t, n + i] + gh[b, n + i] + b_h[n + i])))
                c = np.tanh(gates_x[b, t, 2 * n + i] + r * (gh[b, 2 * n + i] + b_h[2 * n + i]))
                h[b, i] = (one - z) * c + z * h[b, i]
                states[b, t, i] = h[b, i]
    pooled = np.zeros((batch, n), np.float32)
    for b in range(batch):
        s = np.dot(states[b], query)
        s = np.exp(s - s.max())
        pooled[b] = np.dot(s / s.sum(), states[b])
    logits = np.dot(pooled, w_out) + b_out
    for b in range(batch):
        e = np.exp(logits[b] - logits[b].max())
        logits[b] = e / e.sum()
    return logits, h

"""A GRU unrolled over time with lax.scan, reading the last valid state."""
from jax import lax, nn
import jax
import jax.numpy as jnp

HIDDEN = 8


def gru_cell(params, h, x):
    wx, wh, b = params
    gx = x @ wx + b
    gh = h @ wh
    rx, zx, nx = jnp.split(gx, 3, axis=-1)
    rh, zh, nh = jnp.split(gh, 3, axis=-1)
    r = nn.sigmoid(rx + rh)
    z = nn.sigmoid(zx + zh)
    n = jnp.tanh(nx + r * nh)
    return (1.0 - z) * n + z * h


def main(xs, lengths, wx, wh, b):
    batch, time, _ = xs.shape
    h0 = jnp.zeros((batch, HIDDEN), dtype=xs.dtype)

    def step(h, inp):
        t, x = inp
        new = gru_cell((wx, wh, b), h, x)
        h = jnp.where((t < lengths)[:, None], new, h)
        return h, h

    last, states = lax.scan(step, h0, (jnp.arange(time), jnp.swapaxes(xs, 0, 1)))
    return last, jnp.swapaxes(states, 0, 1)


def inputs():
    k = jax.random.split(jax.random.PRNGKey(8), 3)
    xs = jax.random.normal(k[0], (3, 7, 5))
    wx = 0.3 * jax.random.normal(k[1], (5, 3 * HIDDEN))
    wh = 0.3 * jax.random.normal(k[2], (HIDDEN, 3 * HIDDEN))
    return xs, jnp.array([7, 5, 2], dtype=jnp.int32), wx, wh, jnp.zeros(3 * HIDDEN)

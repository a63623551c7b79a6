"""A gated recurrent cell over a sequence, as a scan, with masked steps and a running count."""
import jax
import jax.numpy as jnp
from jax import lax

HIDDEN = 8


def init_params(key, size):
    k = jax.random.split(key, 3)
    scale = size ** -0.5
    return {
        "w": jax.random.normal(k[0], (size, 3 * HIDDEN)) * scale,
        "u": jax.random.normal(k[1], (HIDDEN, 3 * HIDDEN)) * HIDDEN ** -0.5,
        "b": jnp.zeros(3 * HIDDEN),
    }


def gru_cell(params, h, x):
    gx = x @ params["w"] + params["b"]
    gh = h @ params["u"]
    xr, xz, xn = jnp.split(gx, 3, axis=-1)
    hr, hz, hn = jnp.split(gh, 3, axis=-1)
    r = jax.nn.sigmoid(xr + hr)
    z = jax.nn.sigmoid(xz + hz)
    n = jnp.tanh(xn + r * hn)
    return (1 - z) * n + z * h


def main(xs, lengths):
    """xs [time, batch, size], lengths [batch]"""
    params = init_params(jax.random.key(0), xs.shape[-1])
    batch = xs.shape[1]

    def step(carry, inp):
        h, count = carry
        t, x = inp
        alive = t < lengths
        new = gru_cell(params, h, x)
        h = jnp.where(alive[:, None], new, h)
        count = count + alive.astype(count.dtype)
        return (h, count), h

    init = (jnp.zeros((batch, HIDDEN), xs.dtype), jnp.zeros(batch, jnp.int32))
    times = jnp.arange(xs.shape[0], dtype=lengths.dtype)
    (h, count), states = lax.scan(step, init, (times, xs))
    return h, count, states.mean(axis=(0, 2))


def inputs():
    return (jax.random.normal(jax.random.key(6), (7, 3, 4)), jnp.array([7, 2, 5], jnp.int32))

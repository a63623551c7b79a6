"""Solves Kepler's equation for many orbits with a Newton iteration in a while loop."""
import jax
import jax.numpy as jnp
from jax import lax

MAX_STEPS = 30


def kepler(E, e, M):
    return E - e * jnp.sin(E) - M


def solve(M, e):
    tol = 4 * jnp.finfo(M.dtype).eps

    def cond(state):
        E, step, delta = state
        return (step < MAX_STEPS) & (jnp.max(jnp.abs(delta)) > tol)

    def body(state):
        E, step, _ = state
        delta = kepler(E, e, M) / (1 - e * jnp.cos(E))
        return E - delta, step + 1, delta

    start = jnp.where(e > 0.8, jnp.full_like(M, jnp.pi), M)
    E, steps, _ = lax.while_loop(cond, body, (start, 0, jnp.ones_like(M)))
    return E, steps


def position(a, e, E):
    x = a * (jnp.cos(E) - e)
    y = a * jnp.sqrt(1 - e ** 2) * jnp.sin(E)
    return jnp.stack([x, y], axis=-1)


def main(a, e, M):
    M = jnp.mod(M, 2 * jnp.pi)
    E, steps = solve(M, e)
    return position(a, e, E), steps


def inputs():
    k = jax.random.split(jax.random.key(7), 3)
    return (jax.random.uniform(k[0], (10,), minval=0.5, maxval=30.0),
            jax.random.uniform(k[1], (10,), maxval=0.95),
            jax.random.uniform(k[2], (10,), maxval=40.0))

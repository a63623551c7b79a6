"""A pendulum integrated in double precision throughout, with x64 enabled on purpose."""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

G, LENGTH, DT = 9.81, 1.0, 1e-3


def force(q):
    return -G / LENGTH * jnp.sin(q)


def leapfrog(state, _):
    q, p = state
    p = p + 0.5 * DT * force(q)
    q = q + DT * p
    p = p + 0.5 * DT * force(q)
    energy = 0.5 * (LENGTH * p) ** 2 - G * LENGTH * jnp.cos(q)
    return (q, p), energy


def main(q, p):
    (q, p), energy = jax.lax.scan(leapfrog, (jnp.asarray(q), jnp.asarray(p)), None, length=500)
    crossings = (jnp.diff(jnp.sign(energy - energy.mean())) != 0).sum(axis=0)
    return q, p, energy[-1] - energy[0], crossings


def inputs():
    return np.array([0.3, 1.0, 2.0]), np.zeros(3)

"""Lorenz system: RK4 trajectories for a batch of initial states."""
import functools

import jax
import jax.numpy as jnp

SIGMA, RHO, BETA = 10.0, 28.0, 8.0 / 3.0


def lorenz(state):
    x, y, z = state
    return jnp.stack([SIGMA * (y - x), x * (RHO - z) - y, x * y - BETA * z])


def rk4_step(f, s, dt):
    k1 = f(s)
    k2 = f(s + 0.5 * dt * k1)
    k3 = f(s + 0.5 * dt * k2)
    k4 = f(s + dt * k3)
    return s + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


@functools.partial(jax.jit, static_argnames=("n", "dt"))
def integrate(s0, n=40, dt=0.01):
    def body(s, _):
        s = rk4_step(lorenz, s, dt)
        return s, s

    return jax.lax.scan(body, s0, None, length=n)


def main(states):
    final, traj = jax.vmap(integrate)(states)
    spread = jnp.linalg.norm(final - final.mean(axis=0), axis=-1)
    return final, traj, spread


def inputs():
    base = jnp.array([1.0, 1.0, 20.0])
    return (base + 0.1 * jax.random.normal(jax.random.PRNGKey(10), (5, 3)),)

"""Integrates two orbits with a leapfrog scheme. The energy has to stay constant over many turns,
so that the integration is double precision; positions for the display are float32."""
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

CONFIG = {"dt": 0.01, "steps": 400, "every": 20, "mu": 1.0}


def acceleration(x, mu):
    r2 = jnp.sum(x * x, axis=-1, keepdims=True)
    return -mu * x / (r2 * jnp.sqrt(r2))


def energy(x, v, mu):
    kinetic = 0.5 * jnp.sum(v * v, axis=-1)
    return kinetic - mu / jnp.sqrt(jnp.sum(x * x, axis=-1))


def leapfrog(state, _):
    x, v, t = state
    dt, mu = CONFIG["dt"], CONFIG["mu"]
    v = v + 0.5 * dt * acceleration(x, mu)
    x = x + dt * v
    v = v + 0.5 * dt * acceleration(x, mu)
    return (x, v, t + dt), x


def revolutions(track):
    angle = jnp.unwrap(jnp.arctan2(track[..., 1], track[..., 0]), axis=0)
    return (angle[-1] - angle[0]) / (2 * jnp.pi)


def main(x, v):
    x, v = x.astype(jnp.float64), v.astype(jnp.float64)
    before = energy(x, v, CONFIG["mu"])
    start = (x, v, jnp.zeros((), jnp.float64))
    (x, v, t), track = jax.lax.scan(leapfrog, start, None, length=CONFIG["steps"])
    drift = (energy(x, v, CONFIG["mu"]) - before) / jnp.abs(before)
    shown = track[:: CONFIG["every"]].astype(jnp.float32)
    return shown, drift, revolutions(track), t


def inputs():
    x = jnp.array([[1.0, 0.0], [0.0, 1.5]], jnp.float32)
    v = jnp.array([[0.0, 1.0], [-0.7, 0.0]], jnp.float32)
    return x, v

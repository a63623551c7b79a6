"""Hamiltonian Monte Carlo with a step size that is adapted while warming up; warmup and
sampling run the same compiled loop.

https://github.com/pyro-ppl/numpyro/issues/463
"""
from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp

HMCState = namedtuple("HMCState", ["i", "z", "potential_energy", "step_size", "accept_prob",
                                   "mean_accept_prob", "rng_key"])
CONFIG = {"step_size": 0.1, "trajectory_length": 4, "num_warmup": 6, "target_accept_prob": 0.8}


def potential_fn(z):
    return 0.5 * jnp.sum(z ** 2 / jnp.arange(1, z.shape[0] + 1, dtype=z.dtype))


def velocity_verlet(z, r, step_size, num_steps):
    def body(_, zr):
        z, r = zr
        r = r - 0.5 * step_size * jax.grad(potential_fn)(z)
        z = z + step_size * r
        return z, r - 0.5 * step_size * jax.grad(potential_fn)(z)
    return jax.lax.fori_loop(0, num_steps, body, (z, r))


def init_kernel(init_params, rng_key, step_size):
    z = init_params
    return HMCState(
        i=jnp.zeros((), jnp.int32),
        z=z,
        potential_energy=potential_fn(z),
        step_size=step_size,
        accept_prob=jnp.zeros((), z.dtype),
        mean_accept_prob=0.,
        rng_key=rng_key)


def adapt(step_size, accept_prob, t):
    log_step = jnp.log(step_size) + (accept_prob - CONFIG["target_accept_prob"]) / jnp.sqrt(t + 1.)
    return jnp.exp(log_step)


def sample_kernel(state):
    key, key_r, key_u = jax.random.split(state.rng_key, 3)
    r = jax.random.normal(key_r, state.z.shape, state.z.dtype)
    z, r_new = velocity_verlet(state.z, r, state.step_size, CONFIG["trajectory_length"])
    energy = potential_fn(z) + 0.5 * r_new @ r_new
    delta = energy - state.potential_energy - 0.5 * r @ r
    accept_prob = jnp.exp(jnp.minimum(-delta, 0))
    accepted = jax.random.uniform(key_u, (), z.dtype) < accept_prob
    z = jnp.where(accepted, z, state.z)
    step_size = jnp.where(state.i < CONFIG["num_warmup"],
                          adapt(state.step_size, accept_prob, state.i), state.step_size)
    mean = state.mean_accept_prob + (accept_prob - state.mean_accept_prob) / (state.i + 1)
    return HMCState(state.i + 1, z, potential_fn(z), step_size, accept_prob, mean, key)


@partial(jax.jit, static_argnums=(0,))
def fori_collect(length, init_state):
    def body(i, val):
        state, collection = val
        state = sample_kernel(state)
        return state, collection.at[i].set(state.z)

    collection = jnp.zeros((length,) + init_state.z.shape, init_state.z.dtype)
    return jax.lax.fori_loop(0, length, body, (init_state, collection))


class MCMC:
    def __init__(self, num_warmup, num_samples):
        self.num_warmup, self.num_samples = num_warmup, num_samples

    def run(self, rng_key, init_params):
        state = init_kernel(init_params, rng_key, CONFIG["step_size"])
        state, _ = fori_collect(self.num_warmup, state)
        state, samples = fori_collect(self.num_samples, state)
        return samples, state.step_size, state.mean_accept_prob


def main(rng_key, init_params):
    mcmc = MCMC(CONFIG["num_warmup"], CONFIG["num_warmup"])
    return mcmc.run(rng_key, init_params)


def inputs():
    return jax.random.PRNGKey(3), jnp.ones(4, jnp.float32)


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

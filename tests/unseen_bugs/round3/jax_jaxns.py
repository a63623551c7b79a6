"""The evidence of a model by nested sampling: live points are replaced one by one inside a
compiled loop, until the remaining evidence is small.

https://github.com/Joshuaalbert/jaxns/issues/154
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

float_type = jnp.float32
int_type = jnp.int32

CONFIG = {"num_live_points": 24, "max_samples": 160, "num_slices": 6, "dlogZ": 1e-2}


class SampleCollection(NamedTuple):
    log_L: jax.Array
    U_samples: jax.Array


class EvidenceCalculation(NamedTuple):
    log_X_mean: jax.Array
    log_Z_mean: jax.Array


class NestedSamplerState(NamedTuple):
    key: jax.Array
    next_sample_idx: jax.Array
    collection: SampleCollection
    live_U: jax.Array
    live_log_L: jax.Array
    evidence: EvidenceCalculation


class Model:
    def __init__(self, data, low, high):
        self.data, self.low, self.high = data, low, high

    def log_likelihood(self, U):
        residual = self.data - (self.low + (self.high - self.low) * U)
        return -0.5 * jnp.sum(residual ** 2 / 0.04)


def init_sample_collection(size, ndim):
    return SampleCollection(
        log_L=jnp.full((size,), -jnp.inf, float_type),
        U_samples=jnp.zeros((size, ndim), float_type),
    )


def init_state(key, model, config, ndim):
    key, sub = jax.random.split(key)
    live_U = jax.random.uniform(sub, (config["num_live_points"], ndim), float_type)
    live_log_L = jax.vmap(model.log_likelihood)(live_U).astype(float_type)
    evidence = EvidenceCalculation(jnp.zeros((), float_type), jnp.asarray(-jnp.inf, float_type))
    return NestedSamplerState(key, jnp.zeros((), int_type),
                              init_sample_collection(config["max_samples"], ndim),
                              live_U, live_log_L, evidence)


def sample_above(key, model, U, log_L, log_L_constraint, num_slices):
    def step(carry, key):
        U, log_L = carry
        k1, k2 = jax.random.split(key)
        step = jax.random.normal(k1, U.shape) * jax.random.uniform(k2)
        proposal = jnp.clip(U + 0.2 * step, 0, 1)
        new = model.log_likelihood(proposal)
        accept = new > log_L_constraint
        return (jnp.where(accept, proposal, U).astype(U.dtype),
                jnp.where(accept, new, log_L).astype(log_L.dtype)), None

    return jax.lax.scan(step, (U, log_L), jax.random.split(key, num_slices))[0]


def update_evidence(evidence, log_L, num_live):
    log_X = evidence.log_X_mean - 1.0 / num_live
    log_dX = evidence.log_X_mean + jnp.log1p(-jnp.exp(-1.0 / jnp.asarray(num_live, float)))
    return EvidenceCalculation(log_X, jnp.logaddexp(evidence.log_Z_mean, log_L + log_dX))


def run(key, model, config, ndim):
    num_live = config["num_live_points"]

    def cond(state):
        remaining = state.evidence.log_X_mean + jnp.max(state.live_log_L)
        small = remaining - state.evidence.log_Z_mean < jnp.log(config["dlogZ"])
        return (state.next_sample_idx < config["max_samples"]) & ~small

    def body(state):
        key, k1, k2 = jax.random.split(state.key, 3)
        worst = jnp.argmin(state.live_log_L)
        log_L = state.live_log_L[worst]
        start = jax.random.randint(k1, (), 0, num_live)
        U, new = sample_above(k2, model, state.live_U[start], state.live_log_L[start], log_L,
                              config["num_slices"])
        i = state.next_sample_idx
        collection = SampleCollection(
            state.collection.log_L.at[i].set(log_L),
            state.collection.U_samples.at[i].set(state.live_U[worst]))
        return NestedSamplerState(key, i + 1, collection, state.live_U.at[worst].set(U),
                                  state.live_log_L.at[worst].set(new),
                                  update_evidence(state.evidence, log_L, num_live))

    return jax.lax.while_loop(cond, body, init_state(key, model, config, ndim))


def main(seed, data, low, high):
    model = Model(data, low, high)
    state = run(jax.random.wrap_key_data(seed), model, CONFIG, data.shape[0])
    log_Z = jnp.logaddexp(state.evidence.log_Z_mean,
                          state.evidence.log_X_mean + jnp.mean(state.live_log_L))
    return log_Z, state.collection.log_L, state.next_sample_idx


def inputs():
    seed = jax.random.key_data(jax.random.key(8))
    return seed, jnp.array([0.3, -0.2]), jnp.array([-1.0, -1.0]), jnp.array([1.0, 1.0])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

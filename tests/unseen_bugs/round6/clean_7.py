"""Random-walk Metropolis in JAX: chains run together, a scan carries the state and an adapted
step, acceptances are counted as integers, and means and variances are running averages."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"warmup": 150, "samples": 200, "target": 0.35}


class Chain(NamedTuple):
    position: jax.Array
    log_density: jax.Array
    log_step: jax.Array
    accepted: jax.Array


class Welford(NamedTuple):
    count: jax.Array
    mean: jax.Array
    m2: jax.Array


def log_density(x, data):
    mean, log_scale = x[0], x[1]
    z = (data - mean) * jnp.exp(-log_scale)
    return -0.5 * jnp.sum(z * z) - data.shape[0] * log_scale - 0.5 * (mean / 10) ** 2 - 0.5 * log_scale ** 2


def transition(key, chain, data):
    k_move, k_accept = jax.random.split(key)
    proposal = chain.position + jnp.exp(chain.log_step) * jax.random.normal(k_move, chain.position.shape)
    proposed = log_density(proposal, data)
    accept = jnp.log(jax.random.uniform(k_accept)) < proposed - chain.log_density
    position = jnp.where(accept, proposal, chain.position)
    density = jnp.where(accept, proposed, chain.log_density)
    return Chain(position, density, chain.log_step, chain.accepted + accept.astype(jnp.int32)), accept


def warmup(key, chain, data):
    def body(chain, inputs):
        key, i = inputs
        chain, accept = transition(key, chain, data)
        rate = 1.0 / jnp.sqrt(i.astype(jnp.float32) + 1.0)
        return chain._replace(log_step=chain.log_step + rate * (accept - CONFIG["target"])), None

    steps = jnp.arange(CONFIG["warmup"])
    chain, _ = jax.lax.scan(body, chain, (jax.random.split(key, CONFIG["warmup"]), steps))
    return chain._replace(accepted=jnp.zeros_like(chain.accepted))


def collect(key, chain, data):
    def body(carry, key):
        chain, stats = carry
        chain, _ = transition(key, chain, data)
        count = stats.count + 1
        delta = chain.position - stats.mean
        mean = stats.mean + delta / count
        return (chain, Welford(count, mean, stats.m2 + delta * (chain.position - mean))), None

    zeros = jnp.zeros_like(chain.position)
    (chain, stats), _ = jax.lax.scan(body, (chain, Welford(jnp.int32(0), zeros, zeros)),
                                     jax.random.split(key, CONFIG["samples"]))
    return chain, stats


def run(key, start, data):
    k1, k2 = jax.random.split(key)
    chain = Chain(start, log_density(start, data), jnp.float32(-1.0), jnp.int32(0))
    return collect(k2, warmup(k1, chain, data), data)


def main(keys, starts, data):
    chains, stats = jax.vmap(run, in_axes=(0, 0, None))(keys, starts, data)
    variance = stats.m2 / (stats.count - 1)[:, None]
    between = jnp.var(stats.mean, axis=0, ddof=1)
    r_hat = jnp.sqrt(1 + between / variance.mean(axis=0))
    return stats.mean, r_hat, chains.accepted / CONFIG["samples"], chains.accepted


def inputs():
    key = jax.random.PRNGKey(2)
    return jax.random.split(key, 4), jax.random.normal(key, (4, 2)), 1.5 + 0.7 * jax.random.normal(key, (30,))

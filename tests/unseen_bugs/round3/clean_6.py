"""Generalised advantages and policy statistics for a batch of rollouts, with episodes that end at
different steps and discrete actions."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"gamma": 0.97, "lam": 0.9, "actions": 3, "clip": 0.2}


class Transition(NamedTuple):
    reward: jax.Array
    done: jax.Array
    action: jax.Array
    value: jax.Array
    log_prob: jax.Array


def advantages(batch, last_value, config):
    def step(carry, transition):
        gae, next_value = carry
        alive = 1.0 - transition.done.astype(jnp.float32)
        delta = transition.reward + config["gamma"] * next_value * alive - transition.value
        gae = delta + config["gamma"] * config["lam"] * alive * gae
        return (gae, transition.value), gae

    start = (jnp.zeros_like(last_value), last_value)
    _, result = jax.lax.scan(step, start, batch, reverse=True)
    return result, result + batch.value


def standardise(x):
    return (x - x.mean()) / (x.std() + 1e-6)


def surrogate(logits, batch, adv, config):
    log_probs = jax.nn.log_softmax(logits)
    one_hot = jax.nn.one_hot(batch.action, config["actions"], dtype=log_probs.dtype)
    ratio = jnp.exp((log_probs * one_hot).sum(axis=-1) - batch.log_prob)
    clipped = jnp.clip(ratio, 1 - config["clip"], 1 + config["clip"])
    loss = -jnp.minimum(ratio * adv, clipped * adv).mean()
    share = jnp.mean(jnp.abs(ratio - 1) > config["clip"])
    return loss, share


def episode_lengths(done):
    def step(length, d):
        length = length + 1
        return jnp.where(d, 0, length), jnp.where(d, length, 0)

    _, finished = jax.lax.scan(step, jnp.zeros(done.shape[1:], jnp.int32), done)
    episodes = done.sum()
    return finished.sum() / jnp.maximum(episodes, 1), episodes


def main(reward, done, action, value, log_prob, logits, last_value):
    batch = Transition(reward, done, action, value, log_prob)
    adv, targets = advantages(batch, last_value, CONFIG)
    loss, share = surrogate(logits, batch, standardise(adv), CONFIG)
    length, episodes = episode_lengths(done)
    return targets, jnp.stack([loss, share, length]), episodes


def inputs():
    keys = jax.random.split(jax.random.key(1), 7)
    shape = (12, 4)
    return (jax.random.normal(keys[0], shape), jax.random.bernoulli(keys[1], 0.2, shape),
            jax.random.randint(keys[2], shape, 0, 3), jax.random.normal(keys[3], shape),
            jnp.full(shape, -1.0986123, jnp.float32), jax.random.normal(keys[5], shape + (3,)) * 0.3,
            jax.random.normal(keys[6], (4,)))

"""Continues a learned resource manager from a checkpoint: exponential weights over actions per
context, with running means of the losses and counts of the updates.

https://github.com/SlopDotCash/asi/issues/1065
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp

CONFIG = {"n_actions": 4, "n_contexts": 2, "learning_rate": 0.5, "discount": 0.995,
          "exploration": 0.05, "loss_decay": 0.99, "advantage_clip": 10.0}


class LearnedResourceManagerState(NamedTuple):
    log_weights: jax.Array
    loss_ema: jax.Array
    action_counts: jax.Array
    step_count: jax.Array


class LearnedResourceManager:
    def __init__(self, n_actions, n_contexts, learning_rate, discount, exploration, loss_decay,
                 advantage_clip):
        self._n_actions, self._n_contexts = n_actions, n_contexts
        self._learning_rate, self._discount = learning_rate, discount
        self._exploration, self._loss_decay = exploration, loss_decay
        self._advantage_clip = advantage_clip

    def init(self):
        shape = (self._n_contexts, self._n_actions)
        return LearnedResourceManagerState(
            log_weights=jnp.zeros(shape, dtype=jnp.float32),
            loss_ema=jnp.zeros(shape, dtype=jnp.float32),
            action_counts=jnp.zeros(shape, dtype=jnp.float32),
            step_count=jnp.array(0, dtype=jnp.int32),
        )

    def restore(self, counts, step_count):
        state = self.init()
        counts = counts.astype(state.action_counts.dtype)
        return state._replace(action_counts=state.action_counts + counts, step_count=step_count)

    def weights(self, state, context):
        base = jax.nn.softmax(state.log_weights[context])
        return (1.0 - self._exploration) * base + self._exploration / self._n_actions

    def update(self, state, context, losses):
        weights = self.weights(state, context)
        valid = jnp.isfinite(losses)
        safe = jnp.where(valid, losses, 0.0)
        baseline = jnp.sum(weights * safe) / jnp.maximum(jnp.sum(weights * valid), 1e-6)
        advantages = jnp.where(valid, baseline - safe, 0.0)
        advantages = jnp.clip(advantages, -self._advantage_clip, self._advantage_clip)
        row = self._discount * state.log_weights[context] + self._learning_rate * advantages
        old = state.loss_ema[context]
        ema = jnp.where(valid, self._loss_decay * old + (1 - self._loss_decay) * safe, old)
        increment = valid.astype(state.action_counts.dtype)
        return LearnedResourceManagerState(
            log_weights=state.log_weights.at[context].set(row - row.max()),
            loss_ema=state.loss_ema.at[context].set(ema),
            action_counts=state.action_counts.at[context].add(increment),
            step_count=state.step_count + 1,
        )


def main(counts, step_count, contexts, losses):
    manager = LearnedResourceManager(**CONFIG)

    def step(state, batch):
        context, loss = batch
        return manager.update(state, context, loss), manager.weights(state, context)

    state, weights = jax.lax.scan(step, manager.restore(counts, step_count), (contexts, losses))
    return weights, state.action_counts, state.step_count


def inputs():
    losses = jax.random.uniform(jax.random.key(2), (6, 4), jnp.float32)
    losses = losses.at[1, 2].set(jnp.nan)
    counts = jnp.array([[16777214, 16777216, 9000000, 16777216], [12, 5, 7, 9]], jnp.int32)
    return counts, jnp.int32(16777240), jnp.array([0, 0, 1, 0, 1, 0]), losses


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

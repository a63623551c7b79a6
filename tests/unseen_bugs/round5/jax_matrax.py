"""A repeated matrix game, rolled out with a scan that carries the state and the last time step.

https://github.com/instadeepai/matrax/pull/6
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

CLIMBING = ((11, -30, 0), (-30, 7, 0), (0, 6, 5))


class State(NamedTuple):
    step_count: jax.Array
    key: jax.Array


class TimeStep(NamedTuple):
    step_type: jax.Array
    reward: jax.Array
    discount: jax.Array
    observation: jax.Array


def restart(observation, shape):
    return TimeStep(jnp.int8(0), jnp.zeros(shape, float), jnp.ones(shape, float), observation)


def transition(reward, observation, shape):
    return TimeStep(jnp.int8(1), reward, jnp.ones(shape, float), observation)


def termination(reward, observation, shape):
    return TimeStep(jnp.int8(2), reward, jnp.zeros(shape, float), observation)


class MatrixGame:
    def __init__(self, payoff_matrix, num_agents=2, time_limit=12):
        self.payoff_matrix = jnp.array(payoff_matrix)
        self.num_agents, self.time_limit = num_agents, time_limit

    def reset(self, key):
        observation = -jnp.ones((self.num_agents,), jnp.int32)
        return State(jnp.int32(0), key), restart(observation, (self.num_agents,))

    def compute_reward(self, actions):
        reward = self.payoff_matrix[actions[0], actions[1]]
        return jnp.full((self.num_agents,), reward)

    def step(self, state, actions):
        rewards = self.compute_reward(actions)
        count = state.step_count + 1
        ends = termination(rewards, actions, (self.num_agents,))
        goes_on = transition(rewards, actions, (self.num_agents,))
        timestep = jax.tree_util.tree_map(lambda a, b: jnp.where(count >= self.time_limit, a, b), ends, goes_on)
        return State(count, state.key), timestep


def rollout(env, key, actions):
    def body(carry, action):
        state, last, total = carry
        state, timestep = env.step(state, action)
        return (state, timestep, total + timestep.reward.mean()), timestep.discount

    state, timestep = env.reset(key)
    return jax.lax.scan(body, (state, timestep, jnp.float32(0)), actions)


def main(actions):
    (_, last, total), discounts = rollout(MatrixGame(CLIMBING), jax.random.PRNGKey(0), actions)
    return last.reward, total, discounts


def inputs():
    return (np.random.default_rng(0).integers(0, 3, (12, 2)).astype(np.int32),)


def fixed_main(*arrays):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*arrays)

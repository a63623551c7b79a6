"""Resets and steps a small grid world; the spaces of its observations and actions are kept
with the environment.

https://github.com/epignatelli/navix/pull/44
"""
import sys
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

DIRECTIONS = ((0, 1), (1, 0), (0, -1), (-1, 0))


@dataclass
class Space:
    shape: tuple
    dtype: object
    minimum: jax.Array
    maximum: jax.Array


class Discrete(Space):
    @classmethod
    def create(cls, n_elements, shape=(), dtype=jnp.int32):
        return cls(
            shape=shape,
            dtype=dtype,
            minimum=jnp.asarray(0),
            maximum=jnp.asarray(n_elements) - 1,
        )

    def sample(self, key):
        item = jax.random.randint(key, self.shape, self.minimum, self.maximum)
        return jnp.asarray(item, dtype=self.dtype)

    def clip(self, item):
        return jnp.clip(item, self.minimum, self.maximum).astype(self.dtype)


class State(NamedTuple):
    grid: jax.Array
    position: jax.Array
    direction: jax.Array
    steps: jax.Array


class Environment:
    def __init__(self, height, width, observation_space, action_space, max_steps):
        self.height, self.width = height, width
        self.observation_space, self.action_space = observation_space, action_space
        self.max_steps = max_steps

    @classmethod
    def create(cls, height, width, max_steps=100):
        observation_space = Discrete.create(sys.maxsize, shape=(height, width))
        action_space = Discrete.create(4)
        return cls(height, width, observation_space, action_space, max_steps)

    def reset(self, grid):
        return State(grid, jnp.asarray((1, 1)), jnp.asarray(0), jnp.asarray(0))

    def observe(self, state):
        view = state.grid.at[tuple(state.position)].set(10 + state.direction)
        return self.observation_space.clip(view)

    def step(self, state, action):
        direction = jnp.where(action == 0, (state.direction - 1) % 4,
                              jnp.where(action == 1, (state.direction + 1) % 4, state.direction))
        target = state.position + jnp.asarray(DIRECTIONS)[direction]
        free = (action == 2) & (state.grid[tuple(target)] == 0)
        position = jnp.where(free, target, state.position)
        return State(state.grid, position, direction, state.steps + 1)


def main(grid, actions):
    env = Environment.create(*grid.shape)
    state = env.reset(grid)

    def step(state, action):
        state = env.step(state, action)
        return state, (env.observe(state), state.steps >= env.max_steps)

    state, (observations, done) = jax.lax.scan(step, state, actions)
    return observations, state.position, done


def inputs():
    grid = jnp.pad(jnp.zeros((4, 5), jnp.int32), 1, constant_values=1)
    return grid, jnp.array([2, 2, 1, 2, 0, 2, 2, 1, 2])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)

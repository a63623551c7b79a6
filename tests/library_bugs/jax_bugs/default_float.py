"""A float32 boost is float64: `dtype=float` is the default float, which is wide here.

https://github.com/GalacticDynamics/coordinax/pull/755
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

X64 = True


def as_velocity(beta):
    return jnp.asarray(beta, dtype=float)  # guilty


@dataclass
class LorentzBoost:
    beta: Any

    def __post_init__(self):
        self.beta = as_velocity(self.beta)

    def matrix(self):
        beta2 = jnp.sum(self.beta**2)
        gamma = 1 / jnp.sqrt(1 - beta2)
        spatial = jnp.eye(3, dtype=self.beta.dtype)
        spatial = spatial + (gamma - 1) * jnp.outer(self.beta, self.beta) / beta2
        top = jnp.concatenate([gamma[None], -gamma * self.beta])
        side = -gamma * self.beta[:, None]
        return jnp.concatenate([top[None], jnp.concatenate([side, spatial], axis=1)])


@jax.jit
def boosted(beta, events):
    return events @ LorentzBoost(beta).matrix().T


def program(beta, events):
    return boosted(beta, events)


def inputs():
    return jnp.array([0.1, 0.2, 0.0], jnp.float32), jnp.ones((5, 4), jnp.float32)


def shows_fault(result):
    return result.dtype == jnp.float64

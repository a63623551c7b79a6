"""A scan over float16 fails: its weak carries take three rounds to become float16.

https://github.com/jax-ml/jax/pull/9046
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax

X64 = False
STAGES = 3


def filter_stage(state, value):
    return state + value


def cascade(carry, sample):
    first = filter_stage(carry[0], sample)
    rest = [filter_stage(b, a) for a, b in pairwise(carry)]
    return [first, *rest], first


@jax.jit
def run(samples):
    start = [0.0] * STAGES
    stages, trace = lax.scan(cascade, start, samples)  # guilty
    return stages[-1], trace


def program(samples):
    return run(samples)


def inputs():
    return (jnp.ones(5, jnp.float16),)


def shows_fault(result):
    return isinstance(result, TypeError) and "carry" in str(result)

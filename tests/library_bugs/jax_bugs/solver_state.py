"""The state of a solver changes its type: the first step size is weak, the next is not.

https://github.com/google/jaxopt/issues/451
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

X64 = False


class SolverState(NamedTuple):
    iteration: Any
    stepsize: Any
    error: Any


def objective(x, data):
    return jnp.mean(jnp.square(data @ x - 1).astype(jnp.float32))


def init_state(x):
    return SolverState(jnp.asarray(0, jnp.int32), jnp.asarray(1.0), jnp.asarray(jnp.inf))


@jax.jit
def update(x, state, data):
    gradient = jax.grad(objective)(x, data)
    norm = jnp.sqrt(jnp.sum(jnp.square(gradient.astype(jnp.float32))))
    stepsize = jnp.where(norm > 1, state.stepsize * 0.5, state.stepsize)
    stepsize = stepsize / jnp.maximum(norm, 1)  # guilty
    x = x - stepsize.astype(x.dtype) * gradient
    return x, SolverState(state.iteration + 1, stepsize, norm)


def program(x, data):
    states = [init_state(x)]
    for _ in range(2):
        x, state = update(x, states[-1], data)
        states.append(state)
    return x, states


def inputs():
    return jnp.zeros(3, jnp.bfloat16), jnp.ones((5, 3), jnp.bfloat16)


def shows_fault(result):
    if isinstance(result, Exception):
        return False
    _, states = result
    return len({jax.typeof(state.stepsize).weak_type for state in states}) > 1

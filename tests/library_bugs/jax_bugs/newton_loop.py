"""A while loop fails: its carry becomes float64 by a NumPy scalar.

https://github.com/jax-ml/jax/issues/2004
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X64 = True
DAMPING = np.float64(0.9)  # born


def residual(x):
    return x**3 - x - 1


def newton_step(state):
    i, x = state
    slope = jax.grad(residual)(x)
    return i + 1, x - DAMPING * residual(x) / slope  # guilty


def unfinished(state):
    i, x = state
    return (i < 20) & (jnp.abs(residual(x)) > 1e-5)


def solve(start):
    return lax.while_loop(unfinished, newton_step, (jnp.int32(0), start))[1]


def program(starts):
    return jax.vmap(solve)(starts)


def inputs():
    return (jnp.array([1.0, 2.0], jnp.float32),)


def shows_fault(result):
    return isinstance(result, TypeError) and "carry" in str(result)

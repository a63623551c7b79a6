"""A scan fails: a product of int32 is int64, and the carry is int32.

https://github.com/jax-ml/jax/issues/3154
"""

import jax
import jax.numpy as jnp
from jax import lax

X64 = True


def event_counts(batch, shape):
    blocks = jnp.reshape(batch, (*shape, -1))
    return jnp.prod(blocks, axis=-1)


def accumulate(carry, batch):
    count, total = carry
    total = total + event_counts(batch, total.shape)  # guilty
    return (count + jnp.int32(1), total), None


@jax.jit
def fold(batches):
    start = (jnp.int32(0), jnp.zeros(2, jnp.int32))
    (count, total), _ = lax.scan(accumulate, start, batches)
    return total // count


def program(batches):
    return fold(batches)


def inputs():
    return (jnp.ones((3, 2, 4), jnp.int32),)


def shows_fault(result):
    return isinstance(result, TypeError) and "carry" in str(result)

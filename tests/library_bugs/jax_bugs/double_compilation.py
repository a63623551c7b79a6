"""A jitted step compiles twice: its first total is a Python number, hence weak.

https://github.com/jax-ml/jax/issues/3163
"""

import jax
import jax.numpy as jnp

X64 = False
CONFIG = {"start": 0.0}


def chunk_loss(chunk):
    return jnp.mean(jnp.square(chunk - jnp.mean(chunk)))


@jax.jit
def step(total, chunk):
    return total + chunk_loss(chunk)  # guilty


def program(chunks):
    total = CONFIG["start"]
    types = []
    for chunk in chunks:
        types.append(jax.typeof(jnp.asarray(total)))
        total = step(total, chunk)
    return total, types


def inputs():
    return (jnp.arange(12, dtype=jnp.float32).reshape(3, 4),)


def shows_fault(result):
    if isinstance(result, Exception):
        return False
    _, types = result
    return len({(t.dtype, t.weak_type) for t in types}) > 1

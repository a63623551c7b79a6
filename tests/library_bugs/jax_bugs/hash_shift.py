"""A hash of uint32 is negative: a shift by int32 makes int32 of both.

https://github.com/jax-ml/jax/issues/16748
"""

import jax
import jax.numpy as jnp

X64 = False
ROUNDS = jnp.array([16, 13, 16], jnp.int32)  # born
MULTIPLIERS = (0x85EBCA6B, 0xC2B2AE35)


def mix(words, shift):
    return words ^ (words >> shift)  # guilty


@jax.jit
def finalize(words):
    for shift, multiplier in zip(ROUNDS[:2], MULTIPLIERS, strict=True):
        words = mix(words, shift).astype(jnp.uint32)
        words = words * jnp.uint32(multiplier)
    return mix(words, ROUNDS[2])


def buckets(words, count):
    return finalize(words) % count


def program(words):
    return buckets(words, 16)


def inputs():
    return (jnp.array([1, 0xFFFFFFFF, 0x80000000], jnp.uint32),)


def shows_fault(result):
    return result.dtype != jnp.uint32

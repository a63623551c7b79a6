"""A bfloat16 block gives float32: the scale of its normalization is float32.

https://github.com/google/flax/issues/612
"""

import jax
import jax.numpy as jnp

X64 = False


def init(key, features):
    return {
        "norm": {"scale": jnp.ones(features), "bias": jnp.zeros(features)},  # born
        "dense": {"kernel": jax.random.normal(key, (features, features), jnp.bfloat16)},
    }


def layer_norm(params, x, eps=1e-6):
    wide = jnp.asarray(x, jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True)
    normalized = jnp.asarray((wide - mean) * jax.lax.rsqrt(variance + eps), x.dtype)
    return normalized * params["scale"] + params["bias"]  # guilty


def block(params, x):
    hidden = layer_norm(params["norm"], x)
    return x + jax.nn.gelu(hidden @ params["dense"]["kernel"])


def program(x):
    return block(init(jax.random.key(0), x.shape[-1]), x)


def inputs():
    return (jnp.ones((2, 8), jnp.bfloat16),)


def shows_fault(result):
    return result.dtype == jnp.float32

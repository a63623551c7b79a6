"""Rotary position embedding and grouped-query attention on bfloat16 activations."""
import jax
import jax.numpy as jnp


def rope(x, positions, base=10000.0):
    """Angles and rotation in float32, result in the dtype of x."""
    half = x.shape[-1] // 2
    freqs = base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle = positions[:, :, None].astype(jnp.float32) * freqs
    sin, cos = jnp.sin(angle)[:, :, None, :], jnp.cos(angle)[:, :, None, :]
    x1, x2 = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    out = jnp.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=-1)
    return out.astype(x.dtype)


@jax.jit
def main(q, k, v, positions):
    q = rope(q, positions)
    k = rope(k, positions)
    groups = q.shape[2] // k.shape[2]
    k = jnp.repeat(k, groups, axis=2)
    v = jnp.repeat(v, groups, axis=2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
    scores = scores / jnp.sqrt(jnp.float32(q.shape[-1]))
    mask = positions[:, None, :, None] >= positions[:, None, None, :]
    scores = jnp.where(mask, scores, -1e30)
    probs = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", probs, v)


def inputs():
    ks = jax.random.split(jax.random.PRNGKey(22), 3)
    q = jax.random.normal(ks[0], (2, 5, 4, 8), dtype=jnp.bfloat16)
    k = jax.random.normal(ks[1], (2, 5, 2, 8), dtype=jnp.bfloat16)
    v = jax.random.normal(ks[2], (2, 5, 2, 8), dtype=jnp.bfloat16)
    pos = jnp.tile(jnp.arange(5, dtype=jnp.int32), (2, 1))
    return q, k, v, pos

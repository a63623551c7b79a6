"""Multi-head scaled dot-product attention with padding and causal masks."""
import jax
import jax.numpy as jnp

HEADS = 4


def split_heads(x):
    b, t, d = x.shape
    return x.reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3)


def merge_heads(x):
    b, h, t, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, t, h * d)


def main(x, wq, wk, wv, wo, lengths):
    q, k, v = (split_heads(x @ w) for w in (wq, wk, wv))
    scale = q.shape[-1] ** -0.5
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * scale
    t = x.shape[1]
    causal = jnp.tril(jnp.ones((t, t), dtype=bool))
    valid = jnp.arange(t)[None, :] < lengths[:, None]
    mask = causal[None, None] & valid[:, None, None, :]
    scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    probs = jax.nn.softmax(scores, axis=-1)
    out = merge_heads(jnp.einsum("bhqk,bhkd->bhqd", probs, v)) @ wo
    return jnp.where(valid[..., None], out, 0.0)


def inputs():
    keys = jax.random.split(jax.random.PRNGKey(6), 5)
    x = jax.random.normal(keys[0], (2, 6, 16))
    ws = [jax.random.normal(k, (16, 16)) / 4.0 for k in keys[1:]]
    return (x, *ws, jnp.array([6, 4], dtype=jnp.int32))

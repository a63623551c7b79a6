"""The cross-entropy of a language model over a large vocabulary, streamed over blocks of the
head so that the full logits are never held.

https://github.com/marin-community/marin/pull/8217
"""
import functools

import jax
import jax.numpy as jnp

CONFIG = {"v_block_size": 16, "logsumexp_weight": 1e-4, "compute": jnp.bfloat16}


class Policy:
    def __init__(self, compute):
        self.compute = compute

    def cast(self, tree):
        return jax.tree.map(lambda x: x.astype(self.compute), tree)


def _block_logits(x, w_block):
    logits = jax.lax.dot_general(x, w_block, (((1,), (0,)), ((), ())))
    return logits.astype(jnp.float32)


def _streaming_forward(x, w, labels, block):
    n, vocab = x.shape[0], w.shape[1]
    blocks = w.reshape(w.shape[0], vocab // block, block).transpose(1, 0, 2)

    m = jnp.full((n,), -jnp.inf, jnp.float32)
    total = picked = jnp.zeros((n,), jnp.float32)
    for index, w_block in enumerate(blocks):
        logits = _block_logits(x, w_block)
        new_m = jnp.maximum(m, logits.max(axis=-1))
        total = total * jnp.exp(m - new_m) + jnp.exp(logits - new_m[:, None]).sum(axis=-1)
        local = labels - index * block
        inside = (local >= 0) & (local < block)
        value = jnp.take_along_axis(logits, jnp.clip(local, 0, block - 1)[:, None], axis=1)[:, 0]
        m, picked = new_m, jnp.where(inside, value, picked)
    lse = m + jnp.log(total)
    return lse - picked, lse


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def fused_cross_entropy(x, w, labels, block):
    return _streaming_forward(x, w, labels, block)


def _fwd(x, w, labels, block):
    loss, lse = _streaming_forward(x, w, labels, block)
    return (loss, lse), (x, w, labels, lse)


def _bwd(block, residuals, cotangents):
    x, w, labels, lse = residuals
    d_loss, d_lse = cotangents
    logits = jnp.matmul(x, w, preferred_element_type=jnp.float32)
    probs = jnp.exp(logits - lse[:, None])
    one_hot = jax.nn.one_hot(labels, w.shape[1], dtype=jnp.float32)
    delta = probs * (d_loss + d_lse)[:, None] - one_hot * d_loss[:, None]
    dx = jnp.matmul(delta, w.T.astype(jnp.float32)).astype(x.dtype)
    dw = jnp.matmul(x.T.astype(jnp.float32), delta).astype(w.dtype)
    return dx, dw, None


fused_cross_entropy.defvjp(_fwd, _bwd)


def loss_fn(params, hidden, labels, mask):
    cast = Policy(CONFIG["compute"]).cast({"hidden": hidden, "head": params})
    loss, lse = fused_cross_entropy(cast["hidden"], cast["head"], labels, CONFIG["v_block_size"])
    loss = loss + CONFIG["logsumexp_weight"] * lse ** 2
    return jnp.sum(loss * mask) / jnp.sum(mask), (loss, lse)


def main(params, hidden, labels, mask):
    (mean, (loss, lse)), grad = jax.value_and_grad(loss_fn, has_aux=True)(params, hidden, labels, mask)
    return mean, loss, lse, grad


def inputs():
    keys = jax.random.split(jax.random.key(5), 3)
    hidden = jax.random.normal(keys[0], (12, 48), jnp.float32) * 2.0
    head = jax.random.normal(keys[1], (48, 64), jnp.float32)
    labels = jax.random.randint(keys[2], (12,), 0, 64)
    mask = jnp.ones((12,), jnp.float32).at[-1].set(0.0)
    return head, hidden * 2.5, labels, mask


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
